"""WeightedAverage: a mean over batches."""

import numbers

import numpy

__all__ = ['WeightedAverage']


class WeightedAverage:
    """add(value, weight) for each batch, then eval(); reset() before the next pass. A value may be an array: then the
    mean is of each of its elements."""

    def __init__(self):
        self.reset()

    def reset(self):
        self.numerator = None
        self.denominator = None

    def add(self, value, weight):
        if not isinstance(value, (numbers.Number, numpy.ndarray)):
            raise ValueError('WeightedAverage: value must be a number or an array, not %s' % type(value).__name__)
        if not isinstance(weight, numbers.Number) and numpy.size(weight) != 1:
            raise ValueError('WeightedAverage: weight must be one number, not %s' % type(weight).__name__)
        if self.numerator is None:
            self.numerator, self.denominator = value * weight, weight
        else:
            self.numerator = self.numerator + value * weight
            self.denominator = self.denominator + weight

    def eval(self):
        if self.numerator is None:
            raise ValueError('WeightedAverage: nothing has been added')
        if self.denominator == 0:
            raise ValueError('WeightedAverage: the weights add up to 0')
        return self.numerator / self.denominator
