"""Declarations of ops in the form of Fluid's OpProto, from the registry in C++."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from penstock import _penstock
from penstock._src.ir.attr_types import ATTR_KINDS, AttrType
from penstock._src.ir.types import op_proto_and_checker_maker

if TYPE_CHECKING:
    pass


class SlotProto:
    """An input or an output: name, duplicable (takes several variables), dispensable (optional), intermediate (kept
    only for the gradient), comment."""

    def __init__(self, name: str, duplicable: bool, dispensable: bool, intermediate: bool, comment: str) -> None:
        self.name = name
        self.duplicable = duplicable
        self.dispensable = dispensable
        self.intermediate = intermediate
        self.comment = comment

    def __repr__(self) -> str:
        return f"<slot {self.name}>"


class AttrProto:
    """An attribute: name, type, comment, and whether the framework sets it in every op (generated)."""

    def __init__(self, name: str, kind: int, comment: str, generated: bool = False) -> None:
        self.name = name
        self.type = AttrType(ATTR_KINDS[kind])
        self.comment = comment
        self.generated = generated

    def __repr__(self) -> str:
        return f"<attribute {self.name}>"


def _framework_attrs() -> list[AttrProto]:
    maker = op_proto_and_checker_maker
    kinds = {
        maker.kOpRoleAttrName(): "INT",
        maker.kOpRoleVarAttrName(): "STRINGS",
        maker.kOpNameScopeAttrName(): "STRING",
        maker.kOpCreationCallstackAttrName(): "STRINGS",
        maker.kOpDeviceAttrName(): "STRING",
    }
    return [AttrProto(name, ATTR_KINDS.index(kind), "set by the framework", True) for name, kind in kinds.items()]


class OpProto:
    """The declaration of an op: type, inputs, outputs, attrs, comment."""

    def __init__(self, kind: str) -> None:
        summary, inputs, outputs, attrs = _penstock.op_facts(kind)
        self.type = kind
        self.comment = summary
        self.inputs = [SlotProto(*facts) for facts in inputs]
        self.outputs = [SlotProto(*facts) for facts in outputs]
        self.attrs = [AttrProto(*facts) for facts in attrs] + _framework_attrs()

    @staticmethod
    def IsInitialized() -> bool:
        """Whether it is complete: True."""
        return True

    def __repr__(self) -> str:
        return f"<OpProto {self.type}>"


@functools.cache
def proto_of(kind: str) -> OpProto:
    """Returns the declaration of one op, always the same object."""
    return OpProto(kind)


@functools.cache
def all_types() -> tuple[str, ...]:
    """Returns the types of all ops, sorted."""
    return tuple(_penstock.op_types())


class OpProtoHolder:
    """Declarations of all ops by type.

    Example:
        proto = fluid.framework.OpProtoHolder.instance().get_op_proto('mul')
        assert [slot.name for slot in proto.inputs] == ['X', 'Y']
    """

    _instance: OpProtoHolder

    @classmethod
    def instance(cls) -> OpProtoHolder:
        """Returns the one holder of the process.

        Returns:
            OpProtoHolder: always the same object.
        """
        if not hasattr(cls, "_instance"):
            cls._instance = cls()
        return cls._instance

    @property
    def op_proto_map(self) -> dict[str, OpProto]:
        """Declarations by type, as a dict."""
        return {kind: proto_of(kind) for kind in all_types()}

    def get_op_proto(self, type: str) -> OpProto:
        """Returns the declaration of an op.

        Args:
            type (str): its type.

        Returns:
            OpProto: type, inputs, outputs, attrs and comment. A slot has name, duplicable, dispensable and
                intermediate; an attribute has name, type and generated.

        Raises:
            ValueError: the op is unknown.
        """
        if type not in all_types():
            raise ValueError(f'Operator "{type}" has not been registered.')
        return proto_of(type)

    @staticmethod
    def generated_op_attr_names() -> set[str]:
        """Returns the names of the attributes that the framework sets in every op.

        Returns:
            set[str]: op_role and others.
        """
        return {attr.name for attr in _framework_attrs()}
