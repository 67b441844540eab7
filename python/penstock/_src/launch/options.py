"""The command line, with Penstock's option names and those of Fluid's `launch`, `launch_ps` and manual."""

from __future__ import annotations

import argparse
import math
import re
import sys
from typing import TYPE_CHECKING

from penstock._src.launch.backends.options import add_backend_options, choose_launcher
from penstock._src.launch.checkpoints import add_checkpoint_options
from penstock._src.launch.completion import NAME, completion_text
from penstock._src.launch.elastic import add_elastic_options
from penstock._src.launch.errors import SECONDS_MAX
from penstock._src.launch.safety import add_safety_options
from penstock._src.launch.trainer_loss import add_trainer_loss_option

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace, _ArgumentGroup
    from collections.abc import Callable
    from typing import Any


# Fluid's manual puts these after the script: `launch train.py --gpus 4 --log_dir mylog`.
AFTER_SCRIPT = {"--gpus", "--log_dir"}


def _truth(text: str) -> bool:
    """Parses a bool. Fluid accepts any text as true, even "False"."""
    lowered = text.strip().lower()
    if lowered in {"", "0", "false", "no", "off"}:
        return False
    if lowered in {"1", "true", "yes", "on"}:
        return True
    raise argparse.ArgumentTypeError(f"{text!r} is neither true nor false")


def _number(kind: Callable[[str], Any], text: str, least: float, most: float, meaning: str) -> Any:
    """Parses an int or a float from `least` to `most`."""
    try:
        value = kind(text)
    except ValueError:
        value = None
    if value is None or not least <= value <= most:
        raise argparse.ArgumentTypeError(f"{text!r} is not a {meaning}")
    return value


def _positive(text: str) -> int:
    return int(_number(int, text, 1, math.inf, "count of at least 1"))


def _count(text: str) -> int:
    return int(_number(int, text, 0, math.inf, "count"))


def _seconds(text: str) -> float:
    """Parses a finite number of seconds of at least 0."""
    return float(_number(float, text, 0, SECONDS_MAX, f"number of seconds from 0 to {SECONDS_MAX:.0f}"))


def _port(text: str) -> int:
    value = _count(text)
    if not 1 <= value <= 65535:
        raise argparse.ArgumentTypeError(f"port {text} is not between 1 and 65535")
    return value


def _port_or_any(text: str) -> int:
    value = _count(text)
    if value > 65535:
        raise argparse.ArgumentTypeError(f"port {text} is not between 0 and 65535")
    return value


