"""DataFeeder: converts rows of Python values to the feed of an executor."""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.data.feeder import DataFeeder, check_dtype as check_dtype, check_type as check_type
    from penstock._src.data.feeder import check_variable_and_dtype as check_variable_and_dtype
    from penstock._src.data.feeder import convert_dtype as convert_dtype
    from penstock._src.ir.variable import Variable as Variable
    from penstock.fluid import core as core

__all__ = ['DataFeeder']

facade.make(__name__)
