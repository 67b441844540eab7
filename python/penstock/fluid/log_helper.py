"""Loggers of Python's logging, as Fluid's own modules make theirs."""

import logging

__all__ = ['get_logger']


def get_logger(name, level, fmt=None):
    """Returns a logger that writes to stderr by itself.

    Args:
        name (str): of the logger.
        level (int): the least severe level that is written, such as logging.INFO.
        fmt (str): a line's format, as logging.Formatter takes it.

    Returns:
        logging.Logger: it hands nothing on to the loggers above it. A second call for the name changes level and
        format.

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


class _Handler(logging.StreamHandler):
    """One of ours, so that each logger has one."""