_SETTING = re.compile(r"(?:(pserver|trainer)(?:\.(\d+))?:)?([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def _setting(text: str) -> tuple[str | None, int | None, str, str | None]:
    """Parses [ROLE[.N]:]NAME=VALUE to (kind or None, number or None, name, value); of NAME alone the value is None."""
    if _NAME.fullmatch(text):
        return None, None, text, None
    found = _SETTING.fullmatch(text)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not [pserver:|trainer:|pserver.N:|trainer.N:]NAME=VALUE")
    kind, number, name, value = found.groups()
    return kind, None if number is None else int(number), name, value


class _Completion(argparse.Action):
    """Prints the completion script and exits, as --help does."""

    def __call__(
        self, parser: ArgumentParser, namespace: Namespace, values: Any, option_string: str | None = None
    ) -> None:
        sys.stdout.write(completion_text(parser, values))
        parser.exit()


def _add_machines(where: _ArgumentGroup) -> None:
    """Adds the options that state the machines of the job."""
    where.add_argument("--cluster_node_ips", metavar="LIST", help="addresses of the job's machines (default: this one)")
    where.add_argument("--node_ip", metavar="IP", help="this machine's address, one of --cluster_node_ips")
    where.add_argument(
        "--nnodes", type=_positive, metavar="N", help="number of machines; needs --master instead of --cluster_node_ips"
    )
    where.add_argument(
        "--node_rank", type=_count, metavar="R", help="with --nnodes: the number of this machine, from 0"
    )
    where.add_argument(
        "--master",
        metavar="HOST[:PORT]",
        help="with --nnodes: address of machine 0, and the port of its launcher (default: --control_port)",
    )
    where.add_argument(
        "--scheduler",
        choices=("slurm", "mpi", "torch"),
        help="read the machines from the environment of the scheduler that started one launcher on "
        "each: slurm: srun (SLURM_JOB_NODELIST, SLURM_NODEID); mpi: mpirun (OMPI_COMM_WORLD_* or "
        "PMI_*, with --master); torch: WORLD_SIZE, RANK, MASTER_ADDR and MASTER_PORT",
    )
    where.add_argument(
        "--control_port",
        type=_port,
        default=6069,
        metavar="PORT",
        help="several machines: port on which the first machine's launcher listens for the others "
        "(default: %(default)s)",
    )
    where.add_argument(
        "--join_s",
        type=_seconds,
        default=600.0,
        metavar="SECONDS",
        help="several machines: how long launchers wait for each other before they start any process "
        "(default: %(default)s)",
    )
    where.add_argument(
        "--use_paddlecloud",
        action="store_true",
        help="read machines and ports from PADDLE_TRAINERS, PADDLE_PSERVERS, POD_IP, PADDLE_PORT",
    )


def _add_output(output: _ArgumentGroup) -> None:
    output.add_argument(
        "--log_dir",
        default="mylog",
        metavar="DIR",
        help="folder of the logs serverlog.N and workerlog.N and of each process's receipt; after a "
        "failure or a hang also of its last events (default: %(default)s)",
    )
    output.add_argument(
        "--trace",
        metavar="DIR",
        help="record what each process does into the folder DIR, and at the job's end merge it into "
        "DIR/job.pftrace for https://ui.perfetto.dev, as `penstock trace DIR` does (PENSTOCK_TRACE)",
    )
    output.add_argument(
        "--console",
        choices=("first", "all"),
        help="whose output the terminal shows: first: trainer 0's; all: that of all processes of "
        "this machine, each line with its process's name (default: first; with -n all)",
    )
    output.add_argument(
        "--print_config",
        type=_truth,
        default=True,
        metavar="BOOL",
        help="print the job's processes and addresses (default: true)",
    )
    output.add_argument("--log_level", type=int, default=20, help="ignored; accepted for compatibility with Fluid")
    output.add_argument(
        "--quiet", action="store_true", help="print neither the processes' output nor the job's receipt"
    )
    output.add_argument(
        "--dry_run",
        "--dry-run",
        action="store_true",
        help="print each process's host, command and environment, or the script of the cluster, and start nothing",
    )
    output.add_argument(
        "--completion",
        choices=("bash", "zsh"),
        action=_Completion,
        help=f"print a script that completes the options of {NAME}, and exit",
    )
    output.add_argument(
        "--progress",
        type=float,
        metavar="SECONDS",
        help="interval at which each trainer prints step, loss (if it is fetched), examples per "
        "second and time in communication; `penstock plot` draws these lines (PENSTOCK_PROGRESS)",
    )


def make_parser() -> ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m penstock.distributed.launch",
        description="Starts the pservers and trainers of a job on this machine and watches them. A job of several "
        "machines has one launcher on each.",
        epilog="--gpus and --log_dir may also follow the script, as in Fluid's manual. All arguments after `--` go "
        "to the script. Exit codes: 0 all processes succeeded, 1 a process failed (with -n: its own code), 2 bad "
        "input, 130 interrupted.",
    )
    add_backend_options(parser, _positive, _count)
    counts = parser.add_argument_group("roles")
    counts.add_argument(
        "--worker_num",
        "--trainers",
        type=_positive,
        metavar="N",
        help="trainers on this machine (default: --gpus, --selected_gpus or PADDLE_NUM_TRAINERS; "
        "else 2 with pservers, 1 without)",
    )
    counts.add_argument(
        "--server_num",
        "--pservers",
        type=_count,
        metavar="N",
        help="pservers on this machine (default: as many as --endpoints lists, else 0)",
    )
    counts.add_argument("--gpus", type=_positive, metavar="K", help="one trainer for each of K GPUs")
    counts.add_argument("--selected_gpus", metavar="LIST", help="one trainer for each GPU of a list such as 0,1")
    where = parser.add_argument_group("addresses")
    where.add_argument("--endpoints", default="", metavar="LIST", help="addresses of the pservers: host:port,...")
    where.add_argument(
        "--start_port",
        type=_port,
        metavar="PORT",
        help="pservers listen on PORT, PORT+1, ... of their machine (default: free ports; with several machines 6170)",
    )
    where.add_argument(
        "--started_port",
        type=_port,
        metavar="PORT",
        help="trainers have the ports PORT, PORT+1, ... (default: free ports; with several machines 6070)",
    )
    _add_machines(where)
    watch = parser.add_argument_group("watching")
    watch.add_argument(
        "--max_restart",
        type=_count,
        default=0,
        metavar="N",
        help="restart the whole job after a failure, at most N times; processes find the number of "
        "the attempt in PENSTOCK_RESTART_COUNT (default: %(default)s)",
    )
    add_trainer_loss_option(watch)
    watch.add_argument(
        "--start_s",
        type=_seconds,
        metavar="SECONDS",
        help="how long the processes, once started, wait for each other to connect; then all end with "
        "an error that names those that have not come. --join_s is about the launchers of several "
        "machines, before that; --grace_s about the time after a failure (PENSTOCK_START_S; default: "
        "FLAGS_rpc_deadline milliseconds, else 900)",
    )
    watch.add_argument(
        "--reconnect_s",
        type=_seconds,
        metavar="SECONDS",
        help="how long a process whose connection with another one has broken may be out of reach before "
        "it counts as gone; a process that has ended, as far as that can be seen, is gone at once; 0: a "
        "connection that breaks ends the job (PENSTOCK_RECONNECT_S; default: 60)",
    )
    watch.add_argument(
        "--hang_timeout",
        type=_seconds,
        default=0.0,
        metavar="SECONDS",
        help="end the job when no process of this machine has made progress in training for this "
        "long, and state what it waited for (default: 0, never)",
    )
    watch.add_argument(
        "--metrics",
        type=_port_or_any,
        metavar="PORT",
        help="each process serves Prometheus's /metrics on 127.0.0.1: pservers, then trainers of this "
        "machine, on PORT, PORT+1, ...; 0: on free ports. `penstock top DIR` shows them "
        "(PENSTOCK_METRICS)",
    )
    secret = parser.add_argument_group("the job")
    secret.add_argument(
        "--job_id",
        default="",
        metavar="NAME",
        help="its name (default: PENSTOCK_JOB_ID, else random; with several machines the first chooses)",
    )
    secret.add_argument(
        "--token_file",
        metavar="FILE",
        help="file whose first line is the job's secret (default: PENSTOCK_JOB_TOKEN, else random); "
        "several machines need the same secret",
    )
    parser.add_argument(
        "--wire",
        choices=("native", "fluid"),
        help="protocol of the processes: native, or that of Fluid 1.8.5, so that its trainers or "
        "pservers can take part; fluid has no token, no TLS and no exactly-once delivery "
        "(PENSTOCK_WIRE; default: native)",
    )
    output = parser.add_argument_group("output")
    _add_output(output)
    add_checkpoint_options(parser, _positive, _count)
    add_elastic_options(parser, _positive)
    add_safety_options(parser)
    parser.add_argument(
        "--grace_s",
        type=_seconds,
        metavar="SECONDS",
        help="after a failure, how long the other processes may take to end by themselves (default: "
        "15, or 5 if the failed process had not yet connected to any other, which then cannot notice "
        "its end)",
    )
    parser.add_argument(
        "--env",
        type=_setting,
        action="append",
        default=[],
        metavar="[ROLE:]NAME=VALUE",
        help="set an environment variable for all processes, for pservers or trainers (pserver:, "
        "trainer:), or for one process (trainer.0:); may be given several times. NAME alone: processes on other hosts "
        "get the value that it has here",
    )
    parser.add_argument("-m", "--module", action="store_true", help="the script is a module, run as python -m runs it")
    parser.add_argument("training_script", help="the Python file, or module, that every process runs")
    parser.add_argument("training_script_args", nargs=argparse.REMAINDER, help="its own arguments")
    return parser


