"""Compression of arrays that ranks exchange."""

import numpy


class _None:
    """Exchanges arrays without compression."""

    @staticmethod
    def compress(array):
        """Returns (the array to exchange, the context for decompress)."""
        return array, None

    @staticmethod
    def decompress(array, context):
        return array


class _Fp16:
    """Exchanges floats in half precision: half the bytes or less. Values above 65504 become infinite."""

    @staticmethod
    def compress(array):
        array = numpy.asarray(array)
        return (array.astype("float16"), array.dtype) if array.dtype.kind == "f" else (array, None)

    @staticmethod
    def decompress(array, context):
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
