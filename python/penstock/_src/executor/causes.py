"""The exceptions of users' readers and functions, which end a run and are raised in place of its error."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from penstock import _penstock
from penstock._src.dataset.prefetch import raise_from_reader
from penstock._src.ir.host_functions import raise_from_function

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextlib.contextmanager
def causes_in_python() -> Iterator[None]:
    """Raises the exception of a user's reader or function in place of the error of the run that it ended."""
    try:
        yield
    except _penstock.StateError as error:
        raise_from_reader(error)
        raise_from_function(error)
        raise
