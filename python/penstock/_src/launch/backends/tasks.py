"""The processes of a job in terms of MXNet's launcher: a scheduler, servers and workers that run one command.

line = Line(workers=2, servers=2, command=("python", "train.py"), ...)
line.environment("pserver", 0)      # DMLC_ROLE=server, DMLC_TASK_ID=2, ...
line.tasks(hosts, folder)           # which host runs what
"""

from __future__ import annotations

import dataclasses
import os
import shlex
from typing import TYPE_CHECKING

from penstock._src.launch.backends.addresses import free_port, own_address
from penstock._src.launch.backends.hosts import Host
from penstock._src.launch.errors import JobError
from penstock._src.launch.job import TRAINER_PORT, free_ports, own_cores
from penstock._src.launch.rank_environment import torch_names

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator, Mapping, Sequence


DMLC_ROLES = {"scheduler": "scheduler", "pserver": "server", "trainer": "worker"}
LOGS = {"scheduler": "schedulerlog", "pserver": "serverlog", "trainer": "workerlog", "launcher": "launcherlog"}
LOGS.update({"mpirun": "mpirunlog", "qsub": "qsublog", "yarn": "yarnlog"})  # programs that start the others
SECRETS = ("PENSTOCK_JOB_TOKEN",)

# What a process on another host gets of the launcher's environment. MXNet's launcher passes the first ones on.
PASSED = {
    "OMP_NUM_THREADS",
    "KMP_AFFINITY",
    "LD_LIBRARY_PATH",
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "DMLC_INTERFACE",
}
PASSED_PREFIXES = ("PS_", "MXNET_", "PENSTOCK_", "FLAGS_")


@dataclasses.dataclass(frozen=True)
class Task:
    """One process of a job, on any machine."""

    kind: str  # "scheduler", "pserver", "trainer" or "launcher"
    index: int  # its number among those of its kind
    command: tuple[str, ...]
    environment: dict[str, str]  # added to that of its host
    host: Host | None  # None: this machine
    folder: str  # in which it runs
    log_name: str = ""

    @property
    def name(self) -> str:
        return f"{self.kind} {self.index}"

    def describe(self) -> Iterator[str]:
        """Returns what is started, in shell syntax, without secrets."""
        where = "this machine" if self.host is None else self.host.text
        yield f"# {self.name} on {where}, in {self.folder}"
        yield shell_line(self.environment, self.command)


def shell_line(environment: Mapping[str, str], command: tuple[str, ...]) -> str:
    """Returns a command with its variables in shell syntax. Values that could be secrets are not shown."""
    settings = [f"{name}={shlex.quote(value)}" for name, value in sorted(shown(environment).items())]
    return " ".join([*settings, *map(shlex.quote, command)])


def shown(environment: Mapping[str, str]) -> dict[str, str]:
    """Returns the variables for a reader: without the values of secrets."""
    return {name: "..." if is_secret(name) else value for name, value in environment.items()}


def is_secret(name: str) -> bool:
    """Returns whether the value of a variable is not to be shown."""
    return any(word in name.upper() for word in ("SECRET", "TOKEN", "PASSWORD", "ACCESS_KEY"))


def passed_on(environment: Mapping[str, str], names: list[str]) -> dict[str, str]:
    """Returns the variables of the launcher that processes on other hosts get; `names`: those of --env NAME."""
    for name in names:
        if name not in environment:
            raise JobError(f"--env {name}: this variable is not set; --env {name}=VALUE gives it a value")
    wanted = PASSED.union(names)
    return {name: value for name, value in environment.items() if name in wanted or name.startswith(PASSED_PREFIXES)}


def rank_variables(addresses: Sequence[str], rank: int) -> dict[str, str]:
    """Returns the variables from which a worker without servers, a rank, finds the others."""
    host, _, _ = addresses[rank].rpartition(":")
    of_host = [i for i, address in enumerate(addresses) if address.rpartition(":")[0] == host]
    return {
        "TRAINING_ROLE": "TRAINER",
        "PADDLE_TRAINING_ROLE": "TRAINER",
        "PADDLE_TRAINER_ID": str(rank),
        "PADDLE_TRAINERS_NUM": str(len(addresses)),
        "PADDLE_TRAINER_ENDPOINTS": ",".join(addresses),
        "PADDLE_CURRENT_ENDPOINT": addresses[rank],
        **torch_names(rank, len(addresses), of_host.index(rank), len(of_host), addresses[0]),
    }


