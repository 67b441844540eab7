"""Running programs: feeds and fetches, errors, Ctrl-C."""

import signal
import subprocess
import sys
import textwrap
import threading

import numpy as np
import penstock
import pytest


def regression(fluid):
    x = fluid.data("x", [None, 13])
    y = fluid.data("y", [None, 1])
    prediction = fluid.layers.fc(x, 1)
    loss = fluid.layers.mean(fluid.layers.square_error_cost(prediction, y))
    return prediction, loss


def batch(rows=8):
    random = np.random.RandomState(0)
    x = random.rand(rows, 13).astype("float32")
    return {"x": x, "y": x.sum(axis=1, keepdims=True)}


def test_a_net_learns_and_numpy_agrees_on_a_step(fluid):
    _, loss = regression(fluid)
    fluid.optimizer.SGD(0.01).minimize(loss)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    weight = np.array(fluid.global_scope().find_var("fc_0.w_0").get_tensor())
    feed = batch()
    (first,) = exe.run(feed=feed, fetch_list=[loss])
    error = feed["x"] @ weight - feed["y"]
    assert first.shape == (1,) and first.dtype == np.float32
    np.testing.assert_allclose(first[0], np.mean(error**2), rtol=1e-5)
    stepped = weight - 0.01 * 2 * feed["x"].T @ error / len(error)
    np.testing.assert_allclose(np.array(fluid.global_scope().find_var("fc_0.w_0").get_tensor()), stepped, rtol=1e-4)
    for _ in range(200):
        (last,) = exe.run(feed=feed, fetch_list=[loss.name])
    assert last[0] < 0.1 * first[0]
    exe.close()


def test_a_fetched_array_keeps_its_values_when_the_program_runs_again(fluid):
    _, loss = regression(fluid)
    fluid.optimizer.SGD(0.1).minimize(loss)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    first = exe.run(feed=batch(), fetch_list=[loss, "fc_0.w_0"])
    kept = [value.copy() for value in first]
    exe.run(feed=batch(), fetch_list=[loss, "fc_0.w_0"])
    for now, before in zip(first, kept):
        np.testing.assert_array_equal(now, before)


def test_feeding_accepts_any_array_and_does_not_change_it(fluid):
    x = fluid.data("x", [None, 1024])
    out = fluid.layers.scale(fluid.layers.relu(x), 2.0)
    exe = fluid.Executor()
    whole = np.arange(-4096, 4096, dtype="float32").reshape(4, 2048)
    for fed in (
        whole[:, :1024],
        np.ascontiguousarray(whole[:, 1024:]),
        whole[:, :1024].astype("float64"),
        whole[:, :1024].tolist(),
    ):
        before = np.array(fed)
        (got,) = exe.run(feed={"x": fed}, fetch_list=[out])
        np.testing.assert_array_equal(got, 2 * np.maximum(np.asarray(fed, "float32"), 0))
        np.testing.assert_array_equal(np.array(fed), before)


def resizer(array):
    """A function of a program that tries to take an array's memory away in the middle of a run."""

    def take(_):
        with pytest.raises(ValueError, match="cannot resize"):
            array.resize((1, 1), refcheck=False)
        return np.zeros([1], "float32")

    return take


def test_an_array_keeps_its_memory_while_a_run_reads_it(fluid):
    x = fluid.data("x", [None, 1024])
    tried = fluid.default_main_program().current_block().create_var(name="tried", shape=[1], dtype="float32")
    whole = np.ones((20, 1024), "float32")
    fluid.layers.py_func(resizer(whole), x, tried)
    out = fluid.layers.reduce_sum(x)
    exe = fluid.Executor()
    for fed in (whole, whole[4:], whole.reshape(-1, 2048)[:8].reshape(16, 1024)):
        (got,) = exe.run(feed={"x": fed}, fetch_list=[out])
        assert got[0] == fed.size
    whole.resize((1, 1), refcheck=False)  # afterwards it is the caller's again


