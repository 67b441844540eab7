"""What becomes of an array before ranks exchange it, and afterwards."""

import numpy


class _None:
    """Arrays as they are."""

    @staticmethod
    def compress(array):
        """(what is exchanged, what decompress needs to know)"""
        return array, None

    @staticmethod
    def decompress(array, context):
        return array


class _Fp16:
    """Floats in half precision: half the bytes or less. What is larger than 65504 becomes infinite."""

    @staticmethod
    def compress(array):
        array = numpy.asarray(array)
        return (array.astype('float16'), array.dtype) if array.dtype.kind == 'f' else (array, None)

    @staticmethod
    def decompress(array, context):
        return array if context is None else array.astype(context)


class Compression:
    """The ways to make smaller what ranks exchange: `none` and `fp16`.

    Example:
        import penstock.hvd as hvd
        hvd.init()
        mean = hvd.allreduce(np.ones(3, 'float32'), compression=hvd.Compression.fp16)
    """

    none = _None
    fp16 = _Fp16
