"""Marks functions whose use is discouraged."""

import functools
import sys

__all__ = ['deprecated']


def deprecated(since, instead, extra_message=''):
    """Returns a decorator; each call of the decorated function prints to stderr what to call instead.

    Args:
        since (str): the version since which the function is deprecated.
        instead (str): the replacement.
        extra_message (str): text to add to the message.

    Returns:
        function: the decorator.

    Example:
        from penstock.fluid.annotations import deprecated

        @deprecated(since='1.8', instead='new')
        def old():
            return 1
        assert old() == 1
    """

    def decorator(func):
        message = 'API %s is deprecated since %s. Please use %s instead.' % (func.__name__, since, instead)
        if extra_message:
            message += '\n' + extra_message

        @functools.wraps(func)
        def wrapper(*args, **kwargs):
            print(message, file=sys.stderr)
            return func(*args, **kwargs)

        wrapper.__doc__ = '%s\n    %s' % (func.__doc__ or '', message)
        return wrapper

    return decorator
