"""paddle.distributed.utils: the machines and trainers of a job as objects, and the start of trainers on one machine.

Scripts that start their own trainers use it; `python -m paddle.distributed.launch` is Penstock's launcher.
"""

import argparse
import copy
import logging
import os
import socket
import subprocess
import sys

from penstock._src.launch.job import free_ports

logger = logging.getLogger("root")
logger.propagate = False


def get_logger(log_level, name="root"):
    """Returns a logger that writes to the standard error stream."""
    made = logging.getLogger(name)
    made.setLevel(log_level)
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(levelname)s %(asctime)s %(filename)s:%(lineno)d] %(message)s"))
    made.addHandler(handler)
    return made


class _Facts:
    """Objects that are equal if the attributes in _COMPARED are."""

    _COMPARED = ()

    def __eq__(self, other):
        return type(self) is type(other) and all(getattr(self, name) == getattr(other, name) for name in self._COMPARED)

    def __ne__(self, other):
        return not self == other

    __hash__ = None

    def __str__(self):
        return " ".join(f"{name}:{getattr(self, name)}" for name in self._COMPARED)


class Hdfs(_Facts):
    """A folder in HDFS."""

    _COMPARED = ("hdfs_ugi", "hdfs_name", "hdfs_path")

    def __init__(self):
        self.hdfs_ugi = self.hdfs_name = self.hdfs_path = None

    def is_valid(self):
        return None not in (self.hdfs_ugi, self.hdfs_name, self.hdfs_path)


class JobServer(_Facts):
    """The address of a job's server."""

    _COMPARED = ("endpoint",)

    def __init__(self):
        self.endpoint = None


class Trainer(_Facts):
    """A trainer: its GPUs, address and rank."""

    _COMPARED = ("gpus", "endpoint", "rank")

    def __init__(self):
        self.gpus, self.endpoint, self.rank = [], None, None


class Pod(_Facts):
    """A machine and its trainers."""

    _COMPARED = ("rank", "id", "addr", "port", "trainers")

    def __init__(self):
        self.rank = self.id = self.addr = self.port = None
        self.trainers, self.gpus = [], []

    def __str__(self):
        return (
            f"rank:{self.rank} id:{self.id} addr:{self.addr} port:{self.port} visible_gpu:{self.gpus} "
            f"trainers:{[str(trainer) for trainer in self.trainers]}"
        )

    def parse_response(self, res_pods):
        pass

    def get_visible_gpus(self):
        assert self.gpus, f"this pod {self} has no GPU"
        return ",".join(map(str, self.gpus))


class Cluster(_Facts):
    """The machines of a job."""

    _COMPARED = ("pods", "job_stage_flag")

    def __init__(self, hdfs):
        self.job_server, self.pods, self.hdfs, self.job_stage_flag = None, [], hdfs, None

    def __str__(self):
        return (
            f"job_server:{self.job_server} pods:{[str(pod) for pod in self.pods]} "
            f"job_stage_flag:{self.job_stage_flag} hdfs:{self.hdfs}"
        )

    def update_pods(self, cluster):
        self.pods = copy.copy(cluster.pods)

    def trainers_nranks(self):
        return len(self.trainers_endpoints())

    def pods_nranks(self):
        return len(self.pods)

    def trainers_endpoints(self):
        return [trainer.endpoint for pod in self.pods for trainer in pod.trainers]

    def pods_endpoints(self):
        for pod in self.pods:
            assert pod.addr is not None and pod.port is not None, f"a pod has no address: {pod}"
        return [f"{pod.addr}:{pod.port}" for pod in self.pods]

    def get_pod_by_id(self, pod_id):
        return next((pod for pod in self.pods if str(pod.id) == str(pod_id)), None)


