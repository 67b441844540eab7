"""Cells on padded sequences, and the layers made from them, compared with NumPy."""

import collections

import numpy as np
import pytest

STEPS, WIDTH, HIDDEN = 5, 3, 4
LENGTHS = [5, 2, 0]


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def gru(x, h, weights):
    gate, candidate, gate_bias, candidate_bias = weights
    r, u = np.split(sigmoid(np.concatenate([x, h], 1) @ gate + gate_bias), 2, 1)
    c = np.tanh(np.concatenate([x, r * h], 1) @ candidate + candidate_bias)
    return u * h + (1 - u) * c


def lstm(x, h, c, weights, forget_bias=1.0):
    i, j, f, o = np.split(np.concatenate([x, h], 1) @ weights[0] + weights[1], 4, 1)
    c = c * sigmoid(f + forget_bias) + sigmoid(i) * np.tanh(j)
    return np.tanh(c) * sigmoid(o), c


def run_numpy(step, x, states, lengths=None, backwards=False):
    """(outputs, last states) of step(row, *states) -> states, whose first one is the output."""
    outs = np.zeros(x.shape[:2] + states[0].shape[1:])
    for t in reversed(range(x.shape[1])) if backwards else range(x.shape[1]):
        after = step(x[:, t], *states)
        outs[:, t] = after[0]
        if lengths is not None:
            goes_on = (t < np.array(lengths))[:, None]
            after = [np.where(goes_on, new, old) for new, old in zip(after, states)]
        states = after
    return outs, states


def started(fluid):
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    random = np.random.RandomState(7)
    weights = []
    for param in fluid.default_main_program().all_parameters():
        weights.append(random.uniform(-0.7, 0.7, param.shape).astype("float32"))
        fluid.global_scope().find_var(param.name).get_tensor().set(weights[-1], fluid.CPUPlace())
    return exe, weights


X = np.random.RandomState(3).randn(len(LENGTHS), STEPS, WIDTH).astype("float32")


def feed_of(with_length, time_major=False):
    feed = {"x": X.transpose(1, 0, 2) if time_major else X}
    if with_length:
        feed["length"] = np.array(LENGTHS, "int64")
    return feed


@pytest.mark.parametrize("kind", ["GRUCell", "LSTMCell"])
@pytest.mark.parametrize("with_length", [True, False])
@pytest.mark.parametrize("backwards", [True, False])
@pytest.mark.parametrize("time_major", [True, False])
def test_a_cell_runs_over_sequences(fluid, kind, with_length, backwards, time_major):
    x = fluid.data("x", [STEPS, None, WIDTH] if time_major else [None, STEPS, WIDTH])
    length = fluid.data("length", [None], "int64") if with_length else None
    cell = getattr(fluid.layers, kind)(HIDDEN)
    out, last = fluid.layers.rnn(cell, x, sequence_length=length, time_major=time_major, is_reverse=backwards)
    fluid.gradients(fluid.layers.reduce_sum(out), fluid.default_main_program().all_parameters())
    states = last if kind == "LSTMCell" else [last]
    exe, weights = started(fluid)
    got = exe.run(feed=feed_of(with_length, time_major), fetch_list=[out] + states)
    zeros = np.zeros((len(LENGTHS), HIDDEN))
    if kind == "GRUCell":
        limits = LENGTHS if with_length else None
        right = run_numpy(lambda row, h: [gru(row, h, weights)], X, [zeros], limits, backwards)
    else:
        right = run_numpy(
            lambda row, h, c: lstm(row, h, c, weights), X, [zeros, zeros], LENGTHS if with_length else None, backwards
        )
    np.testing.assert_allclose(got[0].transpose(1, 0, 2) if time_major else got[0], right[0], rtol=1e-4, atol=1e-5)
    for one, other in zip(got[1:], right[1]):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_a_cell_trains(fluid):
    fluid.default_startup_program().random_seed = 5
    x, y = fluid.data("x", [None, STEPS, WIDTH]), fluid.data("y", [None, 1])
    _, last = fluid.layers.rnn(fluid.layers.GRUCell(8), x)
    loss = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(last, 1), y))
    fluid.optimizer.Adam(0.05).minimize(loss)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    values = np.random.RandomState(0).randn(16, STEPS, WIDTH).astype("float32")
    feed = {"x": values, "y": values.sum((1, 2))[:, None] / 4}
    losses = [exe.run(feed=feed, fetch_list=[loss])[0].item() for _ in range(60)]
    assert losses[-1] < losses[0] / 10


def test_parameter_names_match_fluid(fluid):
    x = fluid.data("x", [None, STEPS, WIDTH])
    fluid.layers.rnn(fluid.layers.GRUCell(HIDDEN), x)
    fluid.layers.rnn(fluid.layers.LSTMCell(HIDDEN, name="decoder", param_attr=fluid.ParamAttr(name="dec")), x)
    named = fluid.layers.GRUCell(HIDDEN, fluid.ParamAttr(name="w"), fluid.ParamAttr(name="b"))
    fluid.layers.rnn(named, x)
    assert [param.name for param in fluid.default_main_program().all_parameters()] == [
        "GRUCell/BasicGRUUnit_0.w_0",
        "GRUCell/BasicGRUUnit_0.w_1",
        "GRUCell/BasicGRUUnit_0.b_0",
        "GRUCell/BasicGRUUnit_0.b_1",
        "dec",
        "decoder/BasicLSTMUnit_0.b_0",
        "w_gate",
        "w_candidate",
        "b_gate",
        "b_candidate",
    ]


