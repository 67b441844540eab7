"""Jobs whose processes run different programs: each process reports the difference in one line."""

import signal
import subprocess
import sys
import textwrap
import time

import job_script
import pytest
from penstock._src.launch.job import free_ports

WAIT_S = 180

JOB = textwrap.dedent("""
    import os, sys
    import numpy as np
    import penstock.fluid as fluid
    from job_script import program_of

    role, index = sys.argv[1], int(sys.argv[2])
    own = os.environ.get('OWN', '')
    endpoints = os.environ['ENDPOINTS']
    seed = 2 if own == 'seed' else 1
    fluid.default_main_program().random_seed = fluid.default_startup_program().random_seed = seed
    if own == 'process':    # settings that may differ between processes
        with fluid.program_guard(fluid.Program(), fluid.Program()):
            fluid.layers.relu(fluid.data('other', [None, 4]))
    x = fluid.data('x', [None, 8])
    y = fluid.data('y', [None, 1])
    start = fluid.initializer.Constant(0.5 if own == 'start' else 0.25)
    out = fluid.layers.fc(x, 1, param_attr=fluid.ParamAttr(name='w', initializer=start),
                          bias_attr=fluid.ParamAttr(name='b'), act='tanh' if own == 'model' else None)
    loss = fluid.layers.mean(fluid.layers.square_error_cost(out, y))
    if own == 'process':
        fluid.layers.mean(fluid.layers.abs(out - y))
        fluid.default_main_program().clone(for_test=True)
    rate = 0.2 if own == 'rate' else 0.1
    optimizer = fluid.optimizer.Adam(rate) if own == 'adam' else fluid.optimizer.SGD(rate)
    optimizer.minimize(loss)
    exe = fluid.Executor(fluid.CPUPlace())
    t = fluid.DistributeTranspiler()
    t.transpile(index if role == 'trainer' else 0, pservers=endpoints, trainers=2)
    program = program_of(role, index, exe, t)
    exe.run(fluid.default_startup_program())
    ones = {'x': np.ones((4, 8), 'float32'), 'y': np.ones((4, 1), 'float32')}
    for _ in range(3):
        exe.run(program, feed=ones, fetch_list=[loss])
    exe.close()
""")


def outcomes(folder, who=None, own=""):
    """{(role, index): (exit code, errors)} of a job of two pservers and two trainers, in which `who` is different."""
    script = folder / "job.py"
    script.write_text(JOB)
    environment = job_script.environment(
        OMP_NUM_THREADS="1",
        PENSTOCK_JOB_TOKEN="secret",
        ENDPOINTS=",".join(f"127.0.0.1:{port}" for port in free_ports(2)),
    )
    processes = {}
    try:
        for one in [(role, index) for role in ("pserver", "trainer") for index in range(2)]:
            processes[one] = subprocess.Popen(
                [sys.executable, str(script), one[0], str(one[1])],
                text=True,
                env=dict(environment, OWN=own if one == who else ""),
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
        end = time.monotonic() + WAIT_S
        errors = {
            one: process.communicate(timeout=max(1, end - time.monotonic()))[1] for one, process in processes.items()
        }
        return {one: (process.returncode, errors[one]) for one, process in processes.items()}
    finally:
        for process in processes.values():
            if process.poll() is None:
                process.kill()
                process.communicate()


@pytest.mark.parametrize(
    "who, own, here, there",
    [
        (
            ("pserver", 1),
            "adam",
            "updates b, w with adam, learning rate 0.1",
            "updates b, w with sgd, learning rate 0.1",
        ),
        (("pserver", 0), "seed", "has random seed 2", "has random seed 1"),
        (
            ("pserver", 1),
            "rate",
            "updates b, w with sgd, learning rate 0.2",
            "updates b, w with sgd, learning rate 0.1",
        ),
        (
            ("trainer", 1),
            "start",
            "starts w with fill_constant {value=0.25}",
            "starts w with fill_constant {value=0.5}",
        ),
        (("trainer", 0), "model", "trains by 12 ops, digest ", "trains by 14 ops, digest "),
    ],
)
def test_another_program_on_one_side_ends_all_roles_with_one_line(tmp_path, who, own, here, there):
    for one, (code, errors) in outcomes(tmp_path, who, own).items():
        told = [line for line in errors.splitlines() if "job: pserver " in line and here in line and there in line]
        assert code not in (0, -signal.SIGKILL) and told, (one, code, errors)
        assert told[0].index(here) < told[0].index(there)


def test_process_local_differences_are_accepted(tmp_path):
    results = outcomes(tmp_path, ("trainer", 1), "process")
    assert {code for code, _ in results.values()} == {0}, results
