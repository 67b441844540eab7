"""Kinds of attributes."""

import enum

# In the order of the wire form's numbers.
ATTR_KINDS = (
    "INT",
    "FLOAT",
    "STRING",
    "INTS",
    "FLOATS",
    "STRINGS",
    "BOOLEAN",
    "BOOLEANS",
    "BLOCK",
    "LONG",
    "BLOCKS",
    "LONGS",
)


class AttrType(str, enum.Enum):
    """Kinds of attributes; each equals its name in the wire form.

    Example:
        op = fluid.layers.scale(fluid.data('x', [None, 4]), 2.0).block.ops[-1]
        assert op.desc.attr_type('scale') == fluid.core.AttrType.FLOAT
    """

    INT = "INT"
    INTS = "INTS"
    LONG = "LONG"
    LONGS = "LONGS"
    FLOAT = "FLOAT"
    FLOATS = "FLOATS"
    STRING = "STRING"
    STRINGS = "STRINGS"
    BOOL = "BOOLEAN"
    BOOLS = "BOOLEANS"
    BLOCK = "BLOCK"
    BLOCKS = "BLOCKS"
