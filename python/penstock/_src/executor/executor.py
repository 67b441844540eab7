"""Executor: runs programs. C++ compiles and runs them; this module converts feeds and fetches."""

import contextlib
import warnings
import weakref

import numpy

from penstock import _penstock
from penstock._penstock import LoDTensor, LoDTensorArray, Scope
from penstock._src.base import log
from penstock._src.base.call_site import stack_level
from penstock._src.base.errors import program_error, suggestion
from penstock._src.dataset.prefetch import raise_from_reader
from penstock._src.executor import (
    data_parallel,
    joined_trainers,
    process_end,
    remote_params,
    remote_tables,
    uneven_batches,
)
from penstock._src.executor.compiler import CompiledProgram
from penstock._src.executor.dataset_training import run_from_dataset
from penstock._src.executor.progress import ProgressOfRuns, asked_seconds
from penstock._src.ir import framework
from penstock._src.ir.array_conversion import converted, given_array, to_array
from penstock._src.ir.framework import OpRole, Program
from penstock._src.ir.host_functions import raise_from_function
from penstock._src.ir.operator import Operator
from penstock._src.ir.types import CPUPlace, device_of, dtype_is_floating
from penstock._src.ir.variable import Variable

__all__ = ["Executor", "global_scope", "scope_guard"]

_scope = Scope()
_progress_of_runs = ProgressOfRuns(asked_seconds()) if asked_seconds() else None
array_kind = numpy.ndarray  # class of fetched arrays; another class may be set
empties_are_vectors = False  # whether fetched tensors without elements have shape [0], as in Fluid
log.name_process()


def _start_seconds(start_s):
    """Returns the number for C++, where 0 means that none is given."""
    return 0.0 if start_s is None else float(start_s) or -1.0


def global_scope():
    """Returns the scope in which programs run by default.

    Returns:
        Scope: variables by name.

    Example:
        fluid.global_scope().var('x').get_tensor().set(np.ones((2, 3), 'float32'), fluid.CPUPlace())
    """
    return _scope


@contextlib.contextmanager
def scope_guard(scope):
    """Makes another scope the global one inside a with statement.

    Args:
        scope (Scope): the scope.

    Returns:
        A context manager.

    Raises:
        TypeError: (on entry) `scope` is not a Scope.

    Example:
        with fluid.scope_guard(fluid.Scope()):
            assert fluid.global_scope().find_var('x') is None
    """
    global _scope
    _require_scope("scope_guard takes", scope)
    outer, _scope = _scope, scope
    try:
        yield
    finally:
        _scope = outer


def _require_scope(rule, scope):
    if not isinstance(scope, Scope):
        raise program_error(
            "E-argument-type",
            f"{rule} a Scope, not {('None' if scope is None else f'an object of type {type(scope).__name__}')}",
        )
    return scope


def _as_arrays(value):
    """Returns a fetched value as an array, or as a list of arrays for a LoDTensorArray."""
    if isinstance(value, (LoDTensorArray, list)):
        return [_as_arrays(one) for one in value]
    return as_numpy(value).view(array_kind)


def _emptied(value):
    """Returns the value; a tensor without elements becomes a vector."""
    if not isinstance(value, LoDTensor) or 0 not in value.shape() or len(value.shape()) == 1:
        return value
    vector = LoDTensor()
    vector.set(numpy.zeros(0, value._view().dtype))
    if value.shape()[0] == 0:  # the sequences cover no rows
        vector.set_lod(value.lod())
    return vector


def _returned(value, return_numpy):
    """Returns a fetched value as Executor.run returns it."""
    if empties_are_vectors:
        value = _emptied(value)
    return _as_arrays(value) if return_numpy else value


@contextlib.contextmanager
def _causes_in_python():
    """Raises the exception of a user's reader or function in place of the error of the run that it ended."""
    try:
        yield
    except _penstock.StateError as error:
        raise_from_reader(error)
        raise_from_function(error)
        raise


def as_numpy(tensor):
    """Returns the elements of a LoDTensor as an array that shares its memory.

    Args:
        tensor (LoDTensor): a tensor without sequences.

    Returns:
        numpy.ndarray: the elements.

    Raises:
        RuntimeError: the tensor has sequences.

    Example:
        exe = fluid.Executor(fluid.CPUPlace())
        one = fluid.layers.ones([2], 'float32')
        tensor, = exe.run(fetch_list=[one], return_numpy=False)
        assert fluid.executor.as_numpy(tensor).tolist() == [1.0, 1.0]
    """
    if tensor.lod():
        raise RuntimeError("a fetched tensor has sequences, which an array cannot hold; fetch with return_numpy=False")
    return tensor._view()


