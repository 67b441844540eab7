"""How trainers end: when a trainer counts as done, and what the other processes of the job are told. Real processes."""

import textwrap

import pytest

SCRIPT = textwrap.dedent("""
    import multiprocessing, os, signal, sys, threading
    import numpy as np
    import penstock.fluid as fluid

    role, index, out, steps = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
    endpoints = os.environ['ENDPOINTS'].split(',')[:1]
    trainers = int(os.environ['TRAINERS'])
    x = fluid.data('x', [None, 4])
    loss = fluid.layers.mean(fluid.layers.fc(x, 1, param_attr='w'))
    fluid.optimizer.SGD(0.1).minimize(loss)
    t = fluid.DistributeTranspiler()
    t.transpile(index if role == 'trainer' else 0, pservers=','.join(endpoints), trainers=trainers)

    def start():
        fluid.Executor(fluid.CPUPlace()).run(fluid.default_startup_program())

    def train(end=None):
        exe = fluid.Executor(fluid.CPUPlace())
        for step in range(steps):
            exe.run(t.get_trainer_program(), feed={'x': np.ones((2, 4), 'float32')}, fetch_list=[loss])
            if step == 1 and end is not None:
                exec(end)
        return exe

    def start_and_train(end=None):
        start()
        train(end)

    if role == 'pserver':
        main, startup = t.get_pserver_programs(endpoints[0])
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(startup)
        exe.run(main)
    else:
        exec(os.environ['END%d' % index])
        print('over')
""")


def results_of(job, ends, steps=(4, 4)):
    """{role: (exit code, output, errors)} of a server and one trainer per end."""
    job.environment["TRAINERS"] = str(len(ends))
    job.start("pserver", 0, 0)
    for index, end in enumerate(ends):
        job.start("trainer", index, steps[index], **{f"END{index}": end})
    return job.wait()


DONE = {
    "executors are local to functions": "start_and_train()",
    "sys.exit(0)": "start_and_train(); sys.exit(0)",
    "in a thread": "one = threading.Thread(target=start_and_train); one.start(); one.join()",
    "in a child": 'one = multiprocessing.get_context("fork").Process(target=start_and_train); one.start(); one.join(); '
    "assert one.exitcode == 0",
    "closed, then an error": "start(); exe = train(); exe.close(); sys.exit(0)",
}


@pytest.mark.parametrize("end", DONE.values(), ids=DONE)
def test_a_normal_exit_completes_the_trainer(job, end):
    results = results_of(job, [end])
    assert {name: result[0] for name, result in results.items()} == {"pserver0": 0, "trainer0": 0}, results


NOT_DONE = {
    "sys.exit(3)": ('start_and_train("sys.exit(3)")', "ended with exit code 3"),
    "SystemExit(3)": ('start_and_train("raise SystemExit(3)")', "ended with exit code 3"),
    "a message": ("start_and_train(\"sys.exit('no data')\")", "ended with exit code 1"),
    "an exception": ('start_and_train("1 / 0")', "trainer 0"),
    "os._exit": ('start_and_train("os._exit(0)")', "trainer 0 is gone"),
    "a signal": ('start_and_train("os.kill(os.getpid(), signal.SIGTERM)")', "trainer 0 is gone"),
    "a thread": (
        'one = threading.Thread(target=start_and_train, args=["1 / 0"]); one.start(); one.join()',
        "an exception ended a thread",
    ),
    "a child": (
        'one = multiprocessing.get_context("fork").Process(target=start_and_train, args=["sys.exit(3)"]); '
        "one.start(); one.join(); assert one.exitcode == 3",
        "SystemExit ended its process",
    ),
}


@pytest.mark.parametrize("end, said", NOT_DONE.values(), ids=NOT_DONE)
def test_an_abnormal_exit_does_not_complete_the_trainer(job, end, said):
    server = results_of(job, [end])["pserver0"]
    assert server[0] == 1 and "PeerError" in server[2] and said in server[2], server


def test_closing_one_executor_does_not_end_another_training(job):
    end = (
        "first = fluid.Executor(fluid.CPUPlace()); first.run(fluid.default_startup_program()); "
        'exe = train(); first.close(); exe.run(t.get_trainer_program(), feed={"x": np.ones((2, 4), "float32")}); '
        'exe.close(); print("closed")'
    )
    results = results_of(job, [end])
    assert [results[name][0] for name in ("pserver0", "trainer0")] == [0, 0], results
    assert "closed" in results["trainer0"][1]


