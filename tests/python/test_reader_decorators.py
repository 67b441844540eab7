"""Readers made from readers: batches, shards for trainers, threads and processes."""

import numpy as np
import pytest
from penstock.fluid import io


def numbers(n):
    return lambda: iter(range(n))


def test_reader_decorators_compose():
    assert list(io.batch(numbers(5), 2)()) == [[0, 1], [2, 3], [4]]
    assert list(io.batch(numbers(5), 2, drop_last=True)()) == [[0, 1], [2, 3]]
    assert list(io.chain(numbers(2), numbers(3))()) == [0, 1, 0, 1, 2]
    assert list(io.firstn(numbers(5), 2)()) == [0, 1]
    assert list(io.map_readers(lambda a, b: a + b, numbers(3), numbers(9))()) == [0, 2, 4]
    assert sorted(io.shuffle(numbers(10), 4)()) == list(range(10))
    assert all(set(list(io.shuffle(numbers(10), 4)())[:4]) == {0, 1, 2, 3} for _ in range(5))
    pairs = io.compose(numbers(2), lambda: iter([("a", "b"), ("c", "d")]))
    assert list(pairs()) == [(0, "a", "b"), (1, "c", "d")]
    reads = []
    cached = io.cache(lambda: (reads.append(i) or i for i in range(3)))
    assert list(cached()) == list(cached()) == reads == [0, 1, 2]


def test_an_integral_float_batch_size_is_accepted():
    assert list(io.batch(numbers(5), 8 / 2)()) == [[0, 1, 2, 3], [4]]
    assert list(io.batch(numbers(4), np.int64(2))()) == [[0, 1], [2, 3]]


def test_invalid_reader_arguments_are_refused():
    for size in (0, -1, 1.5, 0.0, float("nan"), float("inf"), "4", None):
        with pytest.raises(ValueError, match="batch_size must be an int above 0"):
            io.batch(numbers(5), size)
    with pytest.raises(io.ComposeNotAligned, match="have ended before the others"):
        list(io.compose(numbers(2), numbers(3))())
    assert list(io.compose(numbers(2), numbers(3), check_alignment=False)()) == [(0, 0), (1, 1)]
    with pytest.raises(TypeError, match="check_alignment only, not align"):
        io.compose(numbers(2), align=True)


@pytest.mark.parametrize("order", [True, False])
def test_xmap_and_buffered_readers_use_threads(order):
    mapped = list(io.xmap_readers(lambda x: x * x, numbers(40), 3, 4, order)())
    assert (mapped if order else sorted(mapped)) == [x * x for x in range(40)]
    assert list(io.buffered(numbers(9), 2)()) == list(range(9))
    taken = io.buffered(numbers(10**9), 2)()
    assert [next(taken), next(taken)] == [0, 1]
    taken.close()


def broken():
    yield 1
    raise KeyError("no such file")


def test_errors_of_threads_and_processes_propagate():
    for reader in (
        io.buffered(broken, 2),
        io.xmap_readers(lambda x: x, broken, 2, 2),
        io.xmap_readers(lambda x: 1 // (x - 3), numbers(9), 2, 2, True),
    ):
        with pytest.raises((KeyError, ZeroDivisionError)):
            list(reader())
    with pytest.raises(RuntimeError, match="no such file"):
        list(io.multiprocess_reader([broken])())
    assert sorted(io.multiprocess_reader([numbers(3), numbers(4)])()) == [0, 0, 1, 1, 2, 2, 3]


@pytest.mark.parametrize("n, parts", [(0, 2), (1, 3), (2, 3), (6, 3), (7, 3), (8, 3), (5, 1)])
def test_each_trainer_reads_its_part(n, parts):
    def all_parts(padding):
        return [list(io.shard(numbers(n), parts, i, padding)()) for i in range(parts)]

    for padding in ("wrap", "drop"):
        assert len({len(part) for part in all_parts(padding)}) == 1
    assert sorted(sum(all_parts("none"), [])) == list(range(n))
    dropped = [sample for row in zip(*all_parts("drop")) for sample in row]
    assert dropped == list(range(n - n % parts))
    wrapped = [sample for row in zip(*all_parts("wrap")) for sample in row]
    assert wrapped == [i % max(n, 1) for i in range(-(-n // parts) * parts)]


def test_the_shard_defaults_to_the_launchers_rank(monkeypatch):
    monkeypatch.setenv("PADDLE_TRAINERS_NUM", "3")
    monkeypatch.setenv("PADDLE_TRAINER_ID", "1")
    assert list(io.shard(numbers(6))()) == [1, 4]
    with pytest.raises(ValueError, match="part_index must be in"):
        io.shard(numbers(6), 2, 2)
    with pytest.raises(ValueError, match="padding must be"):
        io.shard(numbers(6), 2, 0, "repeat")


def test_samples_are_stacked_by_field():
    first, second = io.default_collate_fn([(np.zeros(2), 1), (np.ones(2), 2)])
    assert first.tolist() == [[0, 0], [1, 1]] and second.tolist() == [1, 2]
    assert io.default_collate_fn([np.zeros(2), np.ones(2)])[0].shape == (2, 2)
