"""The command: reads the options, makes the plan of this machine, joins the other machines' launchers, and runs the
supervisor."""

from __future__ import annotations

import functools
import os
import sys
from typing import TYPE_CHECKING

from penstock._src.launch.backends.dispatch import run_backend
from penstock._src.launch.backends.local import describe_local, line_settings, local_job
from penstock._src.launch.backends.tasks import make_line
from penstock._src.launch.cluster import JoinError, Stopped, join
from penstock._src.launch.elastic import check_elastic, check_min_workers
from penstock._src.launch.errors import JobError
from penstock._src.launch.guard import run_guarded
from penstock._src.launch.job import make_job, make_plan, with_pservers
from penstock._src.launch.logs import require_folder, say
from penstock._src.launch.messages import Facts
from penstock._src.launch.options import parse_options
from penstock._src.launch.report import EXIT_ROLE_FAILED
from penstock._src.launch.stop import Stop
from penstock._src.launch.supervisor import Supervisor
from penstock._src.launch.traces import clear

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable
    from typing import Any

    from penstock._src.launch.backends.tasks import Line
    from penstock._src.launch.plan import Job, Plan


EXIT_BAD_INPUT = 2


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
    check_min_workers(options.min_workers, sum(len(member.trainers) for member in facts.members))
    job = make_job(plan, facts.members, facts.job_id, facts.token, attempt)
    return _run(job, cluster, options, stop, registry, functools.partial(with_pservers, plan, job))


def _run_line(line: Line, options: Namespace, stop: Stop, registry: int, attempt: int) -> int:
    """Runs the job of MXNet's command line on this machine; returns the exit code."""
    if options.trace is not None:
        clear(options.trace)
    return _run(local_job(line, options, attempt), None, options, stop, registry)


def _run(
    job: Job,
    cluster: Any,
    options: Namespace,
    stop: Stop,
    registry: int,
    remake: Callable[[int, int, int], Job] | None = None,
) -> int:
    if options.print_config:
        for line in job.describe():
            say(line, sys.stdout)
    return Supervisor(job, stop, cluster, registry, options, remake).run()


def _supervise(
    once: Callable[[Stop, int, int], int], options: Namespace, registry: int, unblock: Callable[..., Any]
) -> int:
    """Calls once(stop, registry, attempt) until the job ends well, or is to end; returns the exit code."""
    stop = Stop()
    stop.install()
    unblock()
    for attempt in range(options.max_restart + 1):
        if attempt > 0:
            say(f"launch: starting the job again, attempt {attempt} of {options.max_restart}")
        try:
            code = once(stop, registry, attempt)
        except JobError as error:  # what only all machines together know
            say(f"error: launch: {error.line()}")
            return EXIT_BAD_INPUT
        failed = code != 0 if options.num_workers is not None else code == EXIT_ROLE_FAILED
        if not failed or stop.asked or stop.signal is not None:
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


def _prepare(options: Namespace) -> Callable[[Stop, int, int], int] | None:
    """Returns what runs this machine's part of the job, called with (stop, registry, attempt); None if the options
    asked only what that would be. Raises JobError."""
    if options.num_workers is not None:
        line = make_line(options, os.environ, line_settings(options, os.environ))
        if options.dry_run:
            for text in describe_local(line, options):
                print(text)
            return None
        once = functools.partial(_run_line, line, options)
    else:
        plan = make_plan(options, os.environ)
        check_elastic(options, plan)
        if options.dry_run:
            _print_plan(plan)
            return None
        once = functools.partial(_run_once, plan, options)
    require_folder("--log_dir", options.log_dir)
    if options.trace is not None:
        require_folder("--trace", options.trace)
    return once


def main(argv: list[str]) -> int:
    """Runs the command line; returns the exit code: 0, 1 (a role failed; with -n its own code), 2 (bad input) or 130
    (interrupted)."""
    options = parse_options(argv)
    try:
        if options.launcher != "local":
            return run_backend(options, os.environ)
        once = _prepare(options)
    except JobError as error:
        say(f"error: launch: {error.line()}")
        return EXIT_BAD_INPUT
    if once is None:
        return 0
    return run_guarded(lambda registry, unblock: _supervise(once, options, registry, unblock))