def test_fed_and_fetched_values_are_copies(fluid):
    x = fluid.data("x", [None, 1024])
    fed = np.ones((2000, 1024), "float32")
    (got,) = fluid.Executor().run(feed={"x": fed}, fetch_list=[x])
    fed[:] = 2
    fed.resize((1, 1), refcheck=False)
    assert (got == 1).all()


@pytest.mark.parametrize("dtype", ["float32", "int64", "uint8"])
def test_memory_not_owned_by_numpy_is_copied(fluid, dtype):
    """The owner may free the array during the run, and may change an index after it was checked."""
    x = fluid.data("x", [None, 1024], dtype)
    copied = fluid.default_main_program().current_block().create_var(name="copied", shape=[-1, 1024], dtype=dtype)
    memory = bytearray(np.ones((8, 1024), dtype).tobytes())
    fed = np.ndarray([8, 1024], dtype, buffer=memory)

    def change(given):
        fed[:] = 7
        return np.array(given)

    fluid.layers.py_func(change, x, copied)
    got = fluid.Executor().run(feed={"x": fed}, fetch_list=[fluid.layers.cast(x, "float32"), copied])
    for values in got:
        assert (values == 1).all()


def writes(fluid):
    """Operations of a function on the scope of the run that calls it: (operation, whether it is allowed)."""
    scope, w = fluid.global_scope(), fluid.global_scope().find_var("w")
    kept = np.array(w.get_tensor())
    w.get_tensor().set(np.full([3, 2], 2, "float32"), None)
    twos = fluid.io.save_vars(None, None, vars=["w"])
    w.get_tensor().set(kept, None)
    return {
        "other values": (lambda: w.get_tensor().set(np.full([3, 2], 2, "float32"), None), True),
        "other values of a file": (lambda: fluid.io.load_vars(None, None, vars=["w"], filename=twos), True),
        "another shape": (lambda: w.get_tensor().set(np.zeros([1, 1], "float32"), None), False),
        "another type": (lambda: w.get_tensor().set(np.zeros([3, 2], "float64"), None), False),
        "sequences": (lambda: w.get_tensor().set_lod([[0, 3]]), False),
        "gone": (lambda: scope.erase("w"), False),
        "a new variable": (lambda: scope.var("new").get_tensor().set(np.zeros([4], "float32"), None), True),
        "rows": (lambda: scope.find_var("rows").get_selected_rows().set_rows([1]), False),
        "height": (lambda: scope.find_var("rows").get_selected_rows().set_height(1), False),
        "of a scope below": (lambda: scope.new_scope().var("w").get_tensor().set(np.zeros([1], "float32"), None), True),
    }


@pytest.mark.parametrize(
    "what",
    [
        "other values",
        "other values of a file",
        "another shape",
        "another type",
        "sequences",
        "gone",
        "a new variable",
        "rows",
        "height",
        "of a scope below",
    ],
)
def test_variables_cannot_change_type_during_a_run(fluid, what):
    x = fluid.data("x", [None, 3])
    w = fluid.layers.create_global_var([3, 2], 1.0, "float32", persistable=True, name="w")
    done = fluid.default_main_program().current_block().create_var(name="done", shape=[1], dtype="float32")
    attempts, seen = [], []

    def attempt(_):
        for one in attempts:
            try:
                one()
            except penstock.StateError as error:
                seen.append(str(error))
        return np.zeros([1], "float32")

    fluid.layers.py_func(attempt, x, done)
    out = fluid.layers.mul(x, w)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    rows = fluid.global_scope().var("rows").get_selected_rows()
    rows.get_tensor().set(np.zeros([1, 2], "float32"), None)
    rows.set_rows([0])
    exe.run(feed={"x": np.ones([5, 3], "float32")}, fetch_list=[out])
    write, allowed = writes(fluid)[what]
    attempts.append(write)
    (got,) = exe.run(feed={"x": np.ones([5, 3], "float32")}, fetch_list=[out])
    assert (got == (6 if what.startswith("other values") else 3)).all()
    assert len(seen) == (not allowed) and all("a run is in progress" in text for text in seen)
    write()  # afterwards anything goes


