"""The Python interpreter for tests of penstock beside PyTorch: this one, or the one that PENSTOCK_TORCH_PYTHON names.
PyTorch is optional, so tests/python runs without it. Imports no test."""

import functools
import importlib.util
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy
import penstock
import pytest


@functools.cache
def _found():
    named = os.environ.get("PENSTOCK_TORCH_PYTHON")
    if named is None:
        return sys.executable if importlib.util.find_spec("torch") else None
    subprocess.run([named, "-c", "import torch, penstock"], check=True, env=environment())
    return named


def torch_python():
    """Its path; skips the test if there is none."""
    found = _found()
    if found is None:
        pytest.skip("PyTorch is not installed (PENSTOCK_TORCH_PYTHON names no Python that has it)")
    return found


def environment():
    """The variables with which it imports this penstock."""
    return {**os.environ, "PYTHONPATH": str(Path(penstock.__file__).parent.parent)}


def run(python, script, *arguments, launcher=()):
    """What a script prints that must succeed, alone or under the launcher."""
    script.parent.mkdir(exist_ok=True)
    done = subprocess.run(
        [python, *launcher, str(script), *map(str, arguments)],
        env={**environment(), "OMP_NUM_THREADS": "1"},
        cwd=script.parent,
        text=True,
        capture_output=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def trained_alone(folder, text):
    """The arrays that the script `text` saves in its argument."""
    script = folder / "alone.py"
    script.write_text(textwrap.dedent(text))
    run(torch_python(), script, folder / "alone.npz")
    return dict(numpy.load(folder / "alone.npz"))


def check_training(folder, text, kind, how, expected, servers):
    """Trains by the script `text` with a key-value store of the kind: each worker has the expected arrays."""
    script = folder / "train.py"
    script.write_text(textwrap.dedent(text))
    launcher, workers = [], 1
    if kind == "dist_sync":
        counts = ["--server_num", str(servers), "--worker_num", "2"]
        launcher, workers = ["-m", "penstock.distributed.launch", *counts, "--log_dir", "log"], 2
    run(torch_python(), script, kind, how, folder / "trained", launcher=launcher)
    for rank in range(workers):
        trained = dict(numpy.load(folder / f"trained{rank}.npz"))
        assert trained.keys() == expected.keys()
        for name, value in expected.items():
            numpy.testing.assert_allclose(trained[name], value, rtol=1e-5, atol=1e-5 * abs(value).max(), err_msg=name)