def test_an_early_end_is_reported_in_one_line(job):
    results = results_of(job, ["start(); train().close()", "start(); train().close()"], steps=(6, 2))
    assert {result[0] for result in results.values()} == {0}, results
    for name in ("pserver0", "trainer0"):
        assert results[name][2].count("trainer 1 completed at step 2;") == 1, results[name]
    assert "completed at step" not in results["trainer1"][2]


def test_trainers_ending_at_the_same_step_print_nothing(job):
    results = results_of(job, ["start_and_train()", "start_and_train()"])
    assert {result[0] for result in results.values()} == {0}, results
    assert all("completed at step" not in result[2] for result in results.values()), results


LOADING = '''
def load(name=None):
    """Parameters from a file or the network, in one of the ways that scripts use."""
    value = np.full((4, 1), VALUE, 'float32')
    if HOW == 'set':
        fluid.global_scope().find_var('w').get_tensor().set(value, fluid.CPUPlace())
    elif HOW == 'set_program_state':
        fluid.io.set_program_state(t.get_trainer_program(), {'w': value})
    else:
        folder = os.path.join(out, 'saved%d' % index)
        os.makedirs(folder, exist_ok=True)
        other = fluid.Scope()
        with fluid.scope_guard(other):
            other.var('w').get_tensor().set(value, fluid.CPUPlace())
            fluid.io.save_vars(None, folder, t.get_trainer_program(), vars=['w'])
        fluid.io.load_vars(None, folder, t.get_trainer_program(), vars=['w'])
    return fluid.Executor(fluid.CPUPlace())

def step(exe):
    return exe.run(t.get_trainer_program(), feed={'x': np.ones((2, 4), 'float32')})

def w():
    return np.array(fluid.global_scope().find_var('w').get_tensor()).ravel()
'''


def loading(body, how="load_vars", value="7"):
    return f"HOW = {how!r}; VALUE = {value}\n{LOADING}\n{textwrap.dedent(body)}"


# The gradient of w is 1 for each element, so a step of 0.1 makes 6.9 of 7.
LOAD_AND_STEP = """
start()
exe = load()
step(exe)
np.testing.assert_allclose(w(), 6.9, rtol=1e-6)
"""


@pytest.mark.parametrize("how", ["load_vars", "set_program_state", "set"])
def test_training_starts_from_values_loaded_before_it(job, how):
    results = results_of(job, [loading(LOAD_AND_STEP, how)] * 2)
    assert {result[0] for result in results.values()} == {0}, results


def test_loading_different_values_on_trainers_is_an_error(job):
    results = results_of(job, [loading(LOAD_AND_STEP), loading(LOAD_AND_STEP, value="8")])
    assert all(result[0] != 0 and "E-load-differs" in result[2] for result in results.values()), results


def test_loading_on_only_one_trainer_is_an_error(job):
    results = results_of(job, [loading(LOAD_AND_STEP), "start_and_train()"])
    assert all(result[0] != 0 and "E-load-differs" in result[2] for result in results.values()), results
    assert "trainer 0 set the value of w before its first step, trainer 1 did not" in results["pserver0"][2]


def test_a_load_after_the_first_step_is_an_error(job):
    late = loading("""
        start()
        exe = train()
        load()
        step(exe)
        """)
    results = results_of(job, [late])
    assert results["trainer0"][0] != 0 and "E-load-late" in results["trainer0"][2], results


def test_loading_the_current_values_is_accepted(job):
    """A script that inspects the model that it has just saved."""
    same = loading("""
        start()
        exe = train()
        folder = os.path.join(out, 'saved')
        fluid.io.save_persistables(exe, folder, t.get_trainer_program())
        fluid.io.load_persistables(exe, folder, t.get_trainer_program())
        step(exe)
        """)
    results = results_of(job, [same])
    assert {result[0] for result in results.values()} == {0}, results


def test_values_set_after_the_first_step_stay_local(job):
    late = loading(
        """
        start()
        exe = train()
        before = w()
        load()
        step(exe)
        np.testing.assert_allclose(w(), before - 0.1, rtol=1e-5)
        """,
        how="set",
    )
    results = results_of(job, [late])
    assert {result[0] for result in results.values()} == {0}, results
