"""FleetUtil: log lines and metrics of all trainers."""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.executor.scopes import global_scope as global_scope
    from penstock._src.fleet.util import FleetUtil

__all__ = ['FleetUtil']

facade.make(__name__)
