"""OpProto and OpDesc as plain objects: what scripts fill in and compare. They have no wire form; ProgramDesc has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock._src.ir.attr_types import AttrType

if TYPE_CHECKING:
    from typing import Any


for _kind in AttrType:
    globals()[_kind.name] = _kind


class _Repeated(list["_Message"]):
    """A list of messages of one type."""

    def __init__(self, make: type[_Message]) -> None:
        super().__init__()
        self._make = make

    def add(self) -> _Message:
        """Appends a message and returns it."""
        self.append(self._make())
        return self[-1]


class _Message:
    """Fields by name. _FIELDS gives their defaults, where a message type stands for a list of such messages; _REQUIRED
    names those that must be set."""

    _FIELDS: dict[str, Any] = {}  # the defaults differ in type
    _REQUIRED: tuple[str, ...] = ()

    def __init__(self, **fields: Any) -> None:
        values = {
            name: _Repeated(default) if isinstance(default, type) else [] if default == [] else default
            for name, default in self._FIELDS.items()
        }
        object.__setattr__(self, "_values", values)
        object.__setattr__(self, "_set", set())
        for name, value in fields.items():
            setattr(self, name, value)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in self._values:
            raise AttributeError(f"{type(self).__name__} has no field {name}")
        return self._values[name]

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self._values or isinstance(self._values[name], list):
            raise AttributeError(f"{type(self).__name__} has no field {name} that can be set")
        self._values[name] = value
        self._set.add(name)

    def HasField(self, name: str) -> bool:
        """Returns whether a field was set.

        Args:
            name (str): the field.

        Returns:
            bool: True if it was.
        """
        return name in self._set

    def IsInitialized(self) -> bool:
        """Returns whether all required fields are set, here and in nested messages.

        Returns:
            bool: True if they are.
        """
        inner = [each for value in self._values.values() if isinstance(value, _Repeated) for each in value]
        return set(self._REQUIRED) <= self._set and all(each.IsInitialized() for each in inner)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._values == other._values

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join('{}={!r}'.format(*pair) for pair in self._values.items())})"


class _SlotProto(_Message):
    _FIELDS = {"name": "", "comment": "", "duplicable": False, "intermediate": False, "dispensable": False}
    _REQUIRED = ("name", "comment")


class _AttrProto(_Message):
    _FIELDS = {"name": "", "type": AttrType.INT, "comment": "", "generated": False}
    _REQUIRED = ("name", "type", "comment")


class OpProto(_Message):
    """The declaration of an op: type, inputs, outputs, attrs, comment.

    Example:
        proto = fluid.proto.framework_pb2.OpProto(type='cos', comment='the cosine')
        slot = proto.inputs.add()
        slot.name, slot.comment = 'X', 'any shape'
        assert proto.IsInitialized()
    """

    Var, Attr = _SlotProto, _AttrProto
    _FIELDS = {"type": "", "inputs": _SlotProto, "outputs": _SlotProto, "attrs": _AttrProto, "comment": ""}
    _REQUIRED = ("type", "comment")


class _Slot(_Message):
    _FIELDS = {"parameter": "", "arguments": []}
    _REQUIRED = ("parameter",)


class _Attr(_Message):
    _FIELDS = {
        "name": "",
        "type": AttrType.INT,
        "i": 0,
        "f": 0.0,
        "s": "",
        "ints": [],
        "floats": [],
        "strings": [],
        "b": False,
        "bools": [],
        "block_idx": 0,
        "l": 0,
        "blocks_idx": [],
        "longs": [],
    }
    _REQUIRED = ("name", "type")


class OpDesc(_Message):
    """An op: type, what it reads and writes, and its attributes.

    Example:
        desc = fluid.proto.framework_pb2.OpDesc(type='cos')
        slot = desc.inputs.add()
        slot.parameter = 'X'
        slot.arguments.extend(['x'])
        assert desc.IsInitialized() and desc.inputs[0].arguments == ['x']
    """

    Var, Attr = _Slot, _Attr
    _FIELDS = {"type": "", "inputs": _Slot, "outputs": _Slot, "attrs": _Attr, "is_target": False}
    _REQUIRED = ("type",)
