"""The arrays of Fluid's native predictor: PaddleTensor and ZeroCopyTensor."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

import numpy

from penstock._src.base.doc_texts import with_texts
from penstock._src.base.errors import program_error, state_error
from penstock._src.inference.texts import MODEL

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from penstock._src.ir.typing import Array


class PaddleDType(enum.IntEnum):
    """The element types of a PaddleTensor.

    Example:
        assert fluid.core.PaddleTensor(np.ones(2, 'float32')).dtype == fluid.core.PaddleDType.FLOAT32
    """

    FLOAT32 = 0
    INT64 = 1
    INT32 = 2
    UINT8 = 3


class PaddlePlace(enum.IntEnum):
    """The place of a ZeroCopyTensor: CPU.

    Example:
        assert fluid.core.PaddlePlace.CPU == 0
    """

    UNK = -1
    CPU = 0
    GPU = 1


_DTYPES: dict[Any, str] = {
    PaddleDType.FLOAT32: "float32",
    PaddleDType.INT64: "int64",
    PaddleDType.INT32: "int32",
    PaddleDType.UINT8: "uint8",
}
_KINDS: dict[str, PaddleDType] = {name: kind for kind, name in _DTYPES.items()}


def _kind_of(array: Array, what: str) -> PaddleDType:
    if array.dtype.name in _KINDS:
        return _KINDS[array.dtype.name]
    raise program_error(
        "E-predictor-type", f"{what}: elements of {array.dtype.name} are not supported; use {', '.join(_KINDS)}"
    )


def paddle_dtype_size(dtype: PaddleDType) -> int:
    """Returns the bytes of an element.

    Args:
        dtype (PaddleDType): the type.

    Returns:
        int: such as 4.

    Example:
        assert fluid.core.paddle_dtype_size(fluid.core.PaddleDType.INT64) == 8
    """
    return numpy.dtype(_DTYPES[PaddleDType(dtype)]).itemsize


class PaddleBuf:
    """The elements of a PaddleTensor, without a shape.

    Args:
        data (numpy.ndarray | list | int): elements; of an int: a buffer of so many bytes.

    Example:
        buffer = fluid.core.PaddleBuf([1.0, 2.0])
        assert buffer.float_data() == [1.0, 2.0] and buffer.length() == 8
    """

    def __init__(self, data: Array | Sequence[float] | int = ()) -> None:
        self._bytes = b""
        if isinstance(data, int):
            self.resize(data)
        else:
            self.reset(data)

    def reset(self, data: Array | Sequence[float]) -> None:
        """Replaces the elements.

        Args:
            data (numpy.ndarray | list): elements; Python's floats become float32, its ints int64.
        """
        array = (
            data
            if isinstance(data, numpy.ndarray)
            else numpy.array(
                data, "float32" if any(isinstance(value, float) for value in data) or not len(data) else "int64"
            )
        )
        _kind_of(array, "PaddleBuf")
        self._bytes = numpy.ascontiguousarray(array).tobytes()

    def resize(self, length: int) -> None:
        """Makes a buffer of so many bytes, all 0.

        Args:
            length (int): bytes.
        """
        self._bytes = bytes(length)

    def empty(self) -> bool:
        """Tells whether the buffer has no bytes.

        Returns:
            bool: whether it has none.
        """
        return not self._bytes

    def length(self) -> int:
        """Returns the number of bytes.

        Returns:
            int: bytes.
        """
        return len(self._bytes)

    def tolist(self, dtype: PaddleDType | str = "float32") -> list[Any]:
        """Returns the elements.

        Args:
            dtype (str | PaddleDType): their type.

        Returns:
            list: numbers.
        """
        elements: list[Any] = self._as(_DTYPES.get(dtype, dtype)).tolist()
        return elements

    def _as(self, dtype: Any) -> Array:
        return numpy.frombuffer(self._bytes, dtype)

    def float_data(self) -> list[float]:
        """Returns the elements as float32.

        Returns:
            list[float]: numbers.
        """
        return self.tolist("float32")

    def int64_data(self) -> list[int]:
        """Returns the elements as int64.

        Returns:
            list[int]: numbers.
        """
        return self.tolist("int64")

    def int32_data(self) -> list[int]:
        """Returns the elements as int32.

        Returns:
            list[int]: numbers.
        """
        return self.tolist("int32")


class PaddleTensor:
    """A named array that a predictor takes or returns.

    Args:
        data (numpy.ndarray | None): float32, int64, int32 or uint8; copied.
        name (str): the variable that it is for; needed with switch_specify_input_names.
        lod (list[list[int]] | None): offsets of sequences.
        copy (bool): accepted for Fluid's scripts: the array is always copied.

    Raises:
        penstock.ProgramError: another element type (E-predictor-type).

    Example:
        tensor = fluid.core.PaddleTensor(np.ones((2, 3), 'float32'), 'x')
        assert tensor.shape == [2, 3] and tensor.as_ndarray().sum() == 6
    """

    def __init__(
        self, data: Array | None = None, name: str = "", lod: Sequence[Sequence[int]] | None = None, copy: bool = True
    ) -> None:
        self.name, self.lod = name, [list(level) for level in lod or []]
        array = numpy.zeros(0, "float32") if data is None else numpy.asarray(data)
        self.dtype = _kind_of(array, "PaddleTensor")
        self.shape, self.data = list(array.shape), PaddleBuf(array.reshape(-1))

    def as_ndarray(self) -> Array:
        """Returns the array.

        Returns:
            numpy.ndarray: a copy.

        Raises:
            penstock.ProgramError: `shape`, `dtype` and `data` do not fit together (E-predictor-type).
        """
        dtype = numpy.dtype(_DTYPES[PaddleDType(self.dtype)])
        if int(numpy.prod(self.shape, dtype="int64")) * dtype.itemsize != self.data.length():
            raise program_error(
                "E-predictor-type",
                f"PaddleTensor {self.name}: shape {list(self.shape)} of {dtype.name} needs "
                f"{int(numpy.prod(self.shape, dtype='int64')) * dtype.itemsize} bytes, but data has "
                f"{self.data.length()}",
            )
        array: Array = self.data._as(dtype).reshape(self.shape).copy()
        return array


@with_texts(MODEL)
class ZeroCopyTensor:
    """An input or an output of a predictor: set it with copy_from_cpu before zero_copy_run, or read it after with
    copy_to_cpu.

    Args:
        name (str): the variable.

    {saved_model}
        predictor = fluid.core.create_paddle_predictor(fluid.core.AnalysisConfig('model'))
        predictor.get_input_tensor('x').copy_from_cpu(np.ones((3, 4), 'float32'))
        predictor.zero_copy_run()
        assert predictor.get_output_tensor(predictor.get_output_names()[0]).copy_to_cpu().shape == (3, 2)
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._array: Array | None = None
        self._lod: list[list[int]] = []
        self._shape: list[int] | None = None

    def name(self) -> str:
        """Returns the name of the variable.

        Returns:
            str: the name.
        """
        return self._name

    def reshape(self, shape: Sequence[int]) -> None:
        """Declares the shape of the next copy_from_cpu.

        Args:
            shape (list[int]): the extents.
        """
        self._shape = [int(extent) for extent in shape]

    def copy_from_cpu(self, data: Array) -> None:
        """Sets the value.

        Args:
            data (numpy.ndarray): float32, int64, int32 or uint8; copied.

        Raises:
            penstock.ProgramError: another element type, or more or fewer elements than `reshape` has declared
                (E-predictor-type).
        """
        array = numpy.array(data, order="C")
        _kind_of(array, f"ZeroCopyTensor {self._name}")
        if self._shape is not None and array.shape != tuple(self._shape):
            if array.size != int(numpy.prod(self._shape, dtype="int64")):
                raise program_error(
                    "E-predictor-type",
                    f"ZeroCopyTensor {self._name}: an array of shape {list(array.shape)} cannot have the shape "
                    f"{self._shape} that reshape has set",
                )
            array = array.reshape(self._shape)
        self._array, self._shape = array, None

    def copy_to_cpu(self) -> Array:
        """Returns the value.

        Returns:
            numpy.ndarray: a copy.

        Raises:
            penstock.StateError: there is no value yet (E-predictor-input).
        """
        array: Array = self._value().copy()
        return array

    def shape(self) -> list[int]:
        """Returns the shape of the value.

        Returns:
            list[int]: the extents.
        """
        return list(self._value().shape)

    def set_lod(self, x: Sequence[Sequence[int]]) -> None:
        """Sets the offsets of sequences.

        Args:
            x (list[list[int]]): offsets for each level.
        """
        self._lod = [list(level) for level in x]

    def lod(self) -> list[list[int]]:
        """Returns the offsets of sequences.

        Returns:
            list[list[int]]: offsets for each level.
        """
        return self._lod

    def type(self) -> PaddleDType:
        """Returns the element type.

        Returns:
            PaddleDType: such as FLOAT32.
        """
        return _kind_of(self._value(), f"ZeroCopyTensor {self._name}")

    def _value(self) -> Array:
        if self._array is None:
            raise state_error(
                "E-predictor-input",
                f"predictor: {self._name} has no value yet; inputs are set with copy_from_cpu, "
                "outputs exist after zero_copy_run",
            )
        return self._array
