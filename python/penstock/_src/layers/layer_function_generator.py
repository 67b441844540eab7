"""Generates layers from op types, as Fluid generates its simplest layers."""

from __future__ import annotations

import functools
import warnings
from typing import TYPE_CHECKING

from penstock._src.base.call_site import stack_level
from penstock._src.ir.op_protos import OpProtoHolder
from penstock._src.ir.variable import Variable
from penstock._src.layers.decorators import Attrs, op_layer

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def generate_activation_fn(op_type: str) -> Callable[..., Any]:
    """Returns a layer for an op with one input X and one output Out.

    Args:
        op_type (str): the type of the op.

    Returns:
        function: takes x (Variable) and a name; returns a Variable.

    Raises:
        ValueError: the op does not exist.

    Example:
        from penstock.fluid.layers.layer_function_generator import generate_activation_fn
        y = generate_activation_fn('sqrt')(fluid.data('x', [2, 3]))
        assert y.shape == (2, 3)
    """

    def layer(x: Variable, name: str | None = None) -> Attrs:
        return None

    layer.__name__ = layer.__qualname__ = op_type
    layer.__doc__ = OpProtoHolder.instance().get_op_proto(op_type).comment
    return op_layer(op_type, typed="x")(layer)


def deprecated(func_or_class: Callable[..., Any]) -> Callable[..., Any]:
    """Decorates a function so that each call warns (DeprecationWarning).

    Args:
        func_or_class (callable): the function.

    Returns:
        callable: the decorated function.

    Example:
        import warnings
        from penstock.fluid.layers.layer_function_generator import deprecated
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter('always')
            assert deprecated(abs)(-1) == 1
        assert 'abs is deprecated' in str(caught[0].message)
    """

    @functools.wraps(func_or_class)
    def called(*args: Any, **kwargs: Any) -> Any:
        warnings.warn(f"{func_or_class.__name__} is deprecated", DeprecationWarning, stacklevel=stack_level())
        return func_or_class(*args, **kwargs)

    return called


def autodoc(comment: str = "") -> Callable[..., Any]:
    """Returns a decorator that appends `comment` to the docstring of a layer. Fluid also adds the op's text.

    Args:
        comment (str): the text to append.

    Returns:
        callable: the decorator.

    Example:
        from penstock.fluid.layers.layer_function_generator import autodoc
        assert autodoc('More.')(lambda x: x).__doc__ == 'More.'
    """

    def documented(func: Any) -> Any:
        func.__doc__ = (func.__doc__ or "") + comment
        return func

    return documented


def templatedoc(op_type: str | None = None) -> Callable[..., Any]:
    """Returns a decorator that returns the layer unchanged. Fluid's inserts the op's description into the docstring.

    Args:
        op_type (str | None): ignored; accepted for compatibility with Fluid.

    Returns:
        callable: the decorator.

    Example:
        from penstock.fluid.layers.layer_function_generator import templatedoc
        assert templatedoc('relu')(abs) is abs
    """
    return lambda func: func
