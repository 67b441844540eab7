"""The parts of data that the trainers of a job, or the places of one trainer, read: num_parts, part_index and
work_load_list, as MXNet's iterators have them. Each example is in one part."""

from __future__ import annotations

import bisect
import itertools
import numbers
import os
from typing import TYPE_CHECKING

import numpy

from penstock._penstock import LoDTensor
from penstock._src.base import environment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    from penstock._src.ir.typing import Array


RULES = ("even", "floor", "ceil")


def part_of(count: int, num_parts: int | None = None, part_index: int | None = None, rule: str = "even") -> range:
    """Returns the examples of one part of a data set: neighbouring ones, of which each is in one part.

    Args:
        count (int): number of examples.
        num_parts (int | None): number of parts; None: PADDLE_TRAINERS_NUM, or 1.
        part_index (int | None): the part; None: PADDLE_TRAINER_ID, or 0.
        rule (str): which parts are longer if `count` is not a multiple of num_parts. 'even': the first ones, by one
            example (gluon.data.Dataset.shard). 'floor': part i ends before example (i + 1) * count // num_parts
            (MNISTIter). 'ceil': all parts but the last have count / num_parts examples, rounded up (indexed records).

    Returns:
        range: the numbers of the examples; empty if there are fewer than parts.

    Raises:
        ValueError: an argument is out of its range.

    Example:
        assert [list(fluid.io.part_of(5, 2, part)) for part in range(2)] == [[0, 1, 2], [3, 4]]
    """
    num_parts, part_index = checked_part(num_parts, part_index)
    if isinstance(count, bool) or not isinstance(count, numbers.Integral) or count < 0:
        raise ValueError(f"part_of: count must be an integer of at least 0, not {count!r}")
    count = int(count)
    if rule not in RULES:
        raise ValueError(f"part_of: rule must be one of {', '.join(RULES)}, not {rule!r}")
    if rule == "floor":
        return range(count * part_index // num_parts, count * (part_index + 1) // num_parts)
    if rule == "ceil":
        step = -(-count // num_parts)
        return range(min(step * part_index, count), min(step * (part_index + 1), count))
    each, more = divmod(count, num_parts)
    begin = each * part_index + min(part_index, more)
    return range(begin, begin + each + (part_index < more))


def checked_part(num_parts: int | None, part_index: int | None) -> tuple[int, int]:
    """Returns the number of parts and the part; where they are None, those of this trainer."""
    count = environment.value("PADDLE_TRAINERS_NUM", 1) if num_parts is None else num_parts
    index = environment.value("PADDLE_TRAINER_ID", 0) if part_index is None else part_index
    if count < 1 or not 0 <= index < count:
        raise ValueError(f"part_index must be in [0, num_parts), but they are {index!r} and {count!r}")
    return int(count), int(index)


def bytes_of_part(total: int, num_parts: int, part_index: int, align: int = 1) -> tuple[int, int]:
    """Returns where a part of a file begins and ends: parts have equal numbers of bytes, rounded up to `align`."""
    step = -(-total // num_parts)
    step += -step % align
    return min(step * part_index, total), min(step * (part_index + 1), total)


def records_of_part(
    record_bytes: Sequence[int], num_parts: int | None = None, part_index: int | None = None, align: int = 4
) -> range:
    """Returns the records of one part of a file: those that begin in the part's bytes (MXNet's ImageRecordIter).

    Args:
        record_bytes (list[int]): the size of each record, in the order of the file.
        num_parts (int | None): as in part_of.
        part_index (int | None): as in part_of.
        align (int): parts have equal numbers of bytes, rounded up to a multiple of this.

    Returns:
        range: the numbers of the records.

    Raises:
        ValueError: part_index is not in [0, num_parts).

    Example:
        assert list(fluid.io.records_of_part([8, 24, 8, 8], num_parts=2, part_index=1)) == [2, 3]
    """
    num_parts, part_index = checked_part(num_parts, part_index)
    begins = [0, *itertools.accumulate(record_bytes)]
    begin, end = bytes_of_part(begins.pop(), num_parts, part_index, align)
    return range(bisect.bisect_left(begins, begin), bisect.bisect_left(begins, end))


def lines(
    files: str | Sequence[str], num_parts: int | None = None, part_index: int | None = None
) -> Callable[[], Iterator[bytes]]:
    """Creates a reader of the lines of one part of text files, which reads only the bytes of this part.

    Parts have equal numbers of bytes (MXNet's LibSVMIter): a line belongs to the part in whose bytes it begins, or to
    the part before if it begins with the first byte of a part. So each line is in one part; parts may be empty.

    Args:
        files (str | list[str]): paths; several files are read as if they were one.
        num_parts (int | None): as in part_of.
        part_index (int | None): as in part_of.

    Returns:
        callable: the reader; it yields bytes without the end of the line. Empty lines are lines too.

    Raises:
        ValueError: part_index is not in [0, num_parts).
        OSError: during reading: a file cannot be read.

    Example:
        with open('data.csv', 'w') as file:
            file.write('1,2\\n3,4\\n5,6\\n')
        parts = [list(fluid.io.lines('data.csv', num_parts=2, part_index=part)()) for part in range(2)]
        assert parts == [[b'1,2', b'3,4'], [b'5,6']]
    """
    paths = [files] if isinstance(files, (str, bytes, os.PathLike)) else list(files)
    num_parts, part_index = checked_part(num_parts, part_index)

    def part() -> Iterator[bytes]:
        sizes = [os.path.getsize(path) for path in paths]
        total = sum(sizes)
        begin, end = bytes_of_part(total, num_parts, part_index)
        if begin == end:
            return
        first = 0  # position of the file in all files
        for path, size in zip(paths, sizes):
            # The lines that begin after byte `begin`, or with the first of all, up to byte `end`.
            if first + size > begin and first <= end:
                yield from _lines_of(path, begin - first if begin else -1, end - first if end < total else size)
            first += size

    return part


def _lines_of(path: str, after: int, last: int) -> Iterator[bytes]:
    """Yields the lines of a file that begin after byte `after`, and not after byte `last`."""
    with open(path, "rb") as file:
        if after >= 0:
            file.seek(after)
            file.readline()  # the rest of the line of byte `after`, which is another part's
        at = file.tell()
        while at <= last and (line := file.readline()):
            yield line.rstrip(b"\r\n")
            at += len(line)


def split_by_load(feed: dict[str, Array], work_load_list: Sequence[float]) -> list[dict[str, Any]]:
    """Splits a batch among places of unequal speed: a feed for each, for a program that several places run.

    Place i gets round(load * batch / sum of loads) examples, halves to the even number, and the last place the rest, as
    in MXNet's Module. A program of several places averages their gradients whatever their numbers of examples; for
    gradients of the whole batch, let the loss be a sum divided by the size of the batch, and use
    BuildStrategy.GradientScaleStrategy.One.

    Args:
        feed (dict[str, array]): values by name, all with the same number of rows.
        work_load_list (list[float]): the load of each place, as numbers above 0.

    Returns:
        list[dict[str, array]]: the feeds.

    Raises:
        ValueError: a place gets no example; values have different numbers of rows; a value has sequences.

    Example:
        parts = fluid.io.split_by_load({'x': np.arange(10)}, [3, 1])
        assert [len(part['x']) for part in parts] == [8, 2]
    """
    rows = {}
    for name, value in feed.items():
        if isinstance(value, LoDTensor) and value.lod():
            raise ValueError(f"split_by_load: {name} has sequences; feed a list of dicts")
        rows[name] = numpy.asarray(value)
    counts = {array.shape[0] if array.ndim else 0 for array in rows.values()}
    if len(counts) != 1:
        raise ValueError(f"split_by_load: values must have the same number of rows, not {sorted(counts)}")
    bounds = bounds_by_load(counts.pop(), work_load_list)
    return [{name: array[begin:end] for name, array in rows.items()} for begin, end in bounds]


def bounds_by_load(batch: int, work_load_list: Sequence[float]) -> list[tuple[int, int]]:
    """Returns where the part of each place begins and ends in a batch."""
    loads = [float(load) for load in work_load_list]
    if not loads or not all(0 <= load < float("inf") for load in loads) or not sum(loads):
        raise ValueError(f"work_load_list must be numbers above 0, not {work_load_list!r}")
    counts = [round(load * batch / sum(loads)) for load in loads[:-1]]
    ends = [*itertools.accumulate(counts), batch]
    bounds = list(zip([0, *ends], ends))
    if any(begin >= end for begin, end in bounds):
        raise ValueError(f"a batch of {batch} examples is too small for work_load_list {list(work_load_list)!r}")
    return bounds