@pytest.mark.parametrize(
    "feed, says", [({}, "x"), ({"x": np.zeros((2, 12), "float32"), "y": np.zeros((2, 1), "float32")}, "x")]
)
def test_wrong_feeds_are_reported(fluid, feed, says):
    _, loss = regression(fluid)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    with pytest.raises((penstock.ProgramError, penstock.StateError)) as error:
        exe.run(feed=feed, fetch_list=[loss])
    assert says in str(error.value)


def test_unknown_feeds_are_ignored_with_a_warning(fluid):
    _, loss = regression(fluid)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    feed = {"x": np.zeros((2, 13), "float32"), "y": np.zeros((2, 1), "float32"), "yy": np.zeros(1, "float32")}
    with pytest.warns(UserWarning, match="the program has no variable yy, which is ignored; did you mean y"):
        exe.run(feed=feed, fetch_list=[loss])
    del feed["yy"], feed["y"]
    pruned = fluid.default_main_program()._prune([fluid.default_main_program().global_block().ops[1].output("Out")[0]])
    with pytest.warns(UserWarning, match="no variable label"):
        exe.run(pruned, feed=dict(feed, label=None), fetch_list=[])


def test_feeds_and_names_of_none_are_reported(fluid):
    _, loss = regression(fluid)
    with pytest.raises(TypeError, match="the value of x is None"):
        fluid.Executor().run(feed={"x": None}, fetch_list=[loss])
    with pytest.raises(TypeError, match="or results of minimize, not 3"):
        fluid.Executor().run(feed={}, fetch_list=[3])


def test_a_wrong_element_type_of_a_tensor_is_reported(fluid):
    _, loss = regression(fluid)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    wrong = fluid.create_lod_tensor(np.zeros((2, 13), "float64"), [[2]], fluid.CPUPlace())
    with pytest.raises(penstock.ProgramError, match="f64"):
        exe.run(feed={"x": wrong, "y": np.zeros((2, 1), "float32")}, fetch_list=[loss])


def test_running_before_the_startup_program_is_reported(fluid):
    _, loss = regression(fluid)
    with pytest.raises(penstock.StateError, match="fc_0.w_0"):
        fluid.Executor().run(feed=batch(), fetch_list=[loss])


def test_running_a_closed_executor_is_reported(fluid):
    exe = fluid.Executor()
    exe.close()
    exe.close()
    with pytest.raises(penstock.StateError, match="closed"):
        exe.run(fluid.default_startup_program())


def test_scope_tensors_can_be_read_and_set(fluid):
    tensor = fluid.global_scope().var("v").get_tensor()
    assert not tensor._is_initialized()
    tensor.set(np.arange(6, dtype="int64").reshape(2, 3), fluid.CPUPlace())
    assert tensor.shape() == [2, 3]
    copy = np.array(tensor)
    tensor.set(np.zeros((2, 3), "int64"), fluid.CPUPlace())
    assert copy.dtype == np.int64 and copy.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert fluid.global_scope().find_var("nobody") is None
    fluid.global_scope().erase("v")
    with pytest.raises(penstock.StateError, match="v is no longer"):
        tensor.shape()
    child = fluid.global_scope().new_scope()
    child.var("w")
    assert fluid.global_scope().find_var("w") is None


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int16", "int32", "int64", "float16", "float32", "float64"])
def test_every_element_type_goes_through_a_tensor(fluid, dtype):
    values = np.array([[0, 1], [1, 0], [1, 1]]).astype(dtype)
    tensor = fluid.LoDTensor()
    tensor.set(values, fluid.CPUPlace())
    back = np.array(tensor)
    assert back.dtype == values.dtype
    np.testing.assert_array_equal(back, values)


