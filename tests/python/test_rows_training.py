"""Ten steps of a model with sequences of ids and sparse tables: losses and parameters equal those of NumPy in double
precision, with every optimizer. Some steps look up distinct ids in random order."""

import numpy as np
import pytest

STEPS, BATCH, HIDDEN, CLASSES = 10, 6, 5, 3
TABLES = {"deep": (40, 4), "wide": (30, 1)}
RATE = 0.05


def start_values():
    random = np.random.RandomState(7)
    shapes = dict(TABLES, w0=(4, HIDDEN), b0=(HIDDEN,), w1=(HIDDEN + 1, CLASSES), b1=(CLASSES,))
    return {name: random.uniform(-0.5, 0.5, shape).astype("float32") for name, shape in shapes.items()}


def batches():
    random = np.random.RandomState(8)
    made = []
    for step in range(STEPS):
        lengths = random.randint(1, 5, BATCH)
        ids = {}
        for name, (height, _) in TABLES.items():
            # All different in even steps, with repeats in others.
            ids[name] = (
                random.permutation(height)[: lengths.sum()]
                if step % 2 == 0
                else random.randint(0, height // 3, lengths.sum())
            )
        made.append((ids, lengths, random.randint(0, CLASSES, BATCH)))
    return made


def loss_and_gradients(p, ids, lengths, labels):
    """The gradients of tables are dense."""
    of = np.repeat(np.arange(BATCH), lengths)
    pooled = {}
    for name in TABLES:
        pooled[name] = np.zeros((BATCH, TABLES[name][1]))
        np.add.at(pooled[name], of, p[name][ids[name]])
    hidden = np.maximum(pooled["deep"] @ p["w0"] + p["b0"], 0)
    joined = np.concatenate([hidden, pooled["wide"]], 1)
    logits = joined @ p["w1"] + p["b1"]
    shares = np.exp(logits - logits.max(1, keepdims=True))
    shares /= shares.sum(1, keepdims=True)
    loss = -np.log(shares[np.arange(BATCH), labels]).mean()
    shares[np.arange(BATCH), labels] -= 1
    logits_grad = shares / BATCH
    joined_grad = logits_grad @ p["w1"].T
    hidden_grad = joined_grad[:, :HIDDEN] * (hidden > 0)
    pooled_grad = {"deep": hidden_grad @ p["w0"].T, "wide": joined_grad[:, HIDDEN:]}
    grads = {
        "w0": pooled["deep"].T @ hidden_grad,
        "b0": hidden_grad.sum(0),
        "w1": joined.T @ logits_grad,
        "b1": logits_grad.sum(0),
    }
    for name in TABLES:
        grads[name] = np.zeros_like(p[name])
        np.add.at(grads[name], ids[name], pooled_grad[name][of])
    return loss, grads


# A rule updates p in place by g; s is its state, zeros at first, and t counts steps from 1.
def sgd(p, g, s, t):
    p -= RATE * g


def momentum(p, g, s, t):
    s.v = 0.9 * s.v + g
    p -= RATE * s.v


def nesterov(p, g, s, t):
    s.v = 0.9 * s.v + g
    p -= RATE * (g + 0.9 * s.v)


def adagrad(p, g, s, t):
    s.v = s.v + g * g
    p -= RATE * g / (np.sqrt(s.v) + 1e-6)


def decayed_adagrad(p, g, s, t):
    s.v = 0.95 * s.v + 0.05 * g * g
    p -= RATE * g / (np.sqrt(s.v) + 1e-6)


def adam(p, g, s, t):
    s.v = 0.9 * s.v + 0.1 * g
    s.w = 0.999 * s.w + 0.001 * g * g
    p -= RATE * np.sqrt(1 - 0.999**t) / (1 - 0.9**t) * s.v / (np.sqrt(s.w) + 1e-6)


def adamax(p, g, s, t):
    s.v = 0.9 * s.v + 0.1 * g
    s.w = np.maximum(0.999 * s.w + 1e-6, np.abs(g))
    p -= RATE / (1 - 0.9**t) * s.v / s.w


def rmsprop(p, g, s, t):
    s.v = 0.95 * s.v + 0.05 * g * g
    s.w = 0.5 * s.w + RATE * g / np.sqrt(s.v + 1e-4)
    p -= s.w


def centered_rmsprop(p, g, s, t):
    s.v = 0.95 * s.v + 0.05 * g * g
    s.u = 0.95 * s.u + 0.05 * g
    s.w = 0.5 * s.w + RATE * g / np.sqrt(s.v - s.u * s.u + 1e-4)
    p -= s.w


def ftrl(p, g, s, t):
    squares = s.v + g * g
    s.w = s.w + g - (np.sqrt(squares) - np.sqrt(s.v)) / RATE * p
    s.v = squares
    reached = np.abs(s.w) > 0.01
    p[...] = np.where(reached, (0.01 * np.sign(s.w) - s.w) / (np.sqrt(squares) / RATE + 2 * 0.02), 0)


def adadelta(p, g, s, t):
    s.v = 0.95 * s.v + 0.05 * g * g
    step = -np.sqrt((s.w + 1e-4) / (s.v + 1e-4)) * g
    s.w = 0.95 * s.w + 0.05 * step * step
    p -= np.sqrt((s.w + 1e-4) / (s.v + 1e-4)) * g  # by the new average, as Fluid does


def clipped_by_global_norm(grads, params):
    norm = np.sqrt(sum((grad * grad).sum() for grad in grads.values()))
    return {name: grad * 0.2 / max(0.2, norm) for name, grad in grads.items()}


def clipped_by_norm(grads, params):
    return {name: grad * 0.1 / max(0.1, np.sqrt((grad * grad).sum())) for name, grad in grads.items()}


def clipped_by_value(grads, params):
    return {name: np.clip(grad, -0.03, 0.02) for name, grad in grads.items()}


def with_decay(grads, params):
    return {name: grad + 0.1 * params[name] for name, grad in grads.items()}


def with_sign(grads, params):
    return {name: grad + 0.1 * np.sign(params[name]) for name, grad in grads.items()}


# The rule, what becomes of gradients before it, and the optimizer.
OPTIMIZERS = {
    "sgd": (sgd, None, lambda F: F.optimizer.SGD(RATE)),
    "momentum": (momentum, None, lambda F: F.optimizer.Momentum(RATE, 0.9)),
    "nesterov": (nesterov, None, lambda F: F.optimizer.Momentum(RATE, 0.9, use_nesterov=True)),
    "adagrad": (adagrad, None, lambda F: F.optimizer.Adagrad(RATE)),
    "decayed_adagrad": (decayed_adagrad, None, lambda F: F.optimizer.DecayedAdagrad(RATE)),
    "adam": (adam, None, lambda F: F.optimizer.Adam(RATE, epsilon=1e-6)),
    "lazy_adam": (adam, None, lambda F: F.optimizer.Adam(RATE, epsilon=1e-6, lazy_mode=True)),
    "adamax": (adamax, None, lambda F: F.optimizer.Adamax(RATE, epsilon=1e-6)),
    "rmsprop": (rmsprop, None, lambda F: F.optimizer.RMSProp(RATE, epsilon=1e-4, momentum=0.5)),
    "centered_rmsprop": (
        centered_rmsprop,
        None,
        lambda F: F.optimizer.RMSProp(RATE, epsilon=1e-4, momentum=0.5, centered=True),
    ),
    "ftrl": (ftrl, None, lambda F: F.optimizer.Ftrl(RATE, l1=0.01, l2=0.02)),
    "adadelta": (adadelta, None, lambda F: F.optimizer.Adadelta(RATE, epsilon=1e-4)),
    "global_norm": (
        sgd,
        clipped_by_global_norm,
        lambda F: F.optimizer.SGD(RATE, grad_clip=F.clip.GradientClipByGlobalNorm(0.2)),
    ),
    "norm": (
        momentum,
        clipped_by_norm,
        lambda F: F.optimizer.Momentum(RATE, 0.9, grad_clip=F.clip.GradientClipByNorm(0.1)),
    ),
    "value": (
        adagrad,
        clipped_by_value,
        lambda F: F.optimizer.Adagrad(RATE, grad_clip=F.clip.GradientClipByValue(0.02, -0.03)),
    ),
    "decay": (
        momentum,
        with_decay,
        lambda F: F.optimizer.Momentum(RATE, 0.9, regularization=F.regularizer.L2Decay(0.1)),
    ),
    "sign": (sgd, with_sign, lambda F: F.optimizer.SGD(RATE, regularization=F.regularizer.L1Decay(0.1))),
}


class State:
    """Zeros until set; one number or one for each element of a parameter."""

    def __init__(self, shape):
        self.u, self.v, self.w = np.zeros(shape), np.zeros(shape), np.zeros(shape)

    def at(self, rows):
        return {name: value[rows] for name, value in vars(self).items()}

    def put(self, rows, values):
        for name, value in values.items():
            getattr(self, name)[rows] = value


def expected(name):
    rule, prepared, _ = OPTIMIZERS[name]
    p = {key: value.astype("float64") for key, value in start_values().items()}
    states = {key: State(value.shape) for key, value in p.items()}
    losses = []
    for t, (ids, lengths, labels) in enumerate(batches(), 1):
        loss, grads = loss_and_gradients(p, ids, lengths, labels)
        losses.append(loss)
        grads = prepared(grads, p) if prepared else grads
        for key, grad in grads.items():
            power = t + 1 if rule is adam and key in TABLES else t  # by rows adam takes the next step's powers of beta
            if name != "lazy_adam" or key not in TABLES:
                rule(p[key], grad, states[key], power)
                continue
            rows = np.unique(ids[key])  # others stay, and their moments too
            state, value = State(grad[rows].shape), p[key][rows]
            vars(state).update(states[key].at(rows))
            rule(value, grad[rows], state, power)
            states[key].put(rows, vars(state))
            p[key][rows] = value
    return losses, p


def model(fluid):
    L = fluid.layers
    pooled = []
    for name, shape in TABLES.items():
        ids = L.data(name + "_ids", [1], dtype="int64", lod_level=1)
        pooled.append(L.sequence_pool(L.embedding(ids, shape, is_sparse=True, param_attr=fluid.ParamAttr(name)), "sum"))
    label = L.data("label", [1], dtype="int64")
    hidden = L.fc(pooled[0], HIDDEN, act="relu", param_attr=fluid.ParamAttr("w0"), bias_attr=fluid.ParamAttr("b0"))
    shares = L.fc(
        L.concat([hidden, pooled[1]], 1),
        CLASSES,
        act="softmax",
        param_attr=fluid.ParamAttr("w1"),
        bias_attr=fluid.ParamAttr("b1"),
    )
    return L.mean(L.cross_entropy(shares, label))


def feed_of(fluid, ids, lengths, labels):
    feed = {
        name + "_ids": fluid.create_lod_tensor(ids[name].reshape(-1, 1), [lengths.tolist()], fluid.CPUPlace())
        for name in TABLES
    }
    return dict(feed, label=labels.reshape(-1, 1))


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_ten_steps_equal_numpy(fluid, name):
    loss = model(fluid)
    OPTIMIZERS[name][2](fluid).minimize(loss)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    scope = fluid.global_scope()
    for param, value in start_values().items():
        scope.find_var(param).get_tensor().set(value, fluid.CPUPlace())
    losses, params = expected(name)
    got = [exe.run(feed=feed_of(fluid, *batch), fetch_list=[loss])[0].item() for batch in batches()]
    np.testing.assert_allclose(got, losses, rtol=1e-4, atol=1e-5)
    for param, value in params.items():
        np.testing.assert_allclose(
            np.array(scope.find_var(param).get_tensor()), value, rtol=1e-4, atol=1e-5, err_msg=param
        )
