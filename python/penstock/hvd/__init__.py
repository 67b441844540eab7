"""Horovod's interface: ranks of a job without pservers exchange arrays, or the gradients of a program.

    import penstock.hvd as hvd                 # instead of horovod.torch

    hvd.init()                                 # every process, started by the launcher
    total = hvd.allreduce(np.ones(3, 'float32'), op=hvd.Sum)      # array([2., 2., 2.]) with two ranks

    optimizer = hvd.DistributedOptimizer(fluid.optimizer.SGD(hvd.scale_learning_rate(0.1)))
    optimizer.minimize(loss)
    exe.run(fluid.default_startup_program())   # all ranks begin with rank 0's values
    exe.run(feed=my_part_of_the_batch)         # gradients are the mean of all ranks'

`python -m penstock.distributed.launch --worker_num 4 train.py` starts four ranks on this machine. Names, arguments and
meaning are those of Horovod for PyTorch (0.19), with NumPy arrays instead of tensors. The differences:

* Ranks must start operations in the same order; Horovod waits until all have started the operation of a name. If a rank
  starts another operation, or one with another name, all ranks get an error (E-collective-mismatch) that names both
  operations and the users' lines.
* Operations on arrays and runs of programs share this order: a thread that runs a program and a thread that exchanges
  arrays must take turns.
* If all ranks are on one host, a reduction adds in the order of the ranks, so every run gives the same bytes.
* A process joins a job only once: init() after shutdown() raises an error.

Errors: penstock.StateError E-hvd-init (no init() yet), E-collective-left (after shutdown()); penstock.ProgramError
E-hvd-* (arguments), E-collective-mismatch; penstock.PeerError E-collective-peer-lost, E-collective-peer-left (another
rank has ended; with its reason, if it reported one). Thread-safe, but the order of the calls must be the same on all
ranks.
"""

from penstock.hvd._arrays import (Adasum, Average, Max, Min, Product, Sum, allgather, allgather_async, allreduce,
                                  allreduce_, allreduce_async, allreduce_async_, barrier, broadcast, broadcast_,
                                  broadcast_async, broadcast_async_, poll, synchronize)
from penstock.hvd._job import init, is_initialized, local_rank, local_size, rank, shutdown, size
from penstock.hvd._programs import DistributedOptimizer, broadcast_optimizer_state, broadcast_parameters
from penstock.hvd._rates import scale_learning_rate, warmup_learning_rate
from penstock.hvd.compression import Compression

__all__ = [
    'Adasum', 'Average', 'Compression', 'DistributedOptimizer', 'Max', 'Min', 'Product', 'Sum', 'allgather',
    'allgather_async', 'allreduce', 'allreduce_', 'allreduce_async', 'allreduce_async_', 'barrier', 'broadcast',
    'broadcast_', 'broadcast_async', 'broadcast_async_', 'broadcast_optimizer_state', 'broadcast_parameters', 'init',
    'is_initialized', 'local_rank', 'local_size', 'poll', 'rank', 'scale_learning_rate', 'shutdown', 'size',
    'synchronize', 'warmup_learning_rate',
]
