"""--launcher yarn: two applications of Hadoop's distributed shell, one with the servers and one with the workers; the
scheduler runs on this machine and numbers them.

Each application runs a script, which Hadoop copies to its containers: it has the variables, so no command line shows
them.
"""

from __future__ import annotations

import glob
import os
import shlex
from typing import TYPE_CHECKING

from penstock._src.launch.backends.local import line_settings
from penstock._src.launch.backends.ranks import exports
from penstock._src.launch.backends.tasks import DMLC_ROLES, LOGS, Task, make_line, passed_on, shown
from penstock._src.launch.errors import JobError

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Mapping


CLIENT = "org.apache.hadoop.yarn.applications.distributedshell.Client"
JAR = "share/hadoop/yarn/hadoop-yarn-applications-distributedshell-*.jar"


def yarn_tasks(options: Namespace, environment: Mapping[str, str]) -> tuple[list[Task], dict[str, str]]:
    """Returns what this machine runs, and {path: text} of the scripts, which hold secrets; raises JobError."""
    if options.num_workers is None:
        raise JobError("--launcher yarn needs -n: a job of launchers is not offered there")
    home = environment.get("HADOOP_HOME", "")
    if not home:
        raise JobError("--launcher yarn needs HADOOP_HOME, Hadoop's folder", "E-launch-scheduler")
    line = make_line(options, environment, line_settings(options, environment))
    if not line.servers:
        raise JobError("--launcher yarn needs servers; -s 0 is not offered there")
    special = [f"{kind}.{number}" for kind, number, _, _ in line.given if number is not None]
    if special:
        raise JobError(
            f"--env {special[0]}: containers have no numbers before they run; give the variable to all of them"
        )
    passed = passed_on(environment, [name for _, _, name, value in options.env if value is None])
    found = sorted(glob.glob(os.path.join(home, JAR)))
    if not found and not options.dry_run:
        raise JobError(f"HADOOP_HOME is {home}, which has no {JAR}", "E-launch-scheduler")
    jar = found[-1] if found else os.path.join(home, JAR)
    tasks, scripts = [line.scheduler(os.getcwd())], {}
    for kind, count in (("pserver", line.servers), ("trainer", line.workers)):
        path = os.path.join(os.path.abspath(options.log_dir), f"job.{kind}.sh")
        variables = {**passed, **line.shared(), "DMLC_ROLE": DMLC_ROLES[kind], "DMLC_JOB_CLUSTER": "yarn"}
        variables.update(line.given_for(kind))
        folder = f"cd {shlex.quote(os.getcwd())} || exit 2"
        settings = exports(shown(variables) if options.dry_run else variables)
        scripts[path] = f"#!/bin/sh\n{folder}\n{settings}\nexec {shlex.join(line.command)}\n"
        words = ("-jar", jar, "-appname", f"penstock-{kind}", "-shell_script", path, "-num_containers", str(count))
        command = (os.path.join(home, "bin", "yarn"), CLIENT, *words, *options.submit_option)
        tasks.append(Task("yarn", len(tasks) - 1, command, {}, None, os.getcwd(), f"{LOGS['yarn']}.{len(tasks) - 1}"))
    return tasks, scripts
