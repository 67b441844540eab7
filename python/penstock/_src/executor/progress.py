"""Progress lines of a trainer: step, loss, examples per second, time in communication.

PENSTOCK_PROGRESS in the environment (the launcher's --progress) enables them: it is the number of seconds between two
lines of a script that calls Executor.run itself. train_from_dataset prints a line in every print_period.
"""

from __future__ import annotations

import sys
import threading
import time
from typing import TYPE_CHECKING

from penstock import _penstock
from penstock._penstock import LoDTensor
from penstock._src.base import environment
from penstock._src.ir.program import OpRole

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock._penstock import _Feeds, _Fetched
    from penstock._src.ir.program import Program


VARIABLE = "PENSTOCK_PROGRESS"


def asked_seconds() -> float | None:
    """Returns the seconds between two lines from the environment, or None."""
    return environment.value(VARIABLE, 0.0) or None


def loss_of(program: Program) -> str | None:
    """Returns the name of the loss that the program marks, or None."""
    marked = OpRole.Loss | OpRole.Forward
    return next(
        (op.output_arg_names[0] for op in program.global_block().ops if op._role == marked and op.output_arg_names),
        None,
    )


class Progress:
    """Counts steps and examples. Not thread-safe."""

    def __init__(self) -> None:
        self.steps = self._examples = 0
        self._since, self._exposed = time.monotonic(), _penstock.exposed_ns()

    def note(self, examples: int) -> None:
        """Called after each step."""
        self.steps += 1
        self._examples += examples

    def seconds(self) -> float:
        """Returns the seconds since the last line."""
        return time.monotonic() - self._since

    def line(self, loss: float | None) -> str:
        """Returns the line for the steps since the last line; `loss` is a number or None."""
        now, exposed = time.monotonic(), _penstock.exposed_ns()
        seconds, waited = max(now - self._since, 1e-9), (exposed - self._exposed) / 1e9
        text = (
            f"step {self.steps}: {('' if loss is None else f'loss {loss:.6g}, ')}{self._examples / seconds:.0f} "
            f"examples/s, {waited:.2f} s of {seconds:.2f} s in communication"
        )
        self._since, self._exposed, self._examples = now, exposed, 0
        return text


class _Loop:
    """The runs of one program in a script's own loop."""

    def __init__(self, program: Program) -> None:
        self.progress, self.loss_name = Progress(), loss_of(program)
        self.loss: float | None = None


class ProgressOfRuns:
    """Prints a progress line of this process's training runs to standard output at intervals."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._lock = threading.Lock()
        self._loops: dict[Program, _Loop | None] = {}  # None: the program does not train

    def note(self, program: Program, feeds: _Feeds, fetches: Sequence[str], values: Sequence[_Fetched]) -> None:
        """Called after a run with its program, the feeds as [(name, value)], and the names and values of the
        fetches."""
        with self._lock:
            if program not in self._loops:
                self._loops[program] = _Loop(program) if loss_of(program) else None
            loop = self._loops[program]
            if loop is None:  # a program without training, such as a startup program
                return
            loop.progress.note(_examples_of(feeds))
            if loop.loss_name is not None and loop.loss_name in fetches:
                loss = values[fetches.index(loop.loss_name)]
                loop.loss = float(loss._view().reshape(-1)[0]) if isinstance(loss, LoDTensor) else None
            if loop.progress.seconds() >= self._seconds:
                print(loop.progress.line(loop.loss))
                sys.stdout.flush()


_seconds = asked_seconds()
_of_runs = None if _seconds is None else ProgressOfRuns(_seconds)


def note_run(program: Program, feeds: _Feeds, fetches: Sequence[str], values: Sequence[_Fetched]) -> None:
    """Called after a run of a script's own loop, as ProgressOfRuns.note is, whether or not lines are asked for."""
    if _of_runs is not None:
        _of_runs.note(program, feeds, fetches, values)


def _examples_of(feeds: _Feeds) -> int:
    """Returns the number of sequences, or of rows, of the first feed."""
    for _, value in feeds:
        lengths = value.recursive_sequence_lengths() if isinstance(value, LoDTensor) else []
        if lengths:
            return len(lengths[0])
        shape = value.shape() if isinstance(value, LoDTensor) else value.shape
        return int(shape[0]) if len(shape) else 1
    return 0
