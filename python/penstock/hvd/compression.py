"""Compression of arrays that ranks exchange."""

# Written by tools/dev/gen_names.py.
from penstock._src.hvd.compression import Compression as Compression
from penstock._src.names import facade

__all__ = ['Compression']

facade.make(__name__)
