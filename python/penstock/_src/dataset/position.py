"""Where a reader begins in a trainer that continues: behind the batches of the steps that are complete.

A step is one batch of the reader that trains: that of train_from_dataset with a program that sends gradients, and else
the first reader that the process starts. Its passes drop the batches of complete steps, whole passes if need be.
"""

from __future__ import annotations

import threading
import weakref
from typing import TYPE_CHECKING, TypeVar

from penstock import _penstock
from penstock._src.base import environment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    _Batch = TypeVar("_Batch")


class _Position:
    """The steps that the process has to pass over."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.left: int | None = None  # None: no reader has asked yet
        self.reader: weakref.ReferenceType[object] | None = None
        self.chosen_by_script = False


_position = _Position()


class Passing:
    """The begin of a pass over the data. `reader`: whose pass it is; None: a reader that does not train."""

    def __init__(self, reader: object | None) -> None:
        with _position.lock:
            self._passes = reader is not None and _trains(reader)

    def take(self) -> bool:
        """Whether the next batch, or the batches of the next step, belong to a step that is complete; counts it."""
        with _position.lock:
            if not self._passes or not _position.left:
                return False
            _position.left -= 1
            return True


def _trains(reader: object) -> bool:
    if _position.chosen_by_script:
        return False
    if _position.left is None:
        _position.left = _complete_steps()
    if not _position.left:
        return False
    if _position.reader is None:
        _position.reader = weakref.ref(reader)
    return _position.reader() is reader


def _complete_steps() -> int | None:
    """The steps of this trainer that are complete; None: the process has no pservers yet, and is new."""
    try:
        return _penstock.first_step()
    except _penstock.StateError as error:
        if error.id != "E-resume-early":
            raise
        continues = environment.value("PENSTOCK_RESUME_STEP", 0) or environment.value("PENSTOCK_ROLE_RESTART_COUNT", 0)
        if continues and environment.value("TRAINING_ROLE", "TRAINER") == "TRAINER":
            raise
        return None


def behind_complete_steps(
    reader: object, batches: Callable[[], Iterable[_Batch]], batches_of_step: int = 1, drops_last: bool = False
) -> Callable[[], Iterator[_Batch]]:
    """Returns `batches` without those of complete steps. Call it on the thread of the script when a pass begins.

    `drops_last`: batches at the end that are fewer than a step takes make no step.
    """
    passing = Passing(reader)

    def those_that_follow() -> Iterator[_Batch]:
        step: list[_Batch] = []
        for batch in batches():
            step.append(batch)
            if len(step) == batches_of_step:
                if not passing.take():
                    yield from step
                step = []
        if step and (drops_last or not passing.take()):
            yield from step

    return those_that_follow


def leave_to_script() -> None:
    """Readers begin with their first batch."""
    _position.chosen_by_script = True