def _fetch_var(name, scope=None, return_numpy=True):
    """Returns the value of the variable `name` in a scope, as an array or as a LoDTensor."""
    var = (_scope if scope is None else scope).find_var(name)
    if var is None:
        raise ValueError(f"the scope has no variable {name}")
    return as_numpy(var.get_tensor()) if return_numpy else var.get_tensor()


def _as_lodtensor(data, place, dtype=None):
    """Returns a LoDTensor with the elements of an array, or with one number of the element type `dtype`."""
    if isinstance(data, list):
        raise RuntimeError("a list of arrays may have sequences; convert it to a LoDTensor")
    if numpy.isscalar(data):
        if dtype is None:
            raise AssertionError("a number needs an element type")
        data = to_array([data], dtype, "data", "_as_lodtensor")
    tensor = LoDTensor()
    tensor.set(data, place)
    return tensor


_HANDLER_EXAMPLE = """
class PrintLoss(fluid.executor.FetchHandler):
    def handler(self, res_dict):
        print('loss', res_dict['loss'])

exe.train_from_dataset(main, dataset, fetch_handler=PrintLoss({'loss': loss}, period_secs=10))
"""


class FetchHandler:
    """Gets values of variables while train_from_dataset() runs.

    Args:
        var_dict (dict): {any key: Variable}.
        period_secs (int): minimum seconds between two calls.

    Raises:
        ValueError: there is no variable.

    Example:
        x = fluid.data('x', [None, 2])
        handler = fluid.executor.FetchHandler({'x': x}, period_secs=10)
    """

    def __init__(self, var_dict=None, period_secs=60):
        if not var_dict:
            raise ValueError("FetchHandler needs the variables: {name: Variable}")
        self.var_dict = var_dict
        self.period_secs = period_secs

    def handler(self, res_dict):
        """Receives the values; the training thread calls it. Override it: this one prints the first row of each value.
        From a FetchHandlerMonitor it receives None for a variable without a value.

        Args:
            res_dict (dict): {key of var_dict: numpy.ndarray}.
        """
        print(" ".join(f"{name}[0]: {value[0]}" for name, value in res_dict.items() if value is not None))

    @staticmethod
    def help():
        """Prints an example of a handler."""
        print(_HANDLER_EXAMPLE)


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

    def __init__(self, place=None, wire=None, start_s=None):
        self.place = CPUPlace() if place is None else device_of(place, "Executor")
        process_end.watch_process()
        self._executor = _penstock.Executor(wire or "", _start_seconds(start_s))
        self._pruned_programs = weakref.WeakKeyDictionary()

    def run(
        self,
        program=None,
        feed=None,
        fetch_list=None,
        feed_var_name="feed",
        fetch_var_name="fetch",
        scope=None,
        return_numpy=True,
        use_program_cache=False,
        return_merged=True,
        use_prune=False,
    ):
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
        in_scope = _scope if scope is None else _require_scope("Executor.run: scope must be", scope)
        if isinstance(program, CompiledProgram):
            apart = program._is_data_parallel and not return_merged
            if program._does_nothing:
                return []
            placed = None if remote_tables.asks(program._program, in_scope) else program._on_places()
            if placed is not None:
                if use_prune:
                    raise NotImplementedError("use_prune: a program on several places runs as a whole")
                return self._run_on_places(program._program, placed, feed, fetch_list, in_scope, return_numpy, apart)
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
        if program._served_with:
            served, transpiler, endpoint = program._serves
            if served.setdefault(endpoint, transpiler) is transpiler:
                self._serve([program, *program._served_with], in_scope)
            return []  # or the job has ended, which the program of another transpiler has served
        then = program._then
        program = joined_trainers.program_to_run(
            program, in_scope, lambda begin: self._executor.run(begin.desc, in_scope, [], [])
        )
        program = remote_tables.asking_program(program, in_scope)
        block = program.global_block()
        feeds = self._set_persistables(block, self._feeds_of(block, _dict_of(feed)), in_scope)
        fetches, updates = _split_fetches(fetch_list)
        if use_prune or updates:
            program = self._pruned(program, [name for name, _ in feeds], fetches, updates, use_prune)
        process_end.this_thread.ran = True
        with _causes_in_python():
            try:
                values = self._executor.run(program.desc, in_scope, feeds, fetches)
            except _penstock.ProgramError as error:
                uncast = self._uncast(block, feed, feeds) if error.id.startswith("E-shape-") else None
                if uncast is None:
                    raise
                values = self._executor.run(program.desc, in_scope, uncast, fetches)
        remote_params.note_run(program, in_scope)
        if _progress_of_runs is not None:
            _progress_of_runs.note(program, feeds, fetches, values)
        values = [_returned(value, return_numpy) for value in values]
        for one in then:
            self.run(one, scope=in_scope)
        return [[value] for value in values] if apart else values

    def _serve(self, programs, scope):
        """Serves the programs of one pserver until all trainers have completed."""
        for program in programs:
            if not isinstance(program, Program):
                raise TypeError(
                    f"Executor.run takes a list of the Programs of a pserver, not of {type(program).__name__}"
                )
        process_end.this_thread.ran = True
        with _causes_in_python():
            self._executor.serve([program.desc for program in programs], scope)
        return []

    def _feeds_of(self, block, feed):
        return [(name, self._feed_value(block, name, value)) for name, value in feed.items() if _is_there(block, name)]

    def _run_on_places(self, program, placed, feed, fetch_list, scope, return_numpy, apart):
        if program._before_run is not None:
            program._before_run()
        self._executor.require_open()
        block = program.global_block()
        listed = isinstance(feed, (list, tuple))
        given = [_dict_of(one) for one in feed] if listed else [_dict_of(feed)]
        whole = [self._feeds_of(block, one) for one in given]
        names, _ = _split_fetches(fetch_list)
        feeds = _parts_of(placed, whole, listed)
        process_end.this_thread.ran = True
        with _causes_in_python():
            try:
                by_place = placed.run(scope, feeds, names)
            except _penstock.ProgramError as error:
                uncast = [
                    self._uncast(block, one, cast) if error.id.startswith("E-shape-") else None
                    for one, cast in zip(given, whole)
                ]
                if not any(uncast):
                    raise
                whole = [one or cast for one, cast in zip(uncast, whole)]
                by_place = placed.run(scope, _parts_of(placed, whole, listed), names)
        remote_params.note_run(program, scope)
        if _progress_of_runs is not None:
            _progress_of_runs.note(program, sum(feeds, []), names, by_place[0])
        values = [list(of_name) for of_name in zip(*by_place)]
        if apart:
            return [[_returned(value, return_numpy) for value in of_name] for of_name in values]
        return [_returned(data_parallel.merge(of_name), return_numpy) for of_name in values]

    def _pruned(self, program, feeds, fetches, updates, use_prune):
        """Returns the part of the program that the fetches and the updates need; the program itself if it has no other
        updates."""
        key = (use_prune, tuple(feeds), tuple(fetches), tuple(op._id for op in updates))
        known = self._pruned_programs.setdefault(program, {})
        content, pruned = known.get(key, (None, None))
        if content != program.desc.content_id:
            content = program.desc.content_id
            kept = _updates_to_keep(program, updates, use_prune)
            pruned = None if kept is None else self._prune_program(program, feeds, fetches, kept)
            known[key] = content, None if pruned is program else pruned  # itself would be kept forever
        return pruned or program

    def _prune_program(self, program, feed, fetch, optimize_ops):
        """Returns the part of the program that fetches (names) and update ops need if `feed` (names) are fed."""
        return program._prune(fetch, feed, optimize_ops)

    def batches(self, program, feeds, scope=None):
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
        return uneven_batches.batches_of_program(program, feeds, _scope if scope is None else scope)

    @staticmethod
    def _feed_value(block, name, value):
        if isinstance(value, LoDTensor):
            return value
        if value is None:
            raise TypeError(f"feed: the value of {name} is None")
        try:
            return converted(value, block.var(name))
        except _penstock.ProgramError:
            array = given_array(value, name)
            if array.dtype.kind in "iu" and _holds_only_ids(block, name):
                return array  # as _uncast() does
            raise

    @staticmethod
    def _set_persistables(block, feeds, scope):
        """Sets feeds of persistable variables in the scope, where they stay, as in Fluid. Returns the other feeds."""
        if not any(block.var(name).persistable for name, _ in feeds):  # no look at the ops, which may be many
            return feeds
        if any(op.type == "feed" for op in block.ops[:1]):  # a saved model, whose feed ops take the feeds
            return feeds
        rest = []
        for name, value in feeds:
            if not block.var(name).persistable:
                rest.append((name, value))
                continue
            held = scope.var(name).get_tensor()
            held.set(numpy.array(value), CPUPlace())
            if isinstance(value, LoDTensor):
                held.set_lod(value.lod())
        return rest

    @staticmethod
    def _uncast(block, feed, feeds):
        """Returns the feeds with integers unconverted where layers.data declares floats (its default), because an op
        may need the integers. None if there are no such feeds.
        """
        given = {
            name: numpy.asarray(value) for name, value in _dict_of(feed).items() if not isinstance(value, LoDTensor)
        }
        integers = {
            name
            for name, cast in feeds
            if name in given
            and given[name].dtype.kind in "iu"
            and numpy.asarray(cast).dtype.kind == "f"
            and not block.var(name).need_check_feed
        }
        return [(name, given[name] if name in integers else value) for name, value in feeds] if integers else None

    def train_from_dataset(
        self,
        program=None,
        dataset=None,
        scope=None,
        thread=0,
        debug=False,
        fetch_list=None,
        fetch_info=None,
        print_period=100,
        fetch_handler=None,
    ):
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
                _scope if scope is None else scope,
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

    def infer_from_dataset(
        self,
        program=None,
        dataset=None,
        scope=None,
        thread=0,
        debug=False,
        fetch_list=None,
        fetch_info=None,
        print_period=100,
        fetch_handler=None,
    ):
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
        self.train_from_dataset(
            program, dataset, scope, thread, debug, fetch_list, fetch_info, print_period, fetch_handler
        )

    def close(self):
        """Reports to the pservers that this trainer has completed; later runs raise an error.

        All Executors of a process are one trainer: the trainer completes when the last of them that used pservers is
        closed. Closing is optional: a process that ends with exit code 0 has completed too. A process that ends in
        another way (an exception, sys.exit(3), os._exit, a signal) has not completed, and the job fails.
        """
        self._executor.close()


