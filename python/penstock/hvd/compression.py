"""Compression of arrays that ranks exchange."""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.hvd.compression import Compression

__all__ = ['Compression']

facade.make(__name__)