def test_lod_tensors_convert_lengths_and_offsets(fluid):
    tensor = fluid.create_lod_tensor(np.zeros((5, 1), "float32"), [[2, 3]], fluid.CPUPlace())
    assert tensor.lod() == [[0, 2, 5]] and tensor.recursive_sequence_lengths() == [[2, 3]]
    with pytest.raises(ValueError, match="do not cover"):
        fluid.create_lod_tensor(np.zeros((5, 1), "float32"), [[2, 2]], fluid.CPUPlace())


def test_a_data_feeder_makes_the_feed(fluid):
    image = fluid.layers.data("image", [1, 2, 2])
    label = fluid.layers.data("label", [1], dtype="int64")
    feed = fluid.DataFeeder([image, label], fluid.CPUPlace()).feed([(np.zeros(4), 3), (np.ones(4), 4)])
    assert np.array(feed["image"]).shape == (2, 1, 2, 2)
    assert np.array(feed["label"]).tolist() == [[3], [4]] and np.array(feed["label"]).dtype == np.int64


LONG_RUN = textwrap.dedent("""
    import sys, threading
    import numpy as np
    import penstock.fluid as fluid
    begun, ended = threading.Event(), threading.Event()
    def begin(x):
        begun.set()
        return np.array(x)
    x = fluid.data('x', [1200, 1200])
    h = fluid.default_main_program().global_block().create_var(name='h', shape=[1200, 1200], dtype='float32')
    fluid.layers.py_func(begin, x, h)
    for i in range(6000):
        h = fluid.layers.matmul(h, x)
    loss = fluid.layers.mean(h)
    exe = fluid.Executor()
    def watch():
        begun.wait()
        print('too late' if ended.is_set() else 'running', flush=True)
    threading.Thread(target=watch, daemon=True).start()
    try:
        exe.run(feed={'x': np.zeros((1200, 1200), 'float32')}, fetch_list=[loss])
        ended.set()
    except KeyboardInterrupt:
        print('interrupted', flush=True)
        sys.exit(7)
""")


def test_ctrl_c_stops_a_run_and_not_other_threads(tmp_path):
    script = tmp_path / "long.py"
    script.write_text(LONG_RUN)
    process = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == "running\n"  # printed by another thread during the run
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=120)
    finally:
        process.kill()
    assert process.returncode == 7
    assert out == "interrupted\n"


# Nothing in it waits, so it runs on the calling thread.
LONG_PLAIN_RUN = textwrap.dedent("""
    import signal, sys, threading
    import numpy as np
    import penstock.fluid as fluid

    x = fluid.data('x', [1200, 1200])
    h = x
    for i in range(6000):
        h = fluid.layers.matmul(h, x)
    loss = fluid.layers.mean(h)
    exe = fluid.Executor()
    main_thread = threading.get_ident()
    signal.signal(signal.SIGUSR1, lambda number, frame: print('handled', flush=True))
    def watch():
        while sys._current_frames()[main_thread].f_code.co_name != 'run':
            pass
        print('running', flush=True)
    threading.Thread(target=watch, daemon=True).start()
    try:
        exe.run(feed={'x': np.zeros((1200, 1200), 'float32')}, fetch_list=[loss])
        print('too late', flush=True)
    except KeyboardInterrupt:
        print('interrupted', flush=True)
""")


def test_ctrl_c_stops_a_run_on_the_calling_thread(tmp_path):
    script = tmp_path / "long.py"
    script.write_text(LONG_PLAIN_RUN)
    process = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == "running\n"
        process.send_signal(signal.SIGUSR1)  # a handler that returns: the run goes on
        assert process.stdout.readline() == "handled\n"
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "interrupted\n"
    finally:
        process.kill()
        process.communicate()


