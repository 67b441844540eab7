"""What the death of a trainer means: the option --on_trainer_loss, and how often a trainer is started again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock._src.base import environment as _environment
from penstock._src.launch.checkpoints import ROLE_RESTARTS
from penstock._src.launch.errors import JobError

if TYPE_CHECKING:
    from argparse import Namespace, _ArgumentGroup
    from collections.abc import Mapping


ABORT, WAIT, SHRINK = "abort", "wait", "shrink"


def add_trainer_loss_option(group: _ArgumentGroup) -> None:
    group.add_argument(
        "--on_trainer_loss",
        choices=(WAIT, SHRINK, ABORT),
        help="what to do when a trainer is killed, in synchronous training with pservers. wait: start it again, at "
        "most --max_role_restart times; the others wait, and it repeats its incomplete step. shrink: the others go on "
        "with the mean of their gradients until it is back. abort: end the job. A script finds the step with which it "
        "begins in penstock.resume_step() (PENSTOCK_ON_TRAINER_LOSS; default: wait with --checkpoint_steps, else "
        "abort)",
    )


def trainer_loss(options: Namespace, environment: Mapping[str, str], has_pservers: bool) -> str:
    """Returns what the death of a trainer means; raises JobError."""
    given = options.on_trainer_loss or _environment.value("PENSTOCK_ON_TRAINER_LOSS", "", environment)
    if options.on_trainer_loss not in (None, ABORT) and not has_pservers:
        raise JobError(
            f"--on_trainer_loss {options.on_trainer_loss} needs pservers, and the job has none", "E-trainer-loss-mode"
        )
    if given:
        return str(given)
    return WAIT if options.checkpoint_steps and options.max_role_restart != 0 else ABORT


def trainer_restarts(options: Namespace, loss: str) -> int:
    """Returns how often each trainer may be started again by itself."""
    if loss == ABORT:
        return 0
    return ROLE_RESTARTS if options.max_role_restart is None else int(options.max_role_restart)
