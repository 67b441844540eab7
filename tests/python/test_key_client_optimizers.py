"""Optimizers of keys on pservers, in real processes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from penstock import _penstock
from test_key_client import pulled, run


def sgd(kv: Any) -> list[np.ndarray]:
    value = np.ones((2, 3), np.float32)
    dense = kv.declare("w", "float32", (2, 3), value=value)
    table = kv.declare("t", "float32", (4, 2), rows=True, value=np.ones((4, 2), np.float32))
    kv.barrier()
    kv.set_optimizer(_penstock.KvOptimizer("sgd", {"learning_rate": 0.5, "momentum": 0.5}).text)
    kv.barrier()
    late = kv.declare("late", "float32", (2,), value=np.zeros(2, np.float32))
    kv.barrier()
    seen = []
    rows = np.array([1, 3], np.int64)
    for _ in range(2):
        kv.push(dense, np.full((2, 3), 1 + kv.rank, np.float32))
        kv.push_rows(table, rows[kv.rank :], np.ones((2 - kv.rank, 2), np.float32))
        seen.append(pulled(kv, dense, value))
    out = np.zeros((4, 2), np.float32)
    kv.pull_rows(table, np.arange(4), out).wait()
    kv.push(late, np.ones(2, np.float32))
    return [*seen, out, pulled(kv, late, np.zeros(2, np.float32))]


@pytest.mark.parametrize("servers", [1, 2])
def test_servers_update_dense_keys_and_rows(servers: int) -> None:
    for one, two, rows, late in run(sgd, 2, servers):
        np.testing.assert_array_equal(one, np.full((2, 3), 1 - 1.5, np.float32))
        np.testing.assert_array_equal(two, np.full((2, 3), 1 - 1.5 - 2.25, np.float32))
        np.testing.assert_array_equal(rows[:, 0], [1, 1 - 0.5 - 0.75, 1, 1 - 1 - 1.5])
        np.testing.assert_array_equal(late, [-1, -1])


def again(kv: Any) -> list[float]:
    key = kv.declare("w", "float32", (1,), value=np.zeros(1, np.float32))
    kv.barrier()
    one, seen = np.ones(1, np.float32), []
    for rate, keep in [(1.0, False), (2.0, True), (2.0, False)]:
        text = _penstock.KvOptimizer("sgd", {"learning_rate": rate, "momentum": 0.5}).text
        kv.set_optimizer(text, keep)
        kv.push(key, one)
        seen.append(float(pulled(kv, key, one)[0]))
    kv.set_optimizer("")
    kv.push(key, one)
    return [*seen, float(pulled(kv, key, one)[0])]


def test_another_optimizer_keeps_the_state_if_asked() -> None:
    (seen,) = run(again)
    # momentum: -1; then -0.5 - 2; then -2
    assert seen == [-1.0, -3.5, -5.5, 1.0]


def schedule(kv: Any) -> list[float]:
    """Key a is the busiest; the rate of the others, wherever they lie, is its rate."""
    keys = [kv.declare(name, "float32", (1,), value=np.zeros(1, np.float32)) for name in "abcd"]
    kv.barrier()
    text = _penstock.KvOptimizer(
        "sgd", {}, _penstock.KvSchedule("factor", {"base_lr": 1.0, "factor": 0.5, "step": 1})
    ).text
    kv.set_optimizer(text)
    one = np.ones(1, np.float32)
    for _ in range(3):
        kv.push(keys[0], one)
    for key in keys[1:]:
        kv.push(key, one)
    return [float(pulled(kv, key, one)[0]) for key in keys]


@pytest.mark.parametrize("servers", [1, 2])
def test_the_rate_goes_by_the_busiest_key_of_all_servers(servers: int) -> None:
    (seen,) = run(schedule, 1, servers)
    assert seen == [-1.75, -0.25, -0.25, -0.25]


def refused(kv: Any) -> list[str]:
    key = kv.declare("w", "float32", (2,), value=np.zeros(2, np.float32))
    kv.barrier()
    seen = []
    for text in ["nonsense {}", "sgd {", _penstock.KvOptimizer("groupadagrad", {}).text]:
        try:
            kv.set_optimizer(text)
        except Exception as error:
            seen.append(str(error).split("[")[-1].split("]")[0])
    text = _penstock.KvOptimizer("sgd", {"learning_rate": 1.0 + kv.rank}).text
    try:
        kv.set_optimizer(text)
    except Exception as error:
        seen.append(str(error).split("[")[-1].split("]")[0])
    kv.push(key, np.ones(2, np.float32))
    pulled(kv, key, np.zeros(2, np.float32))
    return seen


def test_an_optimizer_that_cannot_be_used_is_an_error_of_its_callers() -> None:
    got = run(refused, 2)
    for seen in got:
        assert seen[:3] == ["E-kv-optimizer-name", "E-text-syntax", "E-kv-optimizer-refused"]
    assert sorted(seen[3:] for seen in got) == [[], ["E-kv-optimizer-differs"]]


def lamb(kv: Any) -> list[np.ndarray]:
    value = np.linspace(1, 2, 40, dtype=np.float32).reshape(5, 8)
    early = kv.declare("early", "float32", (5, 8), value=value)
    kv.barrier()
    kv.set_optimizer(_penstock.KvOptimizer("lamb", {"learning_rate": 0.1}).text)
    late = kv.declare("late", "float32", (5, 8), value=value)
    kv.barrier()
    seen = []
    for step in range(2):
        for key in (early, late):
            kv.push(key, value * (step + 1 + kv.rank))
            seen.append(pulled(kv, key, value))
    return seen


def test_an_optimizer_that_needs_norms_gets_whole_keys() -> None:
    (first, second), (expected, _) = run(lamb, 2, 2, bound=10), run(lamb, 2, 1)
    for i in range(4):
        np.testing.assert_array_equal(first[i], second[i])
        np.testing.assert_array_equal(first[i], expected[i])
    np.testing.assert_array_equal(first[0], first[1])
