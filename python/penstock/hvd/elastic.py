"""Horovod's elastic training: ranks that are lost come back or are left out, and the others go on from the last commit.

    import penstock.hvd as hvd

    hvd.init()
    optimizer = hvd.DistributedOptimizer(fluid.optimizer.Adam(0.01))
    optimizer.minimize(loss)
    exe.run(fluid.default_startup_program())
    state = hvd.elastic.ProgramState(batch=0)          # the tensors of the program, and a number

    @hvd.elastic.run
    def train(state):
        while state.batch < batches:
            exe.run(feed=part_of(state.batch, hvd.rank(), hvd.size()))
            state.batch += 1
            state.commit()                             # where all ranks return to

    train(state)

`python -m penstock.distributed.launch --worker_num 3 --max_role_restart 3 train.py` restarts a rank that is lost; with
`--min_workers 2` the others go on without it. Without these options, the loss of a rank is an error, as in other jobs.

The functions and classes are those of horovod.torch.elastic; ProgramState takes the place of TorchState. The
differences:

* Values of a state travel in a format of their own, not as pickles: numbers, texts, arrays, and lists and dicts of
  them.
* State.sync() gives all ranks the state of the lowest rank that has worked in an earlier round, which need not be 0.
* With --max_role_restart alone, a restarted rank has its former number.
* The startup program of DistributedOptimizer does not exchange initial values in rounds after the first: sync() does.
* Process sets must be added again in each round, for instance in a callback of register_reset_callbacks.
"""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._penstock import PeerError as HorovodInternalError
    from penstock._src.hvd.elastic import HostsUpdatedInterrupt, run
    from penstock._src.hvd.elastic_sampler import ElasticSampler
    from penstock._src.hvd.elastic_state import ObjectState, ProgramState, State

__all__ = [
    'ElasticSampler', 'HorovodInternalError', 'HostsUpdatedInterrupt', 'ObjectState', 'ProgramState', 'State', 'run',
]

facade.make(__name__)
