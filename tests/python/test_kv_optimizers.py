"""Updates of a key-value store against their formulas in NumPy; and what no formula tells: which rows change, what a
schedule does to momentum, what is refused."""

import math

import numpy as np
import pytest
from penstock import _penstock

STEPS = 4
SHAPE = (6, 3)


def clip(x, c):
    return np.clip(x, -c, c) if c else x


class Formulas:
    """One update for each name: (w, g, states, t) -> w."""

    def __init__(self, args):
        self.a = args

    def x(self, g):
        return clip(self.a["rescale_grad"] * g, self.a.get("clip_gradient"))

    def y(self, w, g):
        return clip(self.a["rescale_grad"] * g + self.a["wd"] * w, self.a.get("clip_gradient"))

    def average(self, s, name, of, by):
        s[name] = by * s.get(name, 0) + (1 - by) * of
        return s[name]

    def sgd(self, w, g, s, t):
        a = self.a
        s["m"] = a["momentum"] * s.get("m", 0) - a["learning_rate"] * (a["wd"] * w + self.x(g))
        return w + s["m"]

    def nag(self, w, g, s, t):
        a, kept = self.a, self.a["momentum"] * s.get("m", 0)
        step = a["learning_rate"] * (self.x(g) + a["wd"] * w)
        s["m"] = kept - step
        return w - step if a["momentum"] == 0 else w - kept + (1 + a["momentum"]) * (kept - step)

    def adam(self, w, g, s, t):
        a, y = self.a, self.y(w, g)
        m, v = self.average(s, "m", y, a["beta1"]), self.average(s, "v", y * y, a["beta2"])
        rate = a["learning_rate"] * math.sqrt(1 - a["beta2"] ** t) / (1 - a["beta1"] ** t)
        return w - rate * m / (np.sqrt(v) + a["epsilon"])

    def adagrad(self, w, g, s, t):
        a, x = self.a, self.x(g)
        s["h"] = s.get("h", 0) + x * x
        return w - a["learning_rate"] * (x / np.sqrt(s["h"] + a["eps"]) + a["wd"] * w)

    def rmsprop(self, w, g, s, t):
        a, y = self.a, self.y(w, g)
        n = self.average(s, "n", y * y, a["gamma1"])
        if a["centered"]:
            mean = self.average(s, "mean", y, a["gamma1"])
            s["d"] = a["gamma2"] * s.get("d", 0) - a["learning_rate"] * y / np.sqrt(n - mean * mean + a["epsilon"])
            w = w + s["d"]
        else:
            w = w - a["learning_rate"] * y / np.sqrt(n + a["epsilon"])
        return clip(w, a.get("clip_weights"))

    def adadelta(self, w, g, s, t):
        a, x = self.a, self.x(g)
        mean = self.average(s, "a", x * x, a["rho"])
        step = np.sqrt(s.get("b", 0) + a["epsilon"]) / np.sqrt(mean + a["epsilon"]) * x
        self.average(s, "b", step * step, a["rho"])
        return w - step - a["wd"] * w

    def ftrl(self, w, g, s, t):
        a, x, n = self.a, self.x(g), s.get("n", 0)
        s["n"] = n + x * x
        s["z"] = s.get("z", 0) + x - (np.sqrt(s["n"]) - np.sqrt(n)) * w / a["learning_rate"]
        moved = (np.sign(s["z"]) * a["lamda1"] - s["z"]) / (
            (a["beta"] + np.sqrt(s["n"])) / a["learning_rate"] + a["wd"]
        )
        return np.where(np.abs(s["z"]) > a["lamda1"], moved, 0)

    def signum(self, w, g, s, t):
        a = self.a
        if a["momentum"] == 0:
            return (1 - a["learning_rate"] * a["wd"]) * w - a["learning_rate"] * np.sign(g)
        s["m"] = a["momentum"] * s.get("m", 0) - (1 - a["momentum"]) * (a["wd"] * w + self.x(g))
        return (1 - a["learning_rate"] * a["wd_lh"]) * w + a["learning_rate"] * np.sign(s["m"])

    def adamax(self, w, g, s, t):
        a, y = self.a, self.y(w, g)
        m = self.average(s, "m", y, a["beta1"])
        s["u"] = np.maximum(a["beta2"] * s.get("u", 0), np.abs(y))
        return w - a["learning_rate"] / (1 - a["beta1"] ** t) * m / s["u"]

    def nadam(self, w, g, s, t):
        a, y = self.a, self.y(w, g)
        m, v = self.average(s, "m", y, a["beta1"]), self.average(s, "v", y * y, a["beta2"])
        now, later = (a["beta1"] * (1 - 0.5 * 0.96 ** (i * a["schedule_decay"])) for i in (t, t + 1))
        s["p"] = s.get("p", 1) * now
        bar = (1 - now) * y / (1 - s["p"]) + later * m / (1 - s["p"] * later)
        return w - a["learning_rate"] * bar / (np.sqrt(v / (1 - a["beta2"] ** t)) + a["epsilon"])

    def ftml(self, w, g, s, t):
        a, y = self.a, self.y(w, g)
        v = self.average(s, "v", y * y, a["beta2"])
        d = (1 - a["beta1"] ** t) / a["learning_rate"] * (np.sqrt(v / (1 - a["beta2"] ** t)) + a["epsilon"])
        s["z"] = a["beta1"] * s.get("z", 0) + (1 - a["beta1"]) * y - (d - a["beta1"] * s.get("d", 0)) * w
        s["d"] = d
        return -s["z"] / d

    def lamb(self, w, g, s, t):
        a, x = self.a, self.x(g)
        m, v = self.average(s, "m", x, a["beta1"]), self.average(s, "v", x * x, a["beta2"])
        if a["bias_correction"]:
            m, v = m / (1 - a["beta1"] ** t), v / (1 - a["beta2"] ** t)
        u = m / (np.sqrt(v) + a["epsilon"]) + a["wd"] * w
        norm = max(np.linalg.norm(w), a.get("lower_bound", 0))
        norm = min(norm, a.get("upper_bound", math.inf))
        return w - a["learning_rate"] * norm / np.linalg.norm(u) * u

    def lars(self, w, g, s, t):
        a, norm = self.a, np.linalg.norm(w)
        rate = a["eta"] * norm / (np.linalg.norm(a["rescale_grad"] * g) + a["wd"] * norm + a["eps"])
        s["m"] = a["momentum"] * s.get("m", 0) - a["learning_rate"] * rate * (a["wd"] * w + self.x(g))
        return w + s["m"]

    def dcasgd(self, w, g, s, t):
        a, x, earlier = self.a, self.x(g), s.get("w", w)
        s["w"] = w
        return w - a["learning_rate"] * (x + a["wd"] * w + a["lamda"] * x * x * (w - earlier))

    def test(self, w, g, s, t):
        return w + self.a["rescale_grad"] * g


