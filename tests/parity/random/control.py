"""Nested blocks: StaticRNN, While, cond, Switch, IfElse, arrays."""

import attributes


def static_rnn(g, x):
    L, dice, size = g.L, g.dice, g.width()
    steps = L.transpose(L.reshape(L.fc(x, 12), [-1, 3, 4]), perm=[1, 0, 2])
    rnn = L.StaticRNN()
    boot = dice.chance(0.5)
    start = L.fc(x, size) if boot else None
    with rnn.step():
        step = rnn.step_input(steps)
        memory = (
            rnn.memory(init=start)
            if boot
            else rnn.memory(shape=[-1, size], batch_ref=step, init_value=dice.pick([0.0, 0.1]))
        )
        new = L.fc([step, memory], size, act=dice.pick(["tanh", "relu"]), bias_attr=attributes.bias(g))
        rnn.update_memory(memory, new)
        rnn.step_output(new)
        if dice.chance(0.2):
            rnn.step_output(L.scale(new, 2.0))
    made = rnn()
    made = made[0] if isinstance(made, (list, tuple)) else made
    return g.dice.pick([lambda: made[2], lambda: L.reduce_sum(made, dim=0), lambda: L.reduce_mean(made, dim=[0])])()


def cond(g, x):
    L, dice, size = g.L, g.dice, int(x.shape[-1])
    predicate = dice.pick(
        [
            lambda: L.less_than(L.reduce_mean(x), L.fill_constant([1], "float32", 0.3)),
            lambda: L.greater_than(L.mean(x), L.fill_constant([1], "float32", 0.1)),
        ]
    )()
    kind = dice.between(0, 2)
    if kind == 0:
        return L.cond(predicate, lambda: L.fc(x, size, act="tanh"), lambda: L.scale(x, 0.5))
    if kind == 1:
        factor = g.vector(size)
        return L.cond(predicate, lambda: L.elementwise_mul(x, factor), lambda: L.relu(x) + x)
    a, b = L.cond(predicate, lambda: (L.tanh(x), L.square(x)), lambda: (L.sigmoid(x), x * 2.0))
    return L.elementwise_add(a, b)


def cases(g, x):
    L, dice = g.L, g.dice
    small = L.less_than(L.reduce_mean(x), L.fill_constant([1], "float32", 0.0))
    large = L.greater_than(L.reduce_mean(x), L.fill_constant([1], "float32", 1.0))
    if dice.chance(0.5):
        return L.case([(small, lambda: L.tanh(x)), (large, lambda: L.scale(x, 0.1))], default=lambda: L.relu(x))
    index = L.cast(small, "int32")
    return L.switch_case(index, {0: lambda: L.tanh(x), 1: lambda: x * 0.5}, default=lambda: L.relu(x))


def looped(g, x):
    """A While over an array, as a loop that is unrolled at run time."""
    L, dice = g.L, g.dice
    i = L.zeros(shape=[1], dtype="int64")
    i.stop_gradient = True
    array = L.array_write(x, i)
    limit = L.fill_constant(shape=[1], dtype="int64", value=dice.between(2, 3))
    limit.stop_gradient = True
    condition = L.less_than(i, limit)
    weight = g.matrix(int(x.shape[-1]), int(x.shape[-1])) if dice.chance(0.5) else None
    loop = L.While(cond=condition)
    with loop.block():
        state = L.array_read(array, i)
        new = L.tanh(L.mul(state, weight)) if weight is not None else L.tanh(state)
        L.increment(i, value=1, in_place=True)
        L.array_write(new, i, array=array)
        L.less_than(i, limit, cond=condition)
    return L.array_read(array, i)


def while_loop(g, x):
    """A loop that only counts: its results have no gradient."""
    L = g.L
    i = L.fill_constant([1], "int64", 0)
    ten = L.fill_constant([1], "int64", g.dice.between(2, 4))
    (count,) = L.while_loop(lambda i: L.less_than(i, ten), lambda i: [i + 1], [i])
    factor = L.cast(count, "float32")
    factor.stop_gradient = True
    return L.elementwise_mul(x, factor)


def if_else(g, x):
    L, size = g.L, int(x.shape[-1])
    limit = L.fill_constant_batch_size_like(x, [-1, 1], "float32", 0.0)
    branches = L.IfElse(L.less_than(L.reduce_mean(x, dim=1, keep_dim=True), limit))
    with branches.true_block():
        one = branches.input(x)
        branches.output(L.fc(one, size) if g.dice.chance(0.5) else L.tanh(one))
    with branches.false_block():
        other = branches.input(x)
        branches.output(L.scale(other, 0.5))
    return branches()[0]


def switched(g, x):
    L, dice = g.L, g.dice
    scale = L.create_global_var(shape=[1], value=0.0, dtype="float32", persistable=dice.chance(0.5))
    small = L.less_than(L.reduce_mean(x), L.fill_constant([1], "float32", 0.0))
    with L.Switch() as switch:
        with switch.case(small):
            L.assign(L.fill_constant([1], "float32", 0.5), scale)
        with switch.default():
            L.assign(L.fill_constant([1], "float32", 2.0), scale)
    return L.elementwise_mul(x, scale)


LAYERS = [(static_rnn, 3), (cond, 2), (cases, 1), (looped, 2), (while_loop, 1), (if_else, 1), (switched, 1)]
