"""UnionFind: a partition of elements into sets that are merged."""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.transpile.ufind import UnionFind

__all__ = ['UnionFind']

facade.make(__name__)
