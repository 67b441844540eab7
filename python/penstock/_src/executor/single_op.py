"""Operator: runs single ops in a scope, as Fluid's op tests do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy

from penstock._src.base.doc_texts import with_texts
from penstock._src.base.errors import not_built, program_error
from penstock._src.executor.executor import Executor
from penstock._src.ir import framework_pb2
from penstock._src.ir.op_protos import all_types, proto_of
from penstock._src.ir.op_texts import OF_A_REGISTRY
from penstock._src.ir.program import Program
from penstock._src.ir.types import VarType

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Optional

    from penstock._penstock import Scope
    from penstock._src.ir.op_protos import OpProto, SlotProto
    from penstock._src.ir.types import CPUPlace

    _Facts = tuple[VarType, Optional[int], Optional[list[int]], int]  # kind, element type, shape, levels of sequences


@with_texts(OF_A_REGISTRY, module="op")
def get_all_op_protos() -> list[Any]:
    """{protos}"""
    return [proto_of(kind) for kind in all_types()]


class _DynamicRecurrent:
    """A name that op tests import. The op does not exist in Fluid 1.8 either."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise not_built(
            "fluid.op.DynamicRecurrentOp: there is no op dynamic_recurrent; "
            "fluid.layers.DynamicRNN runs steps of sequences"
        )


DynamicRecurrentOp = _DynamicRecurrent()


class _OneOp:
    """A single op. It runs on the variables of a scope, in a program of one op that is built for their types."""

    def __init__(
        self, kind: str, inputs: dict[str, list[str]], outputs: dict[str, list[str]], attrs: dict[str, float]
    ) -> None:
        self._kind = kind
        self._slots = {"inputs": inputs, "outputs": outputs}
        self._attrs = attrs
        self._made_for: list[tuple[str, _Facts]] | None = None
        self._program: Program | None = None

    def type(self) -> str:
        """Its type."""
        return self._kind

    def inputs(self) -> dict[str, list[str]]:
        """Names in each input slot."""
        return self._slots["inputs"]

    def outputs(self) -> dict[str, list[str]]:
        """Names in each output slot."""
        return self._slots["outputs"]

    def input_vars(self) -> list[str]:
        """Names of all variables that it reads."""
        return [name for names in self.inputs().values() for name in names]

    def output_vars(self) -> list[str]:
        """Names of all variables that it writes."""
        return [name for names in self.outputs().values() for name in names]

    def run(self, scope: Scope, place: CPUPlace | None = None) -> None:
        """Runs the op: reads its inputs from the scope and writes its outputs there."""
        executor = Executor(place)
        facts = {name: self._facts(scope, name) for name in self.input_vars()}
        facts.update((name, self._facts(scope, name)) for name in self.output_vars() if name not in facts)
        inputs = [(name, facts[name]) for name in self.input_vars()]
        if inputs != self._made_for:
            self._program = self._program_for(facts)
            self._made_for = inputs
        executor.run(self._program, scope=scope)

    def _facts(self, scope: Scope, name: str) -> _Facts:
        """Returns (kind, element type, shape, levels of sequences); the element type is None if the scope has no
        value."""
        var = scope.find_var(name)
        holds = "" if var is None else var._holds()
        if var is None or holds not in ("tensor", "rows", "array"):
            return (VarType.LOD_TENSOR, None, None, 0)
        if holds == "array":
            array = var.get_lod_tensor_array()
            return (VarType.LOD_TENSOR_ARRAY, array[0]._dtype() if len(array) else None, None, 0)
        if holds == "tensor":
            tensor, kind = var.get_tensor(), VarType.LOD_TENSOR
        else:
            tensor, kind = var.get_selected_rows().get_tensor(), VarType.SELECTED_ROWS
        if not tensor._is_initialized():
            return (kind, None, None, 0)
        shape = list(tensor.shape())
        if kind == VarType.SELECTED_ROWS:
            shape[0] = var.get_selected_rows().height()
        return (kind, tensor._dtype(), shape, len(tensor.lod()))

    def _program_for(self, facts: dict[str, _Facts]) -> Program:
        program = Program()
        block = program.global_block()
        for name, (kind, dtype, shape, levels) in facts.items():
            block.create_var(name=name, type=kind, dtype=dtype, shape=shape, lod_level=levels, persistable=True)
        block.append_op(self._kind, dict(self.inputs()), dict(self.outputs()), dict(self._attrs))
        return program

    def __str__(self) -> str:
        return f"Op({self._kind}), inputs:{_text_of(self.inputs())}, outputs:{_text_of(self.outputs())}."


def _text_of(slots: dict[str, list[str]]) -> str:
    """Returns slots as text: {X[a, b], Y[c]}."""
    return "{{{}}}".format(", ".join(f"{slot}[{', '.join(names)}]" for slot, names in slots.items() if names))


