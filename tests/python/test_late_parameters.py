"""Parameters may arrive after the run that has asked for them: everyone who reads them waits, and no byte differs."""

import os
import subprocess
import sys
import textwrap

import job_script
import numpy as np
import pytest
from penstock._src.launch.job import free_ports

WAIT_S = 180

# The parameter `wide` is cut in rows, the others are whole. Trainer 1 begins each step of GATED after trainer 0's run.
JOB = textwrap.dedent("""
    import os, sys
    import numpy as np
    import penstock
    import penstock.fluid as fluid
    from job_script import program_of

    role, index, folder, what = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]
    gated = [int(step) for step in os.environ.get('GATED', '').split(',') if step]
    endpoints = os.environ['ENDPOINTS']
    scope = fluid.global_scope()

    def gate(step):
        '''Trainer 0 opens it after the run of a step, and trainer 1 passes it before that.'''
        if step in gated:
            open(os.path.join(folder, 'gate'), 'w' if index == 0 else 'r').close()

    fluid.default_main_program().random_seed = fluid.default_startup_program().random_seed = 1
    x, y = fluid.data('x', [None, 4]), fluid.data('y', [None, 1])
    first = fluid.layers.fc(x, 8, act='relu', param_attr=fluid.ParamAttr(name='small'))
    hidden = fluid.layers.fc(first, 4000, act='tanh', param_attr=fluid.ParamAttr(name='wide'))
    loss = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(hidden, 1), y))
    test = fluid.default_main_program().clone(for_test=True)
    fluid.optimizer.Momentum(0.01, 0.9).minimize(loss)
    t = fluid.DistributeTranspiler()
    t.transpile(index if role == 'trainer' else 0, pservers=endpoints, trainers=2)
    exe = fluid.Executor(fluid.CPUPlace())
    program = program_of(role, index, exe, t)
    exe.run(fluid.default_startup_program())
    names = [p.name for p in program.all_parameters()]
    draws = np.random.RandomState(index)

    def run(step, fetches):
        if index == 1:
            gate(step)
        rows = 8 if index == 0 else 512
        feed = {'x': draws.rand(rows, 4).astype('float32'), 'y': np.ones((rows, 1), 'float32')}
        values = exe.run(program, feed=feed, fetch_list=fetches)
        if index == 0:
            gate(step)
        return values

    def held(name):
        return np.array(scope.find_var(name).get_tensor())
""")

READERS = JOB + textwrap.dedent("""
    seen = {}
    for step in range(8):
        fetches = [loss, 'wide'] if step == 4 else [loss]
        for name, value in zip(('loss', 'fetched'), run(step, fetches)):
            seen['%s %d' % (name, step)] = value
        if step == 1:
            seen.update(('held ' + name, held(name)) for name in names)
        if step == 2:
            feed = {'x': np.ones((2, 4), 'float32'), 'y': np.ones((2, 1), 'float32')}
            seen['tested'], = exe.run(test, feed=feed, fetch_list=[loss])
        if step == 3:
            saved = os.path.join(folder, 'saved %d' % index)
            fluid.io.save_params(exe, saved, program)
            for name in names:
                seen['saved ' + name] = np.fromfile(os.path.join(saved, name), 'uint8')
        if step == 5:
            held('small')  # and nobody reads the others
        if step == 6:
            scope.find_var('wide').get_tensor().set(held('wide') * 2, fluid.CPUPlace())
    seen.update(('last ' + name, held(name)) for name in names)
    np.savez(os.path.join(folder, 'trainer_%d.npz' % index), **seen)
    exe.close()
""")

VIEWS = JOB + textwrap.dedent("""
    run(0, [])
    view = scope.find_var('wide').get_tensor().__array__(copy=False)
    for step in range(1, 6):
        run(step, [])
        now = view.copy()
        assert (now == held('wide')).all(), step
    print('views agree')
    exe.close()
""")

# Its server ends while parameters are on their way: trainer 1 does not send its gradients.
GONE = JOB + textwrap.dedent("""
    if index == 1:
        sys.stdin.readline()
    run(0, [])
    print('ran', flush=True)
    sys.stdin.readline()
    for act in what.split():
        try:
            {'read': lambda: held('wide'), 'run': lambda: run(1, []), 'close': exe.close,
             'test': lambda: exe.run(test, feed={'x': np.ones((2, 4), 'float32'), 'y': np.ones((2, 1), 'float32')},
                                     fetch_list=[loss])}[act]()
            print(act, 'works')
        except penstock.PeerError as error:
            print(act, 'fails:', error)
""")


def start(folder, text, what="-", **environment):
    """Returns the processes of two pservers and two trainers."""
    folder.mkdir(exist_ok=True)
    script = folder / "job.py"
    script.write_text(text)
    if not (folder / "gate").exists():
        os.mkfifo(folder / "gate")
    ports = free_ports(2)
    who = [(role, index) for role in ("pserver", "trainer") for index in range(2)]
    return [
        subprocess.Popen(
            [sys.executable, str(script), role, str(index), str(folder), what],
            env=job_script.environment(ENDPOINTS=",".join(f"127.0.0.1:{port}" for port in ports), **environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for role, index in who
    ]


def end(processes):
    for process in processes:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            stream.close()


def run(folder, text, **environment):
    processes = start(folder, text, **environment)
    try:
        texts = [process.communicate(timeout=WAIT_S)[0] for process in processes]
    finally:
        end(processes)
    assert [process.returncode for process in processes] == [0] * 4, "\n".join(each[-3000:] for each in texts)
    return texts


def test_every_reader_sees_the_new_value(tmp_path):
    # At a gate, trainer 0's run must end before trainer 1 has sent its gradients.
    run(tmp_path / "late", READERS, GATED="0,1,2,3,5,6,7")
    run(tmp_path / "in_run", READERS, PENSTOCK_LATE_PARAMETERS="off")
    for index in range(2):
        late, in_run = (dict(np.load(tmp_path / each / f"trainer_{index}.npz")) for each in ("late", "in_run"))
        assert late.keys() == in_run.keys() and len(late) > 20
        for name, value in in_run.items():
            np.testing.assert_array_equal(late[name], value, err_msg=f"{name} of trainer {index}")


def test_an_array_that_shares_a_parameters_memory_is_never_stale(tmp_path):
    assert "views agree" in run(tmp_path / "views", VIEWS)[2]


@pytest.mark.parametrize("acts", ["read read run", "test run", "run", "close"])
def test_a_parameter_that_cannot_arrive_is_an_error_of_its_first_reader(tmp_path, acts):
    processes = start(tmp_path / "gone", GONE, acts, PENSTOCK_RECONNECT_S="0")
    trainer = processes[2]
    try:
        assert any(line == "ran\n" for line in iter(trainer.stdout.readline, ""))
        for server in processes[:2]:
            server.kill()
        said = trainer.communicate("go\n", timeout=WAIT_S)[0]
    finally:
        end(processes)
    lines = said.splitlines()
    assert any(line.startswith(f"{acts.split()[0]} fails: ") and "127.0.0.1:" in line for line in lines), said
    assert ("read works" in lines) == (acts == "read read run"), said
    if "run" in acts:
        assert any(line.startswith("run fails: ") for line in lines), said
