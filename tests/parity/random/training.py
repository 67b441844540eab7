"""Optimizers, schedules, clipping, averages."""

import attributes


def rate(g):
    if g.dice.chance(0.5):
        return g.dice.pick([0.1, 0.01, 0.001, 1.0, 1e-4])
    made = schedule(g)
    return warmed(g, made) if g.dice.chance(0.25) else made


def schedule(g):
    L, dice = g.L, g.dice
    made = dice.pick(
        [
            lambda: L.exponential_decay(0.1, decay_steps=10, decay_rate=0.9, staircase=dice.chance(0.5)),
            lambda: L.natural_exp_decay(0.1, decay_steps=10, decay_rate=0.5, staircase=dice.chance(0.5)),
            lambda: L.inverse_time_decay(0.1, decay_steps=5, decay_rate=0.5, staircase=dice.chance(0.5)),
            lambda: L.polynomial_decay(
                0.1, decay_steps=20, end_learning_rate=0.01, power=dice.pick([1.0, 2.0]), cycle=dice.chance(0.4)
            ),
            lambda: L.piecewise_decay([10, 20], [0.1, 0.05, 0.01]),
            lambda: L.cosine_decay(0.1, step_each_epoch=10, epochs=5),
            lambda: L.noam_decay(d_model=64, warmup_steps=10),
            lambda: L.noam_decay(d_model=64, warmup_steps=10, learning_rate=2.0),
        ]
    )()
    if dice.chance(0.3):
        made = dice.pick(
            [
                lambda: made * 0.5,
                lambda: L.scale(made, 0.3),
                lambda: made + 0.001,
                lambda: L.elementwise_max(made, L.fill_constant([1], "float32", 0.001)),
                lambda: L.elementwise_min(made, L.fill_constant([1], "float32", 0.05)),
                lambda: L.clip(made, 0.001, 0.05),
                lambda: L.sqrt(made * 2.0),
            ]
        )()
    return made


def warmed(g, made):
    made = g.dice.pick([made, made, 0.1])
    return g.L.linear_lr_warmup(made, warmup_steps=g.dice.pick([5, 20]), start_lr=0.001, end_lr=0.1)


def optimizer(g):
    o, dice = g.fluid.optimizer, g.dice
    common = {}
    if dice.chance(0.3):
        common["regularization"] = attributes.regularizer(g)
    if dice.chance(0.15):
        common["grad_clip"] = attributes.clip_of_gradient(g)
    if dice.chance(0.1):
        common["name"] = g.fresh("opt")
    lr = rate(g)
    if g.distributed and dice.chance(0.85):  # Fluid updates such a table by sgd alone
        return o.SGD(lr)
    takes_rows = [
        lambda: o.SGD(lr, **common),
        lambda: o.Momentum(lr, momentum=0.8, **common),
        lambda: o.Adam(lr, lazy_mode=dice.chance(0.5), **common),
        lambda: o.Adagrad(lr, **common),
        lambda: o.RMSProp(lr, **common),
    ]
    if g.sparse and dice.chance(0.9):
        return dice.pick(takes_rows)()
    return dice.pick(
        [
            lambda: o.SGD(lr, **common),
            lambda: o.SGDOptimizer(learning_rate=lr, **common),
            lambda: o.Momentum(lr, momentum=0.9, use_nesterov=dice.chance(0.4), **common),
            lambda: o.Adam(lr, beta1=dice.pick([0.9, 0.8]), epsilon=1e-7, lazy_mode=dice.chance(0.3), **common),
            lambda: o.Adam(lr, **common),
            lambda: o.Adagrad(lr, initial_accumulator_value=dice.pick([0.0, 0.1]), **common),
            lambda: o.DecayedAdagrad(lr, decay=0.9, **common),
            lambda: o.Adamax(lr, **common),
            lambda: o.Adadelta(lr, epsilon=1e-6, rho=0.9, **common),
            lambda: o.RMSProp(lr, rho=0.9, momentum=dice.pick([0.0, 0.9]), centered=dice.chance(0.4), **common),
            lambda: o.Ftrl(lr, l1=0.1, l2=0.1, **common),
            lambda: o.Lamb(
                lr,
                lamb_weight_decay=0.02,
                exclude_from_weight_decay_fn=dice.pick([None, lambda p: p.name.endswith("b_0")]),
                **common,
            ),
            lambda: o.LarsMomentum(lr, momentum=0.9, **common),
            lambda: o.Dpsgd(lr, clip=0.8, batch_size=4.0, sigma=0.1),
        ]
    )()


def set_clips(g):
    """Clipping by the old calls: per parameter, or for all."""
    fluid, dice = g.fluid, g.dice
    if dice.chance(0.12) and not g.distributed:
        params = g.main.all_parameters()
        chosen = None if dice.chance(0.85) or not params else dice.some(params, 1, 3)
        fluid.clip.set_gradient_clip(attributes.clip_of_gradient(g), param_list=chosen)


def minimize(g, loss):
    fluid, dice = g.fluid, g.dice
    set_clips(g)
    made = optimizer(g)
    given = {}
    params = [p.name for p in g.main.all_parameters()]
    if params and dice.chance(0.07):
        given["parameter_list"] = dice.some(params, 1, len(params))
    if params and dice.chance(0.05):
        given["no_grad_set"] = set(dice.some(params, 1, 1))
    kind = dice.between(0, 9)
    if kind == 0:
        pairs = made.backward(loss)
        made.apply_gradients(pairs)
    elif kind == 1:
        pairs = fluid.backward.append_backward(loss, **given)
        made.apply_gradients(pairs)
    else:
        _, pairs = made.minimize(loss, **given)
    if dice.chance(0.08):
        average = fluid.optimizer.ExponentialMovingAverage(
            0.99, thres_steps=fluid.layers.autoincreased_step_counter() if dice.chance(0.4) else None
        )
        average.update()
    elif dice.chance(0.06):
        fluid.optimizer.ModelAverage(0.15, min_average_window=10, max_average_window=20)
    return [(p.name, gradient.name) for p, gradient in pairs if gradient is not None]
