"""Arrays that scripts of Fluid's time fetch: one of a single element is a number to float(), int() and '%f', and one
without elements is a vector.

NumPy 2.4 makes the former an error for arrays with axes, such as a loss of shape [1]. The latter is what Fluid fetches
of, say, the boxes that a detector has not found.
"""

import warnings

import numpy

from penstock.fluid import executor


class FetchedArray(numpy.ndarray):
    """An array, and views of it, that converts to a Python number as before NumPy 2.4."""

    def _only(self):
        if self.size != 1:
            raise TypeError('only an array of one element converts to a number, not one of shape %s' % (self.shape,))
        return self.item()

    def __float__(self):
        return float(self._only())

    def __int__(self):
        return int(self._only())

    def __complex__(self):
        return complex(self._only())


def _numpy_converts():
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')    # it is deprecated since NumPy 1.25
        try:
            return float(numpy.ones(1)) == 1.0
        except TypeError:
            return False


def install():
    """From here on Executor.run returns arrays that convert; with an older NumPy all arrays do. Those without elements
    are vectors."""
    executor.empties_are_vectors = True
    if not _numpy_converts():
        executor.array_kind = FetchedArray
