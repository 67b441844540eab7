"""Optimizers of a store that are programs: equal to the same program, run by hand."""

from __future__ import annotations

from typing import Any, Callable

import numpy as np
import penstock
import pytest
from penstock import fluid
from penstock import kv as keyed
from penstock._src.kv.kinds import kind_of
from penstock._src.kv.served import ServedStore
from penstock._src.kv.store import KVStore
from test_key_client import run

STEPS = 5
RNG = np.random.RandomState(7)
VALUE = RNG.rand(4, 3).astype("float32")
GRADIENTS = RNG.rand(STEPS, 4, 3).astype("float32") - 0.5


def decayed() -> Any:
    clip = fluid.clip.GradientClipByValue(0.3)
    return fluid.optimizer.Adam(0.1, regularization=fluid.regularizer.L2Decay(0.1), grad_clip=clip)


def exponential() -> Any:
    return fluid.optimizer.Momentum(fluid.layers.exponential_decay(0.5, 1, 0.5), 0.9)


def piecewise() -> Any:
    return fluid.optimizer.SGD(fluid.layers.piecewise_decay([2, 4], [0.5, 0.1, 0.01]))


def of_norm() -> Any:
    return fluid.optimizer.SGD(0.5, grad_clip=fluid.clip.GradientClipByNorm(0.3))


MAKERS: list[Callable[[], Any]] = [
    lambda: fluid.optimizer.SGD(0.5),
    lambda: fluid.optimizer.Momentum(0.1, 0.9, use_nesterov=True),
    lambda: fluid.optimizer.RMSProp(0.1, centered=True, momentum=0.5),
    lambda: fluid.optimizer.Ftrl(0.1),
    lambda: fluid.optimizer.Lamb(0.1),
    lambda: fluid.optimizer.LarsMomentum(0.1, 0.9),
    decayed,
    exponential,
    piecewise,
    of_norm,
]
NAMES = ["sgd", "nesterov", "rmsprop", "ftrl", "lamb", "lars", "decayed", "exponential", "piecewise", "norm"]
by_name = dict(zip(NAMES, MAKERS))


def by_hand(make: Callable[[], Any], gradients: Any, value: Any = VALUE) -> list[np.ndarray]:
    """Returns the parameter after each update by exe.run."""
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        param = main.global_block().create_parameter(name="w", shape=list(value.shape), dtype=value.dtype.name)
        grad = fluid.data("g", list(value.shape), value.dtype.name)
        make().apply_gradients([(param, grad)])
    scope, exe = fluid.Scope(), fluid.Executor()
    seen = []
    with fluid.scope_guard(scope):
        exe.run(startup)
        scope.var("w").get_tensor().set(value, fluid.CPUPlace())
        for gradient in gradients:
            seen.append(exe.run(main, feed={"g": gradient}, fetch_list=["w"])[0])
    return seen


def assert_close(got: Any, expected: Any, name: str = "") -> None:
    """Equal but for the order of sums: to 1e-6 of the largest value."""
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-6 * np.abs(expected).max(), err_msg=name)


def pushed(kv: Any, key: str, gradients: Any) -> list[np.ndarray]:
    seen = []
    for gradient in gradients:
        kv.push(key, gradient)
        seen.append(kv.pull(key))
    return seen


@pytest.mark.parametrize("name", NAMES)
def test_a_local_store_updates_as_the_program_does(name: str) -> None:
    kv = keyed.create("local")
    kv.init("w", VALUE)
    kv.set_optimizer(by_name[name])
    np.testing.assert_array_equal(pushed(kv, "w", GRADIENTS), by_hand(by_name[name], GRADIENTS))


def test_each_key_has_its_own_states_type_and_shape() -> None:
    kv = keyed.create("local")
    wide = np.linspace(0, 1, 7)
    kv.init(["w", "wide", "half"], [VALUE, wide, VALUE.astype("float16")])
    kv.set_optimizer(exponential)
    pushed(kv, "w", GRADIENTS[:3])
    got = pushed(kv, "wide", [wide] * 3)  # the rate begins anew
    assert_close(got, by_hand(exponential, [wide.astype("float32")] * 3, wide.astype("float32")))
    assert got[0].dtype == np.float64
    half = pushed(kv, "half", GRADIENTS.astype("float16"))
    expected = by_hand(exponential, GRADIENTS.astype("float16").astype("float32"), VALUE.astype("float16").astype("f4"))
    np.testing.assert_array_equal(half, np.array(expected).astype("float16"))


