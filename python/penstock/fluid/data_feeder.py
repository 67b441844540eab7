"""DataFeeder: rows of Python values to the feed of an executor."""

import numpy

from penstock.fluid import core, framework
from penstock.fluid.core import dtype_name
from penstock.fluid.framework import Variable

__all__ = ['DataFeeder']


class _Column:
    """Collects the values of one variable."""

    def __init__(self, var):
        self.lod_level = var.lod_level
        self.dtype = dtype_name(var.dtype)
        self.shape = [extent for extent in var.shape]
        self.data = []
        self.lengths = [[] for _ in range(self.lod_level)]

    def add(self, value):
        self._add(value, 0)

    def _add(self, value, level):
        if level == self.lod_level:
            self.data.append(value)
            return
        self.lengths[level].append(len(value))
        for one in value:
            self._add(one, level + 1)

    def tensor(self, place):
        array = numpy.array(self.data, dtype=self.dtype)
        if self.lod_level == 0 and array.ndim != len(self.shape):
            array = array.reshape([-1] + [extent for extent in self.shape[1:]])
        elif self.lod_level > 0 and array.ndim < len(self.shape):
            array = array.reshape([-1] + self.shape[1:])
        tensor = core.LoDTensor()
        tensor.set(array, place)
        if self.lod_level > 0:
            tensor.set_recursive_sequence_lengths(self.lengths)
        return tensor


class DataFeeder:
    """feed([(image, label), ...]) gives {name: LoDTensor} in the order of feed_list."""

    def __init__(self, feed_list, place, program=None):
        program = program or framework.default_main_program()
        block = program.global_block()
        self.feed_vars = [var if isinstance(var, Variable) else block.var(var) for var in feed_list]
        self.feed_names = [var.name for var in self.feed_vars]
        self.place = place

    def feed(self, iterable):
        columns = [_Column(var) for var in self.feed_vars]
        for row in iterable:
            if len(row) != len(columns):
                raise ValueError('The number of fields in data (%d) does not match len(feed_list) (%d)' %
                                 (len(row), len(columns)))
            for column, value in zip(columns, row):
                column.add(value)
        return {name: column.tensor(self.place) for name, column in zip(self.feed_names, columns)}
