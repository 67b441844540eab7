"""VarDesc, Fluid's low-level interface to a variable, and View, the base class of all descs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock import _penstock
from penstock._src.ir import types
from penstock._src.ir.types import VAR_TYPES, VarType, checked_shape, to_dtype, to_extents

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from penstock._penstock import ProgramDesc


def text(name: bytes | str) -> str:
    """Returns a name, a str or bytes, as str."""
    return name.decode() if isinstance(name, bytes) else name


def texts(names: Iterable[bytes | str]) -> list[str]:
    return [text(name) for name in ([names] if isinstance(names, (str, bytes)) else names)]


class View:
    """Base of the descs. Views of the same object are equal."""

    __slots__ = ("_program", "_at")

    def __init__(self, program: ProgramDesc, *at: Any) -> None:
        self._program = program
        self._at: tuple[Any, ...] = at

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._program is other._program and self._at == other._at

    def __hash__(self) -> int:
        return hash((id(self._program), self._at))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {', '.join(map(str, self._at))}>"


class VarDesc(View, types.VarDesc):
    """The declaration of a variable."""

    __slots__ = ()
    _at: tuple[int, str]

    def name(self) -> str:
        """Its name."""
        return self._at[1]

    def set_name(self, name: str) -> None:
        """Renames the variable, including its uses in the ops of its block."""
        if not self._program.rename_var(*self._at, text(name)):
            raise ValueError(f"var {self.name()} is not in its block")
        self._at = (self._at[0], text(name))

    def shape(self) -> list[int]:
        """Its shape as a list; -1: known at run time."""
        return list(self._program.var_shape(*self._at))

    def set_shape(self, shape: Sequence[int]) -> None:
        """Changes its shape."""
        self._program.set_var_shape(*self._at, checked_shape(self._at[1], shape))

    def dtype(self) -> VarType:
        """Type of its elements."""
        return VAR_TYPES[self._program.var_dtype(*self._at)]

    def set_dtype(self, dtype: VarType) -> None:
        """Changes the type of its elements."""
        self._program.set_var_dtype(*self._at, int(to_dtype(dtype)))

    def type(self) -> VarType:
        """Kind of the variable, such as LOD_TENSOR."""
        return VAR_TYPES[self._program.var_kind(*self._at)]

    def set_type(self, kind: VarType) -> None:
        """Changes the kind of the variable."""
        self._program.set_var_kind(*self._at, int(kind))

    def lod_level(self) -> int:
        """Number of levels of sequences."""
        return self._program.var_lod_level(*self._at)

    def set_lod_level(self, level: int) -> None:
        """Changes the number of levels of sequences."""
        _penstock.set_var_lod_level(self._program, *self._at, level)

    def persistable(self) -> bool:
        """Whether its value stays in the scope between runs."""
        return self._program.var_persistable(*self._at)

    def set_persistable(self, value: bool) -> None:
        """Sets whether its value stays in the scope between runs."""
        self._program.set_var_persistable(*self._at, bool(value))

    def need_check_feed(self) -> bool:
        """Whether the shape of a feed is compared with the declared shape."""
        return self._program.var_need_check_feed(*self._at)

    def _set_part(self, index: int, values: Sequence[object]) -> None:
        parts = self._program.var_reader(*self._at)
        if len(parts) != len(values):
            parts = [(int(VarType.FP32), [], 0)] * len(values)
        changed: list[Any] = [
            tuple(value if at == index else old for at, old in enumerate(part)) for part, value in zip(parts, values)
        ]
        self._program.set_var_reader(*self._at, changed)

    def shapes(self) -> list[list[int]]:
        """For a reader, the shape of each variable that it returns."""
        return [shape for _, shape, _ in self._program.var_reader(*self._at)]

    def set_shapes(self, shapes: list[list[int]]) -> None:
        """Sets them."""
        self._set_part(1, [to_extents(shape) for shape in shapes])

    def dtypes(self) -> list[VarType]:
        """For a reader, the element type of each variable that it returns."""
        return [VAR_TYPES[dtype] for dtype, _, _ in self._program.var_reader(*self._at)]

    def set_dtypes(self, dtypes: list[VarType | str]) -> None:
        """Sets them."""
        self._set_part(0, [int(to_dtype(dtype)) for dtype in dtypes])

    def lod_levels(self) -> list[int]:
        """For a reader, the levels of sequences of each variable that it returns."""
        return [level for _, _, level in self._program.var_reader(*self._at)]

    def set_lod_levels(self, levels: Sequence[int]) -> None:
        """Sets them."""
        self._set_part(2, list(levels))
