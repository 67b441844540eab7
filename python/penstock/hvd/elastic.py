"""horovod.torch.elastic, which Penstock does not have: the ranks of a job do not change while it runs.

The module can be imported, because scripts import it beside the rest; any use raises an error.
"""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.hvd.elastic import __path__ as __path__

__all__ = []

facade.make(__name__)
