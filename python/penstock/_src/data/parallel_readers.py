"""Readers that read ahead, in threads or in processes."""

from __future__ import annotations

import functools
import multiprocessing
import queue
import threading
import traceback
from typing import TYPE_CHECKING

from penstock._penstock import ProgramError
from penstock._src.base.errors import error_with_id, program_error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from multiprocessing.process import BaseProcess
    from queue import Queue
    from threading import Event
    from typing import Any

    from penstock._src.ir.typing import Array


_END = object()


class _Failure:
    """An exception of a thread, which the consumer of its samples re-raises."""

    def __init__(self, error: BaseException) -> None:
        self.error = error


class _Stopped(Exception):
    pass


def _put(out: Queue[Any], item: object, stop: Event) -> None:
    """Waits for room in the queue, unless the consumer has stopped."""
    while not stop.is_set():
        try:
            return out.put(item, timeout=0.1)
        except queue.Full:
            continue
    raise _Stopped


def _in_thread(work: Callable[..., Any], out: Queue[Any], stop: Event) -> None:
    """Runs work(put) on a thread; an exception is put into `out`."""
    put = functools.partial(_put, out, stop=stop)

    def run() -> None:
        try:
            try:
                work(put)
            except _Stopped:
                raise
            except BaseException as error:
                put(_Failure(error))
        except _Stopped:
            pass

    threading.Thread(target=run, daemon=True).start()


def _checked(item: Any) -> Any:
    if isinstance(item, _Failure):
        raise item.error
    return item


def buffered(reader: Callable[..., Any], size: int) -> Callable[..., Any]:
    """Creates a reader with a thread that reads samples ahead.

    Args:
        reader (callable): returns an iterable of samples.
        size (int): the maximum number of samples in the queue.

    Returns:
        callable: the reader; it raises the exceptions of `reader`.

    Example:
        assert list(fluid.io.buffered(lambda: range(3), 2)()) == [0, 1, 2]
    """

    def ahead() -> Iterator[Any]:
        out: queue.Queue[Any] = queue.Queue(size)
        stop = threading.Event()

        def work(put: Callable[[object], bool]) -> None:
            for sample in reader():
                put(sample)
            put(_END)

        _in_thread(work, out, stop)
        try:
            while (sample := _checked(out.get())) is not _END:
                yield sample
        finally:
            stop.set()

    return ahead


def xmap_readers(
    mapper: Callable[..., Any], reader: Callable[..., Any], process_num: int, buffer_size: int, order: bool = False
) -> Callable[..., Any]:
    """Creates a reader of the results of a function for each sample, computed by threads.

    Args:
        mapper (callable): takes a sample.
        reader (callable): returns an iterable of samples.
        process_num (int): number of threads.
        buffer_size (int): the maximum number of samples in the queue.
        order (bool): keep the order of the samples.

    Returns:
        callable: the reader; it raises the exceptions of `reader` and `mapper`.

    Example:
        squares = fluid.io.xmap_readers(lambda x: x * x, lambda: range(4), 2, 4, order=True)
        assert list(squares()) == [0, 1, 4, 9]
    """

    def mapped() -> Iterator[list[Array]]:
        tasks: queue.Queue[Any] = queue.Queue(buffer_size)
        results: queue.Queue[Any] = queue.Queue(buffer_size)
        stop = threading.Event()

        def read(put: Callable[[object], bool]) -> None:
            for task in enumerate(reader()):
                _put(tasks, task, stop)
            for _ in range(process_num):
                _put(tasks, _END, stop)

        def work(put: Callable[[object], bool]) -> None:
            while not stop.is_set():
                try:
                    task = tasks.get(timeout=0.1)
                except queue.Empty:
                    continue
                if task is _END:
                    put(_END)
                    return
                put((task[0], mapper(task[1])))

        _in_thread(read, results, stop)
        for _ in range(process_num):
            _in_thread(work, results, stop)
        try:
            yield from _in_order(results, process_num) if order else _as_they_come(results, process_num)
        finally:
            stop.set()

    return mapped


def _as_they_come(results: Queue[Any], workers: int) -> Iterator[Any]:
    while workers:
        item = _checked(results.get())
        if item is _END:
            workers -= 1
        else:
            yield item[1]


def _in_order(results: Queue[Any], workers: int) -> Iterator[list[Array]]:
    early: dict[int, Any] = {}
    next_index = 0
    while workers:
        item = _checked(results.get())
        if item is _END:
            workers -= 1
            continue
        early[item[0]] = item[1]
        while next_index in early:
            yield early.pop(next_index)
            next_index += 1


def _read_in_process(reader: Callable[..., Any], out: Queue[Any]) -> None:
    try:
        for sample in reader():
            if sample is None:
                raise program_error("E-reader-none", "sample has None")
            out.put((sample, None))
        out.put((None, None))
    except BaseException:
        out.put((None, traceback.format_exc()))


class ReaderError(RuntimeError, ProgramError):
    """A reader in another process has failed. Fluid's scripts catch its EnforceNotMet, which is ProgramError."""

    id = "E-reader-process"
    details: list[str] = []


def multiprocess_reader(
    readers: Sequence[Callable[..., Any]], use_pipe: bool = True, queue_size: int = 1000
) -> Callable[..., Any]:
    """Creates a reader of the samples of several readers, each in its own process, in the order of arrival.

    Args:
        readers (list[callable]): return iterables of samples.
        use_pipe (bool): accepted for compatibility with Fluid; samples always go through one bounded queue.
        queue_size (int): the maximum number of samples in the queue.

    Returns:
        callable: the reader.

    Raises:
        ValueError: `readers` is empty.
        RuntimeError: during reading: a reader raised, or its process ended.

    Example:
        both = fluid.io.multiprocess_reader([lambda: range(2), lambda: range(2)])
        assert sorted(both()) == [0, 0, 1, 1]
    """
    if not readers:
        raise ValueError("readers must not be empty")

    def read() -> Iterator[Any]:
        context = multiprocessing.get_context("fork")
        out = context.Queue(queue_size)
        processes = [context.Process(target=_read_in_process, args=(reader, out), daemon=True) for reader in readers]
        for process in processes:
            process.start()
        try:
            left = len(processes)
            while left:
                sample, error = _get_from(out, processes)
                if error is not None:
                    raise error_with_id(
                        ReaderError, "E-reader-process", "a reader of multiprocess_reader raised:\n" + error
                    )
                if sample is None:
                    left -= 1
                else:
                    yield sample
        finally:
            for process in processes:
                process.terminate()
                process.join()

    return read


def _get_from(out: Any, processes: Iterable[BaseProcess]) -> Any:  # a queue of any kind
    """Returns the next item. Raises an error, instead of waiting forever, if a process has died."""
    while True:
        try:
            return out.get(timeout=0.5)
        except queue.Empty:
            for process in processes:
                if process.exitcode:
                    raise error_with_id(
                        ReaderError,
                        "E-reader-process",
                        f"a process of multiprocess_reader ended with code {process.exitcode}",
                    ) from None