COMMON = {"learning_rate": 0.1, "rescale_grad": 0.5, "wd": 0.25}
SETTINGS = [
    (name, {**COMMON, "clip_gradient": 0.25, **more})
    for name, more in [
        ("adadelta", {}),
        ("adagrad", {}),
        ("adam", {}),
        ("adam", {"beta1": 0.5, "beta2": 0.75, "epsilon": 0.125}),
        ("adamax", {}),
        ("dcasgd", {"lamda": 0.5}),
        ("ftml", {}),
        ("ftrl", {"lamda1": 0.125}),
        ("lamb", {}),
        ("lamb", {"bias_correction": 0, "lower_bound": 8, "upper_bound": 16}),
        ("lamb", {"upper_bound": 0.5}),
        ("lars", {"momentum": 0.5}),
        ("lars", {"eta": 0.5, "eps": 0.25}),
        ("nadam", {}),
        ("nag", {"momentum": 0.5}),
        ("nag", {}),
        ("rmsprop", {}),
        ("rmsprop", {"centered": 1, "clip_weights": 0.5}),
        ("sgd", {"momentum": 0.5}),
        ("sgd", {}),
        ("signum", {"wd_lh": 0.25}),
        ("signum", {"momentum": 0}),
        ("test", {}),
    ]
]