def get_cluster(node_ips, node_ip, trainer_endpoints, selected_gpus):
    """Returns (Cluster, the Pod of node_ip): a trainer for each GPU of each machine, in the order of the machines.

    trainer_endpoints  a list of addresses for each machine, at least one for each GPU
    """
    assert isinstance(trainer_endpoints, list), "trainer_endpoints must be list"
    cluster, rank = Cluster(hdfs=None), 0
    for node, (ip, addresses) in enumerate(zip(node_ips, trainer_endpoints)):
        assert len(addresses) >= len(selected_gpus), (
            f"machine {ip} has {len(addresses)} addresses for {len(selected_gpus)} trainers"
        )
        pod = Pod()
        pod.rank, pod.addr = node, ip
        for gpu, address in zip(selected_gpus, addresses):
            trainer = Trainer()
            trainer.gpus, trainer.endpoint, trainer.rank = [gpu], str(address), rank
            pod.trainers.append(trainer)
            rank += 1
        cluster.pods.append(pod)
    return cluster, cluster.pods[list(node_ips).index(node_ip)]


def get_host_name_ip():
    """Returns (name, IP address) of this machine; None if the name has no address."""
    try:
        name = socket.gethostname()
        return name, socket.gethostbyname(name)
    except OSError:
        return None


def _boolean(text):
    if text.lower() in ("y", "yes", "t", "true", "on", "1"):
        return 1
    if text.lower() in ("n", "no", "f", "false", "off", "0"):
        return 0
    raise argparse.ArgumentTypeError(f"{text!r} is neither true nor false")


def add_arguments(argname, type, default, help, argparser, **kwargs):
    """Adds --argname to a parser; bool accepts yes, no, true, false, 1 and 0."""
    argparser.add_argument(
        "--" + argname,
        default=default,
        type=_boolean if type is bool else type,
        help=help + " Default: %(default)s.",
        **kwargs,
    )


def find_free_ports(num):
    """Returns a set of free ports, which this process reserves until it ends."""
    return set(free_ports(num, ""))


class TrainerProc:
    """The process of a trainer."""

    def __init__(self):
        self.proc = self.log_fn = self.rank = self.cmd = None


def start_local_trainers(cluster, pod, training_script, training_script_args, log_dir=None):
    """Starts the trainers of a machine; returns a TrainerProc for each."""
    started = []
    inherited = {name: value for name, value in os.environ.items() if name not in ("http_proxy", "https_proxy")}
    command = [sys.executable, "-u", training_script, *training_script_args]
    if log_dir is not None:
        os.makedirs(log_dir, exist_ok=True)
    for index, trainer in enumerate(pod.trainers):
        one = TrainerProc()
        one.rank, one.cmd = trainer.rank, command
        one.log_fn = None if log_dir is None else open(os.path.join(log_dir, f"workerlog.{index}"), "a")
        environment = dict(
            inherited,
            FLAGS_selected_gpus=",".join(map(str, trainer.gpus)),
            PADDLE_TRAINER_ID=str(trainer.rank),
            PADDLE_CURRENT_ENDPOINT=trainer.endpoint,
            PADDLE_TRAINERS_NUM=str(cluster.trainers_nranks()),
            PADDLE_TRAINER_ENDPOINTS=",".join(cluster.trainers_endpoints()),
        )
        one.proc = subprocess.Popen(command, env=environment, stdout=one.log_fn, stderr=one.log_fn)
        started.append(one)
    return started


def terminate_local_procs(procs):
    """Ends the trainers that still run."""
    running = [one for one in procs if one.proc.poll() is None]
    for one in running:
        one.proc.terminate()
    for one in running:
        try:
            one.proc.wait(timeout=3)
        except subprocess.TimeoutExpired:
            one.proc.kill()
            one.proc.wait()
    for one in procs:
        if one.log_fn is not None:
            one.log_fn.close()


def watch_local_trainers(procs, nranks):
    """Returns whether a trainer still runs. If one has failed, ends the others and this process with status 1."""
    codes = [one.proc.poll() for one in procs]
    failed = [one.rank for one, code in zip(procs, codes) if code not in (None, 0)]
    if failed:
        logger.error(
            "ABORT!!! Out of all %d trainers, the trainer process with rank=%s was aborted. Please check its log.",
            nranks,
            failed,
        )
        terminate_local_procs(procs)
        sys.exit(1)
    return None in codes