class OpDescCreationMethod:
    """Creates OpDescs for one op declaration.

    Args:
        op_proto (OpProto): the declaration, a fluid.proto.framework_pb2.OpProto.

    Raises:
        TypeError: `op_proto` is not an OpProto.

    Example:
        proto = fluid.proto.framework_pb2.OpProto(type='cos', comment='the cosine')
        for slots, name in ((proto.inputs, 'X'), (proto.outputs, 'Out')):
            slot = slots.add()
            slot.name, slot.comment = name, 'any shape'
        desc = fluid.op.OpDescCreationMethod(proto)(X='x', Out='y')
        assert desc.outputs[0].arguments == ['y']
    """

    _FIELDS = {
        "INT": "i",
        "FLOAT": "f",
        "LONG": "l",
        "STRING": "s",
        "BOOLEAN": "b",
        "INTS": "ints",
        "FLOATS": "floats",
        "STRINGS": "strings",
        "BOOLEANS": "bools",
        "LONGS": "longs",
    }

    def __init__(self, op_proto: OpProto) -> None:
        if not isinstance(op_proto, framework_pb2.OpProto):
            raise TypeError(f"OpDescCreationMethod takes an OpProto, not {op_proto!r}")
        self._proto = op_proto

    def __call__(self, **kwargs: Any) -> framework_pb2.OpDesc:
        """Creates an OpDesc.

        Args:
            kwargs (str | list[str]): variables by slot, and attributes by name.

        Returns:
            OpDesc: a fluid.proto.framework_pb2.OpDesc.

        Raises:
            ValueError: a slot has too many variables.
            NotImplementedError: an attribute names a block.
        """
        proto, desc = self._proto, framework_pb2.OpDesc()
        desc.type = proto.type
        for slots, declared in ((desc.inputs, proto.inputs), (desc.outputs, proto.outputs)):
            for slot in declared:
                made = slots.add()
                made.parameter = slot.name
                made.arguments.extend(_names_in(proto.type, slot, kwargs.get(slot.name, ())))
        for attr in proto.attrs:
            value = kwargs.get(attr.name)
            if attr.generated or value is None:
                continue
            made = desc.attrs.add()
            made.name, made.type = attr.name, attr.type
            field = self._FIELDS.get(attr.type.name)
            if field is None:
                raise not_built(
                    f"attribute {attr.name}: an OpDesc here cannot hold an attribute of kind {attr.type.name}"
                )
            if isinstance(getattr(made, field), list):
                getattr(made, field).extend(value.tolist() if isinstance(value, numpy.ndarray) else value)
            else:
                setattr(made, field, value)
        return desc


def _names_in(kind: str, slot: SlotProto, given: Sequence[str] | str) -> list[str]:
    names = [given] if isinstance(given, (str, bytes)) else list(given)
    if len(names) > 1 and not slot.duplicable:
        raise ValueError(f"slot {slot.name} of op {kind} takes one variable, not {len(names)}")
    return [name.decode() if isinstance(name, bytes) else name for name in names]


_SLOTS = {
    "slots": """Args:
    type (str): its type.

Returns:
    list: pairs of the name and whether it takes several variables.

Raises:
    ValueError: the op is unknown.""",
    "names": """Args:
    type (str): its type.

Returns:
    list[str]: in the order of its declaration.

Raises:
    ValueError: the op is unknown.""",
}


class OperatorFactory:
    """Creates single ops: Operator(type, X='x', Out='y', axis=1). `fluid.op.Operator` is the shared instance.

    Example:
        scope, place = fluid.Scope(), fluid.CPUPlace()
        scope.var('x').get_tensor().set(np.array([-1, 2], 'float32'), place)
        scope.var('y').get_tensor()
        fluid.op.Operator('relu', X='x', Out='y').run(scope, place)
        assert np.array(scope.find_var('y').get_tensor()).tolist() == [0.0, 2.0]
    """

    def __call__(self, *args: Any, **kwargs: Any) -> _OneOp:
        """Creates an op.

        Args:
            args (str): the type, which may also be passed as `type`.
            kwargs (str | list[str]): variables by slot, and attributes by name.

        Returns:
            The op. Its run(scope, place) reads the variables from the scope, and writes them there.

        Raises:
            ValueError: the op is unknown, or a slot has too many variables.
        """
        if len(args) + ("type" in kwargs) != 1:
            raise ValueError("Operator takes the type, and then slots and attributes by name")
        kind = kwargs.pop("type") if not args else args[0]
        proto = self._proto(kind)
        inputs = {slot.name: _names_in(kind, slot, kwargs.get(slot.name, ())) for slot in proto.inputs}
        outputs = {slot.name: _names_in(kind, slot, kwargs.get(slot.name, ())) for slot in proto.outputs}
        attrs = {}
        for attr in proto.attrs:
            value = kwargs.get(attr.name)
            if value is not None and not attr.generated:
                attrs[attr.name] = value.tolist() if isinstance(value, numpy.ndarray) else value
        return _OneOp(kind, inputs, outputs, attrs)

    def _proto(self, kind: str) -> OpProto:
        if kind not in all_types():
            raise program_error("E-op-unknown", f"The operator: {kind} is not registered.")
        return proto_of(kind)

    def types(self) -> list[str]:
        """Returns the types of all ops.

        Returns:
            list[str]: sorted.
        """
        return list(all_types())

    @with_texts(_SLOTS)
    def get_op_inputs(self, type: str) -> list[tuple[str, bool]]:
        """Returns the input slots of an op.

        {slots}
        """
        return [(slot.name, slot.duplicable) for slot in self._proto(type).inputs]

    @with_texts(_SLOTS)
    def get_op_outputs(self, type: str) -> list[Any]:
        """Returns the output slots of an op.

        {slots}
        """
        return [(slot.name, slot.duplicable) for slot in self._proto(type).outputs]

    @with_texts(_SLOTS)
    def get_op_input_names(self, type: str) -> list[str]:
        """Returns the names of the input slots of an op.

        {names}
        """
        return [name for name, _ in self.get_op_inputs(type)]

    @with_texts(_SLOTS)
    def get_op_output_names(self, type: str) -> list[str]:
        """Returns the names of the output slots of an op.

        {names}
        """
        return [name for name, _ in self.get_op_outputs(type)]

    def get_op_attr_names(self, type: str) -> list[str]:
        """Returns the names of the attributes of an op.

        Args:
            type (str): its type.

        Returns:
            list[str]: the attributes of its declaration, then those that the framework sets in every op.

        Raises:
            ValueError: the op is unknown.
        """
        return [attr.name for attr in self._proto(type).attrs]


Operator = OperatorFactory()
