"""Conditional and repeated blocks, arrays, and RNNs: their values."""

import numpy as np
import pytest


def started(fluid):
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    return exe


def value_of(fluid, name):
    return np.array(fluid.global_scope().find_var(name).get_tensor())


def sequences(fluid, rows, lengths):
    tensor = fluid.create_lod_tensor(rows, [lengths], fluid.CPUPlace())
    return tensor


def test_a_dynamic_rnn_runs_each_sequence_for_its_length(fluid):
    L = fluid.layers
    x = fluid.data("x", [None, 1], lod_level=1)
    rnn = L.DynamicRNN()
    with rnn.block():
        word = rnn.step_input(x)
        before = rnn.memory(shape=[1], value=10.0)
        total = L.elementwise_add(word, before)
        rnn.update_memory(before, total)
        rnn.output(total)
    out = rnn()
    rows = np.arange(1, 7, dtype="float32").reshape(6, 1)
    (got,) = started(fluid).run(feed={"x": sequences(fluid, rows, [1, 3, 2])}, fetch_list=[out], return_numpy=False)
    np.testing.assert_allclose(np.array(got).ravel(), [11, 12, 15, 19, 15, 21])
    assert got.recursive_sequence_lengths() == [[1, 3, 2]]


def test_a_dynamic_rnn_learns(fluid):
    L = fluid.layers
    x = fluid.data("x", [None, 2], lod_level=1)
    x.stop_gradient = False
    rnn = L.DynamicRNN()
    with rnn.block():
        word = rnn.step_input(x)
        before = rnn.memory(shape=[3])
        state = L.fc([word, before], 3, act="tanh")
        rnn.update_memory(before, state)
        rnn.output(state)
    loss = L.mean(L.square(rnn()))
    fluid.optimizer.SGD(0.5).minimize(loss)
    exe = started(fluid)
    feed = {"x": sequences(fluid, np.random.RandomState(0).randn(6, 2).astype("float32"), [1, 3, 2])}
    losses = [exe.run(feed=feed, fetch_list=[loss])[0].item() for _ in range(40)]
    assert losses[-1] < 0.5 * losses[0]


def static_rnn(fluid, x, hidden):
    L = fluid.layers
    rnn = L.StaticRNN()
    with rnn.step():
        word = rnn.step_input(x)
        before = rnn.memory(shape=[-1, hidden], batch_ref=word)
        state = L.fc([word, before], hidden, act="tanh", bias_attr=False)
        rnn.update_memory(before, state)
        rnn.step_output(state)
    return rnn()


def test_a_static_rnn_runs_per_row_and_its_gradient_matches_differences(fluid):
    L = fluid.layers
    x = fluid.data("x", [4, 2, 3])
    x.stop_gradient = False
    loss = L.mean(L.square(static_rnn(fluid, x, 5)))
    grads = {param.name: grad for param, grad in fluid.backward.append_backward(loss)}
    exe = started(fluid)
    rows = np.random.RandomState(1).randn(4, 2, 3).astype("float32")
    names = sorted(grads)
    weights = [value_of(fluid, name) for name in names]
    fetched = exe.run(feed={"x": rows}, fetch_list=[loss, "x@GRAD"] + [grads[name] for name in names])

    def expected(rows, weights):
        state, total = np.zeros((2, 5)), 0.0
        by_height = {weight.shape[0]: weight for weight in weights}
        for row in rows:
            state = np.tanh(row @ by_height[3] + state @ by_height[5])
            total += (state**2).sum()
        return total / (4 * 2 * 5)

    assert fetched[0].item() == pytest.approx(expected(rows, weights), rel=1e-5)
    arguments = [rows.astype("float64")] + [weight.astype("float64") for weight in weights]
    for which, got in enumerate(fetched[1:]):
        moved = arguments[which]
        for at in np.ndindex(moved.shape):
            losses = []
            for step in (1e-5, -1e-5):
                moved[at] += step
                losses.append(expected(arguments[0], arguments[1:]))
                moved[at] -= step
            assert got[at] == pytest.approx((losses[0] - losses[1]) / 2e-5, abs=1e-5), (which, at)


def test_a_loop_propagates_gradients_through_its_iterations(fluid):
    L = fluid.layers
    x = fluid.data("x", [2, 3])
    x.stop_gradient = False
    i, n = L.fill_constant([1], "int64", 0), L.fill_constant([1], "int64", 3)
    state = L.assign(x)
    _, state = L.while_loop(lambda i, s: L.less_than(i, n), lambda i, s: [L.increment(i), L.square(s)], [i, state])
    fluid.backward.append_backward(L.mean(state))
    rows = np.linspace(0.5, 1.5, 6, dtype="float32").reshape(2, 3)
    for _ in range(2):
        (got,) = started(fluid).run(feed={"x": rows}, fetch_list=["x@GRAD"])
        np.testing.assert_allclose(got, 8 * rows**7 / 6, rtol=1e-5)


