"""Fetched arrays with the behaviour that scripts for Fluid 1.8 expect: float(), int() and '%f' accept an array of one
element, and an array without elements is a vector.

In NumPy 2.4 the former is an error for arrays with axes, such as a loss of shape [1]. The latter is how Fluid returns,
for example, the boxes of a detector that finds none.
"""

import warnings

import numpy

from penstock.fluid import executor


class FetchedArray(numpy.ndarray):
    """An array that, like its views, converts to a Python number as before NumPy 2.4."""

    def _only(self):
        if self.size != 1:
            raise TypeError(f"only an array of one element converts to a number, not one of shape {self.shape}")
        return self.item()

    def __float__(self):
        return float(self._only())

    def __int__(self):
        return int(self._only())

    def __complex__(self):
        return complex(self._only())


def _numpy_converts():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the conversion is deprecated since NumPy 1.25
        try:
            return float(numpy.ones(1)) == 1.0
        except TypeError:
            return False


def install():
    """Makes Executor.run return arrays that convert to numbers (with an older NumPy, all arrays do), and return arrays
    without elements as vectors."""
    executor.empties_are_vectors = True
    if not _numpy_converts():
        executor.array_kind = FetchedArray