@pytest.mark.parametrize("name", ["sgd", "nesterov"])
def test_rows_are_gradients_too(name: str) -> None:
    kv = keyed.create("local")
    kv.init("t", keyed.RowSparse(np.arange(4), VALUE, VALUE.shape))
    kv.set_optimizer(by_name[name])
    dense = np.zeros_like(GRADIENTS)
    for step, gradient in enumerate(GRADIENTS):
        rows = np.array([step % 4, 3]) if step % 4 != 3 else np.array([3])
        dense[step, rows] = gradient[rows]
        kv.push("t", keyed.RowSparse(rows, gradient[rows], VALUE.shape))
    got = kv.row_sparse_pull("t", row_ids=np.arange(4)).values
    np.testing.assert_array_equal(got, by_hand(by_name[name], dense)[-1])


def own() -> tuple[Any, Any, Any, Any]:
    """A step by the sign of an average, which sums all squares."""
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        w, g = (fluid.data(name, [2, 3]) for name in "wg")
        average = fluid.layers.create_global_var([2, 3], 1.0, "float32", persistable=True)
        fluid.layers.assign(0.5 * average + g, average)
        norm = fluid.layers.sqrt(fluid.layers.reduce_sum(fluid.layers.square(average)))
        fluid.layers.assign(w - fluid.layers.sign(average) * norm, w)
    return main, startup, w, g


def own_by_hand(gradients: Any) -> list[np.ndarray]:
    value, average, seen = VALUE.copy(), np.ones_like(VALUE), []
    for gradient in gradients:
        average = np.float32(0.5) * average + gradient
        value = value - np.sign(average) * np.sqrt((average * average).sum())
        seen.append(value)
    return seen


def test_an_own_program_updates_keys() -> None:
    kv = keyed.create("local")
    kv.init("w", VALUE)
    kv.set_optimizer(*own())
    assert_close(pushed(kv, "w", GRADIENTS), own_by_hand(GRADIENTS))


@pytest.mark.parametrize("with_optimizer", [False, True])
def test_states_are_saved_and_loaded(tmp_path: Any, with_optimizer: bool) -> None:
    kv, other = keyed.create("local"), keyed.create("local")
    kv.init("w", VALUE)
    kv.set_optimizer(decayed)
    for gradient in GRADIENTS[:2]:
        kv.push("w", gradient)
    kv.save_optimizer_states(str(tmp_path / "states"), with_optimizer)
    other.init("w", kv.pull("w"))
    other.set_optimizer(fluid.optimizer.SGD(0.1) if with_optimizer else decayed)
    other.load_optimizer_states(str(tmp_path / "states"))
    np.testing.assert_array_equal(pushed(other, "w", GRADIENTS[2:]), by_hand(decayed, GRADIENTS)[2:])


def over_servers(kv: Any, kind: str) -> Any:
    return KVStore(kind_of(kind), ServedStore(kv, in_fours=True))


def synchronous(client: Any) -> dict[str, Any]:
    kv, got = over_servers(client, "dist_sync"), {}
    for name in NAMES:
        kv.init(name, VALUE)
    kv.init("late", VALUE)
    for name in NAMES:  # each begins anew for all keys
        kv.set_optimizer(by_name[name])
        kv.barrier()
        got[name] = pushed(kv, name, GRADIENTS * (1 + kv.rank))
    kv.set_optimizer(*own())
    kv.barrier()
    got["own"] = pushed(kv, "late", GRADIENTS * (1 + kv.rank))
    return got


@pytest.mark.parametrize(("workers", "servers", "bound"), [(1, 1, 1000), (2, 2, 4)])
def test_pservers_update_as_the_program_does(workers: int, servers: int, bound: int) -> None:
    share = np.float32(sum(range(1, workers + 1)))
    for got in run(synchronous, workers, servers, bound=bound):
        for name in NAMES:
            assert_close(got[name], by_hand(by_name[name], GRADIENTS * share), name)
        assert_close(got["own"], own_by_hand(GRADIENTS * share))


def asynchronous(client: Any) -> Any:
    kv = over_servers(client, "dist_async")
    kv.init("w", VALUE)
    kv.init("t", keyed.RowSparse(np.arange(4), VALUE, VALUE.shape))
    kv.set_optimizer(exponential)
    kv.barrier()
    for _ in range(3):
        kv.push("w", GRADIENTS[0])
        kv.push("t", keyed.RowSparse([1], GRADIENTS[0, 1:2], VALUE.shape))
    kv.barrier()
    return kv.pull("w"), kv.row_sparse_pull("t", row_ids=[1]).values


