"""Compression of arrays that ranks exchange."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy

if TYPE_CHECKING:
    from typing import Any, Protocol

    from penstock._src.ir.typing import Array

    class Method(Protocol):
        """A class with these two functions, such as Compression.fp16."""

        @staticmethod
        def compress(array: Array) -> tuple[Array, Any]: ...
        @staticmethod
        def decompress(array: Array, context: Any) -> Array: ...


class _None:
    """Exchanges arrays without compression."""

    @staticmethod
    def compress(array: Array) -> tuple[Array, Any]:
        """Returns (the array to exchange, the context for decompress)."""
        return array, None

    @staticmethod
    def decompress(array: Array, context: Any) -> Array:
        return array


class _Fp16:
    """Exchanges floats in half precision: half the bytes or less. Values above 65504 become infinite."""

    @staticmethod
    def compress(array: Array) -> tuple[Array, Any]:
        array = numpy.asarray(array)
        return (array.astype("float16"), array.dtype) if array.dtype.kind == "f" else (array, None)

    @staticmethod
    def decompress(array: Array, context: Any) -> Array:
        return array if context is None else array.astype(context)


class Compression:
    """The compression methods: `none` and `fp16`.

    Example:
        import penstock.hvd as hvd
        hvd.init()
        mean = hvd.allreduce(np.ones(3, 'float32'), compression=hvd.Compression.fp16)
    """

    none = _None
    fp16 = _Fp16
