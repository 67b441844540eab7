"""OpProto and OpDesc as plain objects: what scripts fill in and compare. They have no wire form; ProgramDesc has."""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.ir.attr_types import AttrType as AttrType
    from penstock._src.ir.framework_pb2 import BLOCK as BLOCK, BLOCKS as BLOCKS, BOOL as BOOL, BOOLS as BOOLS
    from penstock._src.ir.framework_pb2 import FLOAT as FLOAT, FLOATS as FLOATS, INT as INT, INTS as INTS
    from penstock._src.ir.framework_pb2 import LONG as LONG, LONGS as LONGS, STRING as STRING, STRINGS as STRINGS
    from penstock._src.ir.framework_pb2 import OpDesc, OpProto

__all__ = ['OpDesc', 'OpProto']

facade.make(__name__)
