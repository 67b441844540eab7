"""layers.lstm compared with the same recurrence in NumPy."""

import numpy as np
import penstock
import pytest

WIDTH, HIDDEN = 3, 4


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def split(weights, layers, directions):
    """[layer][direction] -> (of the input, of the hidden state, the sum of both biases)"""
    parts, at = [], 0
    for layer in range(layers):
        width = WIDTH if layer == 0 else HIDDEN * directions
        parts.append([])
        for _ in range(directions):
            of_input = weights[at : at + 4 * HIDDEN * width].reshape(4 * HIDDEN, width)
            at += of_input.size
            of_hidden = weights[at : at + 4 * HIDDEN * HIDDEN].reshape(4 * HIDDEN, HIDDEN)
            at += of_hidden.size
            parts[-1].append([of_input, of_hidden])
    for layer in parts:
        for part in layer:
            part.append(weights[at : at + 4 * HIDDEN] + weights[at + 4 * HIDDEN : at + 8 * HIDDEN])
            at += 8 * HIDDEN
    assert at == len(weights)
    return parts


def lstm(x, h0, c0, weights, layers, directions):
    last_h, last_c = np.array(h0), np.array(c0)
    for layer, both in enumerate(split(weights, layers, directions)):
        out = np.zeros(x.shape[:2] + (HIDDEN * directions,), x.dtype)
        for direction, (of_input, of_hidden, bias) in enumerate(both):
            at = layer * directions + direction
            h, c = last_h[at], last_c[at]
            for t in range(len(x)) if direction == 0 else reversed(range(len(x))):
                i, f, g, o = np.split(x[t] @ of_input.T + h @ of_hidden.T + bias, 4, axis=1)
                c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
                h = sigmoid(o) * np.tanh(c)
                out[t, :, direction * HIDDEN : (direction + 1) * HIDDEN] = h
            last_h[at], last_c[at] = h, c
        x = out
    return x, last_h, last_c


def build(fluid, dtype, layers, directions, **arguments):
    x = fluid.data("x", [None, None, WIDTH], dtype)
    states = [fluid.data(name, [layers * directions, None, HIDDEN], dtype) for name in "hc"]
    return list(
        fluid.layers.lstm(
            x,
            *states,
            9,
            HIDDEN,
            layers,
            is_bidirec=directions == 2,
            default_initializer=fluid.initializer.Uniform(-0.5, 0.5, seed=3),
            **arguments,
        )
    )


def started(fluid):
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    (weights,) = fluid.default_main_program().all_parameters()
    return exe, np.array(fluid.global_scope().find_var(weights.name).get_tensor())


def feed_of(dtype, steps, batch, states):
    random = np.random.RandomState(1)
    shapes = {"x": (steps, batch, WIDTH), "h": (states, batch, HIDDEN), "c": (states, batch, HIDDEN)}
    return {name: random.uniform(-1, 1, shape).astype(dtype) for name, shape in shapes.items()}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("layers", [1, 3])
@pytest.mark.parametrize("directions", [1, 2])
@pytest.mark.parametrize("steps", [1, 5])
def test_layers_run_over_each_other(fluid, dtype, layers, directions, steps):
    fetched = build(fluid, dtype, layers, directions)
    exe, weights = started(fluid)
    feed = feed_of(dtype, steps, 2, layers * directions)
    for got, right in zip(
        exe.run(feed=feed, fetch_list=fetched), lstm(feed["x"], feed["h"], feed["c"], weights, layers, directions)
    ):
        np.testing.assert_allclose(got, right, rtol=1e-4, atol=1e-6)


def test_dropout_between_layers_is_redrawn_and_used_by_the_gradient(fluid):
    """One step of one sequence: a gradient of 0 says which elements between the layers were dropped."""
    fetched = build(fluid, "float64", 2, 1, dropout_prob=0.5)
    (weight,) = fluid.default_main_program().all_parameters()
    fetched += fluid.gradients(fluid.layers.reduce_sum(fetched[0]), [weight])
    exe, weights = started(fluid)
    feed, masks = feed_of("float64", 1, 1, 2), set()
    (_, _, _), (of_input, of_hidden, bias) = (both[0] for both in split(weights, 2, 1))
    below = lstm(
        feed["x"],
        feed["h"][:1],
        feed["c"][:1],
        np.concatenate([weights[: 4 * HIDDEN * (WIDTH + HIDDEN)], weights[-16 * HIDDEN : -8 * HIDDEN]]),
        1,
        1,
    )[0]
    for _ in range(40):
        out, last_h, _, slopes = exe.run(feed=feed, fetch_list=fetched)
        kept = np.abs(split(slopes, 2, 1)[1][0][0]).sum(0) != 0
        masks.add(tuple(kept))
        i, f, g, o = np.split((below[0] * kept * 2) @ of_input.T + feed["h"][1] @ of_hidden.T + bias, 4, axis=1)
        right = sigmoid(o) * np.tanh(sigmoid(f) * feed["c"][1] + sigmoid(i) * np.tanh(g))
        np.testing.assert_allclose(out[0], right, rtol=1e-6)
        np.testing.assert_allclose(last_h[1], right, rtol=1e-6)
    assert len(masks) > 4


def test_a_dropout_seed_repeats_trainings_but_not_steps(fluid):
    def outputs():
        with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.scope_guard(fluid.Scope()):
            fetched = build(fluid, "float32", 2, 1, dropout_prob=0.5, seed=11)
            exe, _ = started(fluid)
            return [exe.run(feed=feed_of("float32", 2, 3, 2), fetch_list=fetched[:1])[0] for _ in range(3)]

    first, again = outputs(), outputs()
    np.testing.assert_array_equal(first, again)
    assert (first[0] != first[1]).any() and (first[1] != first[2]).any()


def test_test_mode_drops_nothing(fluid):
    fetched = build(fluid, "float32", 2, 1, dropout_prob=0.5, is_test=True)
    exe, weights = started(fluid)
    feed = feed_of("float32", 3, 2, 2)
    right = lstm(feed["x"], feed["h"], feed["c"], weights, 2, 1)[0]
    np.testing.assert_allclose(exe.run(feed=feed, fetch_list=fetched[:1])[0], right, rtol=1e-4, atol=1e-6)


def test_more_steps_than_max_len_are_an_error(fluid):
    fetched = build(fluid, "float32", 1, 1)
    exe, _ = started(fluid)
    with pytest.raises(penstock.ProgramError, match=r"steps of Input \(10\) must be at most max_len \(9\)"):
        exe.run(feed=feed_of("float32", 10, 1, 1), fetch_list=fetched)