def test_states_of_a_cell_start_from_a_number_in_any_structure(fluid):
    x = fluid.data("x", [None, 2])
    Pair = collections.namedtuple("Pair", ("a", "b"))
    cell = fluid.layers.RNNCell()
    made = cell.get_initial_states(x, shape=Pair([3], {"c": [-1, 4], "d": [1, 2]}), dtype="float64", init_value=2)
    assert isinstance(made, Pair) and set(made.b) == {"c", "d"}
    exe = fluid.Executor(fluid.CPUPlace())
    got = exe.run(feed={"x": np.zeros((5, 2), "float32")}, fetch_list=fluid.layers.utils.flatten(made))
    assert [value.shape for value in got] == [(5, 3), (5, 4), (5, 1, 2)]
    assert all(value.dtype == "float64" and (value == 2).all() for value in got)
    with pytest.raises(NotImplementedError, match="RNNCell does not define state_shape"):
        cell.get_initial_states(x)


def test_custom_cells_may_have_structured_states(fluid):

    class Counter(fluid.layers.RNNCell):
        state_shape = {"sum": [WIDTH], "count": [1]}

        def call(self, inputs, states, step=1.0):
            total = states["sum"] + inputs
            return total, {"sum": total, "count": states["count"] + step}

    x, length = fluid.data("x", [None, STEPS, WIDTH]), fluid.data("length", [None], "int64")
    out, last = fluid.layers.rnn(Counter(), x, sequence_length=length, step=2.0)
    exe = fluid.Executor(fluid.CPUPlace())
    sums, count = exe.run(feed=feed_of(True), fetch_list=[last["sum"], last["count"]])
    np.testing.assert_allclose(count.ravel(), [2 * n for n in LENGTHS])
    np.testing.assert_allclose(sums, [X[i, :n].sum(0) for i, n in enumerate(LENGTHS)], rtol=1e-5, atol=1e-6)


def test_a_state_of_another_structure_is_refused(fluid):

    class Grows(fluid.layers.RNNCell):
        state_shape = [WIDTH]

        def call(self, inputs, states):
            return inputs, [states, states]

    with pytest.raises(ValueError, match="the structures differ"):
        fluid.layers.rnn(Grows(), fluid.data("x", [None, STEPS, WIDTH]))


def weights_by_layer(weights, per_unit, layers):
    return [weights[i * per_unit : (i + 1) * per_unit] for i in range(layers)]


@pytest.mark.parametrize("kind", ["basic_gru", "basic_lstm"])
@pytest.mark.parametrize("bidirectional", [True, False])
@pytest.mark.parametrize("with_length", [True, False])
def test_stacked_cells_run_in_order(fluid, kind, bidirectional, with_length):
    layers, directions = 2, 2 if bidirectional else 1
    x = fluid.data("x", [None, STEPS, WIDTH])
    length = fluid.data("length", [None], "int64") if with_length else None
    names = ["h"] if kind == "basic_gru" else ["h", "c"]
    inits = [fluid.data(name, [layers * directions, None, HIDDEN]) for name in names]
    made = getattr(fluid.contrib.layers, kind)(x, *inits, HIDDEN, layers, length, bidirectional=bidirectional)
    exe, weights = started(fluid)
    random = np.random.RandomState(9)
    start = {name: random.randn(layers * directions, len(LENGTHS), HIDDEN).astype("float32") for name in names}
    got = exe.run(feed=dict(feed_of(with_length), **start), fetch_list=list(made))

    per_unit = 4 if kind == "basic_gru" else 2
    units = weights_by_layer(weights, per_unit, layers * directions)
    outs, lasts = [], {}
    for direction in range(directions):
        rows = X.astype("float64")
        for layer in range(layers):
            own = units[direction * layers + layer]
            at = layer * directions + direction

            def step(row, *states):
                return [gru(row, *states, own)] if kind == "basic_gru" else list(lstm(row, *states, own))

            rows, last = run_numpy(
                step, rows, [start[name][at] for name in names], LENGTHS if with_length else None, direction == 1
            )
            lasts[at] = last
            if with_length:  # what a layer hands on beyond the end is the state that stays
                for i, n in enumerate(LENGTHS):
                    if direction == 0:
                        rows[i, n:] = last[0][i]
                    else:
                        rows[i, n:] = start["h"][at][i]
        outs.append(rows)
    np.testing.assert_allclose(got[0], np.concatenate(outs, 2), rtol=1e-4, atol=1e-5)
    for k, one in enumerate(got[1:]):
        right = np.stack([lasts[at][k] for at in range(layers * directions)])
        if bidirectional:  # as Fluid reshapes it: by layer, then sequence, then direction
            right = right.reshape(layers, directions, len(LENGTHS), HIDDEN).transpose(0, 2, 1, 3)
            one = one.reshape(layers, directions * len(LENGTHS), HIDDEN)
            both = [
                np.concatenate([lasts[layer * directions + d][k] for d in range(directions)], 0)
                for layer in range(layers)
            ]
            right = np.stack(both)
        np.testing.assert_allclose(one, right, rtol=1e-4, atol=1e-5)
