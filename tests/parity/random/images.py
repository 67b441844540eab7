"""Layers on images, whose results are flattened to rows."""

import attributes


def conv(g, x):
    L, dice = g.L, g.dice
    channels = int(x.shape[1])
    groups = dice.pick([None, None, None, 1, channels])
    filters = channels * dice.pick([1, 2]) if groups == channels else dice.between(1, 4)
    padding = dice.pick([0, 1, 1, [1, 0], "SAME", "VALID", [1, 0, 0, 1], [[0, 0], [0, 0], [1, 1], [1, 0]]])
    return L.conv2d(
        x,
        num_filters=filters,
        filter_size=dice.pick([1, 2, 3, [3, 2]]),
        stride=dice.pick([1, 1, 2]),
        padding=padding,
        dilation=dice.pick([1, 1, 1, 2]),
        groups=groups,
        param_attr=attributes.attr(g),
        bias_attr=attributes.bias(g),
        use_cudnn=dice.chance(0.5),
        act=dice.pick([None, "relu", "tanh"]),
    )


def transposed(g, x):
    L, dice = g.L, g.dice
    channels = int(x.shape[1])
    groups = dice.pick([None, None, 1, channels])
    filters = channels if groups == channels else dice.between(1, 3)
    if dice.chance(0.2):
        given = dict(output_size=[int(x.shape[2]) * 2 + 1, int(x.shape[3]) * 2 + 1], stride=2)
    else:
        given = dict(filter_size=dice.pick([2, 3, [2, 3]]), stride=dice.pick([1, 2]), padding=dice.pick([0, 1]))
    return L.conv2d_transpose(
        x,
        num_filters=filters,
        groups=groups,
        param_attr=attributes.attr(g),
        bias_attr=attributes.bias(g),
        use_cudnn=dice.chance(0.5),
        act=dice.pick([None, "relu"]),
        **given,
    )


def pool(g, x):
    L, dice = g.L, g.dice
    return L.pool2d(
        x,
        pool_size=2,
        pool_type=dice.pick(["max", "avg"]),
        pool_stride=dice.pick([1, 2]),
        pool_padding=dice.pick([0, 0, 1, "SAME"]),
        use_cudnn=dice.chance(0.5),
        ceil_mode=dice.chance(0.3),
        exclusive=dice.chance(0.7),
    )


def norm(g, x):
    L, dice = g.L, g.dice
    return dice.pick(
        [
            lambda: L.batch_norm(
                x,
                act=dice.pick([None, "relu", "sigmoid"]),
                momentum=0.8,
                epsilon=1e-4,
                param_attr=attributes.attr(g),
                bias_attr=attributes.attr(g),
            ),
            lambda: L.lrn(x, n=3, alpha=0.001),
            lambda: L.layer_norm(x, begin_norm_axis=dice.pick([1, 2])),
            lambda: L.l2_normalize(x, axis=1),
        ]
    )()


def other(g, x):
    L, dice = g.L, g.dice
    return dice.pick(
        [
            lambda: L.prelu(x, mode=dice.pick(["all", "channel", "element"]), param_attr=attributes.attr(g)),
            lambda: L.maxout(x, groups=2) if int(x.shape[1]) % 2 == 0 else L.relu(x),
            lambda: L.pad2d(x, paddings=[1, 0, 1, 0], mode=dice.pick(["constant", "edge", "reflect"])),
            lambda: L.dropout(x, 0.3),
            lambda: L.elementwise_add(x, L.relu(x), act=dice.pick([None, "relu"])),
            lambda: L.elementwise_mul(x, g.vector(int(x.shape[1])), axis=1),
            lambda: L.transpose(x, perm=[0, 1, 3, 2]),
            lambda: L.concat([x, L.tanh(x)], axis=1),
            lambda: L.elementwise_mul(x, L.reduce_mean(x, dim=[2, 3]), axis=0),
        ]
    )()


def nets(g, x):
    nets, dice = g.fluid.nets, g.dice
    if dice.chance(0.5):
        return nets.simple_img_conv_pool(
            x,
            num_filters=dice.between(1, 4),
            filter_size=3,
            pool_size=2,
            pool_stride=1,
            conv_padding=1,
            act=dice.pick([None, "relu"]),
            use_cudnn=dice.chance(0.5),
        )
    normed = dice.chance(0.5)
    return nets.img_conv_group(
        x,
        conv_num_filter=[2, 3],
        pool_size=2,
        pool_stride=2,
        conv_act="relu",
        conv_with_batchnorm=dice.pick([normed, [True, False]]),
        conv_batchnorm_drop_rate=dice.pick([0.0, 0.2, [0.1, 0.0]]),
        use_cudnn=dice.chance(0.5),
    )


def rows(g):
    """A small network on images, with rows as result."""
    L, dice = g.L, g.dice
    extent = dice.pick([8, 10, 12])
    x = g.data("image", [dice.pick([1, 1, 2, 3]), extent, extent])
    for _ in range(dice.between(1, 4)):
        if min(x.shape[2:]) < 5:
            break
        x = g.weighted([(conv, 5), (transposed, 1), (pool, 2), (norm, 2), (other, 3), (nets, 1)])(g, x)
    kind = dice.between(0, 3)
    if kind == 0:
        return L.fc(x, g.width(), act=dice.pick([None, "relu"]))
    if kind == 1:
        return L.flatten(x, axis=1)
    if kind == 2:
        return L.reduce_mean(x, dim=[2, 3])
    return L.reshape(L.pool2d(x, pool_type="avg", global_pooling=True), [-1, int(x.shape[1])])
