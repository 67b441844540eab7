"""Layers with blocks make Fluid's programs, with Fluid's names."""

import programs
import pytest


def array_concat(fluid, L):
    x, y = fluid.data("x", [2, 3]), fluid.data("y", [1, 3])
    i, j = L.fill_constant([1], "int64", 0), L.fill_constant([1], "int64", 1)
    array = L.create_array("float32")
    L.array_write(x, i, array)
    L.array_write(y, j, array)
    out, _ = L.tensor_array_to_tensor(array, axis=0)
    L.mean(out)
    L.array_length(array)


def _pair(fluid, L):
    x, y = fluid.data("x", [3, 4]), fluid.data("y", [3, 4])
    return x, y, L.less_than(L.reduce_mean(x), L.reduce_mean(y))


def cond_one(fluid, L):
    x, y, less = _pair(fluid, L)
    L.mean(L.cond(less, lambda: L.elementwise_mul(x, y), lambda: L.elementwise_sub(x, L.scale(y, 2.0))))


def cond_tuple(fluid, L):
    x, y, less = _pair(fluid, L)
    a, b = L.cond(less, lambda: (L.square(x), L.scale(y, 3.0)), lambda: (L.scale(y, -1.0), L.square(y)))
    L.mean(L.elementwise_add(a, b))


def cond_nested(fluid, L):
    x, y, less = _pair(fluid, L)
    negative = L.less_than(L.reduce_sum(x), L.fill_constant([1], "float32", 0.0))
    L.mean(
        L.cond(
            less,
            lambda: L.cond(negative, lambda: L.scale(x, 2.0), lambda: L.scale(y, 3.0)),
            lambda: L.elementwise_add(x, y),
        )
    )


def switch_case_default(fluid, L):
    x, k = fluid.data("x", [3, 4]), fluid.data("k", [1], "int32")
    L.mean(
        L.switch_case(
            k,
            {1: lambda: L.scale(x, 2.0), 4: lambda: L.square(x), 7: lambda: L.tanh(x)},
            default=lambda: L.scale(x, -1.0),
        )
    )


def ifelse(fluid, L):
    x, y = fluid.data("x", [4, 3]), fluid.data("y", [4, 1])
    limit = L.fill_constant_batch_size_like(y, [-1, 1], "float32", 0.0)
    either = L.IfElse(L.less_than(y, limit))
    with either.true_block():
        either.output(L.scale(either.input(x), 2.0))
    with either.false_block():
        either.output(L.square(either.input(x)))
    L.mean(either()[0])


def while_arrays(fluid, L):
    data = [fluid.data(f"d{i}", [10]) for i in range(3)]
    i = L.zeros([1], "int64")
    i.stop_gradient = True
    state = L.array_write(L.zeros([10], "float32"), i)
    inputs = L.array_write(data[0], i)
    for each in data[1:]:
        L.increment(i)
        L.array_write(each, i, inputs)
    i, n = L.zeros([1], "int64"), L.fill_constant([1], "int64", 3)
    more = L.less_than(i, n)
    with L.While(more).block():
        total = L.sums([L.array_read(inputs, i), L.array_read(state, i)])
        L.increment(i)
        L.array_write(total, i, state)
        L.less_than(i, n, cond=more)
    L.mean(L.array_read(state, i))
    L.array_length(state)


def while_loop_fn(fluid, L):
    x = fluid.data("x", [2, 3])
    i, n = L.fill_constant([1], "int64", 0), L.fill_constant([1], "int64", 3)
    _, x = L.while_loop(lambda i, x: L.less_than(i, n), lambda i, x: [L.increment(i), L.scale(x, 1.5)], [i, x])
    L.mean(x)


