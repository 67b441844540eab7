"""BlockHandles: the handles of a block's ops and variables, which stay valid while C++ adds, renames and removes."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from penstock._src.base.call_site import call_site
from penstock._src.ir.op_device import device_of_op
from penstock._src.ir.operator import Operator
from penstock._src.ir.types import VarType
from penstock._src.ir.variable import Parameter, Variable

if TYPE_CHECKING:
    from penstock._src.ir.block import Block
    from penstock._src.ir.program import Program
    from penstock._src.ir.typing import Attrs, SlotArgs


_LOD_TENSOR = int(VarType.LOD_TENSOR)


class BlockHandles:
    """The base class of Block: an op or a variable has one handle, made when it is first asked for."""

    def __init__(self, program: Program, idx: int) -> None:
        self.program = program
        self.idx = idx
        self._desc = program.desc
        self._op_handles: dict[int, Operator] = {}
        self._var_handles: dict[str, Variable] = {}

    def _op_handle(self, op_id: int) -> Operator:
        handle = self._op_handles.get(op_id)
        if handle is None:
            handle = self._op_handles[op_id] = Operator(cast("Block", self), op_id)
        return handle

    def _find_var_recursive(self, name: str) -> Variable | None:
        owner = self._desc.block_of_var(self.idx, name)
        return None if owner < 0 else self.program.block(owner)._var_handle(name)

    def _var_recursive(self, name: str) -> Variable:
        var = self._find_var_recursive(name)
        if var is None:
            raise ValueError(f"Var {name} is not found recursively")
        return var

    def _var_handle(self, name: str) -> Variable:
        handle = self._var_handles.get(name)
        if handle is None:
            kind = Parameter if self._desc.var_facts(self.idx, name).is_parameter else Variable
            handle = self._var_handles[name] = kind(cast("Block", self), name)
        return handle

    def _create_temporary(self, name: str, dtype: int, stop_gradient: bool) -> Variable:
        """Does the work of create_var without its checks, for a newly generated name."""
        self._desc.create_var(self.idx, name, _LOD_TENSOR, dtype, None, None, False, stop_gradient)
        var = self._var_handles[name] = Variable(cast("Block", self), name)
        return var

    def _prepend_op(
        self,
        type: str | None = None,
        inputs: SlotArgs | None = None,
        outputs: SlotArgs | None = None,
        attrs: Attrs | None = None,
    ) -> Operator:
        return self._insert_op(0, type, inputs, outputs, attrs)

    def _insert_op(
        self,
        index: int,
        type: str | None = None,
        inputs: SlotArgs | None = None,
        outputs: SlotArgs | None = None,
        attrs: Attrs | None = None,
    ) -> Operator:
        if type is None:
            raise ValueError("append_op: type must be the name of an op, not None")
        context = self.program._op_context
        context.location = call_site()
        device = context.device
        if device:
            context.device = device_of_op(device, type, attrs or {})
        try:
            op_id = self._desc.append_op(self.idx, index, type, inputs, outputs, attrs, context)
        finally:
            context.device = device
        handle = self._op_handles[op_id] = Operator(cast("Block", self), op_id)
        return handle

    def _remove_op(self, index: int) -> None:
        op_id = self._desc.ops(self.idx)[index]
        self._desc.remove_op(self.idx, op_id)
        self._op_handles.pop(op_id, None)

    def _remove_var(self, name: str) -> None:
        self._desc.remove_var(self.idx, name)
        self._var_handles.pop(name, None)

    def _rename_var(self, name: str, new_name: str) -> Variable:
        if not self._desc.rename_var(self.idx, name, new_name):
            raise ValueError(f"var {name} is not in this block")
        self._var_handles.pop(name, None)
        return self._var_handle(new_name)
