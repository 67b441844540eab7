"""Averages of parameters in jobs: each trainer has those of one machine, applies them and continues."""

import textwrap

import numpy as np
import pytest
from test_jobs import Job

JOB = textwrap.dedent("""
    import os, sys
    import numpy as np
    import penstock.fluid as fluid
    from job_script import program_of
    L = fluid.layers

    role, index, out, steps = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
    trainers = 1 if role == 'local' else int(os.environ['TRAINERS'])
    main, startup = fluid.default_main_program(), fluid.default_startup_program()
    main.random_seed = startup.random_seed = 3
    x, ids = fluid.data('x', [None, 8]), fluid.data('ids', [None, 1], 'int64')
    row = L.reshape(fluid.embedding(ids, [6, 8], is_sparse='SPARSE' in os.environ, param_attr='table'), [-1, 8])
    out_of = L.fc(L.fc(x + row, 2400, act='tanh', param_attr='wide'), 1, param_attr='last')
    loss = L.mean(L.square(out_of - 1.0))
    test = main.clone(for_test=True)
    rate = L.exponential_decay(0.05, 2, 0.9)
    _, pairs = fluid.optimizer.Momentum(rate, 0.9).minimize(loss)
    if 'DECAY' in os.environ:
        for p, g in pairs:
            with main._optimized_guard([p, g]):
                L.assign(p * 0.99, p)
    if os.environ['KIND'] == 'ema':
        average = fluid.optimizer.ExponentialMovingAverage(0.9)
        average.update()
    elif os.environ['KIND'] == 'scheduled':
        steps_done = L.autoincreased_step_counter(counter_name='of_average', begin=1)
        average = fluid.optimizer.ExponentialMovingAverage(0.9, thres_steps=steps_done)
        average.update()
    else:
        average = fluid.optimizer.ModelAverage(1.0, min_average_window=2, max_average_window=3)
    exe, program = fluid.Executor(fluid.CPUPlace()), main
    if role != 'local':
        modes = {'sync_mode': False} if os.environ.get('MODE') == 'async' else {}
        t = fluid.DistributeTranspiler()
        t.transpile(index if role == 'trainer' else 0, pservers=os.environ['ENDPOINTS'], trainers=trainers, **modes)
        program = program_of(role, index, exe, t)
    exe.run(startup)

    def feed(step):
        random = np.random.RandomState(step)
        whole = {'x': random.rand(8, 8).astype('float32'), 'ids': random.randint(0, 6, (8, 1))}
        part = slice(index * 8 // trainers, (index + 1) * 8 // trainers)
        return {name: value[part] for name, value in whole.items()}

    whole = {'x': np.random.RandomState(9).rand(5, 8).astype('float32'), 'ids': np.arange(5).reshape(5, 1)}
    found = {}
    for step in range(steps):
        exe.run(program, feed=feed(step), fetch_list=[loss])
        if step % 2:
            with average.apply(exe):
                found['average%d' % step] = exe.run(test, feed=whole, fetch_list=[out_of])[0]
            found['restored%d' % step] = exe.run(test, feed=whole, fetch_list=[out_of])[0]
    np.savez(os.path.join(out, role + str(index)), **found)
    exe.close()
""")


def run(folder, trainers=2, **environment):
    return Job(folder, JOB).train_and_compare(trainers, **environment)


@pytest.mark.parametrize("kind, more", [("ema", {}), ("scheduled", {}), ("model", {}), ("ema", {"DECAY": "1"})])
def test_trainers_apply_and_restore_the_averages_of_one_machine(tmp_path, kind, more):
    saved, local = run(tmp_path, KIND=kind, **more)
    assert len(local) == 4
    for name, value in local.items():
        for one in saved:
            np.testing.assert_allclose(one[name], value, rtol=1e-4, atol=1e-6, err_msg=name)
    assert abs(local["average3"] - local["restored3"]).max() > 1e-4


def test_an_asynchronous_trainer_averages_received_values(tmp_path):
    (saved,), local = run(tmp_path, trainers=1, KIND="ema", MODE="async")
    for name, value in local.items():
        np.testing.assert_allclose(saved[name], value, rtol=1e-4, atol=1e-6, err_msg=name)


def test_averages_of_sparse_parameters_are_missing_on_trainers(tmp_path):
    job = Job(tmp_path, JOB)
    job.environment.update(KIND="ema", SPARSE="1", TRAINERS="1")
    try:
        job.start_all(trainers=1)
        results = job.wait()
    finally:
        job.kill_all()
    assert "apply: this process has no average of table" in results["trainer0"][2]
    assert "E-average-missing" in results["trainer0"][2]
