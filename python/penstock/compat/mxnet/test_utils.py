"""mx.test_utils: the comparisons that MXNet's own scripts for stores use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy

__all__ = ["assert_almost_equal", "assert_exception", "same"]


def same(a: Any, b: Any) -> bool:
    """Tells whether two arrays have the same elements.

    Args:
        a (array): an array.
        b (array): another.

    Returns:
        bool: whether they are equal.

    Example:
        import penstock.compat.mxnet as mx
        assert mx.test_utils.same(mx.nd.ones((2,)), np.ones(2))
    """
    return numpy.array_equal(numpy.asarray(a), numpy.asarray(b))


def assert_almost_equal(
    a: Any,
    b: Any,
    rtol: float = 1e-05,
    atol: float = 1e-20,
    names: tuple[str, str] = ("a", "b"),
    equal_nan: bool = False,
    **_: Any,
) -> None:
    """Raises AssertionError unless two arrays are nearly equal.

    Args:
        a (array): an array.
        b (array): another.
        rtol (float): the relative difference that is allowed.
        atol (float): the absolute difference that is allowed.
        names (tuple[str, str]): what the error calls them.
        equal_nan (bool): whether NaN equals NaN.

    Example:
        import penstock.compat.mxnet as mx
        mx.test_utils.assert_almost_equal(mx.nd.ones((2,)), np.ones(2))
    """
    numpy.testing.assert_allclose(numpy.asarray(a), numpy.asarray(b), rtol, atol, equal_nan, " and ".join(names))


def assert_exception(f: Callable[..., object], exception_type: type[BaseException], *args: Any, **kwargs: Any) -> None:
    """Raises AssertionError unless a call raises an exception of a class.

    Args:
        f (callable): what is called.
        exception_type (type): the class.
        *args (object): arguments of the call.
        **kwargs (object): arguments of the call.

    Raises:
        AssertionError: the call returns.

    Example:
        import penstock.compat.mxnet as mx
        mx.test_utils.assert_exception(int, ValueError, 'text')
    """
    try:
        f(*args, **kwargs)
    except exception_type:
        return
    raise AssertionError(f"{f} did not raise {exception_type.__name__}")