def store_with(optimizer, value, rows=False):
    store = _penstock.KvLocal()
    if rows:
        store.init_rows("w", value.shape, np.arange(len(value)), value)
    else:
        store.init("w", value)
    store.set_optimizer(optimizer)
    return store


def pulled(store, key="w", shape=SHAPE, dtype="float64"):
    out = np.empty(shape, dtype)
    store.pull(key, out)
    return out


@pytest.mark.parametrize(("name", "given"), SETTINGS, ids=[f"{name}-{i}" for i, (name, _) in enumerate(SETTINGS)])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_updates_follow_the_formulas(name, given, dtype):
    draw = np.random.default_rng(5)
    w = draw.standard_normal(SHAPE).astype(dtype)
    optimizer = _penstock.KvOptimizer(name, given)
    store, formulas, states = store_with(optimizer, w), Formulas(optimizer.numbers), {}
    expected = w.astype("float64")
    for t in range(1, STEPS + 1):
        g = draw.standard_normal(SHAPE).astype(dtype)
        store.push("w", [g])
        expected = getattr(Formulas, name)(formulas, expected, g.astype("float64"), states, t)
        far = 1e-12 if dtype == "float64" else 2e-5
        np.testing.assert_allclose(pulled(store), expected, rtol=0, atol=far * np.abs(expected).max())


# Each with a number that the corpus has not, so that a formula that loses it fails.
def test_settings_matter():
    for name, given in SETTINGS:
        if name in ("test", "signum"):
            continue
        results = []
        for args in (given, {**given, "wd": 0.0, "clip_gradient": 100.0}):
            store = store_with(_penstock.KvOptimizer(name, args), np.ones(SHAPE))
            for _ in range(3):
                store.push("w", [np.linspace(-3, 4, 18).reshape(SHAPE)])
            results.append(pulled(store))
        assert not np.allclose(*results, rtol=1e-9), name


LAZY = ["sgd", "adam", "adagrad", "ftrl", "test", "groupadagrad"]


@pytest.mark.parametrize("name", LAZY)
def test_lazy_updates_leave_rows_that_are_not_listed(name):
    w = np.random.default_rng(1).standard_normal(SHAPE)
    given = {"wd": 0.25} if name in ("sgd", "adam", "ftrl") else {}
    store = store_with(_penstock.KvOptimizer(name, given), w, rows=True)
    for _ in range(2):
        store.push_rows("w", [(np.array([4, 1, 4]), np.ones((3, 3)))])
    after = pulled(store)
    np.testing.assert_array_equal(np.delete(after, [1, 4], axis=0), np.delete(w, [1, 4], axis=0))
    assert (after[[1, 4]] != w[[1, 4]]).all()


@pytest.mark.parametrize("name", ["nag", "rmsprop", "adamax", "nadam", "ftml", "signum", "adadelta", "lamb", "lars"])
def test_other_updates_by_rows_equal_dense_ones(name):
    w = np.random.default_rng(1).standard_normal(SHAPE)
    optimizer = _penstock.KvOptimizer(name, {"wd": 0.25})
    rows, dense = store_with(optimizer, w, rows=True), store_with(optimizer, w)
    g = np.random.default_rng(2).standard_normal(SHAPE)
    g[[0, 2, 5]] = 0
    for _ in range(3):
        rows.push_rows("w", [(np.array([4, 1, 3]), g[[4, 1, 3]])])
        dense.push("w", [g])
    np.testing.assert_array_equal(pulled(rows), pulled(dense))


def test_an_update_that_is_not_lazy_moves_all_rows():
    store = store_with(_penstock.KvOptimizer("adam", {"wd": 0.25, "lazy_update": 0}), np.ones(SHAPE), rows=True)
    store.push_rows("w", [(np.array([1]), np.ones((1, 3)))])
    assert (pulled(store) != 1).all()


def test_groupadagrad_sums_means_of_rows():
    w, g = np.ones((4, 3)), np.array([[1.0, 2.0, 3.0]])
    store = store_with(_penstock.KvOptimizer("groupadagrad", {"learning_rate": 0.5, "eps": 0.25}), w, rows=True)
    for _ in range(2):
        store.push_rows("w", [(np.array([2]), g)])
    mean = 14 / 3
    expected = 1 - 0.5 * g / math.sqrt(mean + 0.25) - 0.5 * g / math.sqrt(2 * mean + 0.25)
    np.testing.assert_allclose(pulled(store, shape=(4, 3))[2], expected[0], rtol=1e-12)


