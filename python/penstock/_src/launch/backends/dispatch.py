"""--launcher: runs the job where it says, or prints what would run there."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

from penstock._src.launch.backends.crew import run_crew
from penstock._src.launch.backends.kubernetes import TOKEN_KEY, jobset
from penstock._src.launch.backends.mpi import mpi_tasks
from penstock._src.launch.backends.sge import sge_tasks
from penstock._src.launch.backends.slurm import slurm_script, token_path
from penstock._src.launch.backends.ssh import describe_hosts, ssh_tasks
from penstock._src.launch.backends.yaml_text import yaml_text
from penstock._src.launch.backends.yarn import yarn_tasks
from penstock._src.launch.errors import JobError
from penstock._src.launch.logs import require_folder, say, write_new
from penstock._src.launch.stop import Stop

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable, Mapping

    from penstock._src.launch.backends.tasks import Task


def _run_tasks(tasks: list[Task], options: Namespace) -> int:
    """Runs tasks until they end well, at most 1 + --max_restart times."""
    require_folder("--log_dir", options.log_dir)
    stop = Stop()
    stop.install()
    restarts = options.max_restart if options.num_workers is not None else 0  # else the launchers of the hosts do it
    for attempt in range(restarts + 1):
        if attempt > 0:
            say(f"launch: starting the job again, attempt {attempt} of {restarts}")
        code = run_crew(tasks, options, stop, attempt)
        if code == 0 or stop.signal is not None:
            break
    return code


def _print_tasks(tasks: list[Task]) -> int:
    for task in tasks:
        for line in task.describe():
            print(line)
    return 0


def _run_ssh(options: Namespace, environment: Mapping[str, str]) -> int:
    tasks = ssh_tasks(options, environment)
    if not options.dry_run:
        return _run_tasks(tasks, options)
    for line in describe_hosts(tasks, options):
        print(line)
    return _print_tasks(tasks)


def _run_mpi(options: Namespace, environment: Mapping[str, str]) -> int:
    tasks = mpi_tasks(options, environment)
    return _print_tasks(tasks) if options.dry_run else _run_tasks(tasks, options)


def _write_private(path: str, text: str) -> None:
    """Writes a file that only its owner can read."""
    require_folder("--log_dir", os.path.dirname(path))
    mask = os.umask(0o077)
    try:
        write_new(path, [text])
    except OSError as error:
        raise JobError(f"cannot write {path}: {error.strerror or error}") from error
    finally:
        os.umask(mask)


def _run_scripts(tasks: list[Task], scripts: dict[str, str], options: Namespace) -> int:
    """Runs programs that take scripts, such as qsub; with --dry_run prints the scripts, without secrets, and the
    programs."""
    if not options.dry_run:
        _needs(tasks[-1].command[0], options)
        for path, text in scripts.items():
            _write_private(path, text)
        return _run_tasks(tasks, options)
    for path, text in scripts.items():
        print(f"# {path}\n{text}")
    return _print_tasks(tasks)


def _needs(program: str, options: Namespace) -> None:
    if shutil.which(program) is None:
        raise JobError(
            f"--launcher {options.launcher} needs {program}, and there is no such program; --dry_run prints what it "
            "would get",
            "E-launch-scheduler",
        )


def _run_slurm(options: Namespace, environment: Mapping[str, str]) -> int:
    """Submits the job, and prints its number."""
    script = slurm_script(options, environment)
    if options.dry_run:
        print(script, end="")
        return 0
    _needs("sbatch", options)
    if options.token_file is None:
        _write_private(token_path(options), secrets.token_hex(16) + "\n")
    path = os.path.join(os.path.abspath(options.log_dir), "job.slurm.sh")
    _write_private(path, script)
    return subprocess.run(["sbatch", path], check=False).returncode


def _run_kubernetes(options: Namespace, environment: Mapping[str, str]) -> int:
    """Applies the JobSet, and makes the secret with its token."""
    manifest = jobset(options, environment)
    name = manifest["metadata"]["name"]
    if options.dry_run:
        print(f"# needs: kubectl create secret generic {name}-token --from-literal={TOKEN_KEY}=$(openssl rand -hex 16)")
        print(yaml_text(manifest), end="")
        return 0
    _needs("kubectl", options)
    data = {TOKEN_KEY: secrets.token_hex(16)}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": f"{name}-token"}, "stringData": data}
    text = f"{yaml_text(secret)}---\n{yaml_text(manifest)}"
    return subprocess.run(["kubectl", "apply", "-f", "-"], input=text.encode(), check=False).returncode


_BACKENDS: dict[str, Callable[[Namespace, Mapping[str, str]], int]] = {
    "ssh": _run_ssh,
    "mpi": _run_mpi,
    "slurm": _run_slurm,
    "sge": lambda options, environment: _run_scripts(*sge_tasks(options, environment), options),
    "yarn": lambda options, environment: _run_scripts(*yarn_tasks(options, environment), options),
    "k8s": _run_kubernetes,
}


def run_backend(options: Namespace, environment: Mapping[str, str]) -> int:
    """Runs the job by options.launcher, which is not "local"; returns the exit code. Raises JobError."""
    sys.stdout.flush()
    return _BACKENDS[options.launcher](options, environment)
