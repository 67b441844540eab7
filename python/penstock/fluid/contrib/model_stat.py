"""Statistics of a network: the parameters and floating-point operations of each op."""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.contrib.model_stat import summary

__all__ = ['summary']

facade.make(__name__)
