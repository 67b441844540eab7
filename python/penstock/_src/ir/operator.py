"""Operator: a handle on an op of a block (program.py explains handles)."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from penstock._src.base.bad_arguments import guarded
from penstock._src.base.doc_texts import with_texts
from penstock._src.ir.descs import ATTR_KINDS, OpDesc, value_of_attr
from penstock._src.ir.op_texts import OF_AN_OP
from penstock._src.ir.types import op_proto_and_checker_maker

if TYPE_CHECKING:
    from penstock._penstock import _Attr
    from penstock._src.ir.block import Block
    from penstock._src.ir.descs import AttrValue, BlockDesc


_CALLSTACK = op_proto_and_checker_maker.kOpCreationCallstackAttrName()


class Operator:
    """An op of a block. `Block.append_op` creates it.

    Args:
        block (Block): the block.
        op_id (int): its identity, which does not change with its position.

    Example:
        y = fluid.layers.fc(fluid.data('x', [None, 4]), 2)
        op = fluid.default_main_program().global_block().ops[0]
        assert op.type == 'mul' and op.input('X') == ['x']
    """

    __slots__ = ("block", "_id", "_desc", "__weakref__")

    @guarded
    def __init__(self, block: Block, op_id: int) -> None:
        self.block = block
        self._id = op_id
        self._desc = block.program.desc

    @property
    def desc(self) -> OpDesc:
        """The op as Fluid's OpDesc, a view: desc.type(), desc.input('X'), desc.set_input('X', names) and so on."""
        return OpDesc(self._desc, self.block.idx, self._id)

    @property
    def type(self) -> str:
        """Its type, such as 'mul'."""
        return self._desc.op_type(self.block.idx, self._id)

    @property
    def idx(self) -> int:
        """Its current position in the block."""
        return self._desc.op_position(self.block.idx, self._id)

    @property
    def location(self) -> str:
        """The user's line that created it: 'train.py:12 in model'."""
        return self._desc.op_location(self.block.idx, self._id)

    def _inputs(self) -> dict[str, list[str]]:
        return self._desc.op_inputs(self.block.idx, self._id)

    def _outputs(self) -> dict[str, list[str]]:
        return self._desc.op_outputs(self.block.idx, self._id)

    @with_texts(OF_AN_OP, way="input")
    def input(self, name: str) -> list[str]:
        """{names_in}"""
        return self._inputs().get(name, [])

    @with_texts(OF_AN_OP, way="output")
    def output(self, name: str) -> list[str]:
        """{names_in}"""
        return self._outputs().get(name, [])

    @property
    def input_names(self) -> list[str]:
        """Its input slots."""
        return list(self._inputs())

    @property
    def output_names(self) -> list[str]:
        """Its output slots."""
        return list(self._outputs())

    @property
    def input_arg_names(self) -> list[str]:
        """Names of all variables that it reads."""
        return [name for names in self._inputs().values() for name in names]

    @property
    def output_arg_names(self) -> list[str]:
        """Names of all variables that it writes."""
        return [name for names in self._outputs().values() for name in names]

    def all_attrs(self) -> dict[str, Block | list[Block] | _Attr]:
        """Returns its attributes.

        Returns:
            dict: values by name; of an attribute that names blocks, such as sub_block, the Blocks.
        """
        attrs: dict[str, Block | list[Block] | _Attr] = dict(self._attrs())
        for name in attrs:
            kind = self.attr_type(name)
            if kind in ("BLOCK", "BLOCKS"):
                attrs[name] = self._block_attr(name) if kind == "BLOCK" else self._blocks_attr(name)
        return attrs

    def _attrs(self) -> dict[str, _Attr]:
        return self._desc.op_attrs(self.block.idx, self._id)

    @property
    def attr_names(self) -> list[str]:
        """Names of its attributes; with 'op_callstack', if its location is known."""
        names = list(self._attrs())
        return names + [_CALLSTACK] if _CALLSTACK not in names and self.location else names

    def has_attr(self, name: str) -> bool:
        """Returns whether it has an attribute.

        Args:
            name (str): the attribute.

        Returns:
            bool: whether the op has it.
        """
        return name in self._attrs() or (name == _CALLSTACK and bool(self.location))

    def attr(self, name: str) -> AttrValue:
        """Returns the value of an attribute.

        Args:
            name (str): the attribute.

        Returns:
            Its value; for an attribute that names blocks, such as sub_block, their BlockDescs; for op_callstack a
            list[str] with the user's line, as in a traceback.

        Raises:
            ValueError: the attribute does not exist.
        """
        attrs = self._attrs()
        if name == _CALLSTACK and name not in attrs and self.location:
            line, _, function = self.location.partition(" in ")
            file, _, number = line.rpartition(":")
            return ['  File "{}", line {}, in {}'.format(file, number, function or "<module>")]
        if name not in attrs:
            raise ValueError(f"op {self.type} has no attribute {name}; it has {', '.join(sorted(attrs))}")
        return value_of_attr(self._desc, self.attr_type(name) or "", attrs[name])

    def _int_attr(self, name: str) -> int:
        value = self.attr(name)
        if not isinstance(value, int):
            raise TypeError(f"attribute {name} of op {self.type} is no integer, but {value!r}")
        return value

    def _names_attr(self, name: str) -> list[str]:
        value = self.attr(name)
        if not isinstance(value, list):
            raise TypeError(f"attribute {name} of op {self.type} is no list of names, but {value!r}")
        return [one for one in value if isinstance(one, str)]

    @property
    def _role(self) -> int:
        """Its bits of OpRole; 0, which is Forward, if it has no op_role."""
        return self._int_attr("op_role") if self.has_attr("op_role") else 0

    def attr_type(self, name: str) -> str | None:
        """Returns the kind of an attribute.

        Args:
            name (str): the attribute.

        Returns:
            str | None: 'INT', 'FLOATS' and so on; None if the attribute does not exist.
        """
        kind = self._desc.op_attr_kind(self.block.idx, self._id, name)
        if kind is None:
            return "STRINGS" if name == _CALLSTACK and self.location else None
        return ATTR_KINDS[kind]

    def _block_attr_id(self, name: str) -> int:
        return cast("BlockDesc", self.attr(name)).id

    def _block_attr(self, name: str) -> Block:
        return self.block.program.block(self._block_attr_id(name))

    def _blocks_attr_ids(self, name: str) -> list[int]:
        return [block.id for block in cast("list[BlockDesc]", self.attr(name))]

    def _blocks_attr(self, name: str) -> list[Block]:
        return [self.block.program.block(index) for index in self._blocks_attr_ids(name)]

    def _set_attr(self, name: str, value: object) -> None:
        self._desc.set_op_attr(self.block.idx, self._id, name, value)

    def _remove_attr(self, name: str) -> None:
        self._desc.remove_op_attr(self.block.idx, self._id, name)

    def _rename_input(self, old_name: str, new_name: str) -> None:
        self._desc.rename_in_op(self.block.idx, self._id, old_name, new_name, True, False)

    def _rename_output(self, old_name: str, new_name: str) -> None:
        self._desc.rename_in_op(self.block.idx, self._id, old_name, new_name, False, True)

    def to_string(self, throw_on_error: bool = True) -> str:
        """Prints the op as text.

        Args:
            throw_on_error (bool): ignored; accepted for compatibility with Fluid.

        Returns:
            str: one line.
        """
        return self._desc.op_to_string(self.block.idx, self._id)

    def __str__(self) -> str:
        return self.to_string()

    def __repr__(self) -> str:
        return f"<Operator {self.type}>"
