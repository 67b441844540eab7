"""Keys of arrays on pservers, in real processes: penstock._penstock.KvClient and serve_keys."""

from __future__ import annotations

import multiprocessing
import socket
import traceback
from typing import Any, Callable

import numpy as np
import pytest
from penstock import _penstock

SECONDS = 60
Worker = Callable[[Any], Any]


def free_address() -> str:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{s.getsockname()[1]}"


def serve(address: str, workers: int) -> None:
    _penstock.serve_keys(address, workers, job="keys", token="secret")


def work(worker: Worker, results: Any, servers: list[str], rank: int, workers: int, options: dict[str, Any]) -> None:
    try:
        kv = _penstock.KvClient(servers, rank, workers, job="keys", token="secret", **options)
        result = worker(kv)
        kv.complete()
        results.put((rank, result))
    except BaseException:
        results.put((rank, traceback.format_exc()))


def run(worker: Worker, workers: int = 1, servers: int = 1, **options: Any) -> list[Any]:
    """Returns what the function returned for each rank."""
    context = multiprocessing.get_context("fork")
    addresses = [free_address() for _ in range(servers)]
    results = context.Queue()
    processes = [context.Process(target=serve, args=(address, workers)) for address in addresses]
    processes += [
        context.Process(target=work, args=(worker, results, addresses, rank, workers, options))
        for rank in range(workers)
    ]
    for process in processes:
        process.start()
    try:
        got = dict(results.get(timeout=SECONDS) for _ in range(workers))
        for process in processes:
            process.join(SECONDS)
            assert process.exitcode == 0
    finally:
        for process in processes:
            process.kill()
    for rank, value in got.items():
        assert not isinstance(value, str), f"worker {rank}: {value}"
    return [got[rank] for rank in range(workers)]


def pulled(kv: Any, key: int, like: np.ndarray) -> np.ndarray:
    out = np.full_like(like, 99)
    kv.pull(key, out).wait()
    return out


def one_key(kv: Any) -> list[np.ndarray]:
    value = np.arange(6, dtype=np.float32).reshape(2, 3)
    key = kv.declare("w", "float32", (2, 3), value=value)
    kv.barrier()
    seen = [pulled(kv, key, value)]
    for step in range(3):
        gradient = np.full((2, 3), step + 1 + kv.rank, np.float32)
        kv.push(key, gradient)
        gradient[:] = -1
        seen.append(pulled(kv, key, value))
    assert kv.rounds(key) == 3
    return seen


@pytest.mark.parametrize(("workers", "servers"), [(1, 1), (2, 2)])
def test_without_an_optimizer_the_value_becomes_the_sum_of_a_round(workers: int, servers: int) -> None:
    for seen in run(one_key, workers, servers):
        np.testing.assert_array_equal(seen[0], np.arange(6, dtype=np.float32).reshape(2, 3))
        for step in range(3):
            expected = sum(step + 1 + rank for rank in range(workers))
            np.testing.assert_array_equal(seen[step + 1], np.full((2, 3), expected, np.float32))


def pushes_ahead(kv: Any) -> list[float]:
    """Rank 0 pushes four times before rank 1 pushes once."""
    zero = np.zeros(1, np.float32)
    key = kv.declare("w", "float32", (1,), value=zero)
    kv.barrier()
    outs = [np.zeros(1, np.float32) for _ in range(4)]
    if kv.rank == 1:
        kv.barrier()
    for n in range(4):
        kv.push(key, np.array([10.0**n * (kv.rank + 1)], np.float32))
        kv.pull(key, outs[n])
    if kv.rank == 0:
        kv.barrier()
    kv.wait()
    return [float(out[0]) for out in outs]


def test_rounds_are_counted_by_worker_and_pulls_wait_for_their_round() -> None:
    for seen in run(pushes_ahead, 2):
        assert seen == [3.0, 30.0, 300.0, 3000.0]


def all_types(kv: Any) -> dict[str, np.ndarray]:
    types = ["float32", "float64", "float16", "int8", "uint8", "int16", "int32", "int64"]
    keys = {t: kv.declare(t, t, (5,), value=np.arange(5).astype(t)) for t in types}
    kv.barrier()
    for t, key in keys.items():
        kv.push(key, (np.arange(5) + kv.rank).astype(t))
    return {t: pulled(kv, key, np.zeros(5, t)) for t, key in keys.items()}


def test_every_type_is_kept_and_added() -> None:
    for seen in run(all_types, 2):
        for t, value in seen.items():
            assert value.dtype == t
            np.testing.assert_array_equal(value, (2 * np.arange(5) + 1).astype(t))