def test_a_value_overwritten_before_its_use_in_a_loop_is_refused(fluid):
    L = fluid.layers
    x = fluid.data("x", [2])
    x.stop_gradient = False
    state = L.assign(x)
    more = L.less_than(L.fill_constant([1], "float32", 0.0), L.fill_constant([1], "float32", 1.0))
    with L.While(more).block():
        L.assign(L.scale(state, 2.0), state)
        L.assign(L.square(state), state)
    with pytest.raises(NotImplementedError, match="the gradient of square needs .* as it is here") as error:
        fluid.backward.append_backward(L.mean(state))
    assert error.value.id == "E-backward-overwritten"


def test_invalid_uses_of_while_are_refused(fluid):
    L = fluid.layers
    with pytest.raises(TypeError, match="cond must be a Variable of bool"):
        L.While(fluid.data("x", [1]))
    with pytest.raises(TypeError, match="must hold one truth value"):
        L.While(fluid.data("b", [2], "bool"))
    with pytest.raises(ValueError, match="loop_vars is empty"):
        L.while_loop(lambda: None, lambda: None, [])
    i = L.zeros([1], "int64")
    with pytest.raises(ValueError, match="body returns 2 variables; there are 1 loop_vars"):
        L.while_loop(lambda i: L.less_than(i, i), lambda i: [i, i], [i])
    assert fluid.default_main_program().current_block().idx == 0


def test_invalid_uses_of_rnns_are_refused(fluid):
    L = fluid.layers
    x = fluid.data("x", [None, 2], lod_level=1)
    rnn = L.DynamicRNN()
    with pytest.raises(ValueError, match="step_input must be called inside the block"):
        rnn.step_input(x)
    with pytest.raises(ValueError, match="outputs after its block"):
        rnn()
    with pytest.raises(ValueError, match="call step_input first"):
        with rnn.block():
            rnn.memory(shape=[2])
    static = L.StaticRNN()
    with pytest.raises(ValueError, match="needs a step_input"):
        with static.step():
            pass
    assert fluid.default_main_program().current_block().idx == 0
    either = L.IfElse(fluid.data("b", [None, 1], "bool"))
    with pytest.raises(ValueError, match="input must be called inside true_block or false_block"):
        either.input(x)
    with pytest.raises(ValueError, match="must call output"):
        with either.true_block():
            pass
    with pytest.raises(ValueError, match="needs a true_block or a false_block"):
        either()
    with pytest.raises(TypeError, match="IfElse: name must be a str, not set"):
        L.IfElse(fluid.data("b", [None, 1], "bool"), set())


def test_print_shows_a_tensor(fluid, capfd):
    L = fluid.layers
    x = L.Print(fluid.data("x", [2, 2]), first_n=1, message="now", summarize=3)
    exe = started(fluid)
    for _ in range(2):
        exe.run(feed={"x": np.array([[1, 2], [3, 4]], "float32")}, fetch_list=[x])
    assert capfd.readouterr().out == "now x : f32[2, 2] [1, 2, 3, ...]\n"


def differences(fluid, loss, feed, of):
    """The gradient of a feed by central differences of the loss."""
    exe = started(fluid)
    main = fluid.default_main_program()
    values = feed[of].astype("float64")
    out = np.zeros_like(values)
    for at in np.ndindex(values.shape):
        losses = []
        for step in (1e-2, -1e-2):
            moved = values.astype("float32")
            moved[at] += step
            losses.append(exe.run(main, feed=dict(feed, **{of: moved}), fetch_list=[loss])[0].item())
        out[at] = (losses[0] - losses[1]) / 2e-2
    return out


def loop_around_a_condition(L, x):
    i, n = L.fill_constant([1], "float32", 0.0), L.fill_constant([1], "float32", 3.0)

    def body(i, state):
        small = L.less_than(L.reduce_sum(state), L.fill_constant([1], "float32", 1.0))
        return [L.scale(i, 1.0, bias=1.0), L.cond(small, lambda: L.square(state), lambda: L.scale(state, 0.5))]

    return L.while_loop(lambda i, state: L.less_than(i, n), body, [i, L.assign(x)])[1]


