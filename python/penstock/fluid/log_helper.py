"""Loggers of Python's logging module, created like those of Fluid's own modules."""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.base.log_helper import get_logger

__all__ = ['get_logger']

facade.make(__name__)
