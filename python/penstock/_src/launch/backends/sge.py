"""--launcher sge: an array of tasks of Grid Engine, whose numbers become roles; the scheduler runs on this machine.

`qsub -sync y` waits for the array and returns the exit code of a task that failed. Variables are passed by name.
"""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING

from penstock._src.launch.backends.local import line_settings
from penstock._src.launch.backends.ranks import role_command
from penstock._src.launch.backends.tasks import LOGS, Task, make_line, passed_on
from penstock._src.launch.errors import JobError

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Mapping


def sge_tasks(options: Namespace, environment: Mapping[str, str]) -> tuple[list[Task], dict[str, str]]:
    """Returns the scheduler and the qsub that this machine runs, and {path: text} of the script; raises JobError."""
    if options.num_workers is None:
        raise JobError("--launcher sge needs -n: a job of launchers is not offered there")
    line = make_line(options, environment, line_settings(options, environment))
    if not line.servers:
        raise JobError("--launcher sge needs servers; -s 0 is not offered there")
    passed = passed_on(environment, [name for _, _, name, value in options.env if value is None])
    general = {name: value for kind, number, name, value in line.given if kind is None and number is None}
    variables = {**passed, **line.shared(), **general, "DMLC_JOB_CLUSTER": "sge"}
    command = shlex.join(role_command(line, ("rank",), ("pserver", "trainer")))
    path = os.path.join(os.path.abspath(options.log_dir), "job.sge.sh")
    script = f"#!/bin/bash\n# $SGE_TASK_ID counts from 1.\nexport rank=$((SGE_TASK_ID - 1))\nexec {command}\n"
    words = ["-sync", "y", "-cwd", "-S", "/bin/bash", "-j", "y", "-o", os.path.dirname(path), "-N", "penstock"]
    count = f"1-{line.servers + line.workers}"
    qsub = ("qsub", *words, "-t", count, "-v", ",".join(sorted(variables)), *options.submit_option, path)
    task = Task("qsub", 0, qsub, variables, None, os.getcwd(), f"{LOGS['qsub']}.0")
    return [line.scheduler(os.getcwd()), task], {path: script}
