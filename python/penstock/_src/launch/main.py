"""The command: reads the options, makes the plan of this machine, joins the other machines' launchers, and runs the
supervisor."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from penstock._src.launch.cluster import JoinError, Stopped, join
from penstock._src.launch.elastic import check_elastic
from penstock._src.launch.errors import JobError
from penstock._src.launch.guard import run_guarded
from penstock._src.launch.job import make_job, make_plan
from penstock._src.launch.logs import say
from penstock._src.launch.messages import Facts
from penstock._src.launch.options import parse_options
from penstock._src.launch.stop import Stop
from penstock._src.launch.supervisor import EXIT_ROLE_FAILED, run_job
from penstock._src.launch.traces import clear

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable
    from typing import Any

    from penstock._src.launch.plan import Plan


EXIT_BAD_INPUT = 2


def _require_folder(option: str, folder: str) -> None:
    """Creates the folder of an option, and checks that it is writable."""
    try:
        os.makedirs(folder, exist_ok=True)
    except FileExistsError as error:
        raise JobError(f"{option} {folder}: not a folder") from error
    except OSError as error:
        raise JobError(f"{option} {folder}: {error.strerror or error}") from error
    probe = os.path.join(folder, f".penstock-{os.getpid()}")
    try:
        os.close(os.open(probe, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        os.unlink(probe)
    except OSError as error:
        raise JobError(f"{option} {folder}: cannot create a file there: {error.strerror or error}") from error


def _run_once(plan: Plan, options: Namespace, stop: Stop, registry: int, attempt: int) -> int:
    """Starts this machine's part of the job and waits for its end; returns the exit code."""
    cluster, facts = None, Facts((plan.own,), plan.job_id, plan.token)
    if options.trace is not None:
        clear(options.trace)
    if len(plan.nodes) > 1:
        try:
            cluster, facts = join(plan, plan.control_port, options.join_s, lambda: stop.signal is not None)
        except JoinError as error:
            say(f"error: launch: {error}   [{error.id}]")
            return EXIT_ROLE_FAILED
        except Stopped:
            return stop.exit_code()
    job = make_job(plan, facts.members, facts.job_id, facts.token, attempt)
    if options.print_config:
        for line in job.describe():
            say(line, sys.stdout)
    return run_job(job, stop, cluster, registry, options)


def _supervise(plan: Plan, options: Namespace, registry: int, unblock: Callable[..., Any]) -> int:
    stop = Stop()
    stop.install()
    unblock()
    for attempt in range(options.max_restart + 1):
        if attempt > 0:
            say(f"launch: starting the job again, attempt {attempt} of {options.max_restart}")
        code = _run_once(plan, options, stop, registry, attempt)
        if code != EXIT_ROLE_FAILED or stop.asked:
            return code
    return code


def _print_plan(plan: Plan) -> None:
    """Prints the output of --dry_run."""
    job = make_job(plan, (plan.own,) * len(plan.nodes), plan.job_id, plan.token)
    if len(plan.nodes) > 1:
        print("# the other machines are taken to start as many roles as this one, at its own addresses")
    for line in [*job.describe(), *job.describe_roles()]:
        print(line)


def command() -> int:
    """The console script penstock-launch."""
    return main(sys.argv[1:])


def main(argv: list[str]) -> int:
    """Runs the command line; returns the exit code: 0, 1 (a role failed), 2 (bad input) or 130 (interrupted)."""
    options = parse_options(argv)
    try:
        plan = make_plan(options, os.environ)
        check_elastic(options, plan)
        if options.dry_run:
            _print_plan(plan)
            return 0
        _require_folder("--log_dir", plan.log_dir)
        if options.trace is not None:
            _require_folder("--trace", options.trace)
    except JobError as error:
        say(f"error: launch: {error.line()}")
        return EXIT_BAD_INPUT
    return run_guarded(lambda registry, unblock: _supervise(plan, options, registry, unblock))
