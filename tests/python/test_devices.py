"""Places on GPUs, in a build that runs programs on CPUs alone: an error that names PENSTOCK_CUDA_FALLBACK, or the CPU
with one warning for the process."""

import os
import subprocess
import sys

import pytest

TRAIN = """
import numpy as np
import penstock.fluid as fluid

x = fluid.data('x', [None, 4])
loss = fluid.layers.mean(fluid.layers.fc(x, 1))
fluid.optimizer.SGD(0.1).minimize(loss)
exe = fluid.Executor(fluid.CUDAPlace(0))
exe.run(fluid.default_startup_program())
feed = {'x': np.ones((8, 4), 'float32')}
losses = [exe.run(feed=feed, fetch_list=[loss])[0].item() for _ in range(3)]
parallel = fluid.ParallelExecutor(use_cuda=True, loss_name=loss.name)
losses += [parallel.run(feed=feed, fetch_list=[loss.name])[0].item() for _ in range(3)]
assert len(fluid.cuda_places()) == 1 and len(fluid.cuda_places([0, 1])) == 2
assert losses == sorted(losses, reverse=True) and len(set(losses)) == 6, losses
"""


@pytest.fixture
def fallback(monkeypatch):
    """Sets PENSTOCK_CUDA_FALLBACK=1 after the process's one warning."""
    from penstock._src.base import devices as _devices

    monkeypatch.setenv("PENSTOCK_CUDA_FALLBACK", "1")
    monkeypatch.setattr(_devices, "_warned", True)


@pytest.fixture
def none(monkeypatch):
    monkeypatch.delenv("PENSTOCK_CUDA_FALLBACK", raising=False)


def test_with_the_cpu_fallback_a_gpu_script_trains_with_one_warning(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(TRAIN)
    ended = subprocess.run(
        [sys.executable, "-W", "always", script],
        env=dict(os.environ, PENSTOCK_CUDA_FALLBACK="1"),
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 0, ended.stderr
    warned = [line for line in ended.stderr.splitlines() if "PENSTOCK_CUDA_FALLBACK" in line]
    assert len(warned) == 1
    assert "train.py:8: UserWarning: Executor on CUDAPlace(0): programs run on the CPU" in warned[0]


@pytest.mark.parametrize("value", [None, "", "0"])
@pytest.mark.parametrize(
    "use",
    [
        lambda fluid: fluid.Executor(fluid.CUDAPlace(0)),
        lambda fluid: fluid.ParallelExecutor(use_cuda=True),
        lambda fluid: fluid.cuda_places(),
        lambda fluid: fluid.cuda_pinned_places(),
    ],
)
def test_without_the_cpu_fallback_the_error_names_its_variable(fluid, monkeypatch, use, value):
    if value is None:
        monkeypatch.delenv("PENSTOCK_CUDA_FALLBACK", raising=False)
    else:
        monkeypatch.setenv("PENSTOCK_CUDA_FALLBACK", value)
    with pytest.raises(NotImplementedError, match=r"with PENSTOCK_CUDA_FALLBACK=1 in the environment.*\[E-no-cuda\]"):
        use(fluid)


def test_lists_of_places_follow_the_environment(fluid, fallback, monkeypatch):
    monkeypatch.setenv("FLAGS_selected_gpus", "1,3")
    assert fluid.cuda_places() == [fluid.CUDAPlace(1), fluid.CUDAPlace(3)]
    assert fluid.cuda_places(2) == [fluid.CUDAPlace(2)]
    monkeypatch.setenv("CPU_NUM", "3")
    assert len(fluid.cuda_pinned_places()) == 3 and len(fluid.cuda_pinned_places(2)) == 2
    monkeypatch.setenv("CPU_NUM", "two")
    with pytest.raises(ValueError, match='CPU_NUM is "two"; it takes an integer from 1'):
        fluid.cuda_pinned_places()


@pytest.mark.parametrize(
    "visible, count",
    [(None, 3), ("", 0), ("-1", 0), ("0", 1), ("0,1", 2), ("1,-1,0", 1), ("0,1,2,3", 3), ("GPU-8a,MIG-2", 2)],
)
def test_gpus_are_counted_as_cuda_counts_them(fluid, none, monkeypatch, visible, count):
    monkeypatch.setattr(os, "listdir", lambda folder: ["nvidia0", "nvidia1", "nvidia12", "nvidiactl", "null"])
    if visible is None:
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    else:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert fluid.core.get_cuda_device_count() == count


def test_the_cpu_fallback_counts_as_one_gpu(fluid, fallback):
    assert fluid.core.get_cuda_device_count() == 1