def split(kv: Any) -> list[np.ndarray]:
    value = np.arange(1003, dtype=np.float64)
    dense = kv.declare("dense", "float64", (17, 59), value=value.reshape(17, 59))
    table = kv.declare("table", "float32", (7, 2), rows=True, value=np.zeros((7, 2), np.float32))
    kv.barrier()
    kv.push(dense, np.full((17, 59), 1 + kv.rank + value.reshape(17, 59) * 1e-9))
    rows = np.array([6, 0, 6] if kv.rank == 0 else [], np.int64)
    kv.push_rows(table, rows, np.ones((len(rows), 2), np.float32) * 3)
    out = np.zeros((4, 2), np.float32)
    kv.pull_rows(table, np.array([6, 5, 0, 6]), out).wait()
    return [pulled(kv, dense, np.zeros((17, 59))), out]


def test_a_large_key_lies_in_pieces_on_all_servers() -> None:
    for dense, rows in run(split, 2, 2, bound=10):
        value = np.arange(1003, dtype=np.float64).reshape(17, 59)
        np.testing.assert_array_equal(dense, (1 + value * 1e-9) + (2 + value * 1e-9))
        np.testing.assert_array_equal(rows, [[6, 6], [0, 0], [3, 3], [6, 6]])


def names(kv: Any) -> list[float]:
    order = ["a", "b"] if kv.rank == 0 else ["b", "a"]
    keys = {}
    for name in order:
        keys[name] = kv.declare(name, "float32", (1,), value=np.array([ord(name)], np.float32))
        kv.barrier()
    return [float(pulled(kv, keys[name], np.zeros(1, np.float32))[0]) for name in ["a", "b"]]


def test_keys_are_known_by_name_whatever_the_order() -> None:
    assert run(names, 2, 2) == [[97.0, 98.0], [97.0, 98.0]]


def errors(kv: Any) -> list[str]:
    shape = (2,) if kv.rank == 0 else (3,)
    bad = kv.declare("bad", "float32", shape, value=np.zeros(shape, np.float32))
    good = kv.declare("good", "float32", (2,), value=np.zeros(2, np.float32))
    seen = []

    def error_of(call: Callable[[], Any]) -> None:
        try:
            call()
        except Exception as error:
            seen.append(str(error).rsplit("[", 1)[-1].split("]")[0])

    kv.wait()
    error_of(lambda: kv.push(bad, np.zeros(shape, np.float32)))
    error_of(lambda: kv.push(good, np.zeros(3, np.float32)))
    error_of(lambda: kv.push_rows(good, np.zeros(1, np.int64), np.zeros((1, 2), np.float32)))
    error_of(lambda: kv.declare("good", "float32", (2,), value=np.zeros(2, np.float32)))
    error_of(lambda: kv.declare("c", "complex64", (2,)))
    kv.push(good, np.ones(2, np.float32))
    assert pulled(kv, good, np.zeros(2, np.float32))[0] == 2
    return seen


def test_an_error_of_one_call_is_its_callers_alone() -> None:
    first, second = run(errors, 2)
    differ = [["E-kv-differs"] if one[0] == "E-kv-differs" else [] for one in (first, second)]
    assert sorted(differ) == [[], ["E-kv-differs"]]
    others = ["E-kv-array", "E-kv-array", "E-kv-twice", "E-kv-key-type"]
    assert [one[-4:] for one in (first, second)] == [others, others]


def uneven(kv: Any) -> float:
    key = kv.declare("w", "float32", (1,), value=np.zeros(1, np.float32))
    kv.barrier()
    for _ in range(2 + kv.rank):
        kv.push(key, np.array([1.0 + kv.rank], np.float32))
    return float(pulled(kv, key, np.zeros(1, np.float32))[0])


def test_a_worker_that_completes_no_longer_counts() -> None:
    assert run(uneven, 2) == [3.0, 2.0]


def turns(kv: Any) -> float:
    key = kv.declare("w", "float32", (1,), value=np.zeros(1, np.float32))
    kv.barrier()
    if kv.rank == 1:
        kv.push(key, np.array([5.0], np.float32))
    kv.barrier()
    return float(pulled(kv, key, np.zeros(1, np.float32))[0])


def test_asynchronous_pushes_are_updates_by_themselves() -> None:
    assert run(turns, 2, sync=False) == [5.0, 5.0]


def compressed(kv: Any) -> list[np.ndarray]:
    key = kv.declare("w", "float32", (4,), value=np.ones(4, np.float32))
    kv.set_compression(0.5)
    kv.barrier()
    seen = []
    for _ in range(2):
        kv.push(key, np.array([0.3, 0.5, -0.7, 2.0], np.float32))
        seen.append(pulled(kv, key, np.zeros(4, np.float32)))
    return seen


def test_compression_keeps_what_it_does_not_send() -> None:
    (seen,) = run(compressed)
    np.testing.assert_array_equal(seen, [[0, 0.5, -0.5, 0.5], [0.5, 0.5, -0.5, 0.5]])
