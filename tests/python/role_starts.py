"""Runs a job whose processes only act as roles under the launcher, for tests of what it starts again. Imports no test.

Each process makes an empty file of its name, ROLE.NUMBER.START; the first start is 0. A script of a test is the text
that follows, with `role`, `restart`, `name`, `await_file(path)` and `tell(line)`, a line to the launcher.
"""

import os
import subprocess
import sys
import textwrap

WAIT_S = 120

HEAD = """
import os, signal, subprocess, sys, time

role, restart = os.environ["TRAINING_ROLE"], int(os.environ["PENSTOCK_ROLE_RESTART_COUNT"])
number = os.environ["PADDLE_PSERVER_ID" if role == "PSERVER" else "PADDLE_TRAINER_ID"]
name = f"{role}.{number}.{restart}"
shown = [os.environ.get(one) for one in ("PENSTOCK_ON_TRAINER_LOSS", "PADDLE_CURRENT_ENDPOINT")]
print("this is", name, *shown, flush=True)
open(name, "w").close()

def await_file(path):
    end = time.monotonic() + 60
    while not os.path.exists(path):
        assert time.monotonic() < end, path
        time.sleep(0.01)

def tell(line):
    os.write(int(os.environ["PENSTOCK_LAUNCH_FD"].split(":")[0]), line)
"""


def launch(folder, script, servers, *options, **environment):
    """Returns the launcher's exit code, and what it and all roles have said."""
    (folder / "job.py").write_text(HEAD + textwrap.dedent(script))
    command = [sys.executable, "-m", "penstock.distributed.launch", "--server_num", str(servers), "--worker_num", "2"]
    result = subprocess.run(
        [*command, "--grace_s", "0.2", *options, "job.py"],
        cwd=folder,
        env={**os.environ, **environment},
        text=True,
        capture_output=True,
        timeout=WAIT_S,
    )
    logs = "".join(path.read_text() for path in sorted((folder / "mylog").glob("*log.*")))
    return result.returncode, result.stdout + result.stderr + logs


def restarts(folder):
    """Returns the names of the starts after the first ones."""
    names = [path.name for path in folder.iterdir() if path.name.startswith(("PSERVER", "TRAINER"))]
    return sorted(name for name in names if not name.endswith(".0"))
