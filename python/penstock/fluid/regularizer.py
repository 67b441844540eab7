"""Weight decay: what is added to the gradient of each parameter before its optimizer op."""

from penstock.fluid.core import require_numbers

__all__ = ['L1Decay', 'L2Decay', 'L1DecayRegularizer', 'L2DecayRegularizer']


class WeightDecayRegularizer:
    """`kind` and `coefficient` are all that C++ needs to add the ops."""

    kind = None

    def __init__(self, regularization_coeff=0.0):
        require_numbers(type(self).__name__, regularization_coeff=regularization_coeff)
        self._regularization_coeff = regularization_coeff

    @property
    def coefficient(self):
        """The coefficient, a float."""
        return float(self._regularization_coeff)

    def __str__(self):
        return '%sDecay, regularization_coeff=%f' % (self.kind.upper(), self.coefficient)


class L2DecayRegularizer(WeightDecayRegularizer):
    """L2 weight decay: gradient + coefficient * parameter.

    Args:
        regularization_coeff (float): the coefficient.

    Example:
        optimizer = fluid.optimizer.SGD(0.01, regularization=fluid.regularizer.L2Decay(1e-4))
    """
    kind = 'l2'


class L1DecayRegularizer(WeightDecayRegularizer):
    """L1 weight decay: gradient + coefficient * sign(parameter).

    Args:
        regularization_coeff (float): the coefficient.

    Example:
        optimizer = fluid.optimizer.SGD(0.01, regularization=fluid.regularizer.L1Decay(1e-4))
    """
    kind = 'l1'


L1Decay = L1DecayRegularizer
L2Decay = L2DecayRegularizer
