"""The machines of a job, and the number of this machine, from the options, Fluid's cloud or a scheduler."""

from __future__ import annotations

import dataclasses
import re
import socket
from typing import TYPE_CHECKING, cast

from penstock._src.base import environment as _environment
from penstock._src.launch.errors import JobError, is_loopback, split

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Mapping


@dataclasses.dataclass(frozen=True)
class Topology:
    """The machines of a job."""

    nodes: tuple[str, ...]  # names of the machines, the same on every machine; addresses if `addressed`
    rank: int  # the number of this machine among them
    here: str  # this machine's address
    addressed: bool = True  # False: only the number of the machines is known, not their addresses
    port: int | None = None  # port of the first machine's launcher; None: --control_port

    def on_loopback(self) -> bool:
        """Returns whether all traffic of the job stays on this machine."""
        return all(is_loopback(node) for node in (self.nodes if self.addressed else (self.nodes[0], self.here)))


def _number(text: int | str | None, what: str, least: int = 0) -> int:
    if text is None or not str(text).isdigit() or int(text) < least:
        raise JobError(f"{what} is {text!r}; it must be an integer of at least {least}")
    return int(text)


def _host_and_port(master: str, default_port: None) -> tuple[str, int | None]:
    host, colon, port = master.rpartition(":")
    if not colon or (":" in host and not host.endswith("]")):  # a bare name, or a bare IPv6 address
        return master.strip("[]"), default_port
    return host.strip("[]"), _number(port, f"the port of {master}", 1)


def _address_towards(host: str, port: int | None) -> str:
    """Returns this machine's address on the route to a host."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port or 1, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect(address)  # a datagram socket, which sends nothing here
            return str(probe.getsockname()[0])
    except OSError as error:
        raise JobError(
            f"this machine has no route to {host}: {error.strerror or error}; --node_ip names its address"
        ) from error


def _counted(options: Namespace, count: int | str | None, rank: int | str | None, master: str | None) -> Topology:
    """Returns the Topology if only the first machine's address is known."""
    count = _number(count, "the number of machines", 1)
    rank = _number(rank, "the number of this machine")
    if rank >= count:
        raise JobError(f"this machine's number is {rank}, but there are {count} machines (0 to {count - 1})")
    if not master:
        if count > 1:
            raise JobError("the first machine's address is not known: give --master HOST[:PORT]")
        master = options.node_ip or "127.0.0.1"
    host, port = _host_and_port(master, None)
    here = options.node_ip or (host if rank == 0 else _address_towards(host, port))
    return Topology((host, *(f"machine {i}" for i in range(1, count))), rank, here, count == 1, port)


def expand_nodelist(text: str) -> list[str]:
    """Returns the hosts of a list in Slurm's format: node[01-03,07],login -> node01, node02, node03, node07, login."""
    hosts = []
    for part in re.findall(r"(?:[^,\[]|\[[^\]]*\])+", text):
        found = re.fullmatch(r"([^\[]*)\[([^\]]*)\](.*)", part.strip())
        if found is None:
            hosts.append(part.strip())
            continue
        before, ranges, after = found.groups()
        for one in ranges.split(","):
            first, _, last = one.partition("-")
            if not first.isdigit() or (last and not last.isdigit()):
                raise JobError(f"the list of hosts {text!r} cannot be parsed")
            hosts += [f"{before}{i:0{len(first)}d}{after}" for i in range(int(first), int(last or first) + 1)]
    return hosts


def _of_slurm(options: Namespace, environment: Mapping[str, str]) -> Topology:
    hosts = expand_nodelist(environment.get("SLURM_STEP_NODELIST") or environment.get("SLURM_JOB_NODELIST", ""))
    if not hosts:
        raise JobError(
            "--scheduler slurm needs SLURM_JOB_NODELIST: start the launchers with srun, one for each machine"
        )
    rank = _number(environment.get("SLURM_NODEID"), "SLURM_NODEID")
    if rank >= len(hosts):
        raise JobError(f"SLURM_NODEID is {rank}, but the list has {len(hosts)} hosts")
    port = _host_and_port(options.master, None)[1] if options.master else None
    return Topology(tuple(hosts), rank, options.node_ip or hosts[rank], port=port)


def _of_mpi(options: Namespace, environment: Mapping[str, str]) -> Topology | None:
    for size, rank in (("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"), ("PMI_SIZE", "PMI_RANK")):
        if size in environment:
            return _counted(
                options, environment[size], environment.get(rank), options.master or environment.get("MASTER_ADDR", "")
            )
    raise JobError("--scheduler mpi needs the variables of mpirun: start the launchers with it, one for each machine")


def _of_torch(options: Namespace, environment: Mapping[str, str]) -> Topology | None:
    master = options.master or ":".join(
        environment[name] for name in ("MASTER_ADDR", "MASTER_PORT") if environment.get(name)
    )
    return _counted(options, environment.get("WORLD_SIZE"), environment.get("RANK"), master)


_SCHEDULERS = {"slurm": _of_slurm, "mpi": _of_mpi, "torch": _of_torch}


def _listed(options: Namespace, environment: Mapping[str, str]) -> Topology:
    if options.use_paddlecloud:
        nodes = _environment.listed("PADDLE_TRAINERS", environment)
        here = _environment.text("POD_IP", "", environment)
        nodes += [node for node in _environment.listed("PADDLE_PSERVERS", environment) if node not in nodes]
        if not nodes or not here:
            raise JobError("--use_paddlecloud needs PADDLE_TRAINERS (the machines) and POD_IP (this one)")
    else:
        nodes, here = split(options.cluster_node_ips or "127.0.0.1"), options.node_ip or "127.0.0.1"
    if here not in nodes:
        raise JobError(f"this machine's address {here} is not among the job's machines {', '.join(nodes)}")
    repeated = [node for i, node in enumerate(nodes) if node in nodes[:i]]
    if repeated:
        raise JobError(f"machine {repeated[0]} is listed twice")
    return Topology(tuple(nodes), nodes.index(here), here)


def find_topology(options: Namespace, environment: Mapping[str, str]) -> Topology:
    """Returns the machines of the job; raises JobError if the settings are incomplete or contradict each other."""
    counted = options.nnodes is not None or options.node_rank is not None
    ways = [
        name
        for name, given in (
            ("--use_paddlecloud", options.use_paddlecloud),
            ("--cluster_node_ips", options.cluster_node_ips is not None),
            ("--nnodes", counted),
            ("--scheduler", options.scheduler is not None),
        )
        if given
    ]
    if len(ways) > 1:
        raise JobError(f"{ways[0]} and {ways[1]} both name the job's machines; give only one of them")
    if options.scheduler is not None:
        return cast(Topology, _SCHEDULERS[options.scheduler](options, environment))
    if counted:
        return _counted(options, options.nnodes or 1, options.node_rank or 0, options.master)
    if options.master:
        raise JobError("--master is for jobs of several machines: give --nnodes and --node_rank too")
    return _listed(options, environment)
