"""Loggers of Python's logging module, created like those of Fluid's own modules."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from logging import Logger


def get_logger(name: str, level: int, fmt: str | None = None) -> Logger:
    """Returns a logger that writes to stderr.

    Args:
        name (str): name of the logger.
        level (int): the least severe level that is written, such as logging.INFO.
        fmt (str): format of a line, as in logging.Formatter.

    Returns:
        logging.Logger: a logger that does not propagate to its parents. A second call with the same name changes level
        and format.

    Example:
        import logging
        logger = fluid.log_helper.get_logger('train', logging.INFO, fmt='%(asctime)s %(message)s')
        logger.info('begins')
    """
    logger = logging.getLogger(name)
    logger.setLevel(level)
    for handler in [one for one in logger.handlers if isinstance(one, _Handler)]:
        logger.removeHandler(handler)
    handler = _Handler()
    if fmt:
        handler.setFormatter(logging.Formatter(fmt=fmt))
    logger.addHandler(handler)
    logger.propagate = False
    return logger


class _Handler(logging.StreamHandler):  # type: ignore[type-arg]  # no subscripts in Python 3.9
    """A handler that get_logger recognises, so that each logger gets only one."""
