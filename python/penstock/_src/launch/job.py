"""A job: the roles of this machine with their addresses and environments.

plan = make_plan(options, os.environ)             # the settings of this machine's launcher
job = make_job(plan, join(plan.own, ...), ...)    # the combined settings of all machines' launchers
"""

from __future__ import annotations

import dataclasses
import os
import secrets
import socket
import sys
from typing import TYPE_CHECKING, cast

from penstock._penstock import ProgramError
from penstock._src.base import environment as _environment
from penstock._src.launch.checkpoints import checkpoint_settings, restart_settings
from penstock._src.launch.errors import SECONDS_MAX, JobError, split
from penstock._src.launch.plan import Job, Member, Plan, Role
from penstock._src.launch.rank_environment import host_of, names_of_hosts_and_ports, team_size, torch_names
from penstock._src.launch.safety import safety_environment
from penstock._src.launch.scaling import scale_settings
from penstock._src.launch.topology import find_topology
from penstock._src.launch.trainer_loss import ABORT, SHRINK, trainer_loss, trainer_restarts

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Mapping

    from penstock._src.launch.topology import Topology


# Ports of jobs on several machines, where every launcher uses the same ports without asking the others. The first is
# Fluid's port for trainers, the second the port for pservers, the third that of penstock.work.
TRAINER_PORT = 6070
PSERVER_PORT = 6170
WORK_PORT = 6068


# The sockets of free_ports. They stay bound, and never listen, while this process lives.
_reserved: list[socket.socket] = []


def free_ports(count: int, host: str = "127.0.0.1") -> list[int]:
    """Returns unused ports, in the system's order, reserved until this process ends.

    A role can bind its port although this process holds it, because both set SO_REUSEADDR, as gRPC does. No other
    process gets it, because the system never chooses a bound port. Until the role listens, connections are refused.
    """
    ports = []
    for _ in range(count):
        holder = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
        _reserved.append(holder)
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            holder.bind((host, 0))
        except OSError as error:
            raise JobError(f"{host} is not an address of this machine: {error.strerror or error}") from error
        ports.append(holder.getsockname()[1])
    return ports


def _selected_gpus(options: Namespace, environment: Mapping[str, str]) -> list[str] | None:
    """Returns the number by which each trainer's process must name its GPU; None if trainers use no GPU."""
    if options.selected_gpus is not None:
        chosen = split(options.selected_gpus)
    elif options.gpus is not None:
        visible = _environment.listed("CUDA_VISIBLE_DEVICES", environment)
        return [str(i) for i in range(options.gpus)] if not visible or len(visible) >= options.gpus else visible
    else:
        return None
    if not chosen:
        raise JobError("--selected_gpus is empty")
    visible = _environment.listed("CUDA_VISIBLE_DEVICES", environment)
    if not visible:
        return chosen
    missing = [gpu for gpu in chosen if gpu not in visible]
    if missing:
        raise JobError(f"GPU {missing[0]} of --selected_gpus is not in CUDA_VISIBLE_DEVICES={','.join(visible)}")
    return [str(visible.index(gpu)) for gpu in chosen]


def _given_pservers(options: Namespace, given: list[str], topology: Topology) -> tuple[list[str], list[str]]:
    """Returns (this machine's pservers, all pservers) of a list of addresses."""
    nodes, here = topology.nodes, topology.here
    repeated = [address for i, address in enumerate(given) if address in given[:i]]
    if repeated:
        raise JobError(f'pserver address "{repeated[0]}" is listed twice')
    for address in given:
        host, _, port = address.rpartition(":")
        if not host or not port.isdigit():
            raise JobError(f'pserver address "{address}" is not host:port')
        if topology.addressed and len(nodes) > 1 and host not in nodes:
            raise JobError(f'pserver address "{address}" is on none of the job\'s machines {", ".join(nodes)}')
    own = given if len(nodes) == 1 else [address for address in given if host_of(address) == here]
    if options.server_num is not None and options.server_num != len(own):
        where = "" if len(nodes) == 1 else f" of this machine, {here}"
        raise JobError(f"--server_num is {options.server_num}, but --endpoints lists {len(own)}{where}")
    return own, given


