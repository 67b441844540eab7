"""Ten steps of recurrent networks, each written in several ways: as one op on sequences, and as a block that StaticRNN
or DynamicRNN runs for each step. All train alike."""

import numpy as np
import pytest

SIZE, WIDTH, STEPS = 3, 2, 10


def weights(fluid, **shapes):
    """Parameters that every way shares by name."""
    return {name: fluid.layers.create_parameter(list(shape), "float32", name) for name, shape in shapes.items()}


def lstm_cell(L, gates, cell_before):
    candidate, enters, stays, leaves = L.split(gates, 4, dim=-1)
    cell = L.elementwise_add(
        L.elementwise_mul(L.sigmoid(stays), cell_before), L.elementwise_mul(L.sigmoid(enters), L.tanh(candidate))
    )
    return L.elementwise_mul(L.sigmoid(leaves), L.tanh(cell)), cell


def lstm_op(fluid, x):
    L = fluid.layers
    w = weights(fluid, wx=(WIDTH, 4 * SIZE))
    return L.dynamic_lstm(
        L.mul(x, w["wx"]),
        4 * SIZE,
        use_peepholes=False,
        param_attr=fluid.ParamAttr("wh"),
        bias_attr=fluid.ParamAttr("b"),
    )[0]


def lstm_steps(fluid, rnn, x, shape):
    """A step of either RNN; `shape` says how it makes a memory."""
    L = fluid.layers
    word, hidden, cell = rnn.step_input(x), rnn.memory(**shape), rnn.memory(**shape)
    w = weights(fluid, wx=(WIDTH, 4 * SIZE), wh=(SIZE, 4 * SIZE), b=(1, 4 * SIZE))
    gates = L.elementwise_add(L.mul(word, w["wx"]), L.mul(hidden, w["wh"]))
    new_hidden, new_cell = lstm_cell(L, L.elementwise_add(gates, L.reshape(w["b"], [4 * SIZE])), cell)
    rnn.update_memory(hidden, new_hidden)
    rnn.update_memory(cell, new_cell)
    return new_hidden


def lstm_dynamic(fluid, x):
    rnn = fluid.layers.DynamicRNN()
    with rnn.block():
        rnn.output(lstm_steps(fluid, rnn, x, {"shape": [SIZE]}))
    return rnn()


def lstm_static(fluid, x):
    """Of sequences that are all equally long: [sequences * LENGTH, WIDTH]."""
    L = fluid.layers
    rows = L.transpose(L.reshape(x, [-1, LENGTH, WIDTH]), [1, 0, 2])
    start = L.fill_constant_batch_size_like(rows, [-1, SIZE], "float32", 0.0, input_dim_idx=1)
    rnn = L.StaticRNN()
    with rnn.step():
        rnn.step_output(lstm_steps(fluid, rnn, rows, {"init": start}))
    return rnn()


def gru_op(fluid, x):
    w = weights(fluid, wx=(WIDTH, 3 * SIZE))
    return fluid.layers.dynamic_gru(
        fluid.layers.mul(x, w["wx"]), SIZE, param_attr=fluid.ParamAttr("wh"), bias_attr=fluid.ParamAttr("b")
    )


def gru_dynamic(fluid, x):
    rnn = fluid.layers.DynamicRNN()
    with rnn.block():
        word, hidden = rnn.step_input(x), rnn.memory(shape=[SIZE])
        w = weights(fluid, wx=(WIDTH, 3 * SIZE))
        state = fluid.layers.gru_unit(
            fluid.layers.mul(word, w["wx"]),
            hidden,
            3 * SIZE,
            param_attr=fluid.ParamAttr("wh"),
            bias_attr=fluid.ParamAttr("b"),
        )[0]
        rnn.update_memory(hidden, state)
        rnn.output(state)
    return rnn()


LENGTH = 4
RAGGED, EVEN = [3, 1, 5, 2], [LENGTH] * 3


def train(fluid, net, lengths):
    with (
        fluid.unique_name.guard(),
        fluid.program_guard(fluid.Program(), fluid.Program()),
        fluid.scope_guard(fluid.Scope()),
    ):
        x = fluid.layers.data("x", [WIDTH], lod_level=1)
        hidden = net(fluid, x)
        loss = fluid.layers.mean(fluid.layers.square(fluid.layers.scale(hidden, bias=-0.5)))
        fluid.optimizer.Momentum(0.3, 0.9).minimize(loss)
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(fluid.default_startup_program())
        random = np.random.RandomState(3)
        params = {}
        for param in sorted(fluid.default_main_program().all_parameters(), key=lambda param: param.name):
            params[param.name] = fluid.global_scope().find_var(param.name).get_tensor()
            params[param.name].set(random.uniform(-0.5, 0.5, param.shape).astype("float32"), fluid.CPUPlace())
        losses = []
        for _ in range(STEPS):
            rows = random.randn(sum(lengths), WIDTH).astype("float32")
            feed = {"x": fluid.create_lod_tensor(rows, [lengths], fluid.CPUPlace())}
            losses.append(exe.run(feed=feed, fetch_list=[loss])[0].item())
        return losses, {name: np.array(value) for name, value in params.items()}


@pytest.mark.parametrize(
    "one, other, lengths",
    [(lstm_op, lstm_dynamic, RAGGED), (lstm_op, lstm_static, EVEN), (gru_op, gru_dynamic, RAGGED)],
)
def test_equivalent_recurrent_networks_train_equally(fluid, one, other, lengths):
    losses, params = train(fluid, one, lengths)
    other_losses, other_params = train(fluid, other, lengths)
    np.testing.assert_allclose(other_losses, losses, rtol=1e-4)
    assert losses[-1] < losses[0] and other_params.keys() == params.keys() and len(params) == 3
    for name, value in params.items():
        np.testing.assert_allclose(other_params[name], value, rtol=1e-4, atol=1e-5, err_msg=name)


def test_a_batch_without_steps_changes_nothing(fluid):
    L = fluid.layers
    x = fluid.data("x", [-1, 2, 3])
    x.stop_gradient = False
    rnn = L.StaticRNN()
    with rnn.step():
        word = rnn.step_input(x)
        memory = rnn.memory(shape=[-1, 3], batch_ref=word)
        hidden = L.fc([word, memory], 3, act="tanh")
        rnn.update_memory(memory, hidden)
        rnn.step_output(hidden)
    out = rnn()
    _, pairs = fluid.optimizer.SGD(0.1).minimize(L.reduce_sum(out))
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    names = ["x@GRAD"] + [grad.name for _, grad in pairs]
    for steps in (3, 0, 2):
        made, dx, *grads = exe.run(feed={"x": np.ones((steps, 2, 3), "float32")}, fetch_list=[out] + names)
        assert made.shape == dx.shape == (steps, 2, 3)
        assert [np.any(grad) for grad in grads] == [steps > 0] * 3
