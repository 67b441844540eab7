"""TrainerFactory makes the TrainerDesc that a program asks for; FetchHandlerMonitor watches variables of a scope."""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.executor.fetch_handler import FetchHandler as FetchHandler
    from penstock._src.executor.trainer_factory import FetchHandlerMonitor, TrainerFactory
    from penstock._src.ir.variable import Variable as Variable

__all__ = ['FetchHandlerMonitor', 'TrainerFactory']

facade.make(__name__)
