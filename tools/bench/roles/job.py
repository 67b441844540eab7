"""Runs a job of real processes once and measures it.

measured = run_job(PENSTOCK, {'model': 'lenet', ...}, servers=2, limit_s=300)
measured['step_ms'], measured['cpu_s_gb']
"""

import collections
import contextlib
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import tempfile
import threading

from penstock._src.launch.job import free_ports

ROLE = pathlib.Path(__file__).resolve().parent / "role.py"
END_S = 10  # seconds that a server has to exit after its trainers

# A system under measurement: its display name, Python, library, and additional environment variables.
System = collections.namedtuple("System", "name python module environment")


def fluid_python(given=None):
    """A Python with Fluid 1.8.5: `given`, $PENSTOCK_FLUID_PYTHON or python3.7; None if Fluid is not installed there."""
    python = shutil.which(given or os.environ.get("PENSTOCK_FLUID_PYTHON") or "python3.7")
    if python is None:
        return None
    probe = subprocess.run(
        [python, "-W", "ignore", "-c", 'import paddle; assert paddle.__version__ == "1.8.5"'],
        capture_output=True,
        check=False,
    )
    return python if probe.returncode == 0 else None


class Places:
    """Runs the processes of a job on this host. Classes for other places have the same attributes."""

    def __init__(self, servers, trainers):
        self.servers, self.trainers = free_addresses(servers), free_addresses(trainers)

    def inside(self, role, index):
        """The prefix of the command of that process."""
        del role, index
        return []


def free_addresses(count):
    return [f"127.0.0.1:{port}" for port in free_ports(count)]


class Processes:
    """The processes of a job, all of which end with the `with` block."""

    def __init__(self, system, config, folder, places):
        self.system, self.config, self.folder, self.places = system, config, folder, places
        self.all = []

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        for process in self.all:
            if process.poll() is None:
                process.kill()
            process.communicate()

    def start(self, role, index):
        environment = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
        environment.update(CPU_NUM="1", OMP_NUM_THREADS="1", GLOG_v="0", PENSTOCK_JOB_TOKEN="bench")
        environment.update(self.system.environment)
        config = dict(self.config, module=self.system.module, role=role, index=index)
        with open(self.folder / (f"{role}{index}.log"), "w") as log:
            command = [
                *self.places.inside(role, index),
                self.system.python,
                "-W",
                "ignore",
                str(ROLE),
                json.dumps(config),
            ]
            process = subprocess.Popen(
                command, env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log
            )
        self.all.append(process)
        return process

    def kill(self):
        for process in self.all:
            process.kill()

    def last_words(self):
        logs = sorted(self.folder.iterdir())
        return "\n".join(f"{log.stem}: {log.read_text().strip()[-1000:]}" for log in logs)


def result_of(trainer):
    for line in trainer.stdout:
        if line.startswith("RESULT "):
            return json.loads(line[len("RESULT ") :])
    return None


def run_job(system, config, servers, limit_s, places=None):
    """Runs a job in `places`, by default on this host. Returns step_ms: the mean of the trainers' median step times;
    cpu_s_gb, cpu_ms: CPU seconds of all processes per GB moved, and milliseconds per step of all trainers;
    server_cpu_ms: CPU milliseconds of the servers per tensor pushed or pulled. RuntimeError: a process failed or the
    time limit passed; contains the processes' logs."""
    places = places or Places(servers, config["trainers"])
    config = dict(config, endpoints=places.servers, trainer_endpoints=places.trainers)
    with tempfile.TemporaryDirectory() as folder, Processes(system, config, pathlib.Path(folder), places) as processes:
        for index in range(servers):
            processes.start("pserver", index)
        trainers = [processes.start("trainer", index) for index in range(config["trainers"])]
        for trainer in trainers:
            with contextlib.suppress(BrokenPipeError):  # the trainer has failed: result_of() will return None
                trainer.stdin.write(json.dumps([process.pid for process in processes.all]) + "\n")
                trainer.stdin.flush()
        patience = threading.Timer(limit_s, processes.kill)
        patience.start()
        try:
            results = [result_of(trainer) for trainer in trainers]
        finally:
            patience.cancel()
        if None in results:
            raise RuntimeError(
                f"{system.name}: a trainer failed, or was not done within {limit_s} s:\n{processes.last_words()}"
            )
        for trainer in trainers:
            trainer.stdin.close()
            trainer.stdin = None
        for process in trainers + processes.all:  # Fluid's servers wait forever
            try:
                process.wait(timeout=END_S if system.module.startswith("penstock") or process in trainers else 0.1)
            except subprocess.TimeoutExpired:
                process.kill()
        return figures(results, servers, config["steps"])


def figures(results, servers, steps):
    cpu = results[0]["cpu_s"]
    moved_gb = 1e-9 * steps * sum(result["bytes"] for result in results)
    calls = steps * sum(result["calls"] for result in results)
    return {
        "step_ms": statistics.mean(statistics.median(result["step_ms"]) for result in results),
        "cpu_ms": 1e3 * sum(cpu) / steps,
        "cpu_s_gb": sum(cpu) / moved_gb,
        "server_cpu_ms": 1e3 * sum(cpu[:servers]) / calls if servers else 0.0,
        "gb_a_step": moved_gb / steps,
        "loss": results[0]["loss"],
    }
