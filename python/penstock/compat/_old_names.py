"""Restores names of Python 3.7 and NumPy 1.16 that scripts for Fluid 1.8 use and later versions lack."""

import builtins
import collections
import collections.abc
import functools
import inspect
import random
import sys
import time

import numpy

# NumPy's old names; those of the first group were Python's own types.
_NUMPY_NAMES = dict(
    {name: getattr(builtins, name) for name in ("bool", "int", "float", "complex", "object", "str")},
    long=int,
    unicode=str,
    float_=numpy.float64,
    complex_=numpy.complex128,
    unicode_=numpy.str_,
    string_=numpy.bytes_,
    Inf=numpy.inf,
    Infinity=numpy.inf,
    infty=numpy.inf,
    NaN=numpy.nan,
    NAN=numpy.nan,
    product=numpy.prod,
    cumproduct=numpy.cumprod,
    sometrue=numpy.any,
    alltrue=numpy.all,
    row_stack=numpy.vstack,
    round_=numpy.round,
    asscalar=lambda a: a.item(),
    in1d=lambda a, b, *rest, **more: numpy.isin(a, b, *rest, **more).ravel(),
)


def _give(module, **names):
    # Not hasattr: for some of these names NumPy gives a warning, or raises an error with an explanation.
    for name, value in names.items():
        if name not in vars(module):
            setattr(module, name, value)


def install():
    """Adds the missing names."""
    _give(numpy, **_NUMPY_NAMES)
    _give(time, clock=time.perf_counter)
    _give(inspect, getargspec=lambda function: inspect.getfullargspec(function)[:4])
    _give_pillow()
    if sys.version_info >= (3, 11):
        random.Random.sample = _sampling_sets(random.Random.sample)
        random.sample = random.sample.__self__.sample  # the method of the generator that the module's functions use
    if "newshape" not in inspect.signature(numpy.reshape).parameters:
        numpy.reshape = _reshape_by_old_name(numpy.reshape)
    _give(collections, **{name: getattr(collections.abc, name) for name in collections.abc.__all__})


def _sampling_sets(sample):
    """Returns a random.Random.sample that accepts sets, as before Python 3.11."""

    @functools.wraps(sample)
    def sample_any(self, population, k, **more):
        return sample(self, list(population) if isinstance(population, collections.abc.Set) else population, k, **more)

    return sample_any


def _reshape_by_old_name(reshape):
    """Returns a numpy.reshape that accepts the argument newshape, as before NumPy 2.4."""

    @functools.wraps(reshape)
    def reshape_any(a, *shape, newshape=None, **more):
        return reshape(a, *(shape if newshape is None else (newshape,) + shape), **more)

    return reshape_any


def _give_pillow():
    """Restores the name of Pillow's best filter, which scripts use to shrink images, if Pillow is installed."""
    try:
        import PIL.Image
    except ImportError:
        return
    _give(PIL.Image, ANTIALIAS=PIL.Image.LANCZOS)
