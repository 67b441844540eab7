"""Checkpoints of a job with pservers: the options, and the step after which the job continues."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from penstock import _penstock
from penstock._src.launch.errors import JobError

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Callable, Mapping


ROLE_RESTARTS = 3
AUTO = "auto"


def add_checkpoint_options(parser: ArgumentParser, positive: Callable[[str], int], count: Callable[[str], int]) -> None:
    """Adds the options to an argparse.ArgumentParser; `positive` reads an integer above 0, `count` one above -1."""
    kinds = "of a job with pservers in synchronous, asynchronous or geo-SGD training"
    group = parser.add_argument_group("checkpoints", kinds)
    group.add_argument(
        "--checkpoint_steps",
        type=lambda text: AUTO if text == AUTO else positive(text),
        metavar="K",
        help="save what the pservers hold in --checkpoint_dir after every K steps, and after the last one if SIGTERM "
        "stops the job; auto: as often as 3 %% of the time allow, by the measured time of the last checkpoint, and at "
        "most every 10 s (PENSTOCK_CHECKPOINT_STEPS; 0: auto)",
    )
    group.add_argument(
        "--keep",
        type=positive,
        metavar="N",
        help="keep the newest N whole checkpoints (PENSTOCK_KEEP_CHECKPOINTS; default: 2)",
    )
    group.add_argument(
        "--resume",
        action="store_true",
        help="continue from the newest whole checkpoint in --checkpoint_dir; scripts find the number of complete "
        "steps in penstock.resume_step() (PENSTOCK_RESUME_STEP)",
    )
    group.add_argument(
        "--max_role_restart",
        type=count,
        metavar="N",
        help="with --checkpoint_steps: start a pserver that was killed again by itself, each at most N times; it "
        "continues from its last checkpoint, and trainers send it the steps since then again; of a trainer, see "
        "--on_trainer_loss (PENSTOCK_MAX_ROLE_RESTART; default: 3). In a job without pservers: restart a rank that "
        "fails; the others keep their processes and continue with it from the last commit of hvd.elastic (default: 0)",
    )


def checkpoint_settings(options: Namespace, own_pservers: bool, has_pservers: bool) -> dict[str, str]:
    """Returns the variables that the options add to the environment of every role; raises JobError.

    own_pservers  this machine has pservers, or knows those of others
    has_pservers  the job has pservers, or may have some on another machine
    """
    steps, folder = options.checkpoint_steps, options.checkpoint_dir
    given = "--checkpoint_steps" if steps else "--resume" if options.resume else "--keep" if options.keep else None
    goes_on = options.on_trainer_loss not in (None, "abort")
    if own_pservers and options.max_role_restart and not steps and not goes_on:
        raise JobError("--max_role_restart needs --checkpoint_dir DIR and --checkpoint_steps K", "E-checkpoint-folder")
    if given is None:
        return {}
    if not folder:
        raise JobError(f"{given} needs --checkpoint_dir DIR", "E-checkpoint-folder")
    if not has_pservers:
        raise JobError(f"{given} needs pservers, and the job has none", "E-checkpoint-mode")
    settings = {}
    if steps:
        settings["PENSTOCK_CHECKPOINT_STEPS"] = "0" if steps == AUTO else str(steps)
        restarts = ROLE_RESTARTS if options.max_role_restart is None else options.max_role_restart
        settings["PENSTOCK_MAX_ROLE_RESTART"] = str(0 if options.reconnect_s == 0 else restarts)
    if options.keep:
        settings["PENSTOCK_KEEP_CHECKPOINTS"] = str(options.keep)
    if options.resume:
        try:
            newest = _penstock.newest_checkpoint(os.path.abspath(folder))
        except _penstock.DataError as error:
            raise JobError(f"--resume: {error}", error.id) from error
        if newest is None:
            raise JobError(f"--resume: {folder} has no checkpoint", "E-checkpoint-whole")
        settings["PENSTOCK_RESUME_STEP"] = str(newest)
    elif there := _penstock.checkpoint_steps(os.path.abspath(folder)):
        raise JobError(
            f"--checkpoint_dir {folder} has checkpoints of an earlier job, the last of step {there[-1]}; continue that "
            "job by --resume, or give an empty folder",
            "E-checkpoint-exists",
        )
    return settings


def restart_settings(settings: Mapping[str, str], attempt: int) -> dict[str, str]:
    """Returns the variables of a job that --max_restart starts again: it continues from its newest whole checkpoint."""
    if attempt == 0 or "PENSTOCK_CHECKPOINT_STEPS" not in settings:
        return {}
    try:
        newest = _penstock.newest_checkpoint(settings["PENSTOCK_CHECKPOINT_DIR"])
    except _penstock.DataError:  # only parts of one
        newest = None
    return {"PENSTOCK_RESUME_STEP": str(newest or 0)}