def test_sgld_adds_noise_of_the_rate():
    def run(seed, key="w", shape=(300, 100)):
        store = _penstock.KvLocal()
        store.init(key, np.zeros(shape))
        store.set_optimizer(_penstock.KvOptimizer("sgld", {"learning_rate": 0.04, "seed": seed}))
        store.push(key, [np.ones(shape)])
        first = pulled(store, key, shape)
        store.push(key, [np.zeros(shape)])
        return first, pulled(store, key, shape) - first

    first, second = run(1)
    assert abs(first.mean() + 0.02) < 0.005  # half of the rate; three standard errors are 0.0035
    assert abs(first.std() - 0.2) < 0.005  # the root of the rate
    assert abs(np.corrcoef(first.ravel(), second.ravel())[0, 1]) < 0.02
    np.testing.assert_array_equal(run(1)[0], first)
    assert not np.array_equal(run(2)[0], first)
    assert not np.array_equal(run(1, "v")[0], first)


def test_momentum_of_lars_follows_the_rate():
    schedule = _penstock.KvSchedule("factor", {"step": 1, "factor": 0.5, "base_lr": 1.0})
    for correction, ratio in ((1, 0.5), (0, 1.0)):
        given = {"momentum": 0.5, "momentum_correction": correction}
        store = _penstock.KvLocal()
        store.init("w_bias", np.ones(2))  # a bias: the norms do not count
        store.set_optimizer(_penstock.KvOptimizer("lars", given, schedule))
        store.push("w_bias", [np.ones(2)])
        np.testing.assert_array_equal(pulled(store, "w_bias", (2,)), [0, 0])
        store.push("w_bias", [np.ones(2)])
        np.testing.assert_array_equal(pulled(store, "w_bias", (2,)), np.full(2, -0.5 * ratio - 0.5))


def test_each_key_of_nadam_has_its_own_product():
    store = _penstock.KvLocal()
    one = _penstock.KvLocal()
    for key in ("a", "b"):
        store.init(key, np.ones(SHAPE))
    one.init("a", np.ones(SHAPE))
    for each in (store, one):
        each.set_optimizer(_penstock.KvOptimizer("nadam", {}))
    for t in range(3):
        for key in ("b", "a"):
            store.push(key, [np.full(SHAPE, t + 1.0)])
        one.push("a", [np.full(SHAPE, t + 1.0)])
    np.testing.assert_array_equal(pulled(store, "a"), pulled(one, "a"))


@pytest.mark.parametrize(
    ("name", "given", "error", "says"),
    [
        ("adamw", {}, _penstock.ProgramError, "there is no optimizer"),
        ("sgd", {"momentun": 0.5}, _penstock.ProgramError, "did you mean momentum"),
        ("adam", {"beta1": 2.0}, _penstock.ProgramError, "at least 0 and below 1"),
        ("groupadagrad", {"wd": 0.5}, NotImplementedError, "no weight decay"),
        ("dcasgd", {"momentum": 0.5}, NotImplementedError, "no momentum"),
        ("lbsgd", {}, NotImplementedError, "use lars"),
    ],
)
def test_what_cannot_be_is_refused(name, given, error, says):
    with pytest.raises(error, match=says):
        _penstock.KvOptimizer(name, given)


def test_text_travels():
    schedule = _penstock.KvSchedule("multi_factor", {"factor": 0.5, "base_lr": 1 / 3}, [2, 5], constant_warmup=True)
    made = _penstock.KvOptimizer("sgd", {"momentum": 0.9}, schedule, {"0": "a_weight", "1": "b bias"})
    made.set_lr_mult({"0": 0.1})
    made.set_wd_mult({"b bias": 0.25})
    read = _penstock.KvOptimizer.parse(made.text)
    assert (read.text, read.numbers, read.name) == (made.text, made.numbers, "sgd")
    assert [read.rate(n) for n in (1, 3, 6)] == [1 / 3, 1 / 6, 1 / 12]
