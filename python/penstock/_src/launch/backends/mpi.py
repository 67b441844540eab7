"""--launcher mpi: mpirun starts the processes, and their ranks become roles: first the servers, then the workers.

Open MPI and MPICH are told the names of variables, so no value stands in a command line. The scheduler runs on this
machine. Without -n, mpirun starts one launcher on each machine.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

from penstock._src.launch.backends.addresses import own_address
from penstock._src.launch.backends.hosts import read_hosts
from penstock._src.launch.backends.local import line_settings
from penstock._src.launch.backends.ranks import role_command
from penstock._src.launch.backends.tasks import LOGS, Task, make_line, passed_on
from penstock._src.launch.backends.words import launcher_words
from penstock._src.launch.errors import JobError

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterable, Mapping


RANKS = ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK")


def _is_mpich(options: Namespace) -> bool:
    """Returns whether mpirun is MPICH's, or one of its kin; raises JobError if there is no mpirun to run."""
    if shutil.which("mpirun") is None:
        if options.dry_run:
            return False
        raise JobError("--launcher mpi needs mpirun, and there is no such program", "E-launch-scheduler")
    text = subprocess.run(["mpirun", "--version"], capture_output=True, text=True, timeout=60, check=False).stdout
    return any(name in text for name in ("HYDRA", "MPICH", "Intel"))


def _mpirun(
    options: Namespace, count: int, names: Iterable[str], one_each: bool, command: tuple[str, ...]
) -> list[str]:
    mpich = _is_mpich(options)
    names = sorted(names)
    passed = ["-genvlist", ",".join(names)] if mpich else [word for name in names for word in ("-x", name)]
    hosts = [] if not options.hostfile else ["-f" if mpich else "--hostfile", options.hostfile]
    spread = [] if not one_each else ["-ppn", "1"] if mpich else ["--map-by", "ppr:1:node"]
    return ["mpirun", "-n", str(count), *passed, *hosts, *spread, *options.submit_option, *command]


def mpi_tasks(options: Namespace, environment: Mapping[str, str]) -> list[Task]:
    """Returns the scheduler and the mpirun that this machine runs; raises JobError."""
    passed = passed_on(environment, [name for _, _, name, value in options.env if value is None])
    settings = line_settings(options, environment)
    log = f"{LOGS['mpirun']}.0"
    if options.num_workers is None:
        count = len(read_hosts(options.hostfile)) if options.hostfile else options.nnodes or 1
        master = read_hosts(options.hostfile)[0].address if options.hostfile else own_address(environment)
        words = (options.remote_python or sys.executable, "-m", "penstock.distributed.launch", "--scheduler", "mpi")
        command = (*words, "--master", master, *launcher_words(options))
        variables = {**passed, **{name: settings[name] for name in ("PENSTOCK_JOB_TOKEN", "PENSTOCK_JOB_ID")}}
        mpirun = _mpirun(options, count, variables, True, command)
        return [Task("mpirun", 0, tuple(mpirun), variables, None, os.getcwd(), log)]
    line = make_line(options, environment, settings)
    if not line.servers:
        raise JobError("--launcher mpi needs servers with -n; ranks are started without it: --nnodes, --worker_num")
    general = {name: value for kind, number, name, value in line.given if kind is None and number is None}
    variables = {**passed, **line.shared(), **general, "DMLC_JOB_CLUSTER": "mpi"}
    command = role_command(line, RANKS, ("pserver", "trainer"))
    mpirun = _mpirun(options, line.servers + line.workers, variables, False, command)
    return [line.scheduler(os.getcwd()), Task("mpirun", 0, tuple(mpirun), variables, None, os.getcwd(), log)]