def _parts_of(placed, feeds, listed):
    """Returns the feeds of each place, which are `feeds` if the caller listed them."""
    if listed:
        placed.check_count(len(feeds))
        return feeds
    return placed.split(feeds[0]) if feeds[0] else [[] for _ in range(placed.count)]


def _dict_of(feed):
    """Returns {name: value}; also accepts Fluid's list with one dict for each place."""
    if feed is None:
        return {}
    if isinstance(feed, (list, tuple)):
        if len(feed) != 1:
            raise ValueError(f"feed is a list of {len(feed)} dicts, but one place runs the program")
        feed = feed[0]
    if not isinstance(feed, dict):
        raise TypeError(f"feed must be a dict {{name: value}}, not {type(feed).__name__}")
    return feed


def _split_fetches(fetch_list):
    """Returns (names of fetched variables, ops). The list may contain the result of minimize, or the first part of it:
    its ops are run, and nothing is fetched for it."""
    if fetch_list is None:
        return [], []
    names, ops = [], []
    for one in [fetch_list] if isinstance(fetch_list, (Variable, str)) else fetch_list:
        # In a tuple (ops, pairs of parameters and gradients) the pairs are ignored, as in Fluid.
        parts = one if isinstance(one, list) else one[0] if isinstance(one, tuple) and one else [one]
        for part in parts if isinstance(parts, (list, tuple)) else [parts]:
            if isinstance(part, Operator):
                ops.append(part)
                continue
            name = getattr(part, "name", part)
            if not isinstance(name, str):
                raise TypeError(f"fetch_list holds Variables, their names, or results of minimize, not {part!r}")
            names.append(name)
    return names, ops