def _pserver_addresses(
    options: Namespace, environment: Mapping[str, str], topology: Topology
) -> tuple[list[str], list[str]]:
    nodes, here = topology.nodes, topology.here
    given = split(options.endpoints)
    if not given and options.use_paddlecloud:  # Fluid's cloud: one pserver on each of these machines
        port = _environment.value("PADDLE_PORT", PSERVER_PORT, environment)
        given = [f"{host}:{port}" for host in _environment.listed("PADDLE_PSERVERS", environment)]
    if given:
        return _given_pservers(options, given, topology)
    count = options.server_num or 0
    port = options.start_port
    if port is None and len(nodes) > 1:
        port = PSERVER_PORT
    if port is None:
        return [f"{here}:{port}" for port in free_ports(count, here)], []
    if port + count - 1 > 65535:
        raise JobError(f"--start_port {port} leaves no room for {count} pservers below 65536")
    return [f"{here}:{port + i}" for i in range(count)], []


def _local_trainers(
    options: Namespace, environment: Mapping[str, str], gpus: list[str] | None, pservers: list[str], nodes: int
) -> int:
    """Returns the number of trainers that this machine starts."""
    asked: dict[str, int] = {}
    if options.worker_num is not None:
        asked["--worker_num"] = options.worker_num
    if gpus is not None:
        asked["--gpus" if options.gpus is not None else "--selected_gpus"] = len(gpus)
    total = cast("int | None", _environment.value("PADDLE_NUM_TRAINERS", None, environment))
    if total is not None:
        if total % nodes != 0:
            raise JobError(f"PADDLE_NUM_TRAINERS={total} trainers cannot be divided evenly among {nodes} machines")
        asked["PADDLE_NUM_TRAINERS"] = total // nodes
    if len(set(asked.values())) > 1:
        raise JobError("trainers on this machine: " + ", ".join(f"{k} says {v}" for k, v in asked.items()))
    if asked:
        return next(iter(asked.values()))
    return 2 if pservers else 1


def _trainer_addresses(
    options: Namespace, environment: Mapping[str, str], nodes: tuple[str, ...], here: str, local: int
) -> list[str]:
    port = options.started_port
    if port is None and options.use_paddlecloud:
        port = _environment.value("PADDLE_PORT", PSERVER_PORT, environment)
    if port is None and len(nodes) > 1:
        port = TRAINER_PORT
    if port is not None:
        return [f"{here}:{port + i}" for i in range(local)]
    return [f"{here}:{p}" for p in free_ports(local, here)]


def job_token(options: Namespace, environment: Mapping[str, str]) -> str:
    """Returns the job's secret from --token_file or PENSTOCK_JOB_TOKEN; "" without both."""
    token = _environment.text("PENSTOCK_JOB_TOKEN", "", environment)
    if options.token_file is not None:
        try:
            with open(options.token_file) as file:
                read = file.readline().strip()
        except (OSError, UnicodeDecodeError) as error:
            raise JobError(f"--token_file {options.token_file}: {getattr(error, 'strerror', None) or error}") from error
        if not read:
            raise JobError(f"--token_file {options.token_file}: its first line is empty")
        if token and token != read:
            raise JobError(f"--token_file {options.token_file} and PENSTOCK_JOB_TOKEN hold different tokens")
        token = read
    return token


def settings_of(options: Namespace) -> dict[str, str]:
    """Returns the variables that options add to the environment of every role."""
    settings = safety_environment(options)
    if options.wire:
        settings["PENSTOCK_WIRE"] = options.wire
    if options.start_s is not None:
        if not options.start_s > 0:
            raise JobError(f"--start_s is {options.start_s:g}; it must be a number of seconds above 0")
        settings["PENSTOCK_START_S"] = f"{options.start_s:.3f}"
    if options.reconnect_s is not None:
        if not options.reconnect_s >= 0:
            raise JobError(f"--reconnect_s is {options.reconnect_s:g}; it must be a number of seconds, or 0")
        settings["PENSTOCK_RECONNECT_S"] = f"{options.reconnect_s:.3f}"
    if options.trace is not None:
        settings["PENSTOCK_TRACE"] = os.path.abspath(options.trace)
    if options.progress is not None:
        if not 0 < options.progress <= SECONDS_MAX:
            raise JobError(f"--progress is {options.progress:g}; it must be a number of seconds above 0")
        settings["PENSTOCK_PROGRESS"] = f"{options.progress:g}"
    return settings


