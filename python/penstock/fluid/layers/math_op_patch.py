"""Operators of Variables: x + y, x * 2.0, -x, x < y and x[1:] add the same ops as in Fluid."""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.ir.variable import Variable as Variable
    from penstock._src.ir.variable_ops import patch_variable

__all__ = ['patch_variable']

facade.make(__name__)