def _is_update(op):
    return bool(op.attr("op_role") & OpRole.Optimize) if op.has_attr("op_role") else False


def _updates_to_keep(program, updates, use_prune):
    """Returns the update ops that a run needs besides its fetches, or None if nothing can be removed."""
    for op in updates:
        if not _is_update(op):
            raise TypeError(f"fetch_list holds the op {op.type}, which is not the update of an optimizer")
    updates = [op for op in updates if op.block.idx == 0]  # ops inside a branch run with it
    every = [op for op in program.global_block().ops if _is_update(op)]
    named = {op._id for op in updates}
    if not use_prune and (not named or all(op._id in named for op in every if op.input("Param"))):
        return None
    return updates or every


def _holds_only_ids(block, name):
    """Returns whether layers.data declares floats (its default) for a variable that is only looked up in tables."""
    var = block.var(name)
    readers = [op for each in block.program.blocks for op in each.ops if name in op.input_arg_names]
    return (
        dtype_is_floating(var.dtype)
        and not var.need_check_feed
        and bool(readers)
        and all(name in op.input("Ids") for op in readers if op.type != "feed")
    )


def _is_there(block, name):
    if block.has_var(name):
        return True
    warnings.warn(
        f"feed: the program has no variable {name}, which is ignored{suggestion(name, block.vars)}",
        stacklevel=stack_level(),
    )
    return False
