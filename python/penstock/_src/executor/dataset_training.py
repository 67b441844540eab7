"""Executor.train_from_dataset: threads that take batches of a dataset and run a program with them."""

from __future__ import annotations

import sys
import threading
import time
import weakref
from typing import TYPE_CHECKING

from penstock import _penstock
from penstock._penstock import LoDTensor
from penstock._src.base import log
from penstock._src.dataset.dataset_base import DatasetBase
from penstock._src.dataset.loader import examples_of
from penstock._src.dataset.position import Passing
from penstock._src.executor import joined_trainers, moves, process_end, remote_params
from penstock._src.executor.compiler import CompiledProgram
from penstock._src.executor.progress import Progress, asked_seconds, loss_of
from penstock._src.executor.remote_tables import asking_program
from penstock._src.ir import framework

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock._penstock import BatchQueue, DatasetReading, Executor, Scope, _Fetched
    from penstock._src.executor.fetch_handler import FetchHandler
    from penstock._src.ir.program import Program
    from penstock._src.ir.variable import Variable


_told: weakref.WeakSet[Program] = (
    weakref.WeakSet()
)  # programs for which the log has reported that only one thread trains
_C_NAMES = {"float32": "float", "float64": "double", "int64": "int64_t", "int32": "int"}


def run_from_dataset(
    executor: Executor,
    program: CompiledProgram | Program | None,
    dataset: DatasetBase | None,
    scope: Scope,
    thread: int,
    debug: bool,
    fetch_list: Sequence[Variable | str] | None,
    fetch_info: Sequence[str] | None,
    print_period: int,
    fetch_handler: FetchHandler | None,
) -> None:
    """Runs the program once for each batch. `executor` is the C++ executor."""
    if not isinstance(dataset, DatasetBase):
        raise TypeError(f"train_from_dataset needs a dataset of DatasetFactory, not {dataset!r}")
    program = framework.default_main_program() if program is None else program
    readers = thread if thread > 0 else dataset.thread_num
    trainers = readers
    if isinstance(program, CompiledProgram):
        program = program._to_run(scope, lambda begin: executor.run(begin.desc, scope, [], []))
    program = joined_trainers.program_to_run(program, scope, lambda begin: executor.run(begin.desc, scope, [], []))
    program = asking_program(program, scope)
    if readers > 1 and not _penstock.threads_may_share(program.desc):
        if program not in _told:
            log.info(
                "train_from_dataset: the program waits for its peers in each step, so one thread trains and "
                f"{readers} read"
            )
            _told.add(program)
        trainers = 1
    printed = _Printed(program, fetch_list, fetch_info, print_period, debug, fetch_handler)
    passing = Passing(dataset if any(op.type == "send" for op in program.global_block().ops) else None)
    reading, stop = dataset._start(readers)
    try:
        _Training(executor, program, scope, dataset._names(), reading, printed, passing).run(trainers)
    finally:
        stop()
    remote_params.note_run(program, scope)


class _Training:
    def __init__(
        self,
        executor: Executor,
        program: Program,
        scope: Scope,
        names: list[str],
        reading: DatasetReading,
        printed: _Printed,
        passing: Passing,
    ) -> None:
        self._passing = passing
        self._executor, self._program, self._scope = executor, program, scope
        self._names, self._reading, self._printed = names, reading, printed
        self._lock = threading.Lock()
        self._error: BaseException | None = None
        self._alone = False

    def run(self, trainers: int) -> None:
        """Trains with `trainers` threads, including this one."""
        queues = self._reading.queues
        if trainers == 1:
            self._alone = True  # the next batch that it takes is the trainer's next
            self._train(queues)
            return
        threads: list[threading.Thread] = []
        try:
            # The first step runs alone, because it compiles the program and creates the variables that the scope lacks.
            self._step(queues[0].pop())
            for number, queue in enumerate(queues[1:], 1):
                threads.append(
                    threading.Thread(
                        target=self._train_or_stop, args=([queue],), daemon=True, name=f"penstock-trainer-{number}"
                    )
                )
                threads[-1].start()
            process_end.watch_this_thread()
            self._train(queues[:1])
        except BaseException as error:
            self._note(error)
        self._await(threads)
        if self._error is not None:
            raise self._error

    def _train_or_stop(self, queues: list[BatchQueue]) -> None:
        """Trains, and ends all threads after an error."""
        try:
            process_end.watch_this_thread()
            self._train(queues)
        except BaseException as error:
            self._note(error)
            self._stop()

    def _await(self, threads: list[threading.Thread]) -> None:
        """Waits for the threads, which end at the first error. An interrupt of this wait is such an error."""
        waiting = True
        while waiting:
            try:
                if self._error is not None:
                    self._stop()
                for each in threads:
                    if each.is_alive():
                        each.join()
                waiting = False
            except BaseException as error:
                self._note(error)

    def _note(self, error: BaseException) -> None:
        """Keeps the first error, because it causes the others; an interrupt causes errors that may come before it."""
        with self._lock:
            if self._error is None or isinstance(self._error, Exception) and not isinstance(error, Exception):
                self._error = error

    def _stop(self) -> None:
        self._reading.stop()
        self._executor.cancel()

    def _train(self, queues: list[BatchQueue]) -> None:
        """Runs the batches of the queues, taking one from each in turn."""
        queues = list(queues)
        while queues and self._error is None:
            turn = list(queues)
            for queue, following in zip(turn, turn[1:] + turn[:1]):
                if not self._step(queue.pop()):
                    queues.remove(queue)
                elif self._alone:
                    names = self._printed.names
                    self._executor.look_ahead(self._program.desc, self._names, following, names)

    def _step(self, batch: list[LoDTensor] | None) -> bool:
        """Runs one batch; returns False if there is none."""
        if batch is None:
            return False
        if self._passing.take():
            return True
        moves.follow(self._program)
        values = self._executor.run(self._program.desc, self._scope, list(zip(self._names, batch)), self._printed.names)
        self._printed.note(batch, values)
        return True


