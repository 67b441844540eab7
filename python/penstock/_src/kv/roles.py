"""What this process is in the job of a store over pservers, by its environment.

    place = place_of_environment()      # a worker's or server's: its number, and the addresses of the servers

Our launcher sets TRAINING_ROLE, PADDLE_TRAINER_ID, PADDLE_TRAINERS_NUM, PADDLE_PSERVER_ENDPOINTS and
PADDLE_CURRENT_ENDPOINT; no scheduler is needed. MXNet's launcher sets DMLC_ROLE, DMLC_PS_ROOT_URI, DMLC_PS_ROOT_PORT,
DMLC_NUM_WORKER, DMLC_NUM_SERVER and DMLC_TASK_ID; the processes then meet at the scheduler.
"""

from __future__ import annotations

import dataclasses
import socket
from typing import TYPE_CHECKING

from penstock._src.base import environment
from penstock._src.base.errors import program_error
from penstock._src.kv.member import Member
from penstock._src.kv.scheduler import Scheduler

if TYPE_CHECKING:
    from typing import Literal

    Role = Literal["worker", "server", "scheduler"]

_reserved: list[socket.socket] = []  # the ports of servers, until this process ends


@dataclasses.dataclass
class Place:
    """A process of a job with pservers."""

    role: Role
    number: int  # among the processes of its role
    workers: int
    servers: list[str]  # addresses
    job: str | None = None  # None: the environment has it
    member: Member | None = None  # the connection to the scheduler, if there is one

    @property
    def address(self) -> str:
        """The address of this server."""
        return self.servers[self.number]


def place_of_environment() -> Place:
    """Returns what this process is; waits for the scheduler if the environment names one. In the scheduler's process it
    returns when the job has ended.

    Raises:
        ProgramError: E-kv-environment: a variable is missing or contradicts another.
        PeerError: E-kv-scheduler.
    """
    if environment.text("DMLC_ROLE"):
        return _of_dmlc()
    role = environment.text("TRAINING_ROLE")
    if role not in ("TRAINER", "PSERVER"):
        raise program_error(
            "E-kv-environment",
            "kv.create: the environment does not say what this process is in a job with pservers: neither "
            "TRAINING_ROLE nor DMLC_ROLE is set",
            "start the script with: python -m penstock.distributed.launch --server_num 1 --worker_num 2 SCRIPT",
            "a store of type local needs no other process",
        )
    servers = environment.listed("PADDLE_PSERVER_ENDPOINTS") or environment.listed("PADDLE_PSERVERS_IP_PORT_LIST")
    if not servers:
        raise program_error(
            "E-kv-environment",
            "kv.create: the job has no pservers (PADDLE_PSERVER_ENDPOINTS is empty)",
            "start it with --server_num 1 or more, or make a store of type dist_sync_mpi, which needs none",
        )
    workers = _number("PADDLE_TRAINERS_NUM", 1)
    if role == "PSERVER":
        here = environment.text("PADDLE_CURRENT_ENDPOINT")
        if here not in servers:
            raise program_error(
                "E-kv-environment",
                f"kv.create: PADDLE_CURRENT_ENDPOINT={here} is not in PADDLE_PSERVER_ENDPOINTS={','.join(servers)}",
            )
        return Place("server", servers.index(here), workers, servers)
    rank = _number("PADDLE_TRAINER_ID", 0)
    if rank >= workers:
        raise program_error(
            "E-kv-environment", f"kv.create: PADDLE_TRAINER_ID={rank}, but PADDLE_TRAINERS_NUM={workers}"
        )
    return Place("worker", rank, workers, servers)


def _of_dmlc() -> Place:
    role = environment.text("DMLC_ROLE")
    host = environment.text("DMLC_PS_ROOT_URI")
    if not host:
        raise program_error("E-kv-environment", "kv.create: DMLC_ROLE is set, but not DMLC_PS_ROOT_URI")
    port, workers = _number("DMLC_PS_ROOT_PORT", 1), _number("DMLC_NUM_WORKER", 1)
    servers = _number("DMLC_NUM_SERVER", 1)
    token = environment.text("PENSTOCK_JOB_TOKEN")
    if role == "scheduler":
        Scheduler(host, port, workers, servers, token).serve()
        return Place("scheduler", 0, workers, [])
    if role not in ("worker", "server"):
        raise program_error("E-kv-environment", f"kv.create: DMLC_ROLE={role}; there are worker, server and scheduler")
    member = Member(host, port, token)
    address = _reserved_address(environment.text("DMLC_NODE_HOST") or member.own_host()) if role == "server" else ""
    dealt = member.join(role, environment.value("DMLC_TASK_ID", -1), address)
    job = environment.text("PENSTOCK_JOB_ID") or dealt.job
    return Place("worker" if role == "worker" else "server", dealt.number, workers, dealt.servers, job, member)


def _number(name: str, least: int) -> int:
    number = environment.value(name)
    if not isinstance(number, int) or number < least:
        raise program_error(
            "E-kv-environment", f"kv.create: {name} is {environment.text(name) or 'not set'}; it is at least {least}"
        )
    return number


def _reserved_address(host: str) -> str:
    """Returns an address of this host with an unused port, which gRPC can bind although this process holds it."""
    holder = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    _reserved.append(holder)
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    holder.bind((host, 0))
    port = holder.getsockname()[1]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