def check_settings(options: Namespace, environment: Mapping[str, str]) -> None:
    """Raises the error of a variable with a value that it does not take: a role would raise it only later."""
    names = [name for name in environment if name.startswith(("PENSTOCK_", "FLAGS_"))]
    _environment.check({name: environment[name] for name in names})
    for _, _, name, value in options.env:
        if value is not None:
            _environment.check({name: value})


def make_plan(options: Namespace, environment: Mapping[str, str]) -> Plan:
    """Returns the Plan of this machine; raises JobError if options contradict each other."""
    try:
        return _make_plan(options, environment)
    except ProgramError as error:
        raise JobError(str(error), error.id) from error


def _make_plan(options: Namespace, environment: Mapping[str, str]) -> Plan:
    check_settings(options, environment)
    if not options.module and not os.path.isfile(options.training_script):
        raise JobError(f"{options.training_script}: no such file")
    topology = find_topology(options, environment)
    nodes = topology.nodes
    gpus = _selected_gpus(options, environment)
    own, endpoints = _pserver_addresses(options, environment, topology)
    local = _local_trainers(options, environment, gpus, own or endpoints, len(nodes))
    trainers = _trainer_addresses(options, environment, nodes, topology.here, local)
    token = job_token(options, environment)
    if len(nodes) > 1 and not token and not topology.on_loopback():
        raise JobError(
            "a job of several machines needs one secret: give every launcher the same --token_file FILE or "
            "PENSTOCK_JOB_TOKEN"
        )
    own_pservers = bool(own or endpoints)
    has_pservers = own_pservers or len(nodes) > 1
    loss = trainer_loss(options, environment, has_pservers)
    script = ("-m", options.training_script) if options.module else (options.training_script,)
    command = (sys.executable, "-u", *script, *options.training_script_args)
    return Plan(
        nodes=nodes,
        rank=topology.rank,
        control_port=topology.port or options.control_port,
        own=Member(tuple(own), tuple(trainers), tuple(endpoints)),
        command=command,
        log_dir=options.log_dir,
        gpus=tuple(gpus or ()),
        job_id=options.job_id or _environment.text("PENSTOCK_JOB_ID", "", environment),
        token=token,
        settings={
            **settings_of(options),
            **checkpoint_settings(options, own_pservers, has_pservers),
            **({} if loss == ABORT else {"PENSTOCK_ON_TRAINER_LOSS": loss}),
        },
        on_trainer_loss=loss,
        trainer_restarts=trainer_restarts(options, loss),
        cloud=options.use_paddlecloud,
        cores=own_cores(environment),
        metrics=options.metrics,
        given=tuple(options.env),
        work_port=WORK_PORT if len(nodes) > 1 else free_ports(1, topology.here)[0],
        restarts=f"--max_role_restart {options.max_role_restart}, --min_workers {options.min_workers}",
    )


def own_cores(environment: Mapping[str, str]) -> int:
    """Returns the number of this machine's cores that its roles divide; 0 if OMP_NUM_THREADS is given."""
    return 0 if "OMP_NUM_THREADS" in environment else len(os.sched_getaffinity(0))


def _given_for(plan: Plan, kind: str, index: int) -> dict[str, str]:
    """Returns the variables of --env for a role; a more specific setting takes precedence."""
    chosen = [one for one in plan.given if one[0] in (None, kind) and one[1] in (None, index)]
    chosen.sort(key=lambda one: (one[0] is not None) + (one[1] is not None))
    return {name: value for _, _, name, value in chosen}


