"""MXNetError, and where errors of penstock become it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import penstock

__all__ = ["MXNetError"]

string_types = (str,)
numeric_types = (float, int)


class MXNetError(RuntimeError):
    """An error of a store; its text is that of the error of penstock, which is its cause."""


@contextlib.contextmanager
def as_mxnet_errors() -> Iterator[None]:
    """Within it, errors of penstock become MXNetError."""
    try:
        yield
    except (penstock.ProgramError, penstock.StateError, penstock.PeerError, penstock.DataError) as error:
        raise MXNetError(str(error)) from error
