"""Element types, kinds of variables and places, the roles of ops, and checks of numbers and shapes."""

from __future__ import annotations

import enum
import math
import numbers
import operator
import sys
from typing import TYPE_CHECKING

import numpy

from penstock._src.base import devices
from penstock._src.base.errors import program_error

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, SupportsIndex

    from penstock._src.ir.typing import Dtype


class VarType(enum.IntEnum):
    """Element types, then kinds of variables, with the numbers that serialized programs use."""

    __str__ = enum.Enum.__str__  # VarType.FP32 in every Python
    BOOL = 0
    INT16 = 1
    INT32 = 2
    INT64 = 3
    FP16 = 4
    FP32 = 5
    FP64 = 6
    LOD_TENSOR = 7
    SELECTED_ROWS = 8
    FEED_MINIBATCH = 9
    FETCH_LIST = 10
    STEP_SCOPES = 11
    LOD_RANK_TABLE = 12
    LOD_TENSOR_ARRAY = 13
    PLACE_LIST = 14
    READER = 15
    RAW = 17
    TUPLE = 18
    SIZE_T = 19
    UINT8 = 20
    INT8 = 21


class VarDesc:
    """The class in which Fluid's scripts find VarType.

    Example:
        var = fluid.data('x', [None, 4]).desc
        assert list(var.shape()) == [-1, 4] and not var.persistable()
    """

    VarType = VarType


# By number, because looking up an enum member by value takes longer than creating a small op.
VAR_TYPES = {int(member): member for member in VarType}

_DTYPES = {
    "bool": VarType.BOOL,
    "int16": VarType.INT16,
    "int32": VarType.INT32,
    "int64": VarType.INT64,
    "float16": VarType.FP16,
    "float32": VarType.FP32,
    "float64": VarType.FP64,
    "uint8": VarType.UINT8,
    "int8": VarType.INT8,
}
_NAMES = {member: name for name, member in _DTYPES.items()}


class UnknownType(ValueError, TypeError):
    """An unknown element type. It is a TypeError, as in numpy, and a ValueError, as in Fluid's layers."""


def to_dtype(dtype: Dtype) -> VarType:
    """Returns the VarType of an element type.

    Args:
        dtype (str | type | numpy.dtype | VarType | int): such as 'float32'.

    Returns:
        VarType: its number.

    Raises:
        ValueError: the type is unknown.

    Example:
        assert fluid.core.to_dtype('float32') == fluid.core.VarDesc.VarType.FP32
    """
    if type(dtype) is VarType:
        return dtype
    if isinstance(dtype, int):
        found = VAR_TYPES.get(dtype)
    else:
        found = _DTYPES.get(dtype) if isinstance(dtype, str) else None
        if found is None and dtype is not None:  # which numpy takes for float64
            try:
                found = _DTYPES.get(numpy.dtype(dtype).name)
            except TypeError:  # numpy does not know the type either
                found = None
    if found is None:
        raise UnknownType(f"there is no element type for {dtype!r}; there are {', '.join(_DTYPES)}")
    return found


def dtype_name(dtype: Dtype) -> str:
    """Returns the name of an element type.

    Args:
        dtype (str | type | numpy.dtype | VarType | int): the type.

    Returns:
        str: such as 'float32'.

    Example:
        assert fluid.core.dtype_name(fluid.core.VarDesc.VarType.INT64) == 'int64'
    """
    return _NAMES[to_dtype(dtype)]


def dtype_is_floating(dtype: Dtype) -> bool:
    """Tells whether an element type is one of floating-point numbers.

    Args:
        dtype (str | type | numpy.dtype | VarType): the type.

    Returns:
        bool: True for float16, float32 and float64.

    Raises:
        ValueError: there is no such type.

    Example:
        assert fluid.framework.dtype_is_floating('float32') and not fluid.framework.dtype_is_floating('int64')
    """
    return to_dtype(dtype) in (VarType.FP16, VarType.FP32, VarType.FP64)