def while_param(fluid, L):
    x = fluid.data("x", [3, 4])
    i, n = L.fill_constant([1], "int64", 0), L.fill_constant([1], "int64", 3)
    states = L.array_write(x, i)
    more = L.less_than(i, n)
    with L.While(more).block():
        state = L.fc(L.array_read(states, i), 4, act="tanh")
        L.increment(i)
        L.array_write(state, i, states)
        L.less_than(i, n, cond=more)
    L.mean(L.array_read(states, i))


def switch_3(fluid, L):
    s = fluid.data("s", [1])
    rate = L.create_global_var([1], 0.0, "float32", persistable=True, name="sw_lr")

    def constant(value):
        return L.fill_constant([1], "float32", value)

    with L.Switch() as switch:
        with switch.case(L.less_than(s, constant(1.0))):
            L.assign(constant(0.1), rate)
        with switch.case(L.less_than(s, constant(2.0))):
            L.assign(constant(0.01), rate)
        with switch.default():
            L.assign(constant(0.001), rate)


def dynamic_rnn(fluid, L):
    x = fluid.data("x", [-1, 4], lod_level=1)
    rnn = L.DynamicRNN()
    with rnn.block():
        word, before = rnn.step_input(x), rnn.memory(shape=[2])
        state = L.fc([word, before], 2, act="tanh")
        rnn.update_memory(before, state)
        rnn.output(state)
    L.mean(L.sequence_last_step(rnn()))


def while_nested(fluid, L):
    i, n = L.fill_constant([1], "int64", 0), L.fill_constant([1], "int64", 3)
    total = L.fill_constant([1], "float32", 0.0)
    more = L.less_than(i, n)
    with L.While(more).block():
        j = L.fill_constant([1], "int64", 0)
        inner = L.less_than(j, i)
        with L.While(inner).block():
            L.assign(L.elementwise_add(total, L.fill_constant([1], "float32", 1.5)), total)
            L.increment(j)
            L.less_than(j, i, cond=inner)
        L.increment(i)
        L.less_than(i, n, cond=more)


def lod_rank_table(fluid, L):
    x = fluid.data("x", [-1, 2], lod_level=1)
    flow = L.control_flow
    table = flow.lod_rank_table(x)
    flow.max_sequence_len(table)
    array = flow.lod_tensor_to_array(x, table)
    flow.array_to_lod_tensor(array, table)
    L.mean(L.array_read(array, L.fill_constant([1], "int64", 1)))
    L.array_length(array)
    L.reorder_lod_tensor_by_rank(x, table)


BUILDERS = [
    array_concat,
    cond_nested,
    cond_one,
    cond_tuple,
    dynamic_rnn,
    ifelse,
    lod_rank_table,
    switch_3,
    switch_case_default,
    while_arrays,
    while_loop_fn,
    while_nested,
    while_param,
]
# Fluid collects the variables that cross the border of a block in Python sets, in hash order.
CROSSING = {"while": ("X", "Out"), "conditional_block": ("Input", "Out")}


def comparable(program, block):
    out = []
    for kind, inputs, outputs, attrs in programs.canonical_ops(program, block):
        crossing = CROSSING.get(kind, ())
        slots = [
            [(slot, sorted(names) if slot in crossing else names) for slot, names in side] for side in (inputs, outputs)
        ]
        # A zero is spelled 0 or 0.0, by the layer that was called.
        out.append((kind, slots, [attr for attr in attrs if attr[0] != "str_value"]))
    return out


@pytest.mark.parametrize("build", BUILDERS, ids=lambda build: build.__name__)
def test_layers_build_fluids_programs(corpus, fluid, build):
    build(fluid, fluid.layers)
    ours = programs.of(fluid.default_main_program())
    theirs = programs.read_file(corpus / "open" / "control" / (build.__name__ + ".pb"))
    assert len(ours["blocks"]) == len(theirs["blocks"])
    for block in range(len(theirs["blocks"])):
        assert comparable(ours, block) == comparable(theirs, block)
        assert programs.canonical_vars(ours, block) == programs.canonical_vars(theirs, block)
