"""Text, bytes and rounding for scripts that run on Python 2 and 3."""

import math

__all__ = ["floor_division", "get_exception_message", "long_type", "round", "to_bytes", "to_text"]

int_type = long_type = int


def to_text(obj, encoding="utf-8", inplace=False):
    """Decodes bytes, including those in a list, set or dict.

    Args:
        obj: str, bytes, None, or a list, set or dict of these; other values are returned unchanged.
        encoding (str): the encoding of the bytes.
        inplace (bool): change the list, set or dict itself instead of returning another.

    Returns:
        `obj` with str instead of bytes.
    """
    return _converted(obj, inplace, lambda one: one.decode(encoding) if isinstance(one, bytes) else one)


def to_bytes(obj, encoding="utf-8", inplace=False):
    """Encodes text, including text in a list or set; the inverse of to_text."""
    return _converted(obj, inplace, lambda one: one.encode(encoding) if isinstance(one, str) else one)


def _converted(obj, inplace, convert):
    if isinstance(obj, (list, set)):
        new = type(obj)(_converted(one, inplace, convert) for one in obj)
    elif isinstance(obj, dict):
        new = {convert(key): _converted(value, inplace, convert) for key, value in obj.items()}
    else:
        return convert(obj)
    if not inplace:
        return new
    obj.clear()
    obj.extend(new) if isinstance(obj, list) else obj.update(new)
    return obj


def round(x, d=0):
    """Rounds halves away from zero, as Python 2 does: round(0.5) is 1.0, round(-2.5) is -3.0.

    Args:
        x (float): the number.
        d (int): number of digits after the decimal point.

    Returns:
        float: the rounded number; NaN and infinity are returned unchanged.
    """
    if x == 0 or not math.isfinite(x):
        return x
    scale = 10.0**d
    return math.copysign(math.floor(abs(x) * scale + 0.5) / scale, x)


def floor_division(x, y):
    """Returns x // y."""
    return x // y


def get_exception_message(exc):
    """Returns the text of an exception."""
    if exc is None:
        raise AssertionError("get_exception_message: an exception is required, not None")
    return str(exc)
