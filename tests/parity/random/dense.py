"""Layers on rows: tensors of rank 2 whose first extent is the batch."""

import attributes

UNARY = (
    "abs",
    "atan",
    "ceil",
    "cos",
    "exp",
    "floor",
    "log",
    "logsigmoid",
    "reciprocal",
    "relu",
    "round",
    "rsqrt",
    "sigmoid",
    "sign",
    "sin",
    "softplus",
    "softsign",
    "sqrt",
    "square",
    "tanh",
    "tanh_shrink",
    "cumsum",
    "gelu",
    "leaky_relu",
    "elu",
    "relu6",
    "stanh",
    "hard_sigmoid",
    "swish",
    "hard_swish",
    "softmax",
)
ACTS = (None, None, None, "relu", "tanh", "sigmoid", "softmax", "relu6", "leaky_relu", "square", "exp")
SMOOTH = (
    "elementwise_add",
    "elementwise_sub",
    "elementwise_mul",
    "elementwise_div",
    "elementwise_max",
    "elementwise_min",
    "elementwise_pow",
)


def width(x):
    return int(x.shape[-1])


def fc(g, x, size=None):
    size = size or g.width()
    act = g.dice.pick(ACTS)
    if g.dice.chance(0.12):
        other = g.rows()
        attrs = [attributes.attr(g, ("fc", width(x), size)), attributes.attr(g, ("fc", width(other), size))]
        attrs = attrs if all(one is not None for one in attrs) else None
        return g.L.fc([x, other], size, param_attr=attrs, bias_attr=attributes.bias(g), act=act)
    named = {"name": g.fresh("layer")} if g.dice.chance(0.1) else {}
    return g.L.fc(
        x,
        size,
        param_attr=attributes.attr(g, ("fc", width(x), size), True),
        bias_attr=attributes.bias(g),
        act=act,
        **named,
    )


def unary(g, x):
    layer = getattr(g.L, g.dice.pick(UNARY))
    return layer(x)


def tuned(g, x):
    """Layers with special arguments."""
    L, dice = g.L, g.dice
    return dice.pick(
        [
            lambda: L.leaky_relu(x, alpha=0.1),
            lambda: L.elu(x, alpha=0.5),
            lambda: L.relu6(x, threshold=4.0),
            lambda: L.hard_sigmoid(x, slope=0.3, offset=0.4),
            lambda: L.swish(x, beta=1.5),
            lambda: L.stanh(x, scale_a=0.5, scale_b=1.5),
            lambda: L.gelu(x, approximate=True),
            lambda: L.cumsum(x, axis=1, exclusive=dice.chance(0.5), reverse=dice.chance(0.5)),
            lambda: L.pow(x, factor=dice.pick([2.0, 0.5, 3.0])),
            lambda: L.scale(
                x,
                scale=dice.number(-2, 2),
                bias=dice.number(-1, 1),
                bias_after_scale=dice.chance(0.5),
                act=dice.pick([None, "relu"]),
            ),
            lambda: L.clip(x, min=-1.0, max=0.75),
            lambda: L.clip_by_norm(x, max_norm=2.0),
            lambda: L.softmax(x, axis=dice.pick([-1, 1])),
            lambda: L.dropout(
                x,
                dropout_prob=dice.pick([0.1, 0.5]),
                seed=dice.pick([None, 3]),
                dropout_implementation=dice.pick(["downgrade_in_infer", "upscale_in_train"]),
            ),
            lambda: L.l2_normalize(x, axis=dice.pick([1, -1])),
            lambda: L.prelu(x, mode="all", param_attr=attributes.attr(g)),
            lambda: L.prelu(x, mode="element", param_attr=attributes.attr(g)),
        ]
    )()


def normalized(g, x):
    L, dice = g.L, g.dice
    if dice.chance(0.5):
        return L.layer_norm(
            x,
            scale=dice.chance(0.7),
            shift=dice.chance(0.7),
            begin_norm_axis=1,
            param_attr=attributes.attr(g),
            bias_attr=attributes.attr(g),
            act=dice.pick([None, "relu"]),
        )
    names = {}
    if dice.chance(0.2):
        names = {"moving_mean_name": g.fresh("mean"), "moving_variance_name": g.fresh("variance")}
    return L.batch_norm(
        x,
        act=dice.pick([None, "relu"]),
        momentum=dice.pick([0.9, 0.99]),
        is_test=dice.chance(0.05),
        param_attr=attributes.attr(g),
        bias_attr=attributes.attr(g),
        in_place=dice.chance(0.1),
        use_global_stats=dice.chance(0.05),
        do_model_average_for_mean_and_var=dice.chance(0.7),
        **names,
    )


