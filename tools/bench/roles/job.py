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

from penstock.distributed.launch.job import free_ports

ROLE = pathlib.Path(__file__).resolve().parent / 'role.py'
END_S = 10    # for a server that has lost its trainers

# Whose processes: a name for people, the Python, the library, more of the environment.
System = collections.namedtuple('System', 'name python module environment')


def fluid_python(given=None):
    """A Python that has Fluid 1.8.5: `given`, $PENSTOCK_FLUID_PYTHON or python3.7; None if there is none."""
    python = shutil.which(given or os.environ.get('PENSTOCK_FLUID_PYTHON') or 'python3.7')
    if python is None:
        return None
    probe = subprocess.run([python, '-W', 'ignore', '-c', 'import paddle; assert paddle.__version__ == "1.8.5"'],
                           capture_output=True, check=False)
    return python if probe.returncode == 0 else None


class Places:
    """Where the processes of a job run: on this host. Another place has the same attributes."""

    def __init__(self, servers, trainers):
        self.servers, self.trainers = free_addresses(servers), free_addresses(trainers)

    def inside(self, role, index):
        """What the command of that process begins with."""
        del role, index
        return []


def free_addresses(count):
    return ['127.0.0.1:%d' % port for port in free_ports(count)]


class Processes:
    """Those of a job; none is left when the block ends."""

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
        environment = {name: value for name, value in os.environ.items() if not name.lower().endswith('_proxy')}
        environment.update(CPU_NUM='1', OMP_NUM_THREADS='1', GLOG_v='0', PENSTOCK_JOB_TOKEN='bench')
        environment.update(self.system.environment)
        config = dict(self.config, module=self.system.module, role=role, index=index)
        with open(self.folder / ('%s%d.log' % (role, index)), 'w') as log:
            command = [*self.places.inside(role, index), self.system.python, '-W', 'ignore', str(ROLE),
                       json.dumps(config)]
            process = subprocess.Popen(command, env=environment, text=True, stdin=subprocess.PIPE,
                                       stdout=subprocess.PIPE, stderr=log)
        self.all.append(process)
        return process

    def kill(self):
        for process in self.all:
            process.kill()

    def last_words(self):
        logs = sorted(self.folder.iterdir())
        return '\n'.join('%s: %s' % (log.stem, log.read_text().strip()[-1000:]) for log in logs)


def result_of(trainer):
    for line in trainer.stdout:
        if line.startswith('RESULT '):
            return json.loads(line[len('RESULT '):])
    return None


def run_job(system, config, servers, limit_s, places=None):
    """Runs it in `places`, by default on this host. step_ms: the trainers' median steps, on average; cpu_s_gb, cpu_ms:
    of all processes, for a GB moved and a step of all trainers; server_cpu_ms: of the servers, for a tensor pushed or
    pulled. RuntimeError: a process failed, or time is up, with what they said."""
    places = places or Places(servers, config['trainers'])
    config = dict(config, endpoints=places.servers, trainer_endpoints=places.trainers)
    with tempfile.TemporaryDirectory() as folder, Processes(system, config, pathlib.Path(folder), places) as processes:
        for index in range(servers):
            processes.start('pserver', index)
        trainers = [processes.start('trainer', index) for index in range(config['trainers'])]
        for trainer in trainers:
            with contextlib.suppress(BrokenPipeError):    # it has failed: it will have no result
                trainer.stdin.write(json.dumps([process.pid for process in processes.all]) + '\n')
                trainer.stdin.flush()
        patience = threading.Timer(limit_s, processes.kill)
        patience.start()
        try:
            results = [result_of(trainer) for trainer in trainers]
        finally:
            patience.cancel()
        if None in results:
            raise RuntimeError('%s: a trainer failed, or was not done within %d s:\n%s' %
                               (system.name, limit_s, processes.last_words()))
        for trainer in trainers:
            trainer.stdin.close()
            trainer.stdin = None
        for process in trainers + processes.all:    # Fluid's servers wait forever
            try:
                process.wait(timeout=END_S if system.module.startswith('penstock') or process in trainers else 0.1)
            except subprocess.TimeoutExpired:
                process.kill()
        return figures(results, servers, config['steps'])


def figures(results, servers, steps):
    cpu = results[0]['cpu_s']
    moved_gb = 1e-9 * steps * sum(result['bytes'] for result in results)
    calls = steps * sum(result['calls'] for result in results)
    return {
        'step_ms': statistics.mean(statistics.median(result['step_ms']) for result in results),
        'cpu_ms': 1e3 * sum(cpu) / steps,
        'cpu_s_gb': sum(cpu) / moved_gb,
        'server_cpu_ms': 1e3 * sum(cpu[:servers]) / calls if servers else 0.0,
        'gb_a_step': moved_gb / steps,
        'loss': results[0]['loss'],
    }
