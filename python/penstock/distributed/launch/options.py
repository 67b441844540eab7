"""The command line: our own names, and the spellings of Fluid's `launch`, `launch_ps` and manual."""

import argparse

from penstock.distributed.launch.safety import add_safety_options

# The manual puts these after the script: `launch train.py --gpus 4 --log_dir mylog`.
AFTER_SCRIPT = {"--gpus", "--log_dir"}


def _truth(text):
    """A printed truth value. Fluid took any text, "False" too, as true."""
    lowered = text.strip().lower()
    if lowered in {"", "0", "false", "no", "off"}:
        return False
    if lowered in {"1", "true", "yes", "on"}:
        return True
    raise argparse.ArgumentTypeError(f"{text!r} is neither true nor false")


def _positive(text):
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a count of at least 1")
    return value


def _count(text):
    try:
        value = int(text)
    except ValueError:
        value = -1
    if value < 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a count")
    return value


def _port(text):
    value = _count(text)
    if not 1 <= value <= 65535:
        raise argparse.ArgumentTypeError(f"port {text} is not between 1 and 65535")
    return value


def _port_or_any(text):
    value = _count(text)
    if value > 65535:
        raise argparse.ArgumentTypeError(f"port {text} is not between 0 and 65535")
    return value


def make_parser():
    parser = argparse.ArgumentParser(
        prog="python -m penstock.distributed.launch",
        description="Starts the pservers and trainers of a job on this machine and watches them. A job of several "
        "machines has one launcher on each.",
        epilog="--gpus and --log_dir may also stand right after the script, as Fluid's manual has them; what follows "
        "`--` goes to the script in any case. Exit codes: 0 all roles ended well, 1 a role failed, 2 bad input, 130 "
        "interrupted.",
    )
    counts = parser.add_argument_group("roles")
    counts.add_argument("--worker_num", "--trainers", type=_positive, metavar="N",
                        help="trainers on this machine (default: --gpus, --selected_gpus or PADDLE_NUM_TRAINERS; else "
                        "2 with pservers, 1 without)")
    counts.add_argument("--server_num", "--pservers", type=_count, metavar="N",
                        help="pservers on this machine (default: as many as --endpoints lists, else 0)")
    counts.add_argument("--gpus", type=_positive, metavar="K", help="one trainer for each of K GPUs")
    counts.add_argument("--selected_gpus", metavar="LIST", help="one trainer for each GPU of a list such as 0,1")
    where = parser.add_argument_group("addresses")
    where.add_argument("--endpoints", default="", metavar="LIST", help="addresses of the pservers: host:port,...")
    where.add_argument("--start_port", type=_port, metavar="PORT",
                       help="pservers listen on PORT, PORT+1, ... of their machine (default: free ports; of several "
                       "machines 6170)")
    where.add_argument("--started_port", type=_port, metavar="PORT",
                       help="trainers are told PORT, PORT+1, ... as their addresses (default: free ports; of several "
                       "machines 6070)")
    where.add_argument("--cluster_node_ips", default="127.0.0.1", metavar="LIST", help="the job's machines")
    where.add_argument("--node_ip", default="127.0.0.1", metavar="IP", help="this machine's, one of --cluster_node_ips")
    where.add_argument("--control_port", type=_port, default=6069, metavar="PORT",
                       help="of several machines: where the launcher of the first listens for the others (default: "
                       "%(default)s)")
    where.add_argument("--join_s", type=float, default=600.0, metavar="SECONDS",
                       help="of several machines: how long to wait for the other launchers (default: %(default)s)")
    where.add_argument("--use_paddlecloud", action="store_true",
                       help="take machines and ports from PADDLE_TRAINERS, POD_IP, PADDLE_PORT")
    watch = parser.add_argument_group("watching")
    watch.add_argument("--hang_timeout", type=float, default=0.0, metavar="SECONDS",
                       help="end the job when no role of this machine has made progress in training for so long, and "
                       "say whom it waited for (default: 0, never)")
    watch.add_argument("--metrics", type=_port_or_any, metavar="PORT",
                       help="each role serves Prometheus's /metrics on 127.0.0.1, pservers, then trainers of this "
                       "machine at PORT, PORT+1, ...; 0: at free ports. `penstock top DIR` shows them "
                       "(PENSTOCK_METRICS)")
    secret = parser.add_argument_group("the job")
    secret.add_argument("--job_id", default="", metavar="NAME",
                        help="its name (default: PENSTOCK_JOB_ID, else drawn; of several machines, by the first)")
    secret.add_argument("--token_file", metavar="FILE",
                        help="its secret, the first line of a file (default: PENSTOCK_JOB_TOKEN, else drawn). Several "
                        "machines must be given the same")
    parser.add_argument("--wire", choices=("native", "fluid"),
                        help="what the roles speak: ours, or the protocol of Fluid 1.8.5, so that its trainers or "
                        "pservers can take part; fluid has no token, no TLS and no exactly-once (PENSTOCK_WIRE; "
                        "default: native)")
    output = parser.add_argument_group("output")
    output.add_argument("--log_dir", default="mylog", metavar="DIR",
                        help="serverlog.N and workerlog.N are written there, and each role's receipt; after a failure "
                        "or a hang also its last events (default: %(default)s)")
    output.add_argument("--print_config", type=_truth, default=True, metavar="BOOL",
                        help="print the job (default: true)")
    output.add_argument("--log_level", type=int, default=20, help="accepted for Fluid's sake; has no effect here")
    output.add_argument("--quiet", action="store_true",
                        help="neither trainer 0's output nor the job's receipt on the terminal")
    add_safety_options(parser)
    parser.add_argument("--grace_s", type=float, default=15.0, metavar="SECONDS",
                        help="after a failure, time for the other roles to end by themselves (default: %(default)s)")
    parser.add_argument("training_script", help="the Python file that every process runs")
    parser.add_argument("training_script_args", nargs=argparse.REMAINDER, help="its own arguments")
    return parser


def _options_after_script(rest):
    """Splits the launcher's options that stand right after the script from the script's own arguments."""
    ours = []
    while rest:
        name, equals, _ = rest[0].partition("=")
        if name not in AFTER_SCRIPT:
            break
        taken = 1 if equals else 2
        ours.extend(rest[:taken])
        rest = rest[taken:]
    return ours, rest


def parse_options(argv):
    """The options as an argparse.Namespace. Bad ones end the process with exit code 2, as argparse does."""
    scripts_own = []
    if "--" in argv:  # argparse drops it in some Pythons, so it is taken out first
        at = argv.index("--")
        argv, scripts_own = argv[:at], argv[at + 1:]
    parser = make_parser()
    options = parser.parse_args(argv)
    ours, rest = _options_after_script(options.training_script_args)
    if ours:
        parser.parse_args([*ours, options.training_script], namespace=options)
    options.training_script_args = [*rest, *scripts_own]
    return options