def pair(g, x):
    L, dice = g.L, g.dice
    y = g.rows(width(x))
    act = dice.pick([None, None, "relu", "tanh"])
    return dice.pick(
        [
            lambda: getattr(L, dice.pick(SMOOTH))(x, y, act=act),
            lambda: L.sums([x, y]),
            lambda: L.sum([x, y, x]),
            lambda: L.concat([x, y], axis=dice.pick([1, -1])),
            lambda: x * y,
            lambda: x - y * 0.5,
            lambda: x / (y + 2.0),
            lambda: 1.0 - x + y,
            lambda: L.elementwise_add(x, g.vector(width(x)), axis=dice.pick([-1, 1])),
            lambda: L.elementwise_mul(x, L.reduce_sum(y, dim=[1]), axis=0),
            lambda: L.elementwise_mul(x, L.reduce_mean(y, dim=1, keep_dim=True)),
            lambda: L.stack([x, y], axis=1)[:, 0],
            lambda: L.expand(L.cos_sim(x, y), [1, 3]),
            lambda: g.fluid.nets.glu(L.concat([x, y], axis=1), dim=1),
        ]
    )()


def reshaped(g, x):
    L, dice, size = g.L, g.dice, width(x)
    half = size // 2 if size % 2 == 0 else 1
    return dice.pick(
        [
            lambda: L.reshape(L.reshape(x, [-1, half, size // half]), [-1, size]),
            lambda: L.reshape(x, [0, half, size // half], act=dice.pick([None, "relu"]))[:, 0, :],
            lambda: L.squeeze(L.unsqueeze(x, [1]), [1]),
            lambda: L.flatten(L.unsqueeze(x, axes=[2]), axis=1),
            lambda: L.transpose(L.reshape(x, [-1, half, size // half]), perm=[0, 2, 1])[:, 0],
            lambda: L.split(x, 2, dim=1)[dice.between(0, 1)] if size % 2 == 0 else L.split(x, [1, size - 1], dim=-1)[1],
            lambda: L.slice(x, axes=[1], starts=[0], ends=[max(1, size - 1)]),
            lambda: L.strided_slice(x, axes=[1], starts=[0], ends=[size], strides=[2]),
            lambda: x[:, 1:] if size > 1 else x[:, 0:1],
            lambda: L.expand(x, expand_times=[1, 2]),
            lambda: L.pad(x, paddings=[0, 0, 1, 2], pad_value=dice.pick([0.0, 0.5])),
            lambda: L.reverse(x, axis=dice.pick([1, [1]])),
            lambda: L.cast(L.cast(x, "float64"), "float32"),
            lambda: L.assign(x),
            lambda: L.topk(x, k=min(2, size))[0],
            lambda: (
                L.reduce_sum(L.reshape(x, [-1, half, size // half]), dim=dice.pick([1, [1], -1])) if half > 1 else x
            ),
            lambda: L.matmul(x, g.matrix(size, g.width()), alpha=dice.pick([1.0, 0.5])),
            lambda: L.matmul(x, g.matrix(g.width(), size), transpose_y=True),
            lambda: L.mul(x, g.matrix(size, g.width())),
            lambda: L.gather(x, L.cast(L.fill_constant([2], "int32", 0), dice.pick(["int32", "int64"]))),
            lambda: L.argsort(x, axis=-1)[0],
            lambda: L.reshape(x, [-1, size], inplace=False),
            lambda: L.fc(L.uniform_random([L.fill_constant([1], "int64", 3), 2, size]), size),
        ]
    )()


def attended(g, x):
    L, dice = g.L, g.dice
    long = L.reshape(L.fc(x, 4 * 6, num_flatten_dims=1), [-1, 4, 6])
    if dice.chance(0.5):
        made = g.fluid.nets.scaled_dot_product_attention(
            long, long, long, num_heads=dice.pick([1, 2]), dropout_rate=dice.pick([0.0, 0.1])
        )
    else:
        other = L.fc(long, 6, num_flatten_dims=dice.pick([2, -1]), bias_attr=attributes.bias(g), act="tanh")
        weights = L.softmax(L.matmul(long, other, transpose_y=True, alpha=0.4))
        made = L.matmul(weights, other)
        if dice.chance(0.5):
            made = L.layer_norm(made, begin_norm_axis=2)
    return dice.pick(
        [
            lambda: L.reduce_mean(made, dim=1),
            lambda: L.reduce_max(made, dim=[1]),
            lambda: L.reduce_min(made, dim=1),
            lambda: L.reshape(made, [-1, 24]),
        ]
    )()


def table(g, rows, size):
    """The storage of a table. At most one is distributed, as in Fluid, and it has its own name."""
    if not g.distributed and g.dice.chance(0.07):
        g.sparse = g.distributed = True
        return dict(is_sparse=True, is_distributed=True, param_attr=g.fluid.ParamAttr(name=g.fresh("distributed")))
    attr = attributes.attr(g, ("table", rows, size))
    sparse = g.dice.chance(0.5)
    g.sparse = g.sparse or sparse
    return dict(is_sparse=sparse, param_attr=attr)


def looked_up(g, _):
    """Embeddings of ids without sequences."""
    L, dice = g.L, g.dice
    rows, size = dice.pick([20, 50, 3000]), g.width()
    ids = g.ids(rows)
    given = dict(size=[rows, size], padding_idx=dice.pick([None, None, 0, -1, 3]), **table(g, rows, size))
    if given.get("is_distributed") or dice.chance(0.5):
        return L.embedding(ids, **given)
    return L.reshape(g.fluid.embedding(ids, **given), [-1, size])


def stepped(g, x):
    """One step of a recurrent unit."""
    L, dice, size = g.L, g.dice, g.width()
    if dice.chance(0.5):
        hidden, cell = L.lstm_unit(
            x_t=x,
            hidden_t_prev=g.rows(size),
            cell_t_prev=g.rows(size),
            forget_bias=dice.pick([0.0, 1.0]),
            param_attr=attributes.attr(g),
            bias_attr=dice.pick([None, None, False]),
        )
        return dice.pick([hidden, cell])
    new, reset, gates = L.gru_unit(
        input=g.rows(3 * size),
        hidden=g.rows(size),
        size=3 * size,
        param_attr=attributes.attr(g),
        origin_mode=dice.chance(0.3),
    )
    return dice.pick([new, new, reset, gates])


def probable(g, x):
    """A measure of random variables whose parameters the network computes."""
    L, dice, size = g.L, g.dice, width(x)

    def pair():
        """Two parameters of a distribution, the second of which is positive."""
        if dice.chance(0.2):
            return [L.fill_constant_batch_size_like(x, [-1, size], "float32", value) for value in (0.5, 1.5)]
        return L.fc(x, size), L.exp(L.fc(x, size))

    def categorical():
        return L.Categorical(L.fc(x, size))

    normal, uniform = L.Normal(*pair()), L.Uniform(*pair())
    return dice.pick(
        [
            normal.entropy,
            uniform.entropy,
            lambda: normal.log_prob(L.fc(x, size)),
            lambda: uniform.log_prob(L.fc(x, size)),
            lambda: normal.kl_divergence(L.Normal(*pair())),
            lambda: L.expand(categorical().entropy(), [1, size]),
            lambda: L.expand(categorical().kl_divergence(categorical()), [1, size]),
            lambda: L.reduce_mean(normal.sample([2], seed=dice.pick([0, 3])), dim=0),
            lambda: L.reduce_mean(uniform.sample([2], seed=dice.pick([0, 3])), dim=0),
        ]
    )()


LAYERS = [
    (fc, 5),
    (unary, 4),
    (tuned, 4),
    (normalized, 2),
    (pair, 4),
    (reshaped, 5),
    (attended, 1),
    (looked_up, 2),
    (stepped, 1),
    (probable, 1),
]
