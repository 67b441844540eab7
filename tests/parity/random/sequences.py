"""Layers on sequences, which are tensors with LoD, reduced to rows."""

import attributes
import dense

POOLS = ("sum", "average", "sqrt", "max", "first", "last")


def width(x):
    return int(x.shape[-1])


def source(g):
    L, dice = g.L, g.dice
    if dice.chance(0.7):
        rows, size = dice.pick([30, 60]), g.width()
        ids = g.ids(rows, lod_level=1)
        return L.embedding(ids, size=[rows, size], padding_idx=dice.pick([None, None, 0]), **dense.table(g, rows, size))
    return g.data("sequence", [g.width()], lod_level=1)


def simple(g, x):
    L, dice = g.L, g.dice
    return dice.pick(
        [
            lambda: L.fc(
                x, g.width(), act=dice.pick([None, "tanh"]), param_attr=attributes.attr(g), bias_attr=attributes.bias(g)
            ),
            lambda: L.relu(x),
            lambda: L.sequence_conv(
                x,
                num_filters=g.width(),
                filter_size=dice.pick([3, 5]),
                padding_start=dice.pick([None, 0, -1]),
                param_attr=attributes.attr(g),
                bias_attr=attributes.bias(g),
                act=dice.pick([None, "tanh"]),
            ),
            lambda: L.row_conv(x, future_context_size=2, param_attr=attributes.attr(g), act=dice.pick([None, "relu"])),
            lambda: L.sequence_reverse(x),
            lambda: L.elementwise_add(x, L.tanh(x)),
            lambda: L.dropout(x, 0.2),
            lambda: L.sequence_concat([x, L.sigmoid(x)]),
            lambda: L.sequence_reshape(x, new_dim=2 * width(x)),
            lambda: L.layer_norm(x),
            lambda: L.batch_norm(x),
            lambda: dense.unary(g, x),
            lambda: dense.unary(g, x),
            lambda: dense.tuned(g, x),
            lambda: dense.tuned(g, x),
            lambda: _beside_itself(g, x),
            lambda: _beside_itself(g, x),
        ]
    )()


def _beside_itself(g, x):
    """Layers with two inputs, and special layers, that keep the rows."""
    L, dice = g.L, g.dice
    return dice.pick(
        [
            lambda: getattr(L, dice.pick(dense.SMOOTH))(x, L.relu(x)),
            lambda: L.sums([x, L.tanh(x), x]),
            lambda: L.concat([x, L.square(x)], axis=1),
            lambda: x * 2.0 - L.abs(x),
            lambda: L.elementwise_add(x, g.vector(width(x)), axis=-1),
            lambda: L.elementwise_mul(x, L.reduce_sum(x, dim=[1]), axis=0),
            lambda: L.split(L.concat([x, x], axis=1), 2, dim=1)[0],
            lambda: L.slice(x, axes=[1], starts=[0], ends=[max(1, width(x) - 1)]),
            lambda: L.mul(x, g.matrix(width(x), g.width())),
            lambda: L.matmul(x, g.matrix(width(x), g.width())),
            lambda: L.reshape(x, [-1, width(x)]),
            lambda: L.expand(x, [1, 2]),
            lambda: L.cast(L.cast(x, "float64"), "float32"),
            lambda: L.assign(x),
            lambda: L.pad(x, [0, 0, 1, 0]),
            lambda: L.squeeze(L.unsqueeze(x, [1]), [1]),
        ]
    )()


def expanded(g, x):
    L, dice = g.L, g.dice
    return dice.pick(
        [
            lambda: L.sequence_expand_as(L.sequence_pool(x, dice.pick(POOLS)), x),
            lambda: L.sequence_expand_as(L.sequence_first_step(x), L.tanh(x)),
            lambda: L.sequence_expand(L.sequence_last_step(x), x, ref_level=dice.pick([-1, 0])),
            lambda: L.elementwise_mul(x, L.sequence_softmax(L.fc(x, 1, bias_attr=False)), axis=0),
            lambda: L.concat([x, L.sequence_expand(L.sequence_pool(x, "max"), x)], axis=1),
            lambda: L.lod_reset(L.relu(x), y=x),
            lambda: _padded(g, x),
            lambda: _sliced(g, x),
        ]
    )()


def _padded(g, x):
    L, dice = g.L, g.dice
    zero = L.fill_constant([1], "float32", 0.0)
    padded, length = L.sequence_pad(x, zero, maxlen=dice.pick([None, 12]))
    return L.sequence_unpad(L.relu(padded), length)


