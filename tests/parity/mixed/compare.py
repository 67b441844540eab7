"""Compares jobs whose trainers or pservers are Fluid 1.8.5's, and the others Penstock's, with Fluid alone.

    python tests/parity/mixed/compare.py [--steps 10] [--only penstock-fluid]

Runs under Penstock's Python. Fluid's is $PENSTOCK_FLUID_PYTHON, or python3.7 on the PATH, with paddlepaddle 1.8.5.
Every process listens on 127.0.0.1, has a time limit, and is killed at the end.
"""

import argparse
import os
import socket
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "random"))

import compare as random_programs  # noqa: E402  the search for Fluid's Python

SKIPPED, LIMIT_S = 77, 120
PSERVERS = 2
# (trainers' system, pservers' system), compared with ('fluid', 'fluid').
CLUSTERS = {
    "sync": [("fluid", "penstock"), ("penstock", "fluid"), ("penstock", "penstock")],
    "async": [("fluid", "penstock"), ("penstock", "fluid"), ("penstock", "penstock")],
}
# Asynchronous training with two trainers has different losses in each run, so it uses one trainer.
TRAINERS = {"sync": 2, "async": 1}
CASES = [("dense", "sync"), ("sparse", "sync"), ("dense", "async"), ("sparse", "async")]


def free_addresses(count):
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    addresses = [f"127.0.0.1:{each.getsockname()[1]}" for each in sockets]
    for each in sockets:
        each.close()
    return addresses


class Cluster:
    """The processes of a job, all of which end with the `with` block."""

    def __init__(self, pythons, model, mode, steps, folder):
        self.pythons, self.folder = pythons, folder
        self.shared = [
            "--endpoints",
            ",".join(free_addresses(PSERVERS)),
            "--trainers",
            str(TRAINERS[mode]),
            "--model",
            model,
            "--mode",
            mode,
            "--steps",
            str(steps),
        ]
        self.processes = []

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        for process, _ in self.processes:
            if process.poll() is None:
                process.kill()
            process.wait()

    def start(self, side, role, index):
        name = os.path.join(self.folder, f"{role}{index}")
        environment = dict(os.environ, PENSTOCK_WIRE="fluid", OMP_NUM_THREADS="1", FLAGS_rpc_deadline="60000")
        if side == "fluid":
            environment.pop("PYTHONPATH", None)
        command = [self.pythons[side], "-W", "ignore", os.path.join(HERE, "role.py"), side, role, str(index)]
        with open(name + ".log", "w") as log:
            process = subprocess.Popen(
                command + self.shared + ["--out", name + ".losses"], env=environment, stdout=log, stderr=log
            )
        self.processes.append((process, name))
        return process, name

    def finish(self, process, name, until):
        """'' if the process succeeds, otherwise the end of its log."""
        try:
            if process.wait(timeout=max(0.1, until - time.monotonic())) == 0:
                return ""
            how = f"exit code {process.returncode}"
        except subprocess.TimeoutExpired:
            how = "still running"
        with open(name + ".log") as log:
            return f"{os.path.basename(name)}: {how}\n{log.read()[-2000:]}"


def losses_of(pythons, trainers, pservers, model, mode, steps):
    """Each trainer's losses; raises RuntimeError with what went wrong."""
    with tempfile.TemporaryDirectory() as folder, Cluster(pythons, model, mode, steps, folder) as cluster:
        until = time.monotonic() + LIMIT_S
        servers = [cluster.start(pservers, "pserver", i) for i in range(PSERVERS)]
        started = [cluster.start(trainers, "trainer", i) for i in range(TRAINERS[mode])]
        for process, name in started:
            trouble = cluster.finish(process, name, until)
            if trouble:
                raise RuntimeError(trouble + "".join(cluster.finish(*each, time.monotonic()) for each in servers))
        # Fluid's own server waits forever when all trainers have completed.
        if pservers == "penstock":
            for process, name in servers:
                trouble = cluster.finish(process, name, until)
                if trouble:
                    raise RuntimeError(trouble)
        return [[float(line) for line in open(name + ".losses")] for _, name in started]


def difference(want, got, tolerance):
    """The largest difference relative to the loss; None if it is within the tolerance."""
    worst = max(abs(a - b) / max(abs(a), 1.0) for a, b in zip(sum(want, []), sum(got, [])))
    return worst if worst > tolerance or [len(each) for each in want] != [len(each) for each in got] else None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--only", help="one cluster, TRAINERS-PSERVERS")
    options = parser.parse_args()
    python = random_programs.fluids_python()
    if python is None:
        print("skipped: no Python 3.7 with paddlepaddle 1.8.5; set PENSTOCK_FLUID_PYTHON")
        return SKIPPED
    pythons = {"fluid": python, "penstock": sys.executable}
    bad = 0
    for model, mode in CASES:
        want = losses_of(pythons, "fluid", "fluid", model, mode, options.steps)
        print(f"{model} {mode}: Fluid alone {' '.join(f'{value:.6f}' for value in want[0])}")
        for trainers, pservers in CLUSTERS[mode]:
            if options.only not in (None, trainers + "-" + pservers):
                continue
            what = f"{model} {mode}: trainers of {trainers} on pservers of {pservers}"
            try:
                got = losses_of(pythons, trainers, pservers, model, mode, options.steps)
            except RuntimeError as error:
                print(f"{what}: FAILED\n{error}")
                bad += 1
                continue
            worst = difference(want, got, 1e-4)
            bad += worst is not None
            print(f"{what}: {('equal at 1e-4' if worst is None else f'DIFFERENT, by {worst:g}')}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