def dtype_size(dtype: Dtype) -> int:
    """Returns the size of an element.

    Args:
        dtype (str | type | numpy.dtype | VarType | int): the type.

    Returns:
        int: the number of bytes.

    Example:
        assert fluid.core.dtype_size('int64') == 8
    """
    return numpy.dtype(dtype_name(dtype)).itemsize


def to_extents(shape: Iterable[SupportsIndex]) -> list[int]:
    """Returns a shape as a list of ints."""
    try:
        return [operator.index(extent) for extent in shape]
    except TypeError:
        raise TypeError(f"a shape is a list of ints, not {shape!r}") from None


def checked_shape(name: str, shape: Iterable[SupportsIndex]) -> list[int]:
    """Returns the shape of a variable as a list of ints. Raises ProgramError if an extent is negative, except -1, or if
    the bytes of such a tensor do not fit 64 bits."""
    extents = to_extents(shape)
    for extent in extents:
        if extent < -1:
            raise program_error(
                "E-var-extent",
                f"{name}: the extent {extent} of {extents} must be a number of elements, or -1 if it is not known yet",
            )
    if 16 * math.prod(extent for extent in extents if extent > 0) >= 2**63:
        raise program_error("E-var-extent", f"{name}: a tensor of shape {extents} is too large for any memory")
    return extents


def require_name(name: str) -> None:
    """Raises unless a variable has a name."""
    if not name:
        raise program_error("E-var-name", "a variable must have a name")


def require_numbers(kind: str, **values: Any) -> None:
    """Raises if a hyperparameter is not a number; the error names it."""
    for name, value in values.items():
        if not isinstance(value, numbers.Real):
            raise program_error("E-argument-type", f"{kind}: {name} must be a number, not {value!r}") from None


def float_attr(value: float) -> float:
    """Returns a number for an attribute of kind float. Ints stay ints: the op refuses those that it would round."""
    if isinstance(value, (str, bytes)):
        raise TypeError(f"must be real number, not {type(value).__name__}")
    return value if isinstance(value, numbers.Integral) else float(value)


def nearest_float32(number: float) -> float:
    """Returns the nearest float32 of a number, as a float; infinity for a number beyond its range."""
    with numpy.errstate(over="ignore"):
        return float(numpy.float32(number))


def require_equal_in(dtype: VarType | str, value: float, what: str) -> None:
    """Raises if an element type does not hold a number: 2**24 + 1 or 1e300 in float32, 0.5 in int64."""
    kind = numpy.dtype(dtype_name(dtype))
    if kind.kind == "f":
        with numpy.errstate(over="ignore"):
            held = kind.type(float(value)) if abs(value) <= sys.float_info.max or math.isnan(value) else math.inf
        fits = float(held) == value if isinstance(value, numbers.Integral) else math.isinf(held) == math.isinf(value)
    else:
        fits = kind.kind not in "iu" or (math.isfinite(value) and value == int(value))
    if not fits:
        raise program_error("E-attr-value", f"{what}: the value {value!r} has no equal in {kind.name}")


def require_finite(kind: str, **values: Any) -> None:
    """Raises if a hyperparameter is not a number, or is NaN or infinite; the error names it."""
    require_numbers(kind, **values)
    for name, value in values.items():
        if not math.isfinite(value):
            raise program_error("E-hyperparameter", f"{kind}: {name} must be finite, not {value!r}")


def require_decays(kind: str, **values: Any) -> None:
    """Raises unless each hyperparameter is a decay of a running mean: at least 0 and below 1."""
    require_numbers(kind, **values)
    for name, value in values.items():
        if not 0 <= value < 1:
            raise program_error("E-hyperparameter", f"{kind}: {name} must be at least 0 and below 1, not {value!r}")