def _options_after_script(rest: list[str]) -> tuple[list[str], list[str]]:
    """Separates the launcher's options that directly follow the script from the script's own arguments."""
    ours = []
    while rest:
        name, equals, _ = rest[0].partition("=")
        if name not in AFTER_SCRIPT:
            break
        taken = 1 if equals else 2
        ours.extend(rest[:taken])
        rest = rest[taken:]
    return ours, rest


_END = "\0"  # a word behind the last one, so that argparse accepts a command line without a script


def parse_options(argv: list[str]) -> Namespace:
    """Returns the options as an argparse.Namespace. Wrong options end the process with exit code 2, as in argparse.

    `launcher` is resolved. With `num_workers`, training_script and training_script_args are the words of a command.
    """
    dashes = "--" in argv  # some versions of argparse drop it, so it is removed first
    before, after = (argv[: argv.index("--")], argv[argv.index("--") + 1 :]) if dashes else (argv, [])
    parser = make_parser()
    options = parser.parse_args([*before, _END])
    words = [options.training_script, *options.training_script_args][:-1]
    if options.num_workers is not None:
        words += [*(["--"] if dashes and words else []), *after]
        if not words:
            parser.error("-n needs a command behind the options, such as: python train.py")
        options.training_script, options.training_script_args = words[0], words[1:]
        choose_launcher(parser, options)
        return options
    if not words and not after:
        parser.error("the following arguments are required: training_script")
    if not words:  # all behind the dashes: none of our options
        options.training_script, options.training_script_args = after[0], after[1:]
        choose_launcher(parser, options)
        return options
    ours, rest = _options_after_script(words[1:])
    if ours:
        parser.parse_args([*ours, words[0]], namespace=options)
    options.training_script, options.training_script_args = words[0], [*rest, *after]
    choose_launcher(parser, options)
    return options
