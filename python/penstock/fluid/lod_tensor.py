"""Functions that create tensors of sequences of different lengths."""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.ir.lod_tensor import create_lod_tensor, create_random_int_lodtensor
    from penstock.fluid import core as core

__all__ = ['create_lod_tensor', 'create_random_int_lodtensor']

facade.make(__name__)