def test_two_threads_may_run_different_programs_at_once(fluid):
    programs = []
    for factor in (2.0, 3.0):
        program = fluid.Program()
        with fluid.program_guard(program):
            programs.append((program, fluid.layers.scale(fluid.data("x", [4]), factor).name))
    exe = fluid.Executor()
    x = np.ones(4, "float32")
    results = {}

    def run(which):
        program, name = programs[which]
        results[which] = [exe.run(program, feed={"x": x}, fetch_list=[name])[0][0] for _ in range(200)]

    threads = [threading.Thread(target=run, args=(which,)) for which in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {0: [2.0] * 200, 1: [3.0] * 200}


def test_sequences_that_do_not_cover_a_tensor_are_an_error(fluid):
    tensor = fluid.LoDTensor()
    tensor.set(np.zeros((3, 1), "float32"), fluid.CPUPlace())
    for lod in ([[0, 2]], [[0, 2, 1, 3]], [[1, 3]], [[0, 2], [0, 3]]):
        with pytest.raises(ValueError, match="the sequences do not cover the 3 rows of the tensor"):
            tensor.set_lod(lod)
    with pytest.raises(ValueError, match="do not cover"):
        tensor.set_recursive_sequence_lengths([[1, 1]])
    tensor.set_recursive_sequence_lengths([[2], [1, 2]])
    assert tensor.lod() == [[0, 2], [0, 1, 3]]


def test_lod_levels_are_checked_before_rows_exist(fluid):
    tensor = fluid.LoDTensor()
    for lengths in ([[], [1], [3]], [[0], [2], [3]], [[2], [1]], [[]]):
        with pytest.raises(ValueError, match="the levels of sequences do not fit together"):
            tensor.set_recursive_sequence_lengths(lengths)
    tensor.set_recursive_sequence_lengths([[2, 1], [1, 0, 2]])
    tensor.set(np.zeros((3, 1), "float32"), fluid.CPUPlace())
    assert tensor.has_valid_recursive_sequence_lengths()
    with pytest.raises((ValueError, AssertionError), match="do not match"):
        fluid.create_lod_tensor([[1, 2, 3], [4]], [[2, 2]], fluid.CPUPlace())


def test_tensors_convert_by_dlpack(fluid):
    array = np.arange(6, dtype="int64").reshape(2, 3)
    tensor = fluid.create_lod_tensor(array, [[2]], fluid.CPUPlace())
    back = fluid.core.from_dlpack(tensor._to_dlpack())
    assert isinstance(back, fluid.core.Tensor) and np.array_equal(back, array) and back.lod() == []
    tensor.set(array + 1, fluid.CPUPlace())
    assert np.array_equal(back, array)  # a copy
    assert np.array_equal(fluid.core.from_dlpack(array[:, ::-1]), array[:, ::-1])
    with pytest.raises(TypeError, match="from_dlpack takes a DLPack capsule or an object that offers one, not 3"):
        fluid.core.from_dlpack(3)


def test_a_repeated_run_does_not_inspect_each_op(fluid, monkeypatch):
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()):
        out = fluid.layers.scale(fluid.data("x", [2]), 2.0)
    executor = fluid.Executor(fluid.CPUPlace())
    x = np.array([1, 2], "float32")
    executor.run(main, feed={"x": x}, fetch_list=[out])
    monkeypatch.setattr(type(main.global_block()), "ops", property(lambda block: pytest.fail("the ops were listed")))
    assert np.array_equal(executor.run(main, feed={"x": x}, fetch_list=[out])[0], 2 * x)


@pytest.mark.parametrize("rank", [8, 9, 12])
def test_tensors_of_many_dimensions_are_supported(fluid, rank):
    main = fluid.Program()
    shape = [1] * (rank - 2) + [2, 3]
    with fluid.program_guard(main, fluid.Program()):
        x = fluid.data("x", shape)
        out = fluid.layers.elementwise_add(fluid.layers.scale(x, 2.0), x)
        flat = fluid.layers.reshape(out, [3, 2])
    array = np.arange(6, dtype="float32").reshape(shape)
    for _ in range(2):
        sums, rows = fluid.Executor(fluid.CPUPlace()).run(main, feed={"x": array}, fetch_list=[out, flat])
        assert out.shape == tuple(shape) and np.array_equal(sums, 3 * array)
        assert np.array_equal(rows, (3 * array).reshape(3, 2))
