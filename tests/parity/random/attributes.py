"""Parameter attributes: names, initial values, regularizers, learning rates; and shared parameters."""


def regularizer(g):
    make = g.dice.pick([g.fluid.regularizer.L1Decay, g.fluid.regularizer.L2Decay])
    return make(g.dice.pick([0.1, 0.01, 0.0005, 1e-4]))


def initializer(g):
    made = g.fluid.initializer
    seed = g.dice.pick([0, 0, 7])
    return g.dice.pick(
        [
            lambda: made.Constant(g.dice.number(-1, 1)),
            lambda: made.Uniform(-0.1, 0.2, seed),
            lambda: made.Normal(0.1, 0.02, seed),
            lambda: made.TruncatedNormal(0.0, 0.3, seed),
            lambda: made.Xavier(uniform=g.dice.chance(0.5), seed=seed),
            lambda: made.MSRA(uniform=g.dice.chance(0.5), seed=seed),
        ]
    )()


def clip_of_gradient(g):
    clip = g.fluid.clip
    return g.dice.pick(
        [
            lambda: clip.GradientClipByValue(0.5),
            lambda: clip.GradientClipByValue(max=0.5, min=-0.25),
            lambda: clip.GradientClipByNorm(1.5),
            lambda: clip.GradientClipByGlobalNorm(2.0),
        ]
    )()


def plain(g, shape_key=None):
    """An attr for create_parameter, which does not accept a name instead."""
    made = attr(g, shape_key)
    return g.fluid.ParamAttr(name=made) if isinstance(made, str) else made


def attr(g, shape_key=None, allow_weight_norm=False):
    """A param_attr. With a shape_key, which identifies the parameter's shape, it may reuse an earlier parameter."""
    dice = g.dice
    if shape_key is not None and dice.chance(0.12) and g.shared.get(shape_key):
        name, same = dice.pick(g.shared[shape_key])
        return dice.pick([lambda: same, lambda: name, lambda: g.fluid.ParamAttr(name=name), lambda: _own(g, name)])()
    if dice.chance(0.55):
        return None
    if allow_weight_norm and dice.chance(0.02):
        return g.fluid.WeightNormParamAttr(dim=dice.pick([None, 0, 1]), name=g.fresh("wn"))
    if dice.chance(0.2):
        name = g.fresh("p")
        made = name
    else:
        name = g.fresh("p") if dice.chance(0.7) else None
        made = _own(g, name)
    if name is not None and shape_key is not None:
        g.shared.setdefault(shape_key, []).append((name, made))
    return made


def bias(g, can_miss=True):
    if can_miss and g.dice.chance(0.15):
        return False
    return attr(g) if g.dice.chance(0.3) else None


def _own(g, name):
    dice, given = g.dice, {}
    if dice.chance(0.5):
        given["initializer"] = initializer(g)
    if dice.chance(0.3):
        given["learning_rate"] = dice.pick([0.1, 0.5, 2.0, 0.3, 1.7])
    if dice.chance(0.35):
        given["regularizer"] = regularizer(g)
    if dice.chance(0.12):
        given["trainable"] = False
    if dice.chance(0.2):
        given["do_model_average"] = dice.chance(0.5)
    return g.fluid.ParamAttr(name=name, **given)
