"""Models of PyTorch on several workers: gradients and parameters travel through a key-value store, such as pservers.

    import torch
    import penstock.torch
    from penstock import kv as keyed

    kv = keyed.create('dist_sync')             # workers and pservers; one script is every role
    model = torch.nn.Linear(4, 1)
    optimizer = penstock.torch.DistributedOptimizer(kv, model, 'sgd', learning_rate=0.1)
    for inputs, labels in my_part_of_the_data:
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(inputs), labels).backward()
        optimizer.step()

Embedding is a module whose rows live in a penstock.kv.Table on the pservers; Prefetch asks for the next batch's rows.

`python -m penstock.distributed.launch --server_num 1 --worker_num 2 train.py` starts the processes. For all-reduce of
tensors without pservers see penstock.hvd, whose functions take tensors. PyTorch 2.1 or later is needed; Penstock does
not install it.

Errors: penstock.ProgramError E-torch-* and E-kv-* (a ValueError), penstock.StateError E-torch-step, penstock.PeerError
(another process is gone).
"""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.torch.embedding import Embedding
    from penstock._src.torch.optimizer import DistributedOptimizer
    from penstock._src.torch.prefetch import Prefetch

__all__ = ['DistributedOptimizer', 'Embedding', 'Prefetch']

facade.make(__name__)
