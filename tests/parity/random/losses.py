"""Losses on rows, and metrics."""

import attributes


def classified(g, x):
    L, dice = g.L, g.dice
    classes = dice.pick([2, 3, 10])
    label = g.ids(classes, name="label")
    kind = dice.between(0, 6)
    if kind in (0, 1):
        scores = L.fc(x, classes, act="softmax")
        if kind == 1:
            _measure(g, scores, label, classes)
        return L.cross_entropy(scores, label, ignore_index=dice.pick([-100, -100, 0]))
    scores = L.fc(x, classes, param_attr=attributes.attr(g))
    if kind == 2:
        return L.softmax_with_cross_entropy(scores, label, numeric_stable_mode=dice.chance(0.8))
    if kind == 3:
        loss, shares = L.softmax_with_cross_entropy(scores, label, return_softmax=True)
        _measure(g, shares, label, classes)
        return loss
    smooth = L.one_hot(label, depth=classes)
    if dice.chance(0.7):
        prior = L.fill_constant([1, classes], "float32", 1.0 / classes) if dice.chance(0.3) else None
        smooth = L.label_smooth(smooth, prior_dist=prior, epsilon=dice.pick([0.1, 0.2]))
    if kind == 4:
        return L.softmax_with_cross_entropy(scores, smooth, soft_label=True)
    if kind == 5:
        return L.cross_entropy(L.softmax(scores), smooth, soft_label=True)
    return L.sigmoid_cross_entropy_with_logits(scores, smooth, normalize=dice.chance(0.3))


def _measure(g, scores, label, classes):
    L, dice = g.L, g.dice
    if dice.chance(0.7):
        L.accuracy(input=scores, label=label, k=dice.pick([1, 2]))
    if classes == 2 and dice.chance(0.5):
        L.auc(input=scores, label=label, num_thresholds=100, slide_steps=dice.pick([1, 3]))


def regressed(g, x):
    L, dice = g.L, g.dice
    guess = L.fc(x, 1)
    truth = g.data("target", [1])
    return dice.pick(
        [
            lambda: L.square_error_cost(guess, truth),
            lambda: L.square_error_cost(input=guess, label=truth),
            lambda: L.huber_loss(guess, truth, delta=1.0),
            lambda: L.smooth_l1(guess, truth, sigma=dice.pick([None, 2.0])),
            lambda: L.log_loss(L.sigmoid(guess), truth),
            lambda: L.sigmoid_cross_entropy_with_logits(guess, truth),
            lambda: L.square(L.elementwise_sub(guess, truth)),
            lambda: L.abs(guess - truth),
        ]
    )()


def ranked(g, x):
    L, dice = g.L, g.dice
    left, right, label = L.fc(x, 1), L.fc(g.rows(), 1), g.data("order", [1])
    if dice.chance(0.5):
        return L.rank_loss(label, left, right)
    return L.margin_rank_loss(label, left, right, margin=dice.pick([0.1, 0.3]))


def compared(g, x):
    L, dice = g.L, g.dice
    y = g.rows(int(x.shape[-1]))
    if dice.chance(0.5):
        reduction = dice.pick(["mean", "sum", "batchmean", "none"])
        return L.kldiv_loss(L.log(L.softmax(x)), L.softmax(y), reduction=reduction)
    return 1.0 - L.cos_sim(x, y)


def many_classes(g, x):
    L, dice = g.L, g.dice
    classes = dice.pick([12, 30])
    label = g.ids(classes, name="label")
    if dice.chance(0.5):
        custom = dice.pick([None, None, 1])
        return L.nce(
            input=x,
            label=label,
            num_total_classes=classes,
            num_neg_samples=dice.pick([None, 4]),
            sampler="custom_dist" if custom else dice.pick(["uniform", "log_uniform"]),
            custom_dist=[1.0 / classes] * classes if custom else None,
            seed=dice.pick([0, 5]),
            is_sparse=dice.chance(0.3),
            param_attr=attributes.attr(g),
            bias_attr=attributes.bias(g),
        )
    return L.hsigmoid(
        x, label, classes, param_attr=attributes.attr(g), bias_attr=attributes.bias(g), is_sparse=dice.chance(0.3)
    )


def cut_off(g, x):
    """Stops the gradient in a part of the graph."""
    L = g.L
    other = L.fc(g.rows(), int(x.shape[-1]))
    other.stop_gradient = True
    return L.reduce_sum(L.square(L.elementwise_sub(x, other)), dim=1)


LOSSES = [(classified, 6), (regressed, 5), (ranked, 1), (compared, 1), (many_classes, 1), (cut_off, 1)]


def reduced(g, cost):
    L = g.L
    return g.dice.pick(
        [
            lambda: L.mean(cost),
            lambda: L.mean(cost),
            lambda: L.mean(x=cost),
            lambda: L.reduce_mean(cost),
            lambda: L.reduce_sum(cost),
            lambda: L.mean(L.scale(cost, 0.5)),
        ]
    )()
