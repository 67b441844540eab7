"""--launcher slurm: the script of a Slurm job.

With -n it is one heterogeneous job: the first component has the scheduler and the servers, the second the workers, and
one srun starts all. Without -n, srun starts one launcher on each of --nnodes machines, and a job that makes checkpoints
is saved and queued again when Slurm is about to end it.
"""

from __future__ import annotations

import os
import shlex
import sys
from typing import TYPE_CHECKING

from penstock._src.launch.backends.local import line_settings
from penstock._src.launch.backends.ranks import exports, role_command
from penstock._src.launch.backends.tasks import SECRETS, make_line, passed_on
from penstock._src.launch.backends.words import launcher_words
from penstock._src.launch.errors import JobError

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Mapping


WARNING_S = 120  # Slurm says so long before the end of the allocation that it is near
# A host that no name service knows has the address by which Slurm reaches it.
ROOT = """\
host=$(scontrol show hostnames "$SLURM_JOB_NODELIST_HET_GROUP_0" | head -n 1)
if [ -n "$host" ] && ! getent hosts "$host" >/dev/null; then
  host=$(scontrol show node "$host" | sed -n 's/.*NodeAddr=\\([^ ]*\\).*/\\1/p')
fi
if [ -z "$host" ] || ! getent hosts "$host" >/dev/null; then
  echo "penstock: the first host of SLURM_JOB_NODELIST_HET_GROUP_0='$SLURM_JOB_NODELIST_HET_GROUP_0' has no address" >&2
  exit 2
fi
export DMLC_PS_ROOT_URI="$host" DMLC_PS_ROOT_PORT=$((9091 + SLURM_JOB_ID % 900))
"""
# SIGUSR1 and SIGTERM come in either order; a second SIGTERM would end the launchers at once.
TRAP = """\
stopped=
stop() {{ if [ -z "$stopped" ] && {ask}; then stopped=1; fi; }}
trap stop TERM USR1
"""
WAIT = """\
step=$!
while wait "$step"; code=$?; kill -0 "$step" 2>/dev/null; do :; done
"""
END_STEP = 'kill -TERM "$step"'  # srun then ends all tasks


def _head(options: Namespace, components: list[list[str]]) -> list[str]:
    """Returns the lines of the options; `components`: those of each component."""
    common = [
        f"--job-name={options.job_id or 'penstock'}",
        f"--output={os.path.join(os.path.abspath(options.log_dir), 'slurm-%j.out')}",
        "--open-mode=append",
        "--requeue",
        f"--signal=B:USR1@{WARNING_S}",
    ]
    lines = ["#!/bin/bash", *(f"#SBATCH {option}" for option in common)]
    for i, component in enumerate(components):
        lines += ["#SBATCH hetjob"] if i else []
        lines += [f"#SBATCH {option}" for option in (*component, *options.submit_option)]
    return lines


def _again(options: Namespace) -> str:
    """Returns the commands behind the job's end: whether it is queued again."""
    saved = '[ -n "$stopped" ]' if options.checkpoint_steps else "false"
    failed = f'[ -z "$stopped" ] && [ "$code" -ne 0 ] && [ "${{SLURM_RESTART_COUNT:-0}}" -lt {options.max_restart} ]'
    return f'if {saved} || {{ {failed}; }}; then scontrol requeue "$SLURM_JOB_ID"; fi\nexit "$code"\n'


def token_path(options: Namespace) -> str:
    """Returns the file of the job's token; the one in the log folder is made when the job is submitted."""
    return os.path.abspath(options.token_file or os.path.join(options.log_dir, "job.token"))


def _line_script(options: Namespace, environment: Mapping[str, str]) -> str:
    settings = line_settings(options, environment)
    line = make_line(options, environment, settings, root=("", 0))
    if not line.servers:
        raise JobError("--launcher slurm needs servers with -n; ranks are started without it: --nnodes, --worker_num")
    passed_on(environment, [name for _, _, name, value in options.env if value is None])  # sbatch passes all on
    general = {name: value for kind, number, name, value in line.given if kind is None and number is None}
    shared = {
        name: value
        for name, value in {**line.shared(), **general, "DMLC_JOB_CLUSTER": "slurm"}.items()
        if name not in (*SECRETS, "DMLC_PS_ROOT_URI", "DMLC_PS_ROOT_PORT")
    }
    command = shlex.join(role_command(line, ("SLURM_PROCID",), ("scheduler", "pserver", "trainer")))
    return "\n".join(
        [
            *_head(options, [[f"--ntasks={1 + line.servers}"], [f"--ntasks={line.workers}"]]),
            f"cd {shlex.quote(os.getcwd())} || exit 2",
            ROOT + exports(shared),
            f"PENSTOCK_JOB_TOKEN=$(head -n 1 {shlex.quote(token_path(options))}) || exit 2; export PENSTOCK_JOB_TOKEN",
            'export PENSTOCK_RESTART_COUNT="${SLURM_RESTART_COUNT:-0}"',
            TRAP.format(ask=END_STEP)
            + f"srun --kill-on-bad-exit=1 --het-group=0 {command} : --het-group=1 {command} &",
            WAIT + _again(options),
        ]
    )


def _launchers_script(options: Namespace, environment: Mapping[str, str]) -> str:
    line_settings(options, environment)  # raises the errors of the options
    words = [options.remote_python or sys.executable, "-m", "penstock.distributed.launch", "--scheduler", "slurm"]
    words += ["--token_file", token_path(options), *(["--job_id", options.job_id] if options.job_id else [])]
    words += ["--node_ip", options.node_ip] if options.node_ip else []
    lines = [
        *_head(options, [[f"--nodes={options.nnodes or 1}", "--ntasks-per-node=1"]]),
        f"cd {shlex.quote(os.getcwd())} || exit 2",
    ]
    resume = ""
    if options.checkpoint_steps and not options.resume:
        folder = shlex.quote(os.path.abspath(options.checkpoint_dir))
        lines.append(f'resume=; for step in {folder}/step-*; do if [ -e "$step" ]; then resume=--resume; fi; done')
        resume = " $resume"
    tail = launcher_words(options, without=("max_restart",))
    # srun takes a SIGTERM as the end of all tasks, so the script asks the first machine's launcher, which is beside it.
    number = shlex.quote(os.path.join(os.path.abspath(options.log_dir), "launcher.pid"))
    first = f'if [ "$SLURM_NODEID" = 0 ]; then echo $$ >{number}; fi; exec "$@"'
    start = shlex.join(["sh", "-c", first, "launcher", *words])
    lines.append(f"rm -f {number}\n" + TRAP.format(ask=f'kill -TERM "$(cat {number})"').rstrip())
    lines.append(f"srun --kill-on-bad-exit=1 {start}{resume} {shlex.join(tail)} &")
    return "\n".join([*lines, WAIT + _again(options)])


def slurm_script(options: Namespace, environment: Mapping[str, str]) -> str:
    """Returns the script for sbatch; raises JobError."""
    return (_launchers_script if options.num_workers is None else _line_script)(options, environment)
