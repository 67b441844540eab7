"""The rates of every learning-rate schedule: on one machine, and on the servers of a job of processes."""

import textwrap

import numpy as np
import pytest
import rates
from test_jobs import Job

STEPS = 20

# All schedules at once: each parameter has an optimizer of its own.
JOB = textwrap.dedent("""
    import os, sys
    import numpy as np
    import penstock.fluid as fluid
    from job_script import program_of
    from rates import BY_FORMULA, MULTIPLIERS, TOGETHER

    role, index, out, steps = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
    x = fluid.data('x', [None, 1])
    params = []
    for name in TOGETHER:
        attr = fluid.ParamAttr(name=name, initializer=fluid.initializer.Constant(0.0), learning_rate=MULTIPLIERS[name])
        loss = fluid.layers.mean(fluid.layers.fc(x, 1, param_attr=attr, bias_attr=False))
        fluid.optimizer.SGD(BY_FORMULA[name][0](fluid.layers)).minimize(loss)
    exe = fluid.Executor(fluid.CPUPlace())
    t = fluid.DistributeTranspiler()
    t.transpile(index if role == 'trainer' else 0, pservers=os.environ['ENDPOINTS'], trainers=2)
    program = program_of(role, index, exe, t)
    exe.run(fluid.default_startup_program())
    feed = {'x': np.full((2, 1), 2.0 * index, 'float32')}  # the gradient of each parameter is 1
    weights = [exe.run(program, feed=feed, fetch_list=TOGETHER) for _ in range(steps)]
    np.save(os.path.join(out, 'weights%d.npy' % index), np.array(weights).reshape(steps, -1))
    exe.close()
""")


@pytest.mark.parametrize("name", rates.BY_FORMULA)
def test_twenty_learning_rates_equal_the_formula(fluid, name):
    make, formula = rates.BY_FORMULA[name]
    rate = make(fluid.layers)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    got = [exe.run(fetch_list=[rate])[0].item() for _ in range(STEPS)]
    np.testing.assert_allclose(got, [formula(s) for s in range(STEPS)], rtol=2e-5, atol=1e-7)


@pytest.fixture
def job(tmp_path):
    job = Job(tmp_path, JOB)
    yield job
    job.kill_all()


def test_server_learning_rates_equal_the_formulas(job):
    job.start_all(steps=STEPS)
    job.wait_well()
    expected = np.array(
        [[rates.MULTIPLIERS[name] * rates.BY_FORMULA[name][1](s) for name in rates.TOGETHER] for s in range(STEPS)]
    )
    for index in range(2):
        weights = np.load(job.folder / (f"weights{index}.npy"))
        np.testing.assert_allclose(weights, -np.cumsum(expected, axis=0), rtol=1e-4, atol=1e-6)
