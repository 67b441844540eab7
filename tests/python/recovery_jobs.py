"""Jobs of two pservers and two trainers that make checkpoints, and of which processes are killed."""

import os
import subprocess
import sys
import textwrap

WAIT_S = 180

# What a script needs beside its training: `wait_for(condition)`, `has_checkpoint()`, and `has_part(server, step)`.
WAITS = """
    import os, signal, sys, time
    import penstock

    folder, every = os.environ['PENSTOCK_CHECKPOINT_DIR'], int(os.environ['PENSTOCK_CHECKPOINT_STEPS'])

    def wait_for(there):
        end = time.monotonic() + 60
        while not there():
            assert time.monotonic() < end, 'nothing came'
            time.sleep(0.01)

    def has_checkpoint():
        try:
            return penstock._penstock.newest_checkpoint(folder) is not None
        except penstock.DataError:  # only a part of the first is written
            return False

    def has_part(server, step):
        return os.path.exists(f'{folder}/step-{step}/part-{server}-of-2.json')
"""


def launch(script, steps, folder, *options, every=4, **environment):
    """(exit code, what the launcher and all roles said)"""
    (folder / "job.py").write_text(textwrap.dedent(WAITS) + textwrap.dedent(script))
    for path in folder.glob("pserver.*"):
        path.unlink()
    command = [sys.executable, "-m", "penstock.distributed.launch", "--worker_num", "2", "--server_num", "2"]
    checkpoints = ("--checkpoint_dir", "ckpt", "--checkpoint_steps", str(every))
    result = subprocess.run(
        [*command, *checkpoints, *map(str, options), "job.py", str(steps)],
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
        text=True,
        capture_output=True,
        timeout=WAIT_S,
    )
    logs = [path.read_text(errors="replace") for path in sorted((folder / "mylog").glob("*log.*"))]
    return result.returncode, "\n".join([result.stdout, result.stderr, *logs])