def _sliced(g, x):
    L = g.L
    offset = L.fill_constant_batch_size_like(L.sequence_pool(x, "sum"), [-1, 1], "int64", 0)
    length = L.fill_constant_batch_size_like(L.sequence_pool(x, "sum"), [-1, 1], "int64", 1)
    return L.sequence_slice(x, offset, length)


def recurrent(g, x):
    L, dice, size = g.L, g.dice, g.width()
    kind = dice.between(0, 2)
    turned = dice.chance(0.3)
    if kind == 0:
        gates = L.fc(x, 4 * size, bias_attr=False)
        hidden, cell = L.dynamic_lstm(
            gates,
            size=4 * size,
            use_peepholes=dice.chance(0.6),
            is_reverse=turned,
            param_attr=attributes.attr(g, ("lstm", size)),
            bias_attr=attributes.bias(g, False),
            candidate_activation=dice.pick(["tanh", "relu"]),
        )
        if dice.chance(0.1):
            return L.elementwise_add(hidden, cell)
        return hidden if dice.chance(0.8) else cell
    if kind == 1:
        gates = L.fc(x, 4 * size, bias_attr=False)
        projected, cell = L.dynamic_lstmp(
            gates,
            size=4 * size,
            proj_size=3,
            use_peepholes=dice.chance(0.6),
            is_reverse=turned,
            proj_activation=dice.pick(["tanh", "identity"]),
            cell_clip=dice.pick([None, 3.0]),
            proj_clip=dice.pick([None, 2.0]),
        )
        return projected if dice.chance(0.8) else cell
    return L.dynamic_gru(
        L.fc(x, 3 * size, bias_attr=dice.chance(0.3) and None),
        size=size,
        is_reverse=turned,
        param_attr=attributes.attr(g, ("gru", size)),
        origin_mode=dice.chance(0.3),
    )


def dynamic(g, x):
    L, dice, size = g.L, g.dice, g.width()
    rnn = L.DynamicRNN(name=g.fresh("drnn") if dice.chance(0.1) else None)
    context = L.sequence_pool(x, "average")
    with_static, boot = dice.chance(0.4), dice.chance(0.4)
    start = L.fc(context, size, act="tanh") if boot else None
    two = dice.chance(0.25)
    with rnn.block():
        step = rnn.step_input(x)
        inputs = [step]
        if with_static:
            inputs.append(rnn.static_input(context))
        if boot:
            memory = rnn.memory(init=start, need_reorder=dice.chance(0.5))
        else:
            memory = rnn.memory(shape=[size], value=dice.pick([0.0, 0.5]))
        new = L.fc(inputs + [memory], size, act=dice.pick(["tanh", "relu"]), bias_attr=attributes.bias(g))
        if two:
            other = rnn.memory(shape=[size], value=0.0)
            total = L.elementwise_add(other, new)
            rnn.update_memory(other, total)
        rnn.update_memory(memory, new)
        if two:
            rnn.output(new, total)
        else:
            rnn.output(new)
    made = rnn()
    return made[dice.between(0, 1)] if two else made


def ended(g, x):
    L, dice = g.L, g.dice
    return dice.pick(
        [
            lambda: L.sequence_pool(x, dice.pick(POOLS)),
            lambda: L.sequence_pool(x, "max", pad_value=0.5),
            lambda: L.sequence_first_step(x),
            lambda: L.sequence_last_step(x),
            lambda: g.fluid.nets.sequence_conv_pool(
                x, num_filters=g.width(), filter_size=3, act="tanh", pool_type=dice.pick(["max", "sum", "sqrt"])
            ),
        ]
    )()


def rows(g):
    """A small network on sequences, with rows as result."""
    x = source(g)
    for _ in range(g.dice.between(0, 3)):
        x = g.weighted([(simple, 4), (expanded, 2), (recurrent, 2), (dynamic, 1)])(g, x)
    return ended(g, x)


def tagged(g):
    """A tagging loss, with one tag per element of a sequence."""
    L, dice = g.L, g.dice
    x = source(g)
    if dice.chance(0.5):
        x = simple_kept(g, x)
    classes = dice.pick([3, 5])
    scores = L.fc(x, classes, act="softmax")
    labels = g.ids(classes, lod_level=1)
    return L.mean(L.cross_entropy(scores, labels))


def simple_kept(g, x):
    """A layer that keeps the LoD of x."""
    return g.weighted([(recurrent, 1), (dynamic, 1)])(g, x)
