"""Balances the work of trainers: a slow trainer hands part of its examples over to fast ones.

    import penstock.work

    shares = penstock.work.Shares(len(examples), batch_size=64)
    for epoch in range(epochs):
        for round in shares.rounds(epoch):
            gradient = zeros
            for indices in round:                          # its own examples, then those of slower trainers
                gradient += sum_of_gradients(examples[indices])
            gradient = hvd.allreduce(gradient, op=hvd.Sum) / round.size

Every example is yielded once an epoch, to one trainer or another.
"""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.work.shares import Shares

__all__ = ['Shares']

facade.make(__name__)
