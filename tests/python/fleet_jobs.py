"""Runs jobs of real processes under the launcher, for the tests of fleets. Imports no test."""

import os
import subprocess
import sys
import textwrap

import job_script
import numpy as np

WAIT_S = 60


def alias_environment():
    """The environment in which `import paddle` is Penstock."""
    path = subprocess.run(
        [sys.executable, "-m", "penstock.compat", "--path"], check=True, capture_output=True, text=True, timeout=WAIT_S
    ).stdout.strip()
    return {"PYTHONPATH": os.pathsep.join(filter(None, [path, os.environ.get("PYTHONPATH")]))}


def launch(folder, script, *arguments, servers=2, workers=2, files=None, options=(), wait_s=WAIT_S, **environment):
    """(exit code, output of the launcher, {log: text}) of a job; `options` are the launcher's."""
    (folder / "job.py").write_text(textwrap.dedent(script))
    for name, text in (files or {}).items():
        (folder / name).write_text(textwrap.dedent(text))
    counts = ["--worker_num", workers, *(["--server_num", servers] if servers else [])]
    command = [sys.executable, "-m", "penstock.distributed.launch"]
    result = subprocess.run(
        [*command, *map(str, [*counts, *options, "job.py", *arguments])],
        cwd=folder,
        env=job_script.environment(**{"OMP_NUM_THREADS": "1", **environment}),
        text=True,
        capture_output=True,
        timeout=wait_s,
    )
    logs = {path.name: path.read_text(errors="replace") for path in sorted((folder / "mylog").glob("*log.*"))}
    return result.returncode, result.stdout + result.stderr, logs


def launch_and_read(folder, script, *arguments, **options):
    """(exit code, what the launcher and all roles said) of a job; `options` as for `launch`."""
    code, said, logs = launch(folder, script, *arguments, **options)
    return code, "\n".join([said, *logs.values()])


def launch_well(folder, script, *arguments, workers=2, **options):
    """The arrays that each worker saved as worker<i>.npz, and the logs, of a job that must succeed."""
    code, said, logs = launch(folder, script, *arguments, workers=workers, **options)
    assert code == 0, said + "\n".join(f"{name}:\n{text[-3000:]}" for name, text in logs.items())
    return [dict(np.load(folder / (f"worker{i}.npz"))) for i in range(workers)], logs


def start_compat(folder, script, *arguments, servers=0, workers=0):
    """What `python -m penstock.compat` on a script printed, and {log: text}, of a job that must succeed. The script
    runs alone if there are no workers."""
    (folder / "train.py").write_text(textwrap.dedent(script))
    launcher = (
        [
            "-m",
            "paddle.distributed.launch",
            "--server_num",
            str(servers),
            "--worker_num",
            str(workers),
            "--log_dir",
            "mylog",
        ]
        if workers
        else []
    )
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PADDLE_")}
    done = subprocess.run(
        [sys.executable, "-m", "penstock.compat", *launcher, "train.py", *map(str, arguments)],
        cwd=folder,
        env={**kept, "OMP_NUM_THREADS": "1", "CPU_NUM": "1"},
        capture_output=True,
        text=True,
        timeout=2 * WAIT_S,
    )
    logs = {path.name: path.read_text(errors="replace") for path in sorted((folder / "mylog").glob("*log.*"))}
    assert done.returncode == 0, done.stdout + done.stderr + "".join(text[-3000:] for text in logs.values())
    return done.stdout, logs
