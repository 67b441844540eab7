"""The Python interpreter for tests of penstock beside PyTorch: this one, or the one that PENSTOCK_TORCH_PYTHON names.
PyTorch is optional, so tests/python runs without it. Imports no test."""

import functools
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

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
