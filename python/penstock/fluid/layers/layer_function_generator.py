"""Makes layers of op types, as Fluid makes the simplest of its own."""

import functools
import warnings

from penstock._call_site import stack_level
from penstock.fluid._not_built import getattr_of
from penstock.fluid.layers.ops import _unary

__all__ = ['autodoc', 'deprecated', 'generate_activation_fn', 'templatedoc']


def generate_activation_fn(op_type):
    """Returns a layer for an op of one input X and one output Out.

    Args:
        op_type (str): the op.

    Returns:
        function: takes x (Variable) and a name; returns a Variable.

    Example:
        from penstock.fluid.layers.layer_function_generator import generate_activation_fn
        y = generate_activation_fn('sqrt')(fluid.data('x', [2, 3]))
        assert y.shape == (2, 3)
    """
    return _unary(op_type)


def deprecated(func_or_class):
    """Decorates a function so that a call of it warns (DeprecationWarning)."""

    @functools.wraps(func_or_class)
    def called(*args, **kwargs):
        warnings.warn('%s is deprecated' % func_or_class.__name__, DeprecationWarning, stacklevel=stack_level())
        return func_or_class(*args, **kwargs)

    return called


def autodoc(comment=''):
    """Decorates a layer: Fluid adds the op's text to its docstring, here it gets `comment`."""

    def documented(func):
        func.__doc__ = (func.__doc__ or '') + comment
        return func

    return documented


def templatedoc(op_type=None):
    """Decorates a layer: Fluid fills the op's text into its docstring, here it stays as it is."""
    return lambda func: func


__getattr__ = getattr_of(__name__)
