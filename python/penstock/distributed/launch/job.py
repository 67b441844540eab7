"""A job: which roles run on this machine, at which addresses and with which environment."""

import contextlib
import dataclasses
import os
import secrets
import socket
import sys

from penstock.distributed.launch.safety import safety_environment


class JobError(Exception):
    """The command line and the environment do not make a job; the message says which values disagree."""


@dataclasses.dataclass(frozen=True)
class Role:
    """One process of the job."""

    kind: str  # "pserver" or "trainer"
    index: int  # of its kind, in the whole job
    log_name: str  # "serverlog.0"
    environment: dict  # what is added to the launcher's own

    @property
    def name(self):
        return f"{self.kind} {self.index}"


@dataclasses.dataclass(frozen=True)
class Job:
    roles: tuple
    command: tuple
    log_dir: str
    pservers: tuple  # addresses, in order
    trainers: tuple

    def describe(self):
        """Lines for the terminal: what will run and where its output goes."""
        yield f"job: {len(self.pservers)} pservers, {len(self.trainers)} trainers: {' '.join(self.command[2:])}"
        if self.pservers:
            yield f"  pservers  {', '.join(self.pservers)}"
        yield f"  logs      {os.path.join(self.log_dir, '')}{{serverlog,workerlog}}.N"


def free_ports(count, host="127.0.0.1"):
    """Ports that were free together a moment ago, in the order the system gave them.

    Another process may take one before its role binds it; the role then says so and the job ends with that message.
    """
    with contextlib.ExitStack() as stack:
        ports = []
        for _ in range(count):
            listener = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_STREAM))
            listener.bind((host, 0))
            ports.append(listener.getsockname()[1])
        return ports


def _split(text):
    return [part.strip() for part in text.split(",") if part.strip()]


def _nodes(options, environment):
    if options.use_paddlecloud:
        nodes = _split(environment.get("PADDLE_TRAINERS", ""))
        here = environment.get("POD_IP", "")
        if not nodes or not here:
            raise JobError("--use_paddlecloud needs PADDLE_TRAINERS (the machines) and POD_IP (this one)")
    else:
        nodes, here = _split(options.cluster_node_ips), options.node_ip
    if here not in nodes:
        raise JobError(f"this machine's address {here} is not among the job's machines {', '.join(nodes)}")
    return nodes, nodes.index(here)


def _selected_gpus(options, environment):
    """GPU numbers, one for each trainer, as the children must name them; None if trainers use no GPU."""
    if options.selected_gpus is not None:
        chosen = _split(options.selected_gpus)
    elif options.gpus is not None:
        visible = _split(environment.get("CUDA_VISIBLE_DEVICES", ""))
        return [str(i) for i in range(options.gpus)] if not visible or len(visible) >= options.gpus else visible
    else:
        return None
    if not chosen:
        raise JobError("--selected_gpus is empty")
    visible = _split(environment.get("CUDA_VISIBLE_DEVICES", ""))
    if not visible:
        return chosen
    missing = [gpu for gpu in chosen if gpu not in visible]
    if missing:
        raise JobError(f"GPU {missing[0]} of --selected_gpus is not in CUDA_VISIBLE_DEVICES={','.join(visible)}")
    return [str(visible.index(gpu)) for gpu in chosen]


def _pserver_addresses(options):
    given = _split(options.endpoints)
    count = options.server_num
    if given:
        if count is not None and count != len(given):
            raise JobError(f"--server_num is {count}, but --endpoints lists {len(given)}")
        repeated = [address for i, address in enumerate(given) if address in given[:i]]
        if repeated:
            raise JobError(f'pserver address "{repeated[0]}" is listed twice')
        for address in given:
            host, _, port = address.rpartition(":")
            if not host or not port.isdigit():
                raise JobError(f'pserver address "{address}" is not host:port')
        return given
    count = count or 0
    if options.start_port is not None:
        if options.start_port + count - 1 > 65535:
            raise JobError(f"--start_port {options.start_port} leaves no room for {count} pservers below 65536")
        return [f"127.0.0.1:{options.start_port + i}" for i in range(count)]
    return [f"127.0.0.1:{port}" for port in free_ports(count)]