@dataclasses.dataclass(frozen=True)
class Line:
    """What MXNet's command line states, and where the scheduler is."""

    workers: int
    servers: int
    command: tuple[str, ...]
    root: tuple[str, int]  # the scheduler's host and port
    common: dict[str, str]  # variables of every process
    given: tuple[tuple[str | None, int | None, str, str], ...]  # --env: (kind or None, number or None, name, value)
    cluster: str = ""  # DMLC_JOB_CLUSTER
    cores: int = 0  # of this machine, which the processes of a kind divide; 0: OMP_NUM_THREADS is given
    ranks: tuple[str, ...] = ()  # addresses of the workers, if there are no servers: then they are ranks

    def kinds(self) -> Iterator[tuple[str, int]]:
        """Returns the kind and number of each process but the scheduler's, in the order in which they get hosts."""
        yield from (("pserver", i) for i in range(self.servers))
        yield from (("trainer", i) for i in range(self.workers))

    def environment(self, kind: str, index: int) -> dict[str, str]:
        """Returns the variables of one process."""
        own = {"DMLC_ROLE": DMLC_ROLES[kind]}
        if kind != "scheduler":
            own["DMLC_TASK_ID"] = str(index if kind == "trainer" else self.workers + index)
            if self.cluster:
                own["DMLC_JOB_CLUSTER"] = self.cluster
        if self.ranks:
            own.update(rank_variables(self.ranks, index))
        return {**self.shared(), **own, **self.given_for(kind, index)}

    def shared(self) -> dict[str, str]:
        """Returns the variables that all processes have alike."""
        return {
            **self.common,
            "DMLC_NUM_WORKER": str(self.workers),
            "DMLC_NUM_SERVER": str(self.servers),
            "DMLC_PS_ROOT_URI": self.root[0],
            "DMLC_PS_ROOT_PORT": str(self.root[1]),
        }

    def given_for(self, kind: str, index: int | None = None) -> dict[str, str]:
        """Returns the variables of --env for a process; a more specific setting takes precedence. Without `index`:
        those of all processes of the kind."""
        numbers = (None,) if index is None else (None, index)
        chosen = [one for one in self.given if one[0] in (None, kind) and one[1] in numbers]
        chosen.sort(key=lambda one: (one[0] is not None) + (one[1] is not None))
        return {name: value for _, _, name, value in chosen}

    def scheduler(self, folder: str) -> Task:
        return Task(
            "scheduler", 0, self.command, self.environment("scheduler", 0), None, folder, f"{LOGS['scheduler']}.0"
        )

    def tasks(self, hosts: tuple[Host, ...], folder: str, passed: Mapping[str, str]) -> list[Task]:
        """Returns the processes on the hosts, round robin, pservers first.

        passed  variables of the launcher that they get too; the job's own take precedence
        """
        found = []
        for i, (kind, index) in enumerate(self.kinds()):
            host = hosts[i % len(hosts)]
            environment = {**passed, "DMLC_NODE_HOST": host.address, **self.environment(kind, index)}
            found.append(Task(kind, index, self.command, environment, host, folder, f"{LOGS[kind]}.{index}"))
        return found


def command_of(options: Namespace) -> tuple[str, ...]:
    """Returns the command that every process runs: its words as they are. A single word with spaces is a line for the
    shell, as in `penstock-launch -n 2 "python train.py"`."""
    words = (options.training_script, *options.training_script_args)
    return ("sh", "-c", words[0]) if len(words) == 1 and len(words[0].split()) > 1 else words


def _rank_addresses(workers: int, hosts: tuple[Host, ...]) -> tuple[str, ...]:
    """Returns an address for each worker: on this machine, or on the hosts, round robin."""
    if not hosts:
        return tuple(f"127.0.0.1:{port}" for port in free_ports(workers))
    return tuple(f"{hosts[i % len(hosts)].address}:{TRAINER_PORT + i // len(hosts)}" for i in range(workers))


def make_line(
    options: Namespace,
    environment: Mapping[str, str],
    common: Mapping[str, str],
    hosts: tuple[Host, ...] = (),
    root: tuple[str, int] | None = None,
) -> Line:
    """Returns the Line of the options; raises JobError.

    common  variables of every process: those that Penstock's own options set, the job's name and token
    hosts   of -H, in a job over ssh
    root    the scheduler's host and port, if it does not run on this machine
    """
    settings = dict(common)
    if options.p3:
        settings.update(DMLC_PS_VAN_TYPE="p3", DMLC_PS_WATER_MARK="10")
    servers = options.num_workers if options.num_servers is None else options.num_servers
    local = options.launcher == "local"
    if root is None:
        uri = environment.get("DMLC_NODE_HOST", "127.0.0.1") if local else own_address(environment)
        root = (uri, free_port())
    return Line(
        workers=options.num_workers,
        servers=servers,
        command=command_of(options),
        root=root,
        common=settings,
        given=tuple(one for one in options.env if one[3] is not None),
        cores=own_cores(environment),
        cluster="" if options.launcher == "ssh" else options.launcher,
        ranks=() if servers or not (local or hosts) else _rank_addresses(options.num_workers, hosts),
    )


def working_folder(options: Namespace) -> str:
    """Returns the folder in which processes on other hosts run."""
    return str(options.sync_dst_dir) if options.sync_dst_dir else os.getcwd()
