"""The job of MXNet's command line on this machine: the roles that the supervisor starts."""

from __future__ import annotations

import os
import secrets
from typing import TYPE_CHECKING

from penstock._penstock import ProgramError
from penstock._src.base import environment as _environment
from penstock._src.launch.backends.tasks import LOGS
from penstock._src.launch.checkpoints import checkpoint_settings
from penstock._src.launch.errors import JobError
from penstock._src.launch.job import check_settings, job_token, settings_of
from penstock._src.launch.plan import Job, Role
from penstock._src.launch.rank_environment import team_size
from penstock._src.launch.trainer_loss import ABORT, SHRINK, trainer_loss, trainer_restarts

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator, Mapping

    from penstock._src.launch.backends.tasks import Line


def line_settings(options: Namespace, environment: Mapping[str, str]) -> dict[str, str]:
    """Returns the variables that every process of the job has; raises JobError. A missing id or token is drawn at
    random."""
    try:
        check_settings(options, environment)
        is_line = options.num_workers is not None
        has_pservers = options.num_servers != 0 if is_line else bool(options.server_num or options.endpoints)
        loss = trainer_loss(options, environment, has_pservers)
        token = job_token(options, environment) or secrets.token_hex(16)
        name = options.job_id or _environment.text("PENSTOCK_JOB_ID", "", environment) or secrets.token_hex(4)
        return {
            "PENSTOCK_JOB_TOKEN": token,
            "PENSTOCK_JOB_ID": name,
            "PYTHONUNBUFFERED": "1",
            **settings_of(options),
            **checkpoint_settings(options, has_pservers, has_pservers),
            **({} if loss == ABORT else {"PENSTOCK_ON_TRAINER_LOSS": loss}),
        }
    except ProgramError as error:
        raise JobError(str(error), error.id) from error


def local_job(line: Line, options: Namespace, attempt: int = 0) -> Job:
    """Returns the job with all of its roles on this machine. The scheduler is started first."""
    cores = line.cores
    extra = {"PENSTOCK_LOG_DIR": os.path.abspath(options.log_dir), "PENSTOCK_RESTART_COUNT": str(attempt)}
    roles = []
    kinds = [("scheduler", 0), *line.kinds()] if line.servers else list(line.kinds())
    for kind, i in kinds:
        size = team_size(cores, {"pserver": line.servers, "trainer": line.workers, "scheduler": cores}[kind])
        roles.append(Role(kind, i, f"{LOGS[kind]}.{i}", {**extra, **size, **line.environment(kind, i)}))
    if options.metrics is not None:
        for i, role in enumerate(roles):
            role.environment["PENSTOCK_METRICS"] = str(options.metrics + i if options.metrics else 0)
    loss = line.common.get("PENSTOCK_ON_TRAINER_LOSS", ABORT)
    return Job(
        roles=tuple(roles),
        command=line.command,
        log_dir=options.log_dir,
        pservers=(),
        trainers=line.ranks,
        nodes=("127.0.0.1",),
        rank=0,
        trainers_elsewhere=0,
        attempt=attempt,
        role_restarts=int(line.common.get("PENSTOCK_MAX_ROLE_RESTART", "0")),
        trainer_restarts=trainer_restarts(options, loss),
        shrinks=loss == SHRINK,
        root=f"{line.root[0]}:{line.root[1]}" if line.servers else "",
        own_status=True,
    )


def describe_local(line: Line, options: Namespace) -> Iterator[str]:
    """Returns what the launcher would start, a command with its variables for each process."""
    job = local_job(line, options)
    yield from job.describe()
    yield from job.describe_roles()