def _local_trainers(options, environment, gpus, pservers, nodes):
    """How many trainers this machine starts."""
    asked = {}
    if options.worker_num is not None:
        asked["--worker_num"] = options.worker_num
    if gpus is not None:
        asked["--gpus" if options.gpus is not None else "--selected_gpus"] = len(gpus)
    if "PADDLE_NUM_TRAINERS" in environment:
        text = environment["PADDLE_NUM_TRAINERS"]
        if not text.isdigit() or int(text) < 1:
            raise JobError(f"PADDLE_NUM_TRAINERS={text} is not a count of at least 1")
        total = int(text)
        if total % nodes != 0:
            raise JobError(f"PADDLE_NUM_TRAINERS={total} trainers do not divide over {nodes} machines")
        asked["PADDLE_NUM_TRAINERS"] = total // nodes
    if len(set(asked.values())) > 1:
        raise JobError("trainers on this machine: " + ", ".join(f"{k} says {v}" for k, v in asked.items()))
    if asked:
        return next(iter(asked.values()))
    return 2 if pservers else 1


def _trainer_addresses(options, environment, nodes, local):
    port = options.started_port
    if port is None and options.use_paddlecloud:
        port = int(environment.get("PADDLE_PORT", "6170"))
    if port is None and len(nodes) > 1:
        port = 6070
    if port is not None:
        return [f"{node}:{port + i}" for node in nodes for i in range(local)]
    return [f"{nodes[0]}:{p}" for p in free_ports(local)]


def make_job(options, environment):
    """The job of these options; raises JobError where they contradict each other."""
    if not os.path.isfile(options.training_script):
        raise JobError(f"{options.training_script}: no such file")
    nodes, node_rank = _nodes(options, environment)
    gpus = _selected_gpus(options, environment)
    pservers = _pserver_addresses(options)
    local = _local_trainers(options, environment, gpus, pservers, len(nodes))
    trainers = _trainer_addresses(options, environment, nodes, local)

    common = {
        "PADDLE_TRAINERS_NUM": str(len(trainers)),
        "PADDLE_NUM_TRAINERS": str(len(trainers)),
        "PADDLE_TRAINER_ENDPOINTS": ",".join(trainers),
        "PADDLE_PSERVERS_IP_PORT_LIST": ",".join(pservers),
        "PADDLE_PSERVER_ENDPOINTS": ",".join(pservers),
        # Every connection proves that it knows it; without it anybody who reaches a port could be a trainer.
        "PENSTOCK_JOB_TOKEN": environment.get("PENSTOCK_JOB_TOKEN") or secrets.token_hex(16),
        "PENSTOCK_JOB_ID": environment.get("PENSTOCK_JOB_ID") or secrets.token_hex(4),
        "PYTHONUNBUFFERED": "1",
        **safety_environment(options),
    }
    roles = []
    for i, address in enumerate(pservers):
        host, _, port = address.rpartition(":")
        roles.append(Role("pserver", i, f"serverlog.{i}", {
            **common, "TRAINING_ROLE": "PSERVER", "PADDLE_TRAINING_ROLE": "PSERVER", "PADDLE_PSERVER_ID": str(i),
            "PADDLE_CURRENT_ENDPOINT": address, "POD_IP": host, "PADDLE_PORT": port,
        }))
    for i in range(local):
        rank = node_rank * local + i
        extra = {} if gpus is None else {"FLAGS_selected_gpus": gpus[i]}
        roles.append(Role("trainer", rank, f"workerlog.{i}", {
            **common, **extra, "TRAINING_ROLE": "TRAINER", "PADDLE_TRAINING_ROLE": "TRAINER",
            "PADDLE_TRAINER_ID": str(rank), "PADDLE_CURRENT_ENDPOINT": trainers[rank],
        }))
    command = (sys.executable, "-u", options.training_script, *options.training_script_args)
    return Job(tuple(roles), command, options.log_dir, tuple(pservers), tuple(trainers))