def make_job(plan: Plan, members: tuple[Member, ...], job_id: str = "", token: str = "", attempt: int = 0) -> Job:
    """Returns the job of these members, one per machine, in order. A missing id or token is drawn at random."""
    own = members[plan.rank]
    pservers = own.endpoints or tuple(address for member in members for address in member.pservers)
    trainers = tuple(address for member in members for address in member.trainers)
    common = {
        "PADDLE_TRAINERS_NUM": str(len(trainers)),
        "PADDLE_NUM_TRAINERS": str(len(trainers)),
        **({} if plan.cloud else {"PADDLE_TRAINERS": str(len(trainers))}),
        "PADDLE_TRAINER_ENDPOINTS": ",".join(trainers),
        "PADDLE_PSERVERS_IP_PORT_LIST": ",".join(pservers),
        "PADDLE_PSERVER_ENDPOINTS": ",".join(pservers),
        **names_of_hosts_and_ports(pservers, trainers, len(own.trainers)),
        # Every connection must prove that it knows the token. Otherwise any process that reaches a port could be a
        # trainer.
        "PENSTOCK_JOB_TOKEN": token or secrets.token_hex(16),
        "PENSTOCK_JOB_ID": job_id or secrets.token_hex(4),
        "PYTHONUNBUFFERED": "1",
        "PENSTOCK_LOG_DIR": os.path.abspath(plan.log_dir),
        "PENSTOCK_RESTART_COUNT": str(attempt),
        **plan.settings,
        **restart_settings(plan.settings, attempt),
        **scale_settings(plan.settings),
    }
    roles = []
    for address in own.pservers:
        i = pservers.index(address)
        host, _, port = address.rpartition(":")
        roles.append(
            Role(
                "pserver",
                i,
                f"serverlog.{i}",
                {
                    **common,
                    **team_size(plan.cores, len(own.pservers)),
                    "TRAINING_ROLE": "PSERVER",
                    "PADDLE_TRAINING_ROLE": "PSERVER",
                    "PADDLE_PSERVER_ID": str(i),
                    "PADDLE_CURRENT_ENDPOINT": address,
                    "POD_IP": host,
                    "PADDLE_CURRENT_IP": host,
                    "PADDLE_PORT": port,
                    "PADDLE_PSERVER_PORT": port,
                    **_given_for(plan, "pserver", i),
                },
                address,
            )
        )
    first = sum(len(member.trainers) for member in members[: plan.rank])
    for i, address in enumerate(own.trainers):
        rank = first + i
        extra = {"FLAGS_selected_gpus": plan.gpus[i]} if plan.gpus else {}
        roles.append(
            Role(
                "trainer",
                rank,
                f"workerlog.{rank}",
                {
                    **common,
                    **extra,
                    **team_size(plan.cores, len(own.trainers)),
                    "TRAINING_ROLE": "TRAINER",
                    "PADDLE_TRAINING_ROLE": "TRAINER",
                    "PADDLE_TRAINER_ID": str(rank),
                    "PENSTOCK_WORK_ENDPOINT": f"{host_of(trainers[0])}:{plan.work_port}",
                    "PADDLE_CURRENT_ENDPOINT": address,
                    "POD_IP": host_of(address),
                    "PADDLE_CURRENT_IP": host_of(address),
                    **torch_names(rank, len(trainers), i, len(own.trainers), trainers[0]),
                    **_given_for(plan, "trainer", rank),
                },
            )
        )
    if plan.metrics is not None:
        for i, role in enumerate(roles):
            role.environment["PENSTOCK_METRICS"] = str(plan.metrics + i if plan.metrics else 0)
    return Job(
        roles=tuple(roles),
        command=plan.command,
        log_dir=plan.log_dir,
        pservers=pservers,
        trainers=trainers,
        nodes=plan.nodes,
        rank=plan.rank,
        trainers_elsewhere=len(trainers) - len(own.trainers),
        trainer_nodes=tuple(node for node, member in enumerate(members) for _ in member.trainers),
        attempt=attempt,
        role_restarts=int(plan.settings.get("PENSTOCK_MAX_ROLE_RESTART", "0")),
        trainer_restarts=plan.trainer_restarts,
        shrinks=plan.on_trainer_loss == SHRINK,
    )


def with_pservers(plan: Plan, job: Job, count: int, step: int, moves: int) -> Job:
    """Returns the job of one machine with `count` other pservers, which continue after a step; `moves`: the number of
    the request. Raises JobError."""
    given = job.roles[0].environment
    host = host_of(job.pservers[0])
    own = Member(tuple(f"{host}:{port}" for port in free_ports(count, host)), plan.own.trainers)
    metrics = None if plan.metrics is None else 0  # the ports of the earlier ones may be in use
    plan = dataclasses.replace(plan, metrics=metrics)
    made = make_job(plan, (own,), given["PENSTOCK_JOB_ID"], given["PENSTOCK_JOB_TOKEN"], job.attempt)
    for role in made.roles:
        role.environment["PENSTOCK_RESUME_STEP"] = str(step)
        role.environment.update(scale_settings(role.environment, moves))
    return made
