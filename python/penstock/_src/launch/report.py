"""What the launcher prints when its job has ended: the first failure, the last lines of its log, and the cause.

code = report_end(job, processes, failures, recordings, explained)
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from penstock._src.launch.blame import find_cause
from penstock._src.launch.cause import explain_failure
from penstock._src.launch.logs import last_lines, say
from penstock._src.launch.outcome import JOB
from penstock._src.launch.receipts import read_receipts, table
from penstock._src.launch.role_process import name_of, shell_status
from penstock._src.launch.traces import merge

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from penstock._src.launch.blame import Cause
    from penstock._src.launch.outcome import Failure
    from penstock._src.launch.plan import Job
    from penstock._src.launch.recordings import Recordings
    from penstock._src.launch.role_process import Process


EXIT_ROLE_FAILED = 1
LAST_LINES = 20


def failure_of(process: Process, words: str) -> dict[str, Any]:
    """Returns the facts of a process that has failed, for the launchers of all machines."""
    return {
        "who": name_of(process),
        "log": process.log_path,
        "words": words,
        "lines": last_lines(process.log_path, LAST_LINES),
        "role": process.role.name,
        "outcome": process.outcome,
    }


def merge_traces(folder: str | None, node: int, quiet: bool) -> None:
    """With --trace: merges the roles' traces, however the job ended. Never fails the launcher."""
    if folder is None:
        return
    lines, error = merge(folder, node)
    if error:
        say(error)
    for line in lines if not quiet else ():
        say(line, sys.stdout)


def print_receipts(job: Job) -> None:
    for line in table(read_receipts(job.log_dir, job.roles), job.pservers):
        say(line, sys.stdout)


def report_end(
    job: Job, processes: list[Process], failures: list[Failure], recordings: Recordings, explained: str
) -> int:
    """Prints why the job has failed, and nothing if it has ended well. Returns the launcher's exit code.

    processes  the last one of each role of this machine
    failures   those of all machines, in the order in which they were told
    explained  what the recordings say of a job that hangs
    """
    cause = find_cause(failures, list(job.pservers), len(job.trainers))
    if cause is None:
        return 0
    failure = cause.failure
    where = _where(job, failure.node)
    if failure.who == JOB:
        say(f"error: launch: {failure.who} {failure.words}   [E-launch-hang]")
    elif failure.who:
        say(f"error: launch: {failure.who}{where} {failure.words}   [E-launch-role]")
    else:
        say(f"error: launch: node {failure.node} ({job.nodes[failure.node]}) {failure.words}   [E-launch-node]")
    if failure.lines:
        say(f"  last lines of {failure.log}{where}:")
        for line in failure.lines:
            say(f"    {line}")
    for process in processes:
        if failure.node != job.rank or failure.who != name_of(process):
            say(f"  {process.role.name} {process.outcome}; its log is {process.log_path}")
    _explain(cause, job, processes, recordings, explained)
    return _status_of(failure, processes) if job.own_status else EXIT_ROLE_FAILED


def _where(job: Job, node: int) -> str:
    return f" on node {node} ({job.nodes[node]})" if len(job.nodes) > 1 else ""


def _status_of(failure: Failure, processes: Sequence[Process]) -> int:
    """Returns the exit code of the process that failed, as a shell states it."""
    process = next((process for process in processes if name_of(process) == failure.who), None)
    return EXIT_ROLE_FAILED if process is None or process.failed_by is None else shell_status(process.failed_by)


def _explain(cause: Cause, job: Job, processes: list[Process], recordings: Recordings, explained: str) -> None:
    """Prints the cause as the last line, with what the recordings of this machine's roles add to it."""
    if recordings.write(processes):
        say(f"  the last events of each role are in {os.path.join(job.log_dir, 'flight.*.jsonl')}")
    sentence = cause.sentence or (explained if cause.failure.who == JOB else "")
    if not sentence and cause.role:
        sentence = (
            explain_failure(recordings.take(processes), cause.role, cause.words)
            or f"{cause.role}{_where(job, cause.failure.node)} {cause.words}"
        )
    if sentence:
        say(f"cause: {sentence}")