def test_each_asynchronous_push_is_an_update() -> None:
    expected = by_hand(exponential, [GRADIENTS[0]] * 6)[-1]
    for whole, row in run(asynchronous, 2, 2, bound=4, sync=False):
        np.testing.assert_array_equal(whole, expected)
        np.testing.assert_array_equal(row[0], expected[1])


def refused_by_servers(client: Any) -> list[str]:
    kv, seen = over_servers(client, "dist_sync"), []
    kv.init("t", keyed.RowSparse(np.arange(4), VALUE, VALUE.shape))
    bad = program(lambda w, g: fluid.layers.assign(w - fluid.layers.square(g), w))
    for given in [bad, (lambda: fluid.optimizer.SGD(0.1 * (1 + kv.rank)),)]:
        try:
            kv.set_optimizer(*given)
            seen.append("")
        except penstock.ProgramError as error:
            seen.append(str(error))
    kv.push("t", keyed.RowSparse([1], GRADIENTS[0, 1:2], VALUE.shape))  # the job goes on
    kv.row_sparse_pull("t", row_ids=[1])
    return seen


def test_what_pservers_refuse_is_an_error_of_the_call() -> None:
    got = run(refused_by_servers, 2)  # one server, so that one worker is the first
    assert all("E-kv-program-key" in seen[0] and "square" in seen[0] for seen in got)
    assert ["E-kv-optimizer-differs" in seen[1] for seen in got].count(True) == 1


def program(update: Callable[[Any, Any], object], shape: tuple[int, ...] = (2, 3)) -> tuple[Any, Any, Any, Any]:
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        w, g = (fluid.data(name, list(shape)) for name in "wg")
        update(w, g)
    return main, startup, w, g


def lasting() -> Any:
    return (
        fluid.default_main_program()
        .global_block()
        .create_var(name="lasting", shape=[2, 3], dtype="float32", persistable=True)
    )


@pytest.mark.parametrize(
    ("update", "words"),
    [
        (lambda w, g: g + w, "no op writes w"),
        (lambda w, g: fluid.layers.assign(fluid.layers.softmax(g), w), "softmax depends on how the elements"),
        (lambda w, g: fluid.layers.assign(fluid.layers.transpose(g, [1, 0]), w), "E-|neither the parameter's shape"),
        (lambda w, g: fluid.layers.assign(fluid.layers.dropout(g, 0.5), w), "dropout draws random numbers"),
        (lambda w, g: fluid.layers.assign(g + lasting(), w), "lasting has no first value"),
        (lambda w, g: fluid.layers.assign(g + fluid.data("x", [2, 3]), w), "reads x, to which nothing gives a value"),
        (lambda w, g: fluid.layers.assign(fluid.layers.Print(g), w), "print does more than to compute"),
        (lambda w, g: fluid.layers.assign(g + fluid.layers.reduce_sum(g, 0), w), "f32.3., which has neither"),
    ],
)
def test_programs_that_no_key_could_use_are_refused(update: Callable[[Any, Any], object], words: str) -> None:
    kv = keyed.create("local")
    with pytest.raises(penstock.ProgramError, match=words):
        kv.set_optimizer(*program(update))


def test_a_parameter_stands_for_any_shape() -> None:
    kv = keyed.create("local")
    with pytest.raises(penstock.ProgramError, match="E-kv-program.*|needs two elements"):
        kv.set_optimizer(*program(lambda w, g: fluid.layers.assign(w - g, w), (1,)))
    main, startup, w, _ = program(lambda w, g: fluid.layers.assign(w - g, w))
    with pytest.raises(penstock.ProgramError, match="it has no variable nothing"):
        kv.set_optimizer(main, startup, w, "nothing")


def test_what_is_no_optimizer_is_a_type_error() -> None:
    kv = keyed.create("local")
    main, startup, w, g = program(lambda w, g: fluid.layers.assign(w - g, w))
    for given in [(main,), (main, startup), (fluid.optimizer.SGD(0.1), startup), (7,), (lambda: 7,)]:
        with pytest.raises(TypeError, match="kv.set_optimizer"):
            kv.set_optimizer(*given)
    with fluid.program_guard(main, startup):
        rate = fluid.layers.exponential_decay(0.1, 1, 0.5)
    with pytest.raises(ValueError, match="a variable of another program"):
        kv.set_optimizer(fluid.optimizer.SGD(rate))


def test_integers_have_no_optimizer() -> None:
    kv = keyed.create("local")
    kv.init("i", np.arange(4))
    kv.set_optimizer(fluid.optimizer.SGD(0.1))
    with pytest.raises(penstock.ProgramError, match="E-kv-optimizer-type"):
        kv.push("i", np.arange(4))
