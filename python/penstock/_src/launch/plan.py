"""The settings of one launcher, and the job that those of all machines make: their data."""

from __future__ import annotations

import dataclasses
import os
import shlex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclasses.dataclass(frozen=True)
class Role:
    """One process of the job."""

    kind: str  # "pserver", "trainer" or, in a job of MXNet's command line, "scheduler"
    index: int  # its number among the roles of its kind in the whole job
    log_name: str  # "serverlog.0"
    environment: dict[str, str]  # added to the launcher's environment
    address: str = ""  # the address of a pserver

    @property
    def name(self) -> str:
        return f"{self.kind} {self.index}"


@dataclasses.dataclass(frozen=True)
class Member:
    """The facts of one machine in the job."""

    pservers: tuple[str, ...]  # addresses on this machine
    trainers: tuple[str, ...]
    endpoints: tuple[
        str, ...
    ] = ()  # --endpoints: the pservers of all machines, in this order; empty: in the order of machines


@dataclasses.dataclass(frozen=True)
class Plan:
    """The settings of this machine's launcher."""

    nodes: tuple[str, ...]  # addresses of the machines
    rank: int  # the number of this machine among them
    own: Member
    command: tuple[str, ...]
    log_dir: str
    gpus: tuple[str, ...]  # GPU of each trainer of this machine; empty: not given
    job_id: str  # "": not given
    token: str  # "": not given
    settings: dict[str, str]  # variables that options add to the roles' environment: safety.py, --wire
    cores: int  # which the roles of a kind divide among themselves; 0: OMP_NUM_THREADS is given
    control_port: int  # the port on which the first machine's launcher listens
    given: tuple[tuple[str | None, int | None, str, str], ...]  # --env: (kind or None, number or None, name, value)
    work_port: int = 0  # on which trainer 0 listens for the others, if they use penstock.work
    cloud: bool = False  # --use_paddlecloud: PADDLE_TRAINERS is set already, to the machines
    on_trainer_loss: str = "abort"  # trainer_loss.py
    trainer_restarts: int = 0  # how often each trainer may be started again by itself
    metrics: int | None = None  # port of /metrics of the first role; 0: free ports; None: no metrics
    restarts: str = ""  # the options by which all launchers decide alike who comes back


@dataclasses.dataclass(frozen=True)
class Job:
    roles: tuple[Role, ...]  # the roles of this machine
    command: tuple[str, ...]
    log_dir: str
    pservers: tuple[str, ...]  # addresses of all pservers, in order
    trainers: tuple[str, ...]
    nodes: tuple[str, ...]
    rank: int
    trainers_elsewhere: int
    trainer_nodes: tuple[int, ...] = ()  # the machine of each trainer
    attempt: int = 0  # number of earlier starts
    role_restarts: int = 0  # how often each pserver may be started again by itself (restarts.py)
    trainer_restarts: int = 0  # likewise each trainer
    shrinks: bool = False  # without a trainer that has died, the others go on
    root: str = ""  # the scheduler's address, in a job of MXNet's command line, whose roles find each other by it
    own_status: bool = False  # the launcher's exit code is that of the role that failed first

    def describe(self) -> Iterator[str]:
        """Returns lines for the terminal: the processes, their addresses and the folder of their output."""
        kinds = [role.kind for role in self.roles]
        pservers = kinds.count("pserver") if self.root else len(self.pservers)
        trainers = kinds.count("trainer") if self.root else len(self.trainers)
        words = shlex.join(self.command) if self.own_status else " ".join(self.command[2:])
        yield f"job: {pservers} pservers, {trainers} trainers: {words}"
        if self.root:
            yield f"  scheduler {self.root}"
        if len(self.nodes) > 1:
            yield f"  machines  {', '.join(self.nodes)}; this is node {self.rank}, with {len(self.roles)} of the roles"
        if self.pservers:
            yield f"  pservers  {', '.join(self.pservers)}"
        yield f"  logs      {os.path.join(self.log_dir, '')}{{serverlog,workerlog}}.N"

    def describe_roles(self) -> Iterator[str]:
        """Returns the environment and command of each role of this machine in shell syntax, without the secret."""
        for role in self.roles:
            settings = [
                f"{name}={shlex.quote('...' if name == 'PENSTOCK_JOB_TOKEN' else value)}"
                for name, value in sorted(role.environment.items())
            ]
            yield f"# {role.name}, log {os.path.join(self.log_dir, role.log_name)}"
            yield " ".join([*settings, *map(shlex.quote, self.command)])
