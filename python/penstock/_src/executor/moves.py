"""A trainer whose pservers are replaced by others while it trains: `penstock scale` changes their number.

The launcher asks, the trainers agree on a step (base/move_files.py), the pservers save what they hold after it, and the
launcher starts others, which restore that. Each trainer then completes at the old ones and goes on with the next step,
whose program names the new ones.
"""

from __future__ import annotations

import time
import weakref
from typing import TYPE_CHECKING

from penstock import _penstock
from penstock._src.base import environment, log
from penstock._src.base.move_files import MoveFiles
from penstock._src.executor import remote_params

if TYPE_CHECKING:
    from typing import Any

    from penstock._src.ir.program import Program


LOOK_S = 0.005
REPORT_S = 10.0

_sends: weakref.WeakKeyDictionary[Program, tuple[int, bool]] = weakref.WeakKeyDictionary()


class _Follower:
    """What this trainer knows of the requests of its job."""

    def __init__(self, files: MoveFiles, trainer: int, done: int) -> None:
        self._files, self._trainer = files, trainer
        self._done = done  # the number of the last request that is over

    def closed(self) -> None:
        """This trainer has completed."""
        self._files.write(f"closed-{self._trainer}", 0)

    def follow(self, program: Program) -> None:
        """Before a run: takes part in a request, if there is one, and perhaps waits for the end of it."""
        if not self._files.is_asked() or not _sends_gradients(program):
            return
        request = self._files.read("request")
        if request is None or request["number"] <= self._done:
            return
        number = request["number"]
        why_not = _why_not(program)
        if why_not:
            self._files.write(f"limit-{self._trainer}", number, error=why_not)
            self._done = number
            return
        step = _penstock.step_here()
        limit = self._limit(number, step)
        if step < limit:
            return
        go = self._wait(number, step)
        if go is None:
            return
        self._done = number
        if "pservers" in go:
            self._move(program, go["pservers"], number)

    def _limit(self, number: int, step: int) -> int:
        """Returns the step before which this trainer waits for the answers of the others. An answer that the trainer's
        last process has given stays, because others may have read it."""
        given = self._files.read_for(f"limit-{self._trainer}", number)
        if given is not None and "step" in given:
            return int(given["step"])
        # Another one may have begun step `step` + 1 before it could see the request: parameters may arrive after the
        # run that asks for them. It needs this trainer's part of that step.
        limit = step + 2
        self._files.write(f"limit-{self._trainer}", number, step=limit)
        return limit

    def _wait(self, number: int, step: int) -> dict[str, Any] | None:
        """Returns the launcher's word; None if this trainer has to run another step first."""
        begin, report = time.monotonic(), REPORT_S
        while True:
            go = self._files.read_for("go", number)
            if go is not None:
                return go
            limits = [facts["step"] for facts in self._files.of_trainers("limit", number) if "step" in facts]
            if len(limits) == self._files.trainers:
                if step < max(limits):
                    return None
                if self._files.read_for(f"there-{self._trainer}", number) is None:
                    self._files.write(f"there-{self._trainer}", number, step=step)
            waited = time.monotonic() - begin
            if waited >= report:
                log.info(f"waiting {waited:.0f} s in step {step} until the launcher has changed the number of pservers")
                report *= 2
            time.sleep(LOOK_S)

    def _move(self, program: Program, pservers: list[str], number: int) -> None:
        try:
            _penstock.move_pservers()
        except _penstock.PeerError as error:  # one has ended, and what it held is saved
            log.info(f"an earlier pserver has not taken this trainer's completion: {str(error).splitlines()[0]}")
        self._files.write(f"moved-{self._trainer}", number)
        listed = ",".join(pservers)
        environment.change(
            {"PADDLE_PSERVERS_IP_PORT_LIST": listed, "PADDLE_PSERVER_ENDPOINTS": listed, "PENSTOCK_MOVES": str(number)}
        )
        startup = program._placed_by._replace_pservers(pservers)
        _penstock.attach_pservers(startup.desc)
        remote_params.note_move([startup, program])
        log.info(f"goes on with {len(pservers)} pservers: {', '.join(pservers)}")


def _sends_gradients(program: Program) -> bool:
    known, content = _sends.get(program), program.desc.content_id
    if known is None or known[0] != content:
        found = any(op.type == "send" for op in program.global_block().ops)
        known = _sends[program] = content, found
    return known[1]


def _why_not(program: Program) -> str:
    """Returns why the pservers of a trainer's program cannot be replaced, with the error's id; '' if they can."""
    placed_by = program.__dict__.get("_placed_by")
    if placed_by is None:
        return "a trainer runs a program that get_trainer_program() has not returned   [E-scale-program]"
    if _penstock.communicator_runs():
        return "the trainers exchange gradients by a communicator   [E-scale-mode]"
    return str(placed_by._why_not_replaced(program))


def _follower() -> _Follower | None:
    done = environment.value("PENSTOCK_MOVES")
    trainer = environment.value("PADDLE_TRAINER_ID")
    if not isinstance(done, int) or not isinstance(trainer, int):
        return None
    names = ("PADDLE_TRAINERS_NUM", "PENSTOCK_CHECKPOINT_DIR", "PENSTOCK_JOB_ID", "PENSTOCK_RESTART_COUNT")
    return _Follower(MoveFiles({name: environment.text(name) for name in names}), trainer, done)


_of_process = _follower()


def follow(program: Program) -> None:
    """Call before each run of a program: if it is a trainer's, this is where its pservers are replaced."""
    if _of_process is not None:
        _of_process.follow(program)


def closed() -> None:
    """Call when this trainer has completed although its process goes on."""
    if _of_process is not None:
        _of_process.closed()
