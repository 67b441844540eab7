"""Gradients of a loss. C++ adds the ops; here names become handles and back."""

from penstock import _penstock
from penstock.fluid import unique_name
from penstock.fluid.variable import Variable

__all__ = ['append_backward', 'gradients']


def names_of(variables):
    """Names of a list or set of Variables, or of names."""
    if variables is None:
        return []
    if not isinstance(variables, (list, tuple, set, frozenset)):
        raise TypeError('a list or a set of Variables or names is wanted, not %r' % (variables,))
    names = [getattr(variable, 'name', variable) for variable in variables]
    for name in names:
        if not isinstance(name, str):
            raise TypeError('a Variable or its name is wanted, not %r' % (name,))
    return names


def require_loss(caller, loss):
    if not isinstance(loss, Variable):
        raise TypeError('%s: the loss must be a Variable, not %r' % (caller, loss))


def pairs_of(block, names):
    """(Parameter, Variable) of each pair of names."""
    return [(block.var(param), block.var(grad)) for param, grad in names]


def append_backward(loss, parameter_list=None, no_grad_set=None, callbacks=None, checkpoints=None):
    """Adds the gradient ops of `loss`; returns the list of (parameter, gradient)."""
    require_loss('append_backward', loss)
    if callbacks:
        raise NotImplementedError('append_backward: callbacks are not built; change the gradients after the call')
    if checkpoints:
        raise NotImplementedError('append_backward: recomputation (checkpoints) is not built')
    program = loss.block.program
    pairs = _penstock.append_backward(program.desc, unique_name.generator, loss.name, names_of(parameter_list),
                                      names_of(no_grad_set))
    return pairs_of(program.global_block(), pairs)


def calc_gradient(targets, inputs, target_gradients=None, no_grad_set=None):
    """Adds gradient ops as `gradients` does.

    Args:
        targets (Variable | list[Variable]): the addends.
        inputs (Variable | list[Variable]): with respect to what.
        target_gradients (Variable | list | None): the factor of each target; None: ones.
        no_grad_set (set | list | None): variables, or names, through which no gradient flows.

    Returns:
        Variable | None | list: the gradient of the one input, or a list for several.

    Raises:
        TypeError: an argument is not a Variable.
        ValueError: there is no target.

    Example:
        x = fluid.data('x', [None, 4])
        x.stop_gradient = False
        dx = fluid.backward.calc_gradient(fluid.layers.square(x), x)
    """
    targets, inputs = _as_list(targets), _as_list(inputs)
    given = ['' if one is None else names_of([one])[0] for one in _as_list(target_gradients)]
    for target in targets:
        if not isinstance(target, Variable):
            raise TypeError('gradients: a target must be a Variable, not %r' % (target,))
    if not targets:
        raise ValueError('gradients: there is no target')
    block = targets[0].block
    made = _penstock.gradients(block.program.desc, unique_name.generator, names_of(targets), names_of(inputs), given,
                               names_of(no_grad_set))
    grads = [block.var(name) if name else None for name in made]
    return grads[0] if len(grads) == 1 else grads


def gradients(targets, inputs, target_gradients=None, no_grad_set=None):
    """Adds the ops that compute the gradient of the sum of targets.

    Args:
        targets (Variable | list[Variable]): the addends.
        inputs (Variable | list[Variable]): with respect to what.
        target_gradients (Variable | list | None): the factor of each target, of its shape; None: ones.
        no_grad_set (set | list | None): variables, or names, through which no gradient flows.

    Returns:
        list[Variable | None]: the gradient of each input; None where the targets do not depend on it.

    Raises:
        TypeError: an argument is not a Variable.
        ValueError: there is no target.

    Example:
        x = fluid.data('x', [None, 4])
        x.stop_gradient = False
        dx, = fluid.gradients(fluid.layers.square(x), x)
    """
    return _as_list(calc_gradient(targets, inputs, target_gradients, no_grad_set))


def _as_list(value):
    if value is None:
        return []
    return list(value) if isinstance(value, (list, tuple)) else [value]