class _Printed:
    """The values to fetch and the steps at which they are printed. All threads count; the thread that reaches a
    multiple of the period prints."""

    def __init__(
        self,
        program: Program,
        fetch_list: Sequence[Variable | str] | None,
        fetch_info: Sequence[str] | None,
        period: int,
        debug: bool,
        handler: FetchHandler | None,
    ) -> None:
        fetched = [each if isinstance(each, str) else each.name for each in fetch_list or ()]
        if fetch_info is not None and len(fetch_info) != len(fetched):
            raise ValueError(f"fetch_info has {len(fetch_info)} texts for the {len(fetched)} variables of fetch_list")
        if period < 1:
            raise ValueError(f"print_period must be at least 1, not {period}")
        self._infos = list(zip(fetch_info or fetched, fetched))
        self._period = period
        self._progress = Progress() if debug or asked_seconds() else None
        self._handler = handler
        handled = {key: var.name for key, var in handler.var_dict.items()} if handler is not None else {}
        self._handled = handled
        self._loss = loss_of(program) if self._progress else None
        wanted = fetched + list(handled.values()) + ([self._loss] if self._loss else [])
        self.names = list(dict.fromkeys(wanted))
        self._lock = threading.Lock()
        self._steps = 0
        self._handled_at = time.monotonic()

    def note(self, batch: list[LoDTensor], values: Sequence[_Fetched]) -> None:
        """Called after each step."""
        with self._lock:
            self._steps += 1
            if self._progress:
                self._progress.note(examples_of(batch))
            if self._steps % self._period == 0:
                self._print(_tensors_of(self.names, values))
            if self._handler is not None and time.monotonic() - self._handled_at >= self._handler.period_secs:
                self._handled_at = time.monotonic()
                of_name = _tensors_of(self.names, values)
                self._handler.handler({key: of_name[name]._view() for key, name in self._handled.items()})

    def _print(self, values: dict[str, LoDTensor]) -> None:
        for info, name in self._infos:
            print(_as_fluid_prints(info, name, values[name]))
        if self._progress:
            print(self._progress.line(values[self._loss]._view().reshape(-1)[0] if self._loss else None))
        sys.stdout.flush()


def _tensors_of(names: list[str], values: Sequence[_Fetched]) -> dict[str, LoDTensor]:
    return {name: value for name, value in zip(names, values) if isinstance(value, LoDTensor)}


def _as_fluid_prints(info: str, name: str, tensor: LoDTensor) -> str:
    array = tensor._view()
    lod = ",".join(f"{{{', '.join(map(str, level))}}}" for level in tensor.lod())
    data = " ".join(("%.6g" if array.dtype.kind == "f" else "%d") % value for value in array.reshape(-1))
    return (
        f"{info}\t{name}\t\tlod: {{{lod}}}\n\tdim: {', '.join(map(str, array.shape))}\n\tlayout: NCHW\n\tdtype: "
        f"{_C_NAMES.get(array.dtype.name, array.dtype.name)}\n\tdata: [{data}]\n\t"
    )
