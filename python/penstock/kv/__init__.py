"""A key-value store of arrays: processes push values by key, and pull sums, or weights that an optimizer updates.

    from penstock import kv as keyed

    kv = keyed.create('dist_sync')             # workers and pservers; one script is every role
    kv.init('w', np.zeros((2, 3), 'float32'))  # the value of rank 0; waits for all workers
    kv.set_optimizer(keyed.optimizer.create('sgd', learning_rate=0.1))
    kv.barrier()
    kv.push('w', gradient)                     # the pservers update w when all workers have pushed
    weights = kv.pull('w')

`python -m penstock.distributed.launch --server_num 1 --worker_num 2 train.py` starts the processes. Names, arguments
and meaning are those of MXNet's KVStore (1.9), with NumPy arrays or PyTorch's CPU tensors instead of NDArrays. What is
different, because users expect it so:

* The calls of one worker on a key take effect in the order of the calls. A pushed array is never changed or kept.
* A round is complete when each worker has pushed the key; a second push of a worker belongs to the next round.
* Keys are names: workers may initialize them in any order.
* Values do not depend on the number of pservers. float64 and integers keep their bits.
* A request that is refused raises an error where it was made, and the other workers go on. If a worker is gone, the
  others get an error that names it.
* Optimizers travel as a name and numbers, not as pickles. Rates and multipliers that are changed later take effect.
  set_optimizer also takes an optimizer of fluid.optimizer, or a program of one's own, which the pservers run.
* Unknown types of stores are errors.
* push, and pull with `out`, return a ticket: `out` is complete after ticket.wait() or kv.wait(). pull without `out`
  waits.

A Table has rows by any 64-bit id, which its own optimizer updates; MXNet has no such thing.

Errors: penstock.ProgramError E-kv-* (a ValueError), penstock.PeerError (another process is gone).
"""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.kv.create import create
    from penstock._src.kv.store import KVStore
    from penstock._src.kv.table import Table
    from penstock._src.kv.tickets import Ticket
    from penstock._src.kv.values import RowSparse
    from penstock.kv import lr_scheduler, optimizer

__all__ = ['KVStore', 'RowSparse', 'Table', 'Ticket', 'create', 'lr_scheduler', 'optimizer']

facade.make(__name__)
