"""Functions that create readers from readers. A reader is a function without arguments that returns an iterable of
samples."""

from __future__ import annotations

import itertools
import numbers
import random
from typing import TYPE_CHECKING

from penstock._src.data.parts import checked_part

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from penstock._src.ir.typing import Array


class ComposeNotAligned(ValueError):
    """The error of composed readers that end at different samples."""


def batch(reader: Callable[..., Any], batch_size: int, drop_last: bool = False) -> Callable[..., Any]:
    """Creates a reader of lists of samples.

    Args:
        reader (callable): returns an iterable of samples.
        batch_size (int): number of samples in a list; a float without a fraction is accepted.
        drop_last (bool): skip a last list that is shorter.

    Returns:
        callable: the reader.

    Raises:
        ValueError: `batch_size` is not a whole number above 0.

    Example:
        batches = fluid.io.batch(lambda: range(5), 2)
        assert list(batches()) == [[0, 1], [2, 3], [4]]
    """
    size = int(batch_size) if isinstance(batch_size, (numbers.Integral, float)) and batch_size == batch_size // 1 else 0
    if size <= 0:
        raise ValueError(f"batch_size must be an int above 0, not {batch_size!r}")
    batch_size = size

    def batches() -> Iterator[list[int | tuple[Array | float | list[int], ...]]]:
        samples = iter(reader())
        while True:
            rows = list(itertools.islice(samples, batch_size))
            if len(rows) == batch_size or (rows and not drop_last):
                yield rows
            if len(rows) < batch_size:
                return

    return batches


def shard(
    reader: Callable[..., Any], num_parts: int | None = None, part_index: int | None = None, padding: str = "wrap"
) -> Callable[..., Any]:
    """Creates a reader of every num_parts-th sample, so that each trainer of a job reads a different part.

    Args:
        reader (callable): returns an iterable of samples.
        num_parts (int | None): number of parts; None: the number of trainers, from the launcher's environment.
        part_index (int | None): the position of the first sample; None: this trainer's number.
        padding (str): 'wrap': repeat samples from the beginning until all parts have the same number; 'drop': skip
            remaining samples that are not enough for all parts; 'none': the first parts may have one more sample.

    Returns:
        callable: the reader.

    Raises:
        ValueError: an argument is out of range.

    Example:
        part = fluid.io.shard(lambda: range(5), num_parts=2, part_index=1)
        assert list(part()) == [1, 3, 0]
    """
    num_parts, part_index = checked_part(num_parts, part_index)
    if padding not in ("wrap", "drop", "none"):
        raise ValueError(f"padding must be 'wrap', 'drop' or 'none', not {padding!r}")

    def part() -> Iterator[Any]:
        samples = iter(reader())
        first = None
        while True:
            row = list(itertools.islice(samples, num_parts))
            first = row if first is None else first
            if len(row) == num_parts or (padding == "none" and part_index < len(row)):
                yield row[part_index]
            elif row and padding == "wrap":
                # `first` is one sample for each part, or all samples if there are fewer.
                yield (row + list(itertools.islice(itertools.cycle(first), num_parts)))[part_index]
            if len(row) < num_parts:
                return

    return part


def map_readers(func: Callable[..., Any], *readers: Any) -> Callable[..., Any]:
    """Creates a reader of the results of a function that takes one sample of each reader, until the shortest ends.

    Args:
        func (callable): takes one sample of each reader.
        readers (callable): return iterables of samples.

    Returns:
        callable: the reader.

    Example:
        sums = fluid.io.map_readers(lambda a, b: a + b, lambda: range(3), lambda: range(3))
        assert list(sums()) == [0, 2, 4]
    """

    def mapped() -> Iterator[list[Array]]:
        yield from map(func, *(reader() for reader in readers))

    return mapped


def shuffle(reader: Callable[..., Any], buf_size: int) -> Callable[..., Any]:
    """Creates a reader that shuffles samples within a buffer.

    Args:
        reader (callable): returns an iterable of samples.
        buf_size (int): number of samples in the buffer.

    Returns:
        callable: the reader.

    Example:
        shuffled = fluid.io.shuffle(lambda: range(5), buf_size=5)
        assert sorted(shuffled()) == [0, 1, 2, 3, 4]
    """

    def shuffled() -> Iterator[Any]:
        samples = iter(reader())
        while True:
            buffer = list(itertools.islice(samples, buf_size))
            if not buffer:
                return
            random.shuffle(buffer)
            yield from buffer

    return shuffled


def chain(*readers: Any) -> Callable[..., Any]:
    """Creates a reader of the samples of one reader after another.

    Args:
        readers (callable): return iterables of samples.

    Returns:
        callable: the reader.

    Example:
        assert list(fluid.io.chain(lambda: [1, 2], lambda: [3])()) == [1, 2, 3]
    """

    def chained() -> Iterator[Any]:
        for reader in readers:
            yield from reader()

    return chained


_END = object()


def compose(*readers: Any, **kwargs: Any) -> Callable[..., Any]:
    """Creates a reader of tuples with one sample of each reader; samples that are tuples are concatenated.

    Args:
        *readers (callable): return iterables of samples.
        **kwargs (bool): `check_alignment` (default True): raise an error if the readers do not end together; False:
            skip the remaining samples.

    Returns:
        callable: the reader.

    Raises:
        TypeError: an argument is not known.
        ComposeNotAligned: during reading, with `check_alignment`: a reader has ended before the others.

    Example:
        both = fluid.io.compose(lambda: [1, 2], lambda: [(3, 4), (5, 6)])
        assert list(both()) == [(1, 3, 4), (2, 5, 6)]
    """
    check_alignment = kwargs.pop("check_alignment", True)
    if kwargs:
        raise TypeError(f"compose takes check_alignment only, not {', '.join(kwargs)}")

    def composed() -> Iterator[Any]:
        iterators = [iter(reader()) for reader in readers]
        while True:
            samples = [next(iterator, _END) for iterator in iterators]
            ended = [sample is _END for sample in samples]
            if any(ended):
                if check_alignment and not all(ended):
                    raise ComposeNotAligned("some of the composed readers have ended before the others")
                return
            yield tuple(itertools.chain(*(one if isinstance(one, tuple) else (one,) for one in samples)))

    return composed


def firstn(reader: Callable[..., Any], n: int) -> Callable[..., Any]:
    """Creates a reader of the first samples.

    Args:
        reader (callable): returns an iterable of samples.
        n (int): number of samples.

    Returns:
        callable: the reader.

    Example:
        assert list(fluid.io.firstn(lambda: range(5), 2)()) == [0, 1]
    """

    def first() -> Iterator[Any]:
        yield from itertools.islice(reader(), n)

    return first


def cache(reader: Callable[..., Any]) -> Callable[..., Any]:
    """Reads all samples at once, and creates a reader that returns them from memory.

    Args:
        reader (callable): returns an iterable of samples.

    Returns:
        callable: the reader.

    Example:
        assert list(fluid.io.cache(lambda: range(2))()) == [0, 1]
    """
    samples = tuple(reader())

    def cached() -> Iterator[Any]:
        yield from samples

    return cached
