"""The options that say where the processes of a job are started, with the names of MXNet's launcher."""

from __future__ import annotations

import argparse
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Callable


LAUNCHERS = ("local", "ssh", "mpi", "slurm", "sge", "yarn", "k8s")
_PAIR = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)[:=](.*)", re.DOTALL)


def _pair_for(kind: str) -> Callable[[str], tuple[str, None, str, str]]:
    def parsed(text: str) -> tuple[str, None, str, str]:
        found = _PAIR.fullmatch(text)
        if found is None:
            raise argparse.ArgumentTypeError(f"{text!r} is not NAME:VALUE")
        return kind, None, found[1], found[2]

    return parsed


def add_backend_options(parser: ArgumentParser, positive: Callable[[str], int], count: Callable[[str], int]) -> None:
    """Adds the options to an argparse.ArgumentParser; `positive` reads an integer above 0, `count` one above -1."""
    group = parser.add_argument_group("where processes are started")
    group.add_argument(
        "--launcher",
        choices=LAUNCHERS,
        help="local: on this machine; ssh: on the hosts of -H; mpi: by mpirun; slurm, sge, yarn, k8s: as a job of that "
        "cluster, whose script or manifest --dry_run prints (default: ssh with -H, else local)",
    )
    group.add_argument(
        "-H",
        "--hostfile",
        metavar="FILE",
        help="the hosts, one a line: `host`, `host:port` or `host slots=N`. With -n, processes are dealt out to them "
        "round robin; without, each gets the processes of --server_num and --worker_num",
    )
    group.add_argument(
        "-n",
        "--num-workers",
        "--num_workers",
        type=positive,
        metavar="N",
        help="as MXNet's launcher: N workers in the whole job. The words after the options are then a command, such "
        "as `python train.py`, which each worker and server and the scheduler runs with DMLC_* variables; the exit "
        "code is that of the first process that failed",
    )
    group.add_argument(
        "-s",
        "--num-servers",
        "--num_servers",
        type=count,
        metavar="N",
        help="with -n: the servers of the whole job (default: as many as workers); 0: workers only, which are ranks",
    )
    group.add_argument(
        "--sync-dst-dir",
        "--sync_dst_dir",
        metavar="DIR",
        help="ssh: first copy the current folder to DIR on each host, by rsync or, where that is missing, by tar; "
        "processes run there. A copy that fails ends the job",
    )
    for name, kind in (("server", "pserver"), ("worker", "trainer")):
        group.add_argument(
            f"--env-{name}",
            type=_pair_for(kind),
            dest="env",
            action="append",
            default=[],
            metavar="NAME:VALUE",
            help=f"the same as --env {kind}:NAME=VALUE",
        )
    group.add_argument("--p3", action="store_true", help="with -n: set DMLC_PS_VAN_TYPE=p3, as MXNet's launcher does")
    group.add_argument(
        "--ssh_option",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="an option for ssh, as its -o takes it; may be given several times",
    )
    group.add_argument(
        "--remote_python",
        metavar="PROGRAM",
        help="ssh: the Python of the hosts (default: python3; for the launchers of a job without -n: this one's path)",
    )
    group.add_argument(
        "--submit_option",
        action="append",
        default=[],
        metavar="OPTION",
        help="an option for mpirun, sbatch, qsub or Hadoop's client, such as --submit_option=--partition=gpu; may be "
        "given several times",
    )
    group.add_argument("--image", metavar="NAME", help="k8s: the container image of all processes")


def choose_launcher(parser: ArgumentParser, options: Namespace) -> None:
    """Sets options.launcher, and refuses options that do not go together."""
    if options.launcher is None:
        options.launcher = "ssh" if options.hostfile else "local"
    if options.console is None:
        options.console = "first" if options.num_workers is None else "all"
    of_line = [
        ("--worker_num", options.worker_num),
        ("--server_num", options.server_num),
        ("--gpus", options.gpus),
        ("--selected_gpus", options.selected_gpus),
        ("--endpoints", options.endpoints),
        ("--module", options.module),
        ("--min_workers", options.min_workers),
    ]
    if options.num_workers is None:
        given = [
            name for name, value in (("-s", options.num_servers), ("--p3", options.p3 or None)) if value is not None
        ]
        if given:
            parser.error(f"{given[0]} needs -n")
        bare = [name for _, _, name, value in options.env if value is None]
        if bare and options.launcher == "local":
            parser.error(f"argument --env: {bare[0]!r} is not [pserver:|trainer:|pserver.N:|trainer.N:]NAME=VALUE")
    else:
        given = [name for name, value in of_line if value]
        if given:
            parser.error(f"-n, the workers of the whole job, and {given[0]} exclude each other")
    elsewhere = [
        ("--scheduler", options.scheduler),
        ("--cluster_node_ips", options.cluster_node_ips),
        ("--master", options.master),
        ("--node_rank", options.node_rank),
        ("--use_paddlecloud", options.use_paddlecloud or None),
        ("--nnodes", options.nnodes if options.launcher not in ("mpi", "slurm") else None),
    ]
    given = [name for name, value in elsewhere if value is not None]
    if given and (options.launcher != "local" or options.num_workers is not None):
        first = "-n" if options.launcher == "local" else f"--launcher {options.launcher}"
        parser.error(f"{first}, which says where the job runs, and {given[0]} exclude each other")
    if options.launcher == "ssh" and not options.hostfile:
        parser.error("--launcher ssh needs -H FILE, the hosts of the job")
    if options.sync_dst_dir and options.launcher != "ssh":
        parser.error(f"--sync-dst-dir copies over ssh; with --launcher {options.launcher} it has no meaning")
    if options.launcher == "k8s" and not options.image:
        parser.error("--launcher k8s needs --image NAME, the container image of the processes")
