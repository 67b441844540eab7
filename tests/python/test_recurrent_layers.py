"""dynamic_lstm and dynamic_gru compared with the same recurrences in NumPy, one sequence and one step at a time."""

import itertools

import numpy as np
import pytest

WIDTH = 3
LENGTHS = {"different lengths": [2, 4, 3], "empty ones": [0, 2, 0, 3, 1, 0], "one": [5]}
ACTIVATIONS = {
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "tanh": np.tanh,
    "relu": lambda x: np.maximum(x, 0),
    "identity": lambda x: x,
}


def steps_of(lengths, reverse):
    """(sequence, rows in the order of the steps)"""
    ends = np.cumsum(lengths)
    for sequence, (end, length) in enumerate(zip(ends, lengths)):
        rows = range(end - length, end)
        yield sequence, reversed(rows) if reverse else rows


def lstm(x, lengths, weight, bias, h0, c0, reverse, gate, cell, candidate):
    """Rows of x are (candidate, input, forget, output); behind their biases stand the peepholes."""
    hidden, cells = np.zeros((len(x), WIDTH)), np.zeros((len(x), WIDTH))
    peep_i, peep_f, peep_o = bias[0, 4 * WIDTH :].reshape(3, WIDTH) if bias.shape[1] == 7 * WIDTH else (0, 0, 0)
    for sequence, rows in steps_of(lengths, reverse):
        h, c = h0[sequence], c0[sequence]
        for row in rows:
            a, i, f, o = (x[row] + h @ weight + bias[0, : 4 * WIDTH]).reshape(4, WIDTH)
            c, before = candidate(a) * gate(i + peep_i * c), gate(f + peep_f * c) * c
            c = c + before
            h = gate(o + peep_o * c) * cell(c)
            hidden[row], cells[row] = h, c
    return hidden, cells


def gru(x, lengths, weight, bias, h0, reverse, origin_mode, gate, candidate):
    """Rows of x are (update, reset, candidate); the weight is that of the gates, then that of the candidate."""
    hidden = np.zeros((len(x), WIDTH))
    of_gates = weight.ravel()[: 2 * WIDTH * WIDTH].reshape(WIDTH, 2 * WIDTH)
    of_candidate = weight.ravel()[2 * WIDTH * WIDTH :].reshape(WIDTH, WIDTH)
    for sequence, rows in steps_of(lengths, reverse):
        h = h0[sequence]
        for row in rows:
            u, r = gate(x[row, : 2 * WIDTH] + bias[0, : 2 * WIDTH] + h @ of_gates).reshape(2, WIDTH)
            c = candidate(x[row, 2 * WIDTH :] + bias[0, 2 * WIDTH :] + (r * h) @ of_candidate)
            h = u * h + (1 - u) * c if origin_mode else (1 - u) * h + u * c
            hidden[row] = h
    return hidden


def run(fluid, outputs, parameters, feed):
    scope = fluid.Scope()
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program(), scope=scope)
    for param, value in zip(fluid.default_main_program().all_parameters(), parameters):
        scope.find_var(param.name).get_tensor().set(value, fluid.CPUPlace())
    return exe.run(feed=feed, fetch_list=outputs, return_numpy=False, scope=scope)


def assert_same(got, expected, lengths):
    np.testing.assert_allclose(np.array(got), expected, rtol=1e-4, atol=1e-5)
    assert got.recursive_sequence_lengths() == [lengths]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("sequences", LENGTHS)
@pytest.mark.parametrize("gate, cell, candidate", [("sigmoid", "tanh", "tanh"), ("tanh", "relu", "identity")])
@pytest.mark.parametrize("peepholes, reverse, initial", list(itertools.product([False, True], repeat=3)))
def test_an_lstm_equals_numpy(fluid, dtype, sequences, gate, cell, candidate, peepholes, reverse, initial):
    lengths, random = LENGTHS[sequences], np.random.RandomState(0)
    value = lambda *shape: random.uniform(-1, 1, shape).astype(dtype)  # noqa: E731
    x, weight = value(sum(lengths), 4 * WIDTH), value(WIDTH, 4 * WIDTH)
    bias = value(1, (7 if peepholes else 4) * WIDTH)
    start = value(2, len(lengths), WIDTH) * initial
    fed = {}
    if initial:
        fed = {name: fluid.data(name, [None, WIDTH], dtype) for name in ("h_0", "c_0")}
    outputs = fluid.layers.dynamic_lstm(
        fluid.data("x", [None, 4 * WIDTH], dtype, lod_level=1),
        4 * WIDTH,
        use_peepholes=peepholes,
        is_reverse=reverse,
        gate_activation=gate,
        cell_activation=cell,
        candidate_activation=candidate,
        dtype=dtype,
        **fed,
    )
    feed = dict({"x": fluid.create_lod_tensor(x, [lengths], fluid.CPUPlace())}, **dict(zip(fed, start)))
    expected = lstm(
        x, lengths, weight, bias, start[0], start[1], reverse, *(ACTIVATIONS[name] for name in (gate, cell, candidate))
    )
    for got, right in zip(run(fluid, list(outputs), (weight, bias), feed), expected):
        assert_same(got, right, lengths)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("sequences", LENGTHS)
@pytest.mark.parametrize("gate, candidate", [("sigmoid", "tanh"), ("relu", "identity")])
@pytest.mark.parametrize("origin_mode, reverse, initial", list(itertools.product([False, True], repeat=3)))
def test_a_gru_equals_numpy(fluid, dtype, sequences, gate, candidate, origin_mode, reverse, initial):
    lengths, random = LENGTHS[sequences], np.random.RandomState(0)
    value = lambda *shape: random.uniform(-1, 1, shape).astype(dtype)  # noqa: E731
    x, weight, bias = value(sum(lengths), 3 * WIDTH), value(WIDTH, 3 * WIDTH), value(1, 3 * WIDTH)
    start = value(len(lengths), WIDTH) * initial
    output = fluid.layers.dynamic_gru(
        fluid.data("x", [None, 3 * WIDTH], dtype, lod_level=1),
        WIDTH,
        is_reverse=reverse,
        origin_mode=origin_mode,
        gate_activation=gate,
        candidate_activation=candidate,
        h_0=fluid.data("h_0", [None, WIDTH], dtype) if initial else None,
    )
    feed = {"x": fluid.create_lod_tensor(x, [lengths], fluid.CPUPlace())}
    if initial:
        feed["h_0"] = start
    (got,) = run(fluid, [output], (weight, bias), feed)
    assert_same(
        got,
        gru(x, lengths, weight, bias, start, reverse, origin_mode, ACTIVATIONS[gate], ACTIVATIONS[candidate]),
        lengths,
    )
