"""Each mode trains the demo's network on two pservers and two trainers, or on two and four ranks. The quick tests run
some modes once, above all those in which the order of updates is free. The slow tests run all modes; with pservers, all
of ten runs must succeed."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

DIGITS = pathlib.Path(__file__).resolve().parents[2] / "tools" / "demo" / "digits.py"
WAIT_S = 600
RUNS = 10
ACCURACY = 0.97  # on 360 images that no trainer has seen

# Late updates act like momentum, so modes with many late updates use no additional momentum (Mitliagkas et al.,
# Asynchrony begets momentum, 2016). A trainer may end before the other has begun, so each trains long enough to learn
# alone: after 20 epochs, one of seven steps of a lone trainer is below ACCURACY; after 45 epochs, none of 100.
LATE = ["--epochs", "50", "--rate", "0.05", "--momentum", "0"]
MODES = {
    "sync": [],
    "sync-communicator": ["--mode", "sync_communicator"],
    "async": ["--mode", "async", *LATE],
    "dc-asgd": ["--mode", "dc_asgd", *LATE],
    "staleness-1": ["--mode", "async", "--staleness", "1", *LATE],
    "half-async": ["--mode", "half_async", *LATE],
    "geo": ["--mode", "geo", *LATE],
    "async-communicator": ["--mode", "async_communicator", *LATE],
    "backup-trainers-1": ["--backup_trainers", "1", "--epochs", "20"],
    "fp16": ["--compression", "fp16"],
    "bf16": ["--compression", "bf16"],
    "two-bit": ["--compression", "two_bit 0.02 from 1024", "--epochs", "20"],
    "top-k": ["--compression", "top_k 0.05 from 1024"],
}
RANK_MODES = {
    "grad_allreduce": ["--mode", "grad_allreduce"],
    "grad_allreduce-rings": ["--mode", "grad_allreduce", "--rings", "2"],
    "grad_allreduce-dgc": ["--mode", "grad_allreduce", "--dgc"],
    "local_sgd": ["--mode", "local_sgd"],
    "local_sgd-4": ["--mode", "local_sgd", "--k_steps", "4"],
    "local_sgd-adaptive": ["--mode", "local_sgd", "--k_steps", "16", "--adaptive"],
    "nccl2": ["--mode", "nccl2"],
    "nccl2-rings": ["--mode", "nccl2", "--rings", "2"],
    "nccl2-norm": ["--mode", "nccl2", "--batch_norm"],
    "nccl2-dgc": ["--mode", "nccl2", "--dgc"],
}


def accuracies(folder, arguments, trainers=2, servers=2):
    """The final accuracies of all trainers."""
    roles = ["--worker_num", str(trainers)] + (["--server_num", str(servers)] if servers else [])
    result = subprocess.run(
        [
            sys.executable,
            "-m",
            "penstock.distributed.launch",
            *roles,
            "--log_dir",
            str(folder / "logs"),
            str(DIGITS),
            "--out",
            str(folder),
            *arguments,
        ],
        env=dict(os.environ, OMP_NUM_THREADS="1"),
        text=True,
        capture_output=True,
        timeout=WAIT_S,
    )
    assert result.returncode == 0, result.stderr
    return [json.loads((folder / f"trainer_{index}.json").read_text())["accuracy"] for index in range(trainers)]


@pytest.mark.parametrize("mode", ["local_sgd-adaptive", "nccl2-norm", "grad_allreduce-dgc"])
def test_ranks_learn_digits(tmp_path, mode):
    pytest.importorskip("sklearn")
    seen = accuracies(tmp_path, RANK_MODES[mode], servers=0)
    assert min(seen) >= ACCURACY, seen


@pytest.mark.slow
def test_the_devices_of_one_process_learn_digits(tmp_path):
    pytest.importorskip("sklearn")
    seen = accuracies(tmp_path, ["--mode", "single_process_multi_thread"], trainers=1, servers=0)
    assert min(seen) >= ACCURACY, seen


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize("mode", [*RANK_MODES, "nccl2-groups"])
def test_ranks_of_every_mode_learn_digits(tmp_path, mode, ranks):
    pytest.importorskip("sklearn")
    if mode == "nccl2-groups" and ranks == 2:
        pytest.skip("two ranks do not make several groups of several")
    arguments = ["--mode", "nccl2", "--group_ranks", "2"] if mode == "nccl2-groups" else RANK_MODES[mode]
    seen = accuracies(tmp_path, arguments, ranks, servers=0)
    print(f"{mode} on {ranks} ranks: accuracy {min(seen):.4f} to {max(seen):.4f}")
    assert min(seen) >= ACCURACY, seen


@pytest.mark.parametrize("mode", ["async", "dc-asgd", "staleness-1", "geo"])
def test_one_run_learns_digits(tmp_path, mode):
    pytest.importorskip("sklearn")
    seen = accuracies(tmp_path, MODES[mode])
    assert min(seen) >= ACCURACY, seen


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_ten_runs_learn_digits(tmp_path, mode, record_property):
    pytest.importorskip("sklearn")
    seen = []
    for run in range(RUNS):
        folder = tmp_path / str(run)
        folder.mkdir()
        seen.append(min(accuracies(folder, MODES[mode])))
    print(f"{mode}: accuracy {min(seen):.4f} to {max(seen):.4f}")
    record_property("accuracies", seen)
    assert min(seen) >= ACCURACY, seen


def test_the_demo_succeeds(tmp_path):
    done = subprocess.run(
        [sys.executable, str(DIGITS.with_name("demo.py")), "--out", str(tmp_path)],
        text=True,
        capture_output=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr
    assert "no parameter differs by more than" in done.stdout
