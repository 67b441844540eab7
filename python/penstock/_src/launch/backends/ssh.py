"""--launcher ssh: the tasks of a job, from MXNet's command line or as one launcher on each host.

Without -n, each host gets a launcher of its own, with the options of this one; they join as launchers of several
machines do (cluster.py), so restarts, checkpoints and causes work as there.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from typing import TYPE_CHECKING

from penstock._src.launch.backends.connection import keeper_command
from penstock._src.launch.backends.copies import copy_commands, has_rsync
from penstock._src.launch.backends.hosts import Host, read_hosts
from penstock._src.launch.backends.local import line_settings
from penstock._src.launch.backends.tasks import LOGS, Task, make_line, passed_on, working_folder
from penstock._src.launch.backends.words import launcher_words
from penstock._src.launch.errors import JobError

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Mapping


def _passed(options: Namespace, environment: Mapping[str, str]) -> dict[str, str]:
    return passed_on(environment, [name for _, _, name, value in options.env if value is None])


def line_tasks(options: Namespace, environment: Mapping[str, str], hosts: tuple[Host, ...]) -> list[Task]:
    """Returns the scheduler, on this machine, and the servers and workers on the hosts."""
    line = make_line(options, environment, line_settings(options, environment), hosts)
    scheduler = [line.scheduler(os.getcwd())] if line.servers else []
    return [*scheduler, *line.tasks(hosts, working_folder(options), _passed(options, environment))]


def launcher_tasks(options: Namespace, environment: Mapping[str, str], hosts: tuple[Host, ...]) -> list[Task]:
    """Returns a launcher for each host."""
    addresses = [host.address for host in hosts]
    repeated = [address for i, address in enumerate(addresses) if address in addresses[:i]]
    if repeated:
        raise JobError(f"{options.hostfile} names {repeated[0]} twice; without -n, a host has one launcher")
    common = line_settings(options, environment)
    facts = {name: common[name] for name in ("PENSTOCK_JOB_TOKEN", "PENSTOCK_JOB_ID")}
    python = options.remote_python or sys.executable
    tasks = []
    for i, host in enumerate(hosts):
        where = ["--cluster_node_ips", ",".join(addresses), "--node_ip", host.address]
        command = (python, "-m", "penstock.distributed.launch", *where, *launcher_words(options))
        environment_there = {**_passed(options, environment), **facts, "PYTHONUNBUFFERED": "1"}
        tasks.append(
            Task("launcher", i, command, environment_there, host, working_folder(options), f"{LOGS['launcher']}.{i}")
        )
    return tasks


def ssh_tasks(options: Namespace, environment: Mapping[str, str]) -> list[Task]:
    """Returns what the hosts of -H run; raises JobError."""
    hosts = read_hosts(options.hostfile)
    if shutil.which("ssh") is None and not options.dry_run:
        raise JobError("--launcher ssh needs OpenSSH's client, and there is no program ssh", "E-launch-host")
    if options.num_workers is not None:
        return line_tasks(options, environment, hosts)
    return launcher_tasks(options, environment, hosts)


def describe_hosts(tasks: list[Task], options: Namespace) -> list[str]:
    """Returns how each host is reached, and what is copied to it; CONTROL stands for the socket of the connection."""
    lines = []
    for host in dict.fromkeys(task.host for task in tasks if task.host is not None):
        lines.append(f"# {host.text}: {shlex.join(keeper_command(host, options, 'CONTROL'))}")
        if options.sync_dst_dir:
            copies = copy_commands(host, options, "CONTROL", options.sync_dst_dir, has_rsync())
            lines.append(" | ".join(map(shlex.join, copies)))
    return lines
