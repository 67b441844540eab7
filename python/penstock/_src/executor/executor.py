"""Executor: runs programs. C++ compiles and runs them; this module converts feeds and fetches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock import _penstock
from penstock._src.base import log
from penstock._src.base.errors import not_built, program_error
from penstock._src.base.same_arguments import arguments_of
from penstock._src.executor import (
    data_parallel,
    joined_trainers,
    moves,
    process_end,
    progress,
    remote_params,
    remote_tables,
    uneven_batches,
)
from penstock._src.executor.causes import causes_in_python
from penstock._src.executor.compiler import CompiledProgram
from penstock._src.executor.dataset_training import run_from_dataset
from penstock._src.executor.feeds import dict_of, feeds_of, set_persistables, uncast
from penstock._src.executor.fetches import returned, split_fetches
from penstock._src.executor.runs_on_places import run_on_places
from penstock._src.executor.scopes import global_scope, require_scope
from penstock._src.executor.updates import PrunedPrograms
from penstock._src.ir import framework
from penstock._src.ir.host_functions import raise_from_function
from penstock._src.ir.program import Program
from penstock._src.ir.types import CPUPlace, device_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any

    from penstock._penstock import Scope
    from penstock._src.dataset.dataset_base import DatasetBase
    from penstock._src.executor.fetch_handler import FetchHandler
    from penstock._src.ir.operator import Operator
    from penstock._src.ir.typing import Feed, Place
    from penstock._src.ir.variable import Variable


log.name_process()


def _start_seconds(start_s: float | None) -> float:
    """Returns the number for C++, where 0 means that none is given."""
    return 0.0 if start_s is None else float(start_s) or -1.0


class Executor:
    """Runs programs. Ctrl-C stops a run within a second; other Python threads continue during a run.

    Args:
        place (Place | None): CPUPlace(). A place on a GPU is an error; with PENSTOCK_CUDA_FALLBACK=1 in the
            environment it means the CPU, with one warning.
        wire (str | None): the protocol between this process and its pservers or trainers: 'native', or 'fluid', the
            protocol of Fluid 1.8.5, which has no token, no TLS and no exactly-once delivery. None: the value of
            PENSTOCK_WIRE, or 'native'. All Executors of a process use the same protocol.
        start_s (float | None): how many seconds this process waits for the other processes of its job to start; then
            it ends with an error that names those that have not come. None: the value of PENSTOCK_START_S (the
            launcher's --start_s), or FLAGS_rpc_deadline milliseconds, or 900. All Executors of a process wait equally
            long.

    Raises:
        NotImplementedError: the place is on a GPU and PENSTOCK_CUDA_FALLBACK is not set.
        TypeError: `place` is not a place.

    Example:
        x = fluid.data('x', [None, 2])
        y = fluid.layers.scale(x, 2.0)
        exe = fluid.Executor(fluid.CPUPlace())
        result, = exe.run(feed={'x': np.ones((1, 2), 'float32')}, fetch_list=[y])
        assert result.tolist() == [[2.0, 2.0]]
    """

    def __init__(self, place: Place | None = None, wire: str | None = None, start_s: float | None = None) -> None:
        self.place = CPUPlace() if place is None else device_of(place, "Executor")
        process_end.watch_process()
        self._executor = _penstock.Executor(wire or "", _start_seconds(start_s))
        self._pruned = PrunedPrograms(self._prune_program)

    def run(
        self,
        program: CompiledProgram | Program | Sequence[Program] | None = None,
        feed: Feed | Sequence[Feed] | None = None,
        fetch_list: Sequence[Variable | str] | None = None,
        feed_var_name: str = "feed",
        fetch_var_name: str = "fetch",
        scope: Scope | None = None,
        return_numpy: bool = True,
        use_program_cache: bool = False,
        return_merged: bool = True,
        use_prune: bool = False,
    ) -> list[Any]:  # arrays or LoDTensors, or lists of them, as the arguments say
        """Runs block 0 of a program.

        A program that DistributeTranspiler has transpiled in mode nccl2 for several trainers trains with them, as in
        CompiledProgram.with_data_parallel.

        Compiled programs are always cached between runs; `use_program_cache` has no effect.

        Args:
            program (Program | CompiledProgram | list[Program] | None): the program; None: the default main program. A
                list has the main programs of one pserver for several programs of a job: they are served together.
            feed (dict | list[dict] | None): arrays or LoDTensors by name. An array of another element type is
                converted; a value that would change is an error, except that longer floats are rounded. A name that
                the program lacks is ignored with a warning. For a program on several places, one dict is split evenly
                among the places, or a list has a dict for each place.
            fetch_list (list[Variable | str] | None): the variables whose values are returned.
            feed_var_name (str): ignored; accepted for compatibility with Fluid.
            fetch_var_name (str): ignored; accepted for compatibility with Fluid.
            scope (Scope | None): contains the variables; None: the global scope.
            return_numpy (bool): True: return arrays; False: return LoDTensors.
            use_program_cache (bool): ignored; accepted for compatibility with Fluid.
            return_merged (bool): False: for a data-parallel CompiledProgram, return each value as a list with the value
                of each place; True: concatenate the values of the places.
            use_prune (bool): run only the ops that the fetches need.

        Returns:
            list: the values of `fetch_list`.

        Raises:
            TypeError: `program`, `feed` or `fetch_list` has the wrong type.
            NotImplementedError: `use_prune` for a program on several places.
            penstock.ProgramError: the program, a feed or a fetch is wrong.
            penstock.StateError: a variable has no value yet, or the executor is closed.
            penstock.PeerError: a pserver, a trainer or a rank is gone.
            penstock.EOFException: a reader of the program has ended.
        """
        if program is None:
            program = framework.default_main_program()
        apart = False
        in_scope = global_scope() if scope is None else require_scope("Executor.run: scope must be", scope)
        if isinstance(program, CompiledProgram):
            apart = program._is_data_parallel and not return_merged
            if program._does_nothing:
                return []
            placed = None if remote_tables.asks(program._program, in_scope) else program._on_places()
            if placed is not None:
                if use_prune:
                    raise not_built("use_prune: a program on several places runs as a whole")
                whole = program._require_program()
                return run_on_places(self._executor, whole, placed, feed, fetch_list, in_scope, return_numpy, apart)
            if isinstance(feed, (list, tuple)) and 1 < len(feed) == program._asked_places():
                feed = data_parallel.join(feed)  # the places' joint batch
            program = program._to_run(in_scope, lambda begin: self._executor.run(begin.desc, in_scope, [], []))
        if isinstance(program, (list, tuple)):
            if feed or fetch_list:
                raise program_error(
                    "E-server-programs",
                    "Executor.run: programs of a pserver, which are served together, take no feed and no fetch_list",
                )
            return self._serve(program, in_scope)
        if not isinstance(program, Program):
            raise TypeError(f"Executor.run takes a Program or a CompiledProgram, not {type(program).__name__}")
        if program._before_run is not None:
            program._before_run()
        if program._served_with and program._serves is not None:
            served, transpiler, endpoint = program._serves
            if served.setdefault(endpoint, transpiler) is transpiler:
                self._serve([program, *program._served_with], in_scope)
            return []  # or the job has ended, which the program of another transpiler has served
        then = program._then
        moves.follow(program)
        program = joined_trainers.program_to_run(
            program, in_scope, lambda begin: self._executor.run(begin.desc, in_scope, [], [])
        )
        program = remote_tables.asking_program(program, in_scope)
        block = program.global_block()
        feeds = set_persistables(block, feeds_of(block, dict_of(feed)), in_scope)
        fetches, updates = split_fetches(fetch_list)
        if use_prune or updates:
            program = self._pruned.of(program, [name for name, _ in feeds], fetches, updates, use_prune)
        process_end.this_thread.ran = True
        with causes_in_python():
            try:
                values = self._executor.run(program.desc, in_scope, feeds, fetches)
            except _penstock.ProgramError as error:
                given = uncast(block, feed, feeds) if error.id.startswith("E-shape-") else None
                if given is None:
                    raise
                values = self._executor.run(program.desc, in_scope, given, fetches)
        remote_params.note_run(program, in_scope)
        progress.note_run(program, feeds, fetches, values)
        shown = [returned(value, return_numpy) for value in values]
        for one in then:
            self.run(one, scope=in_scope)
        return [[value] for value in shown] if apart else shown

    def _serve(self, programs: Sequence[Program], scope: Scope) -> list[Any]:
        """Serves the programs of one pserver until all trainers have completed."""
        for program in programs:
            if not isinstance(program, Program):
                raise TypeError(
                    f"Executor.run takes a list of the Programs of a pserver, not of {type(program).__name__}"
                )
        process_end.this_thread.ran = True
        with causes_in_python():
            self._executor.serve([program.desc for program in programs], scope)
        return []

    @staticmethod
    def _prune_program(program: Program, feed: list[str], fetch: list[str], optimize_ops: list[Operator]) -> Program:
        """Returns the part of the program that fetches (names) and update ops need if `feed` (names) are fed."""
        return program._prune(fetch, feed, optimize_ops)

    def batches(
        self,
        program: CompiledProgram | Program,
        feeds: Callable[[], Iterable[dict[str, Any]]],
        scope: Scope | None = None,
    ) -> Iterator[dict[str, Any]]:
        """Yields this trainer's feeds until the feeds of all trainers have ended.

        Before each step, trainers tell each other whether they still have a batch, so that trainers with different
        numbers of batches end after the same step. The gradient of each step is that of the mean over the examples of
        all trainers, whatever the sizes of their batches; the elements that layers.mean averages to the loss are
        counted as examples. `on_uneven` of DistributeTranspilerConfig decides what a trainer does when its feeds have
        ended:

        * 'join': it runs its last batch, or one example of zeros if it had no batch; this batch does not count.
          Optimizers that update the rows of a sparse gradient update those of this batch. With local_sgd the trainer's
          parameters do not change until the next average.
        * 'pad': it starts its feeds again from the beginning, and they count again.
        * 'error': all trainers raise an error.

        Args:
            program (Program | CompiledProgram): the program, transpiled with `on_uneven` or compiled with
                BuildStrategy.on_uneven. For a Program, the startup program must have run.
            feeds (callable): returns an iterator of dicts, as run() takes them.
            scope (Scope): the scope in which `program` runs; None: the global one.

        Returns:
            Iterator[dict]: feeds for run(), one per step.

        Raises:
            TypeError: `program` is neither a Program nor a CompiledProgram.
            ValueError: no on_uneven was chosen, or there are no feeds to pad with.
            penstock.ProgramError: E-uneven-data ('error'); E-uneven-choice (trainers chose different values).
            penstock.StateError: the startup program has not joined the trainers yet.

        Example:
            x = fluid.data('x', [None, 4])
            loss = fluid.layers.mean(fluid.layers.fc(x, size=2))
            build = fluid.BuildStrategy()
            build.on_uneven = 'join'
            compiled = fluid.CompiledProgram(fluid.default_main_program()).with_data_parallel(loss.name, build)
            exe = fluid.Executor(fluid.CPUPlace())
            exe.run(fluid.default_startup_program())
            for feed in exe.batches(compiled, lambda: [{'x': np.ones((2, 4), 'float32')}]):
                exe.run(compiled, feed=feed, fetch_list=[loss])
        """
        if isinstance(program, CompiledProgram):
            return program.batches(feeds)
        if not isinstance(program, Program):
            raise TypeError(f"Executor.batches takes a Program or a CompiledProgram, not {type(program).__name__}")
        return uneven_batches.batches_of_program(program, feeds, global_scope() if scope is None else scope)

    def train_from_dataset(
        self,
        program: CompiledProgram | Program | None = None,
        dataset: DatasetBase | None = None,
        scope: Scope | None = None,
        thread: int = 0,
        debug: bool = False,
        fetch_list: Sequence[Variable | str] | None = None,
        fetch_info: Sequence[str] | None = None,
        print_period: int = 100,
        fetch_handler: FetchHandler | None = None,
    ) -> None:
        """Runs the program once for each batch of a dataset.

        With one thread the result depends only on the data. With several threads (Hogwild) each thread runs the program
        on its part of the batches, and all of them update the same parameters without waiting for each other. The
        batches of each thread are fixed, but the order of updates is not. If two threads update the same element at the
        same moment, one of the two updates may be lost, as in Fluid; pservers lose no updates. Several threads train
        programs without pservers, and programs of AsyncStrategy that look up no rows on pservers. All other programs
        wait for their peers in each step: one thread trains on all batches and the others read.

        Args:
            program (Program|CompiledProgram): the program; None: the default main program.
            dataset (DatasetBase): a dataset from fluid.DatasetFactory.
            scope (Scope): holds the parameters; None: the global scope.
            thread (int): number of threads; 0: the number of dataset.set_thread().
            debug (bool): print a progress line every `print_period` steps, with the loss, the examples per second, and
                the time that training has waited for pservers. PENSTOCK_PROGRESS=1 in the environment does the same.
            fetch_list (list of Variable): variables to print every `print_period` steps.
            fetch_info (list of str): a label for each variable; None: the names of the variables.
            print_period (int): steps between two prints.
            fetch_handler (FetchHandler): receives values periodically.

        Raises:
            penstock.ProgramError, penstock.StateError: the errors of InMemoryDataset.load_into_memory()
                (E-dataset-...), after the batches before the error.
            TypeError: `dataset` is not a dataset of fluid.DatasetFactory.
            ValueError: `fetch_info` and `fetch_list` differ in length, or `print_period` is below 1.

        Example:
            x = fluid.data('x', [None, 2])
            loss = fluid.layers.mean(fluid.layers.fc(x, 1))
            fluid.optimizer.SGD(0.1).minimize(loss)
            with open('part-0', 'w') as file:
                file.write('2 0.5 1.5\\n2 1 1\\n')
            dataset = fluid.DatasetFactory().create_dataset('QueueDataset')
            dataset.set_use_var([x])
            dataset.set_filelist(['part-0'])
            exe = fluid.Executor(fluid.CPUPlace())
            exe.run(fluid.default_startup_program())
            exe.train_from_dataset(fluid.default_main_program(), dataset, fetch_list=[loss], print_period=1)
        """
        try:
            run_from_dataset(
                self._executor,
                program,
                dataset,
                global_scope() if scope is None else scope,
                thread,
                debug,
                fetch_list,
                fetch_info,
                print_period,
                fetch_handler,
            )
        except _penstock.StateError as error:
            raise_from_function(error)
            raise

    @arguments_of(train_from_dataset)
    def infer_from_dataset(self, *args: Any, **named: Any) -> None:
        """Runs a program without updates, such as main.clone(for_test=True), on each batch of a dataset, as
        train_from_dataset() does.

        Args:
            program (Program | CompiledProgram | None): the program; None: the default main program.
            dataset (DatasetBase): the batches.
            scope (Scope | None): holds the variables; None: the global scope.
            thread (int): number of threads that run the program; 0: the number of the dataset.
            debug (bool): print progress.
            fetch_list (list | None): variables to print.
            fetch_info (list[str] | None): a label for each of them.
            print_period (int): batches between two lines.
            fetch_handler (FetchHandler | None): receives values periodically.
        """
        self.train_from_dataset(*args, **named)

    def close(self) -> None:
        """Reports to the pservers that this trainer has completed; later runs raise an error.

        All Executors of a process are one trainer: the trainer completes when the last of them that used pservers is
        closed. Closing is optional: a process that ends with exit code 0 has completed too. A process that ends in
        another way (an exception, sys.exit(3), os._exit, a signal) has not completed, and the job fails.
        """
        was_open = _penstock.rpc_is_open()
        self._executor.close()
        if was_open and not _penstock.rpc_is_open():
            moves.closed()