class _Place:
    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.__dict__ == other.__dict__

    def __hash__(self) -> int:
        return hash((type(self), tuple(sorted(self.__dict__.items()))))

    def _type(self) -> int:
        """Returns the number of this kind of place."""
        return ("CPUPlace", "CUDAPlace", "CUDAPinnedPlace").index(type(self).__name__)

    def _equals(self, other: object) -> bool:
        return self == getattr(other, "_place", other)

    def __repr__(self) -> str:
        return type(self).__name__ + (f"({self.device})" if hasattr(self, "device") else "")


class CPUPlace(_Place):
    """The CPU.

    Example:
        exe = fluid.Executor(fluid.CPUPlace())
    """


class CUDAPlace(_Place):
    """A GPU.

    Args:
        id (int): its number.

    Example:
        place = fluid.CUDAPlace(0) if fluid.is_compiled_with_cuda() else fluid.CPUPlace()
    """

    def __init__(self, id: int) -> None:
        self.device = id


class CUDAPinnedPlace(_Place):
    """Pinned memory of the host.

    Example:
        place = fluid.CUDAPinnedPlace()
    """


def device_of(place: object, what: str) -> CPUPlace:
    """Returns the place on which programs run if a script requests `place`; `what` names the caller in errors.

    Raises:
        TypeError: `place` is not a place.
        NotImplementedError: `place` is on a GPU and PENSTOCK_CUDA_FALLBACK is not set.
    """
    if not isinstance(place, _Place):
        raise TypeError(f"{what}: the place must be one such as CPUPlace(), not {place!r}")
    if not isinstance(place, CPUPlace):
        devices.use_cpu_for(f"{what} on {place!r}")
    return CPUPlace()


class op_proto_and_checker_maker:
    """Names of the attributes that the framework sets in every op, and the bits of op_role.

    Example:
        maker = fluid.core.op_proto_and_checker_maker
        y = fluid.layers.relu(fluid.data('x', [2]))
        op = fluid.default_main_program().global_block().ops[0]
        assert op.attr(maker.kOpRoleAttrName()) == maker.OpRole.Forward
    """

    class OpRole:
        """Bits of op_role."""

        Forward = 0
        Backward = 1
        Optimize = 2
        RPC = 4
        Dist = 8
        LRSched = 16
        Loss = 256

    @staticmethod
    def kOpRoleAttrName() -> str:
        """Returns the name of the attribute that holds an op's role.

        Returns:
            str: 'op_role'.
        """
        return "op_role"

    @staticmethod
    def kOpRoleVarAttrName() -> str:
        """Returns the name of the attribute that holds pairs of parameter and gradient.

        Returns:
            str: 'op_role_var'.
        """
        return "op_role_var"

    @staticmethod
    def kOpNameScopeAttrName() -> str:
        """Returns the name of the attribute that holds an op's name scope.

        Returns:
            str: 'op_namescope'.
        """
        return "op_namescope"

    @staticmethod
    def kOpCreationCallstackAttrName() -> str:
        """Returns the name of the attribute that holds the user's call stack, which Fluid's programs have.

        Returns:
            str: 'op_callstack'.
        """
        return "op_callstack"

    @staticmethod
    def kOpDeviceAttrName() -> str:
        """Returns the name of the attribute that holds an op's device.

        Returns:
            str: 'op_device'.
        """
        return "op_device"


def get_cuda_device_count() -> int:
    """Counts the GPUs that the driver provides to this process.

    Programs do not run on them through this API. With PENSTOCK_CUDA_FALLBACK=1 the result is 1, for the CPU.

    Returns:
        int: the number of GPUs, restricted to CUDA_VISIBLE_DEVICES if that is set; 0 without a driver.

    Example:
        places = fluid.cuda_places() if fluid.is_compiled_with_cuda() else fluid.cpu_places()
        assert fluid.core.get_cuda_device_count() >= 0
    """
    return devices.gpu_count()


def is_compiled_with_cuda() -> bool:
    """Returns whether programs can run on GPUs through this API.

    Returns:
        bool: False, because CPUPlace is the only place.

    Example:
        place = fluid.CUDAPlace(0) if fluid.is_compiled_with_cuda() else fluid.CPUPlace()
    """
    return False
