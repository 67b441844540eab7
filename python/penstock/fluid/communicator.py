"""Communicator: sends and receives for trainer programs of runtime_split_send_recv and geo-SGD."""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.ir.program import Program as Program
    from penstock._src.transpile.communicator import Communicator
    from penstock._src.transpile.config import DistributedMode as DistributedMode

__all__ = ['Communicator']

facade.make(__name__)