def loop_in_a_loop(L, x):
    state = L.assign(x)
    i, n = L.fill_constant([1], "int64", 0), L.fill_constant([1], "int64", 2)
    more = L.less_than(i, n)
    with L.While(more).block():
        j = L.fill_constant([1], "int64", 0)
        inner = L.less_than(j, n)
        with L.While(inner).block():
            L.assign(L.elementwise_mul(state, x), state)
            L.increment(j)
            L.less_than(j, n, cond=inner)
        L.increment(i)
        L.less_than(i, n, cond=more)
    return state


def rows_of_two_kinds(limit):

    def build(L, x):
        either = L.IfElse(L.less_than(x, L.fill_constant([3, 1], "float32", limit)))
        with either.true_block():
            mine = either.input(x)
            either.output(L.scale(mine, 2.0), L.square(mine))
        with either.false_block():
            mine = either.input(x)
            either.output(L.square(mine), L.scale(mine, 3.0))
        return L.elementwise_mul(*either())

    return build


def last_round_counts(L, x):
    """Each iteration overwrites the results of the previous one without reading them."""
    i, n = L.fill_constant([1], "int64", 0), L.fill_constant([1], "int64", 3)
    _, out = L.while_loop(
        lambda i, out: L.less_than(i, n), lambda i, out: [L.increment(i), L.square(x)], [i, L.scale(x, 5.0)]
    )
    return out


def last_round_that_holds_counts(L, x):
    i, n = L.fill_constant([1], "float32", 0.0), L.fill_constant([1], "float32", 4.0)
    limit = L.fill_constant([1], "float32", 2.0)
    out = L.scale(x, 5.0)
    more = L.less_than(i, n)
    with L.While(more).block():
        with L.Switch() as switch:
            with switch.case(L.less_than(i, limit)):
                L.assign(L.square(x), out)
        L.increment(i)
        L.less_than(i, n, cond=more)
    return out


BUILT = {
    "overwritten": last_round_counts,
    "overwritten at times": last_round_that_holds_counts,
    "cond in while": loop_around_a_condition,
    "while in while": loop_in_a_loop,
    "IfElse": rows_of_two_kinds(0.8),
    "IfElse without rows on one side": rows_of_two_kinds(9.0),
}


@pytest.mark.parametrize("kind", BUILT)
def test_gradients_propagate_through_nested_blocks(fluid, kind):
    L = fluid.layers
    x = fluid.data("x", [3, 1])
    x.stop_gradient = False
    loss = L.mean(BUILT[kind](L, x))
    fluid.backward.append_backward(loss)
    feed = {"x": np.array([[0.3], [0.9], [0.5]], "float32")}
    (got,) = started(fluid).run(feed=feed, fetch_list=["x@GRAD"])
    np.testing.assert_allclose(got, differences(fluid, loss, feed, "x"), atol=3e-3)


@pytest.mark.parametrize("declared", [None, 3])
def test_a_dynamic_rnn_reorders_static_inputs_and_initial_states(fluid, declared):
    """Fewer sequences take part in later steps, whatever the declared number of rows of the first state is."""
    L = fluid.layers
    x = fluid.data("x", [None, 2], lod_level=1)
    static, start = fluid.data("static", [None, 2]), fluid.data("start", [declared, 2])
    static.stop_gradient = start.stop_gradient = False
    rnn = L.DynamicRNN()
    with rnn.block():
        word, mine = rnn.step_input(x), rnn.static_input(static)
        before = rnn.memory(init=start, need_reorder=True)
        state = L.tanh(L.elementwise_add(L.elementwise_mul(word, before), mine))
        rnn.update_memory(before, state)
        rnn.output(state)
    loss = L.mean(L.square(rnn()))
    fluid.backward.append_backward(loss)
    random = np.random.RandomState(0)
    feed = {
        "x": sequences(fluid, random.randn(6, 2).astype("float32"), [1, 3, 2]),
        "static": random.randn(3, 2).astype("float32"),
        "start": random.randn(3, 2).astype("float32"),
    }
    got = started(fluid).run(feed=feed, fetch_list=["static@GRAD", "start@GRAD"])
    for name, grad in zip(["static", "start"], got):
        np.testing.assert_allclose(grad, differences(fluid, loss, feed, name), atol=3e-3)


def test_an_unused_rnn_output_has_no_gradient(fluid):
    L = fluid.layers
    x, start = fluid.data("x", [None, 2], lod_level=1), fluid.data("start", [None, 2])
    start.stop_gradient = False
    rnn = L.DynamicRNN()
    with rnn.block():
        word = rnn.step_input(x)
        before = rnn.memory(init=start)
        state = L.tanh(L.elementwise_mul(word, before))
        rnn.update_memory(before, state)
        rnn.output(state, L.square(state))
    loss = L.mean(rnn()[0])
    fluid.backward.append_backward(loss)
    random = np.random.RandomState(0)
    feed = {
        "x": sequences(fluid, random.randn(6, 2).astype("float32"), [1, 3, 2]),
        "start": random.randn(3, 2).astype("float32"),
    }
    (got,) = started(fluid).run(feed=feed, fetch_list=["start@GRAD"])
    np.testing.assert_allclose(got, differences(fluid, loss, feed, "start"), atol=3e-3)


