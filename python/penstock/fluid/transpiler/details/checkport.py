"""wait_server_ready, for scripts that wait for servers themselves. Programs of trainers wait without it."""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.transpile.checkport import _pause as _pause, wait_server_ready

__all__ = ['wait_server_ready']

facade.make(__name__)
