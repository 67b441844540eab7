"""Names of fluid.framework that concern imperative mode, which is never on."""

import functools

from penstock._src.imperative import refused

ParamBase = refused.class_of("fluid.framework.ParamBase")
_dygraph_guard = refused.function_of("fluid.framework._dygraph_guard")


class ComplexVariable(metaclass=refused.Imperative):
    """A complex tensor of imperative mode, which is not part of Penstock.

    Args:
        real (Variable): not used.
        imag (Variable): not used.

    Raises:
        NotImplementedError: always.

    Example:
        try:
            fluid.ComplexVariable(None, None)
        except NotImplementedError as error:
            print(error)
    """

    _imperative_name = "fluid.ComplexVariable"

    def __init__(self, real, imag):
        raise refused.refusal(self._imperative_name)


def _dygraph_tracer():
    return None


def _current_expected_place():
    return None


def dygraph_only(function):
    """Decorates a function of imperative mode: a call raises the error."""

    @functools.wraps(function)
    def unusable(*args, **kwargs):
        raise refused.refusal(function.__name__)

    return unusable


def dygraph_not_support(function):
    """Returns the function: it is for programs."""
    return function