@pytest.mark.parametrize("rounds", [0, 3])
def test_a_loop_variable_may_be_used_before_the_loop(fluid, rounds):
    L = fluid.layers
    x = fluid.data("x", [2])
    x.stop_gradient = False
    before = L.scale(x, 2.0)
    count = L.fill_constant([1], "int64", rounds)
    _, after = L.while_loop(
        lambda i, y: L.less_than(i, count), lambda i, y: [i + 1, L.tanh(y)], [L.fill_constant([1], "int64", 0), x]
    )
    loss = L.mean(after + before)
    fluid.backward.append_backward(loss)
    feed = {"x": np.array([0.3, -0.9], "float32")}
    (got,) = started(fluid).run(feed=feed, fetch_list=["x@GRAD"])
    np.testing.assert_allclose(got, differences(fluid, loss, feed, "x"), atol=3e-3)


def test_a_dynamic_rnn_resets_its_state_for_each_batch(fluid):
    L = fluid.layers
    x, start = fluid.data("x", [None, 2], lod_level=1), fluid.data("start", [None, 2])
    start.stop_gradient = False
    rnn = L.DynamicRNN()
    with rnn.block():
        word = rnn.step_input(x)
        before = rnn.memory(init=start)
        state = L.tanh(L.elementwise_add(word, before))
        rnn.update_memory(before, state)
        rnn.output(state)
    fluid.backward.append_backward(L.mean(rnn()))
    random = np.random.RandomState(0)

    def batch(lengths):
        return {
            "x": sequences(fluid, random.randn(sum(lengths), 2).astype("float32"), lengths),
            "start": random.randn(len(lengths), 2).astype("float32"),
        }

    first, second = batch([1, 3, 2]), batch([4, 1])
    (alone,) = started(fluid).run(feed=second, fetch_list=["start@GRAD"])
    exe = started(fluid)
    exe.run(feed=first, fetch_list=["start@GRAD"])
    for _ in range(2):
        (after,) = exe.run(feed=second, fetch_list=["start@GRAD"])
        np.testing.assert_array_equal(after, alone)


def test_tensor_array_to_tensor_returns_the_element_sizes(fluid):
    L = fluid.layers
    first, second = fluid.data("first", [2, 3]), fluid.data("second", [1, 3])
    array = L.array_write(first, L.fill_constant([1], "int64", 0))
    L.array_write(second, L.fill_constant([1], "int64", 1), array)
    _, joined = L.tensor_array_to_tensor(array, axis=0)
    alike = L.array_write(first, L.fill_constant([1], "int64", 0))
    stacked = [L.tensor_array_to_tensor(alike, axis=axis, use_stack=True)[1] for axis in (0, 1, 2)]
    feed = {"first": np.zeros([2, 3], "float32"), "second": np.zeros([1, 3], "float32")}
    got = started(fluid).run(feed=feed, fetch_list=[joined] + stacked)
    assert [list(index) for index in got] == [[2, 1], [2], [3], [1]]


def test_a_sum_skips_outputs_of_a_block_that_did_not_run(fluid):
    layers = fluid.layers
    x, taken = fluid.data("x", [2], "float32"), fluid.data("taken", [1], "bool")
    maybe = fluid.default_main_program().global_block().create_var(name="maybe", shape=[2], dtype="float32")
    with layers.Switch() as switch:
        with switch.case(taken):
            layers.assign(x * 10.0, maybe)
    total = layers.sums([x, maybe])
    exe = fluid.Executor()
    for value, expected in ((True, [11, 22]), (False, [1, 2]), (True, [11, 22])):
        feed = {"x": np.array([1, 2], "float32"), "taken": np.array([value])}
        np.testing.assert_array_equal(exe.run(feed=feed, fetch_list=[total])[0], expected)


def test_ifelse_on_an_empty_batch_is_an_error(fluid):
    L = fluid.layers
    x = fluid.data("x", [None, 3])
    either = L.IfElse(fluid.data("b", [None, 1], "bool"))
    for block in (either.true_block, either.false_block):
        with block():
            either.output(L.scale(either.input(x), 2.0))
    with pytest.raises(RuntimeError, match="merge_lod_tensor: neither side has a value"):
        fluid.Executor().run(feed={"x": np.ones((0, 3), "float32"), "b": np.ones((0, 1), bool)}, fetch_list=either())
