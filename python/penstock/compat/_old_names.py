"""Names that Python 3.7 and NumPy 1.16 had, for which Fluid's scripts were written, and that later ones lack."""

import builtins
import collections
import collections.abc
import inspect
import time

import numpy

# By the names that NumPy has had for them; the first group were Python's own types.
_NUMPY_NAMES = dict(
    {name: getattr(builtins, name) for name in ('bool', 'int', 'float', 'complex', 'object', 'str')},
    long=int, unicode=str, float_=numpy.float64, complex_=numpy.complex128, unicode_=numpy.str_, string_=numpy.bytes_,
    Inf=numpy.inf, Infinity=numpy.inf, infty=numpy.inf, NaN=numpy.nan, NAN=numpy.nan, product=numpy.prod,
    cumproduct=numpy.cumprod, sometrue=numpy.any, alltrue=numpy.all, row_stack=numpy.vstack, round_=numpy.round,
    asscalar=lambda a: a.item(), in1d=lambda a, b, *rest, **more: numpy.isin(a, b, *rest, **more).ravel())


def _give(module, **names):
    # Not hasattr: NumPy answers some of these names with a warning, or with an error that explains itself.
    for name, value in names.items():
        if name not in vars(module):
            setattr(module, name, value)


def install():
    """Adds those that are missing."""
    _give(numpy, **_NUMPY_NAMES)
    _give(time, clock=time.perf_counter)
    _give(inspect, getargspec=lambda function: inspect.getfullargspec(function)[:4])
    _give_pillow()
    _give(collections, **{name: getattr(collections.abc, name) for name in collections.abc.__all__})


def _give_pillow():
    """To Pillow, if it is installed: the name of its best filter, which scripts shrink images with."""
    try:
        import PIL.Image
    except ImportError:
        return
    _give(PIL.Image, ANTIALIAS=PIL.Image.LANCZOS)
