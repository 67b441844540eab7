"""VarDesc, Fluid's low-level interface to a variable, and View, the base class of all descs."""

from penstock import _penstock
from penstock._src.ir import types
from penstock._src.ir.types import VAR_TYPES, VarType, checked_shape, to_dtype, to_extents


def text(name):
    """Returns a name, a str or bytes, as str."""
    return name.decode() if isinstance(name, bytes) else name


def texts(names):
    return [text(name) for name in ([names] if isinstance(names, (str, bytes)) else names)]


class View:
    """Base of the descs. Views of the same object are equal."""

    __slots__ = ("_program", "_at")

    def __init__(self, program, *at):
        self._program = program
        self._at = at

    def __eq__(self, other):
        return type(self) is type(other) and self._program is other._program and self._at == other._at

    def __hash__(self):
        return hash((id(self._program), self._at))

    def __repr__(self):
        return f"<{type(self).__name__} {', '.join(map(str, self._at))}>"


class VarDesc(View, types.VarDesc):
    """The declaration of a variable."""

    __slots__ = ()

    def name(self):
        """Its name."""
        return self._at[1]

    def set_name(self, name):
        """Renames the variable, including its uses in the ops of its block."""
        if not self._program.rename_var(*self._at, text(name)):
            raise ValueError(f"var {self.name()} is not in its block")
        self._at = (self._at[0], text(name))

    def shape(self):
        """Its shape as a list; -1: known at run time."""
        return list(self._program.var_shape(*self._at))

    def set_shape(self, shape):
        """Changes its shape."""
        self._program.set_var_shape(*self._at, checked_shape(self._at[1], shape))

    def dtype(self):
        """Type of its elements."""
        return VAR_TYPES[self._program.var_dtype(*self._at)]

    def set_dtype(self, dtype):
        """Changes the type of its elements."""
        self._program.set_var_dtype(*self._at, int(to_dtype(dtype)))

    def type(self):
        """Kind of the variable, such as LOD_TENSOR."""
        return VAR_TYPES[self._program.var_kind(*self._at)]

    def set_type(self, kind):
        """Changes the kind of the variable."""
        self._program.set_var_kind(*self._at, int(kind))

    def lod_level(self):
        """Number of levels of sequences."""
        return self._program.var_lod_level(*self._at)

    def set_lod_level(self, level):
        """Changes the number of levels of sequences."""
        _penstock.set_var_lod_level(self._program, *self._at, level)

    def persistable(self):
        """Whether its value stays in the scope between runs."""
        return self._program.var_persistable(*self._at)

    def set_persistable(self, value):
        """Sets whether its value stays in the scope between runs."""
        self._program.set_var_persistable(*self._at, bool(value))

    def need_check_feed(self):
        """Whether the shape of a feed is compared with the declared shape."""
        return self._program.var_need_check_feed(*self._at)

    def _part(self, index):
        return [part[index] for part in self._program.var_reader(*self._at)]

    def _set_part(self, index, values):
        parts = self._program.var_reader(*self._at)
        if len(parts) != len(values):
            parts = [(int(VarType.FP32), [], 0)] * len(values)
        changed = [
            tuple(value if at == index else old for at, old in enumerate(part)) for part, value in zip(parts, values)
        ]
        self._program.set_var_reader(*self._at, changed)

    def shapes(self):
        """For a reader, the shape of each variable that it returns."""
        return self._part(1)

    def set_shapes(self, shapes):
        """Sets them."""
        self._set_part(1, [to_extents(shape) for shape in shapes])

    def dtypes(self):
        """For a reader, the element type of each variable that it returns."""
        return [VAR_TYPES[number] for number in self._part(0)]

    def set_dtypes(self, dtypes):
        """Sets them."""
        self._set_part(0, [int(to_dtype(dtype)) for dtype in dtypes])

    def lod_levels(self):
        """For a reader, the levels of sequences of each variable that it returns."""
        return self._part(2)

    def set_lod_levels(self, levels):
        """Sets them."""
        self._set_part(2, list(levels))
