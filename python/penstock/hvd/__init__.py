"""Horovod's interface: ranks of a job without pservers exchange arrays, or the gradients of a program.

    import penstock.hvd as hvd                 # instead of horovod.torch

    hvd.init()                                 # every process, started by the launcher
    total = hvd.allreduce(np.ones(3, 'float32'), op=hvd.Sum)      # array([2., 2., 2.]) with two ranks

    optimizer = hvd.DistributedOptimizer(fluid.optimizer.SGD(hvd.scale_learning_rate(0.1)))
    optimizer.minimize(loss)
    exe.run(fluid.default_startup_program())   # all ranks begin with rank 0's values
    exe.run(feed=my_part_of_the_batch)         # gradients are the mean of all ranks'

`python -m penstock.distributed.launch --worker_num 4 train.py` starts four ranks on this machine. Names, arguments and
meaning are those of Horovod for PyTorch (0.28); arrays are NumPy's or PyTorch tensors. The differences:

* Ranks must start operations in the same order; Horovod waits until all have started the operation of a name. If a rank
  starts another operation, or one with another name, all ranks get an error (E-collective-mismatch) that names both
  operations and the users' lines.
* Operations on arrays and runs of programs share this order: a thread that runs a program and a thread that exchanges
  arrays must take turns.
* If all ranks are on one host, a reduction adds in the order of the ranks, so every run gives the same bytes.
* A process joins a job only once: init() after shutdown() raises an error. hvd.elastic.run joins it again after a loss.
* broadcast_object and allgather_object send plain values and NumPy arrays, not pickles: receiving runs no code.
* join() lets the others go on with allreduce of arrays; while ranks run programs, it raises an error (E-hvd-join).
* SyncBatchNorm and sparse_allreduce_async raise NotImplementedError.

Errors: penstock.StateError E-hvd-init (no init() yet), E-collective-left (after shutdown()); penstock.ProgramError
E-hvd-* (arguments), E-collective-mismatch; penstock.PeerError E-collective-peer-lost, E-collective-peer-left (another
rank has ended; with its reason, if it reported one). Thread-safe, but the order of the calls must be the same on all
ranks.
"""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._penstock import PeerError as HorovodInternalError
    from penstock._src.hvd.allgather import allgather, allgather_async, grouped_allgather, grouped_allgather_async
    from penstock._src.hvd.allreduce import allreduce, allreduce_, allreduce_async, allreduce_async_
    from penstock._src.hvd.allreduce import grouped_allreduce, grouped_allreduce_, grouped_allreduce_async
    from penstock._src.hvd.allreduce import grouped_allreduce_async_
    from penstock._src.hvd.alltoall import alltoall, alltoall_async
    from penstock._src.hvd.broadcast import barrier, broadcast, broadcast_, broadcast_async, broadcast_async_
    from penstock._src.hvd.built import ccl_built, cuda_built, ddl_built, gloo_built, gloo_enabled, mpi_built
    from penstock._src.hvd.built import mpi_enabled, mpi_threads_supported, nccl_built, rocm_built
    from penstock._src.hvd.compression import Compression
    from penstock._src.hvd.handles import poll, synchronize
    from penstock._src.hvd.job import cross_rank, cross_size, is_homogeneous, is_initialized, local_rank, local_size
    from penstock._src.hvd.job import rank, size
    from penstock._src.hvd.joining import join
    from penstock._src.hvd.learning_rate import scale_learning_rate, warmup_learning_rate
    from penstock._src.hvd.membership import init, shutdown
    from penstock._src.hvd.objects import allgather_object, broadcast_object
    from penstock._src.hvd.operations import Adasum, Average, Max, Min, Product, Sum
    from penstock._src.hvd.process_sets import ProcessSet, add_process_set, global_process_set, remove_process_set
    from penstock._src.hvd.programs import DistributedOptimizer, broadcast_optimizer_state, broadcast_parameters
    from penstock._src.hvd.reducescatter import grouped_reducescatter, grouped_reducescatter_async, reducescatter
    from penstock._src.hvd.reducescatter import reducescatter_async
    from penstock._src.hvd.timeline import start_timeline, stop_timeline
    from penstock.hvd import elastic

__all__ = [
    'Adasum', 'Average', 'Compression', 'DistributedOptimizer', 'HorovodInternalError', 'Max', 'Min', 'ProcessSet',
    'Product', 'Sum', 'add_process_set', 'allgather', 'allgather_async', 'allgather_object', 'allreduce',
    'allreduce_', 'allreduce_async', 'allreduce_async_', 'alltoall', 'alltoall_async', 'barrier', 'broadcast',
    'broadcast_', 'broadcast_async', 'broadcast_async_', 'broadcast_object', 'broadcast_optimizer_state',
    'broadcast_parameters', 'ccl_built', 'cross_rank', 'cross_size', 'cuda_built', 'ddl_built', 'elastic',
    'global_process_set', 'gloo_built', 'gloo_enabled', 'grouped_allgather', 'grouped_allgather_async',
    'grouped_allreduce', 'grouped_allreduce_', 'grouped_allreduce_async', 'grouped_allreduce_async_',
    'grouped_reducescatter', 'grouped_reducescatter_async', 'init', 'is_homogeneous', 'is_initialized', 'join',
    'local_rank', 'local_size', 'mpi_built', 'mpi_enabled', 'mpi_threads_supported', 'nccl_built', 'poll', 'rank',
    'reducescatter', 'reducescatter_async', 'remove_process_set', 'rocm_built', 'scale_learning_rate', 'shutdown',
    'size', 'start_timeline', 'stop_timeline', 'synchronize', 'warmup_learning_rate',
]

facade.make(__name__)
