"""Decorators that keep a function's signature."""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.base.wrapped_decorator import signature_safe_contextmanager, wrap_decorator

__all__ = ['signature_safe_contextmanager', 'wrap_decorator']

facade.make(__name__)
