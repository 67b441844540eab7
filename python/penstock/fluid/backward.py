"""Gradients of a loss. C++ adds the ops; here names become handles and back."""

from penstock import _penstock
from penstock.fluid import unique_name
from penstock.fluid._not_built import getattr_of

__all__ = ['append_backward']


def names_of(variables):
    """Names of Variables, or of names."""
    return [getattr(variable, 'name', variable) for variable in variables or ()]


def pairs_of(block, names):
    """(Parameter, Variable) of each pair of names."""
    return [(block.var(param), block.var(grad)) for param, grad in names]


def append_backward(loss, parameter_list=None, no_grad_set=None, callbacks=None, checkpoints=None):
    """Adds the gradient ops of `loss`; returns the list of (parameter, gradient)."""
    if callbacks:
        raise NotImplementedError('append_backward: callbacks are not built; change the gradients after the call')
    if checkpoints:
        raise NotImplementedError('append_backward: recomputation (checkpoints) is not built')
    program = loss.block.program
    pairs = _penstock.append_backward(program.desc, unique_name.generator, loss.name, names_of(parameter_list),
                                      names_of(no_grad_set))
    return pairs_of(program.global_block(), pairs)


__getattr__ = getattr_of(__name__)
