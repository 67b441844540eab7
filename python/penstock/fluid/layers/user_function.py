"""A layer that calls Python."""

from penstock.fluid import _functions
from penstock.fluid.framework import Variable
from penstock.fluid.layer_helper import LayerHelper

__all__ = ['py_func']


def py_func(func, x, out, backward_func=None, skip_vars_in_backward_input=None):
    """Calls func with x as LoDTensors whenever the program runs; it returns a LoDTensor or array for each of `out`.

    x, out         a Variable, a list of them, or None; those of `out` are made by the caller, with shape and type
    backward_func  gets x, out and the gradients of out, and returns those of x (None where nobody asks); without it no
                   gradient flows through
    skip_vars_in_backward_input  of x and out, what backward_func does not get

    The program holds numbers instead of functions: it runs only where the same calls have been made in the same order.
    """
    helper = LayerHelper('py_func')
    inputs = _variables('x', x)
    outputs = _variables('out', out)
    forward = _functions.Function(func)
    backward = None if backward_func is None else _functions.Function(backward_func)
    for each in outputs:
        if len(each.shape) == 0:
            raise ValueError('the shape of %s, an output of py_func, must be given by hand' % each.name)
    skipped = []
    if backward is not None and skip_vars_in_backward_input is not None:
        known = {each.name for each in inputs + outputs}
        for each in _variables('skip_vars_in_backward_input', skip_vars_in_backward_input):
            if each.name not in known:
                raise ValueError('%s is to be skipped, but is neither in x nor in out' % each.name)
            if each.name not in skipped:
                skipped.append(each.name)
    helper.append_op(
        'py_func', {'X': inputs}, {'Out': outputs}, {
            'forward_callable_id': forward.number,
            'backward_callable_id': -1 if backward is None else backward.number,
            'backward_skip_vars': skipped
        })
    return out


py_func.registered_func = _functions.registered
py_func.registered_func_num = _functions.count


def _variables(name, given):
    if given is None:
        return []
    several = [given] if isinstance(given, Variable) else given
    if not isinstance(several, (list, tuple)) or not all(isinstance(each, Variable) for each in several):
        raise TypeError('%s must be a Variable or a list of them, not %r' % (name, given))
    return list(several)
