"""BlockDesc, OpDesc and (in var_desc.py) VarDesc: Fluid's low-level interface to a program, as views of the C++ value.

A view is (program, block, id or name), like the handles of program.py, and reads and changes the same program.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from penstock import _penstock
from penstock._penstock import ProgramDesc
from penstock._src.base.doc_texts import with_texts
from penstock._src.ir.attr_types import ATTR_KINDS as ATTR_KINDS
from penstock._src.ir.attr_types import AttrType as AttrType
from penstock._src.ir.op_slots import OpSlots
from penstock._src.ir.op_texts import OF_A_BLOCK, OF_AN_OP
from penstock._src.ir.var_desc import VarDesc, View, text

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Union

    from penstock._penstock import _Attr

    AttrValue = Union["BlockDesc", "list[BlockDesc]", _Attr]


class BlockDesc(View):
    """A view of one block of a program. It can be used as its index where an index is expected.

    Example:
        fluid.layers.fc(fluid.data('x', [None, 4]), 2, param_attr='w')
        block = fluid.default_main_program().desc.block(0)
        assert block.op(0).type() == 'mul' and block.has_var('w')
    """

    __slots__ = ()
    _at: tuple[int]

    @property
    def id(self) -> int:
        """Its index in the program."""
        return self._at[0]

    def __index__(self) -> int:
        return self.id

    def __eq__(self, other: object) -> bool:
        return self.id == other if isinstance(other, int) else super().__eq__(other)

    __hash__ = View.__hash__

    @property
    def parent(self) -> int:
        """Index of the enclosing block; -1 for block 0."""
        return self._program.parent(self.id)

    def get_forward_block_idx(self) -> int:
        """Returns the index of the block whose gradient this block computes.

        Returns:
            int: the index, or -1 if this block computes no gradient.
        """
        return self._program.forward_block(self.id)

    def op_size(self) -> int:
        """Counts the ops of the block.

        Returns:
            int: the number of ops.
        """
        return self._program.op_count(self.id)

    def op(self, index: int) -> OpDesc:
        """Returns the op at a position.

        Args:
            index (int): the position, from 0.

        Returns:
            OpDesc: a view of the op.

        Raises:
            IndexError: the block has no such op.
        """
        ops = self._program.ops(self.id)
        if not 0 <= index < len(ops):
            raise IndexError(f"there is no op {index} in block {self.id}, which has {len(ops)} ops")
        return OpDesc(self._program, self.id, ops[index])

    def append_op(self) -> OpDesc:
        """Appends an op that has no type yet.

        Returns:
            OpDesc: the new op.
        """
        return self._insert_op(-1)

    def _prepend_op(self) -> OpDesc:
        return self._insert_op(0)

    def _insert_op(self, position: int) -> OpDesc:
        return OpDesc(self._program, self.id, _penstock.insert_empty_op(self._program, self.id, position))

    def _remove_op(self, begin: int, end: int) -> None:
        for op_id in self._program.ops(self.id)[begin:end]:
            self._program.remove_op(self.id, op_id)

    def var(self, name: bytes | str) -> VarDesc:
        """Returns the variable with a name; declares it if it does not exist.

        Args:
            name (str | bytes): the name.

        Returns:
            VarDesc: a view of the variable.
        """
        name = text(name)
        if not self._program.has_var(self.id, name):
            self._program.create_var(self.id, name)
        return VarDesc(self._program, self.id, name)

    @with_texts(OF_A_BLOCK, who="this block", end="it does")
    def has_var(self, name: bytes | str) -> bool:
        """{declares}"""
        return self._program.has_var(self.id, text(name))

    @with_texts(OF_A_BLOCK, who="this block or an enclosing one", end="one does")
    def has_var_recursive(self, name: bytes | str) -> bool:
        """{declares}"""
        return self._program.block_of_var(self.id, text(name)) >= 0

    def find_var(self, name: bytes | str) -> VarDesc | None:
        """Finds a variable that this block declares.

        Args:
            name (str | bytes): the name.

        Returns:
            VarDesc: a view of the variable, or None.
        """
        return VarDesc(self._program, self.id, text(name)) if self.has_var(name) else None

    def find_var_recursive(self, name: bytes | str) -> VarDesc | None:
        """Finds a variable that this block or an enclosing one declares; the innermost declaration counts.

        Args:
            name (str | bytes): the name.

        Returns:
            VarDesc: a view of the variable, or None.
        """
        owner = self._program.block_of_var(self.id, text(name))
        return None if owner < 0 else VarDesc(self._program, owner, text(name))

    def all_vars(self) -> list[VarDesc]:
        """Lists the variables that the block declares.

        Returns:
            list[VarDesc]: a view of each.
        """
        return [VarDesc(self._program, self.id, name) for name in self._program.vars(self.id)]

    def _rename_var(self, name: str, new_name: str) -> None:
        if not self._program.rename_var(self.id, text(name), text(new_name)):
            raise ValueError(f"var {text(name)} is not in this block")

    def _remove_var(self, name: str) -> None:
        self._program.remove_var(self.id, text(name))


class OpDesc(OpSlots):
    """A view of one op: its type, the variables that it reads and writes, and its attributes.

    Args:
        program (ProgramDesc | None): the program of the op; None: an op without a program, which another op may copy.
        *at (int): the index of the block and the id of the op.

    Example:
        op = fluid.core.OpDesc()
        op.set_type('scale')
        op.set_input('X', ['a'])
        op.set_output('Out', ['b'])
        op._set_attr('scale', 2.0)
        assert op.input('X') == ['a'] and op.attr('scale') == 2.0
    """

    __slots__ = ()

    def __init__(self, program: ProgramDesc | None = None, *at: int) -> None:
        if program is None:  # an op without a program, which another one may copy
            program = ProgramDesc()
            at = (0, _penstock.insert_empty_op(program, 0, -1))
        super().__init__(program, *at)

    def block(self) -> BlockDesc:
        """Returns the block of the op.

        Returns:
            BlockDesc: a view of the block.
        """
        return BlockDesc(self._program, self._at[0])

    def copy_from(self, other: OpDesc) -> None:
        """Copies type, inputs, outputs and attributes of another op.

        Args:
            other (OpDesc): the other op.
        """
        _penstock.copy_op(self._program, *self._at, other._program, *other._at)

    def attr_names(self) -> list[str]:
        """Lists the attributes.

        Returns:
            list[str]: their names.
        """
        return list(self._program.op_attrs(*self._at))

    def has_attr(self, name: str) -> bool:
        """Returns whether the op has an attribute.

        Args:
            name (str): the name.

        Returns:
            bool: True if it has.
        """
        return self._program.op_attr_kind(*self._at, name) is not None

    def attr_type(self, name: str) -> AttrType:
        """Returns the kind of an attribute.

        Args:
            name (str): the name.

        Returns:
            AttrType: the kind.

        Raises:
            ValueError: the op has no such attribute.
        """
        kind = self._program.op_attr_kind(*self._at, name)
        if kind is None:
            raise ValueError(f"op {self.type()} has no attribute {name}")
        return AttrType(ATTR_KINDS[kind])

    def attr(self, name: str) -> AttrValue:
        """Returns the value of an attribute.

        Args:
            name (str): the name.

        Returns:
            bool | int | float | str | list: the value; for an attribute that names blocks, a BlockDesc or a list of
                them.

        Raises:
            ValueError: the op has no such attribute.
        """
        kind = self.attr_type(name)
        value = self._program.op_attrs(*self._at)[name]
        return value_of_attr(self._program, kind, value)

    def _set_attr(self, name: str, value: BlockDesc | _Attr) -> None:
        """Sets an attribute.

        Args:
            name (str): the name.
            value (bool | int | float | str | list | BlockDesc): the value.
        """
        if isinstance(value, BlockDesc):
            self.set_block_attr(name, value)
        else:
            self._program.set_op_attr(*self._at, name, value)

    set_attr = _set_attr

    def remove_attr(self, name: str) -> None:
        """Removes an attribute.

        Args:
            name (str): the name.
        """
        self._program.remove_op_attr(*self._at, name)

    def set_block_attr(self, name: str, block: BlockDesc) -> None:
        """Sets an attribute that names a block.

        Args:
            name (str): the name.
            block (BlockDesc): the block.
        """
        _penstock.set_op_blocks(self._program, *self._at, name, [block.id], False)

    def set_blocks_attr(self, name: str, blocks: Sequence[BlockDesc]) -> None:
        """Sets an attribute that names several blocks.

        Args:
            name (str): the name.
            blocks (list[BlockDesc]): the blocks.
        """
        _penstock.set_op_blocks(self._program, *self._at, name, [block.id for block in blocks], True)

    def _block_attr_id(self, name: str) -> int:
        return cast(BlockDesc, self.attr(name)).id

    def _blocks_attr_ids(self, name: str) -> list[int]:
        return [block.id for block in cast("list[BlockDesc]", self.attr(name))]

    def check_attrs(self) -> None:
        """Adds missing attributes with their defaults."""
        _penstock.check_op_attrs(self._program, *self._at)

    @with_texts(OF_AN_OP)
    def infer_shape(self, block: BlockDesc) -> None:
        """{inferred}"""
        _penstock.infer_op(block._program, block.id, self._program, *self._at)

    @with_texts(OF_AN_OP)
    def infer_var_type(self, block: BlockDesc) -> None:
        """{inferred}"""
        _penstock.infer_op(block._program, block.id, self._program, *self._at)

    def __str__(self) -> str:
        return self._program.op_to_string(*self._at)


def value_of_attr(program: ProgramDesc, kind: AttrType | str, value: _Attr) -> AttrValue:
    """Converts an attribute's value from C++ to the value that attr() returns: blocks instead of their indices."""
    if kind == AttrType.BLOCK:
        return BlockDesc(program, cast(int, value))
    if kind == AttrType.BLOCKS:
        return [BlockDesc(program, index) for index in cast("list[int]", value)]
    return value
