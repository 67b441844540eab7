"""layers.data declares a variable that the caller feeds; layers.py_reader declares variables that a reader fills."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, cast

import numpy

from penstock._src.base.errors import state_error
from penstock._src.data.feeder import DataFeeder
from penstock._src.dataset.position import behind_complete_steps
from penstock._src.dataset.prefetch import Pump
from penstock._src.executor.scopes import global_scope
from penstock._src.ir import framework, unique_name
from penstock._src.ir.program import Program
from penstock._src.ir.types import CPUPlace, VarType, to_dtype
from penstock._src.ir.variable import Variable
from penstock._src.layers.helper import LayerHelper, describe, require_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from threading import Thread
    from typing import Any

    from penstock._penstock import BatchQueue, LoDTensor
    from penstock._src.dataset.prefetch import QueueToFill
    from penstock._src.ir.block import Block
    from penstock._src.ir.typing import Attrs, Dtype, Place


def data(
    name: str,
    shape: Sequence[int | None],
    append_batch_size: bool = True,
    dtype: Dtype = "float32",
    lod_level: int = 0,
    type: VarType = VarType.LOD_TENSOR,
    stop_gradient: bool = True,
) -> Variable:
    """Declares a variable that the caller feeds.

    Unlike fluid.data, it prepends an unknown batch extent to the shape, unless an extent is already unknown.

    Args:
        name (str): its name, the key of the feed.
        shape (list[int | None]): its shape; None or -1: known at run time.
        append_batch_size (bool): prepend the batch extent.
        dtype (str | VarType): type of its elements.
        lod_level (int): number of levels of sequences.
        type (VarType): kind of the variable.
        stop_gradient (bool): no gradient is computed for it.

    Returns:
        Variable: the variable.

    Raises:
        TypeError: `name` is not a str.

    Example:
        x = fluid.layers.data('x', [13])
        assert x.shape == (-1, 13)
    """
    require_name(name)
    extents = [-1 if extent is None else extent for extent in shape]
    if append_batch_size and all(extent >= 0 for extent in extents):
        extents = [-1, *extents]
    var: Variable = LayerHelper("data", name=name).create_global_variable(
        name=name, shape=extents, dtype=dtype, type=type, stop_gradient=stop_gradient, lod_level=lod_level, is_data=True
    )
    return var


def load(out: Variable, file_path: str, load_as_fp16: bool | None = None) -> None:
    """Adds an op that reads a variable from a file when the program runs.

    Args:
        out (Variable): the variable, any shape and type.
        file_path (str): a file that `fluid.io.save_vars` wrote.
        load_as_fp16 (bool | None): convert the values to float16.

    Raises:
        TypeError: `out` is not a Variable.

    Example:
        w = fluid.layers.create_parameter([2, 3], 'float32', name='w')
        fluid.layers.load(w, file_path='model/w')
    """
    attrs: dict[str, object] = {"file_path": file_path}
    if load_as_fp16 is not None:
        attrs["load_as_fp16"] = load_as_fp16
    LayerHelper("load").append_op("load", {}, {"Out": out}, attrs)


# Readers.
class ReaderNames(NamedTuple):
    queue: str
    reader: str
    double_buffer: str


class Reader(Variable):
    """A reader variable. A reader from py_reader has its own thread between start() and reset()."""

    __slots__ = ("_pump", "_source", "_feed_list")
    _pump: Pump
    _source: Callable[[], Iterable[Any]] | None
    _feed_list: Sequence[Variable] | None

    @staticmethod
    def _declare(block: Block, name: str) -> Reader:
        block.create_var(name=name, type=VarType.READER, persistable=True, stop_gradient=True)
        reader = Reader(block, name)
        block._var_handles[name] = reader
        reader._pump = cast(Pump, None)  # its maker sets it
        reader._source = reader._feed_list = None
        return reader

    @property
    def parts(self) -> list[tuple[int, list[int], int]]:
        """Returns [(element type, shape, LoD level)] of its variables."""
        return self._desc.var_reader(self.block.idx, self.name)

    @parts.setter
    def parts(self, parts: list[tuple[int, list[int], int]]) -> None:
        self._desc.set_var_reader(self.block.idx, self.name, parts)

    @property
    def queue(self) -> QueueToFill:
        return self._pump.queue_to_fill()

    @property
    def thread(self) -> Thread:
        return self._pump.thread

    exited = property(lambda self: not self._pump.started, lambda self, value: None)  # Fluid's scripts assign to it

    def decorate_sample_list_generator(
        self, reader: Callable[..., Any], places: Place | list[Place] | None = None
    ) -> None:
        """Sets a function that returns lists of samples, with one value for each variable."""
        feed_list = self._feed_list or self._stand_ins()
        feeder = DataFeeder(feed_list, CPUPlace())

        def batches() -> Iterator[list[LoDTensor]]:
            for samples in reader():
                tensors = feeder.feed(samples)
                yield [tensors[var.name] for var in feed_list]

        self.decorate_batch_generator(batches)

    decorate_paddle_reader = decorate_sample_list_generator

    def decorate_batch_generator(self, reader: Callable[..., Any], places: Place | list[Place] | None = None) -> None:
        """Sets a function that returns batches, with one array or LoDTensor for each variable."""
        self._source = reader

    decorate_tensor_provider = decorate_batch_generator

    def _stand_ins(self) -> list[Variable]:
        with framework.program_guard(Program(), Program()):
            return [
                data(str(i), shape, append_batch_size=False, dtype=dtype, lod_level=lod_level)
                for i, (dtype, shape, lod_level) in enumerate(self.parts)
            ]

    def start(self) -> None:
        """Starts a pass over the data."""
        if self._source is None:
            raise state_error(
                "E-reader-order", f"reader {self.name} has no data: call its decorate_batch_generator first"
            )
        source = self._source
        batches = behind_complete_steps(self._pump, source)
        self._pump.start(lambda: (list(values) for values in batches()))

    def reset(self) -> None:
        """Ends a pass, even before its last batch."""
        self._pump.stop()


def declare_reader(
    queue: BatchQueue, names: ReaderNames, feed_list: Sequence[Variable], use_double_buffer: bool
) -> Reader:
    """Appends the ops that create a reader of the queue in each run, and a double buffer for it."""
    main = framework.default_main_program().current_block()
    reader = _create_reader(main, queue, names, _parts_of(feed_list), _checks_of(feed_list))
    return double_buffer(reader, name=names.double_buffer) if use_double_buffer else reader


def _parts_of(feed_list: Sequence[Variable]) -> list[tuple[int, list[int], int]]:
    return [(int(var.dtype), list(var.shape), var.lod_level) for var in feed_list]


def _checks_of(feed_list: Sequence[Variable]) -> list[int]:
    return [int(var.need_check_feed) for var in feed_list]


def _create_reader(
    block: Block,
    queue: BatchQueue,
    names: ReaderNames,
    parts: list[tuple[int, list[int], int]],
    need_check_feed: list[int],
) -> Reader:
    held = global_scope().var(names.queue)
    held.get_tensor().set(numpy.array([queue.number], "int64"), None)
    block.create_var(name=names.queue, type=VarType.RAW, persistable=True, stop_gradient=True)
    reader = Reader._declare(block, names.reader)
    block.append_op(
        "create_py_reader",
        {"blocking_queue": names.queue},
        {"Out": reader},
        {
            "shape_concat": [extent for _, shape, _ in parts for extent in shape],
            "lod_levels": [lod_level for _, _, lod_level in parts],
            "dtypes": [dtype for dtype, _, _ in parts],
            "need_check_feed": need_check_feed,
            "ranks": [len(shape) for _, shape, _ in parts],
        },
    )
    reader.parts = parts
    return reader


def append_read_op(reader: Reader, out: list[Variable], attrs: Attrs) -> None:
    block = framework.default_main_program().current_block()
    block.append_op("read", {"Reader": reader}, {"Out": out}, attrs)


def _require_reader(layer: str, reader: Variable) -> Reader:
    if not isinstance(reader, Reader):
        raise TypeError(f"{layer}: reader must be the result of py_reader, not {describe(reader)}")
    return reader


def double_buffer(reader: Variable, place: Place | None = None, name: str | None = None) -> Reader:
    """Creates a reader that prefetches one batch of another reader.

    Args:
        reader (Variable): the result of `py_reader`.
        place (Place | None): the place of the prefetched batch.
        name (str | None): the name of the new reader; None: a generated one.

    Returns:
        Variable: the new reader.

    Raises:
        TypeError: `reader` is not the result of `py_reader`.

    Example:
        reader = fluid.layers.py_reader(4, [[-1, 8]], ['float32'], use_double_buffer=False)
        ahead = fluid.layers.double_buffer(reader)
    """
    below = _require_reader("double_buffer", reader)
    block = framework.default_main_program().current_block()
    ahead = Reader._declare(block, unique_name.generate("create_double_buffer_reader") if name is None else name)
    block.append_op(
        "create_double_buffer_reader",
        {"UnderlyingReader": reader},
        {"Out": ahead},
        {} if place is None else {"place": str(place).upper()},
    )
    ahead.parts = below.parts
    ahead._pump, ahead._source, ahead._feed_list = below._pump, below._source, below._feed_list
    return ahead


def _py_reader(
    capacity: int,
    name: str | None,
    parts: list[tuple[int, list[int], int]],
    feed_list: Sequence[Variable] | None,
    need_check_feed: list[int],
    use_double_buffer: bool,
) -> Reader:
    if not isinstance(capacity, int) or capacity < 1:
        raise ValueError(f"capacity must be a positive number of batches, not {capacity!r}")
    if name is None:
        names = ReaderNames(
            *map(unique_name.generate, ("lod_tensor_blocking_queue", "create_py_reader", "double_buffer"))
        )
    else:
        names = ReaderNames(name + "_queue", name + "_reader", name + "_double_buffer")
    pump = Pump(capacity + bool(use_double_buffer))
    _create_reader(framework.default_startup_program().current_block(), pump.queue, names, parts, need_check_feed)
    reader = Reader._declare(framework.default_main_program().current_block(), names.reader)
    reader.parts, reader._pump, reader._feed_list = parts, pump, feed_list
    return double_buffer(reader, name=names.double_buffer) if use_double_buffer else reader


def py_reader(
    capacity: int,
    shapes: Sequence[Sequence[int]],
    dtypes: Sequence[VarType | str],
    lod_levels: Sequence[int] | None = None,
    name: str | None = None,
    use_double_buffer: bool = True,
) -> Variable:
    """Creates a reader whose batches come from a Python generator through a queue, which a thread fills.

    Args:
        capacity (int): maximum number of batches in the queue.
        shapes (list[list[int]]): the shape of each variable; -1: known at run time.
        dtypes (list[str | VarType]): the element type of each variable.
        lod_levels (list[int] | None): the number of levels of sequences of each variable; None: 0.
        name (str | None): prefix of the names of the variables that the layer creates.
        use_double_buffer (bool): prefetch one more batch.

    Returns:
        Variable: the reader; `read_file` returns its variables.

    Raises:
        ValueError: the lists differ in length, or `capacity` is below 1.

    Example:
        reader = fluid.layers.py_reader(4, [[-1, 8], [-1, 1]], ['float32', 'int64'])
        image, label = fluid.layers.read_file(reader)
        reader.decorate_batch_generator(lambda: iter([[np.zeros((2, 8), 'float32'), np.zeros((2, 1), 'int64')]]))
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(fluid.default_startup_program())
        reader.start()
        assert exe.run(fetch_list=[image])[0].shape == (2, 8)
        reader.reset()
    """
    lod_levels = [0] * len(shapes) if lod_levels is None else list(lod_levels)
    if not len(shapes) == len(dtypes) == len(lod_levels):
        raise ValueError(
            f"{len(shapes)} shapes, {len(dtypes)} dtypes and {len(lod_levels)} lod_levels: py_reader takes one of "
            "each for a variable"
        )
    parts = [
        (int(to_dtype(dtype)), [-1 if extent is None else int(extent) for extent in shape], lod_level)
        for dtype, shape, lod_level in zip(dtypes, shapes, lod_levels)
    ]
    return _py_reader(capacity, name, parts, None, [0] * len(parts), use_double_buffer)


def create_py_reader_by_data(
    capacity: int, feed_list: Sequence[Variable], name: str | None = None, use_double_buffer: bool = True
) -> Variable:
    """Creates a py_reader for the shapes and types of existing variables.

    Args:
        capacity (int): maximum number of batches in the queue.
        feed_list (list[Variable]): the variables that provide shapes, types and levels of sequences.
        name (str | None): prefix of the names of the variables that the layer creates.
        use_double_buffer (bool): prefetch one more batch.

    Returns:
        Variable: the reader; `read_file` returns new variables of these shapes and types.

    Raises:
        ValueError: `capacity` is below 1.

    Example:
        x = fluid.data('x', [None, 8])
        reader = fluid.layers.create_py_reader_by_data(4, [x])
        batch = fluid.layers.read_file(reader)
    """
    return _py_reader(capacity, name, _parts_of(feed_list), list(feed_list), _checks_of(feed_list), use_double_buffer)


def read_file(reader: Variable) -> Variable | list[Variable]:
    """Adds an op that reads the next batch of a reader.

    Args:
        reader (Variable): the result of `py_reader`.

    Returns:
        Variable | list[Variable]: the variables of the reader; a list only if there are several.

    Raises:
        TypeError: `reader` is not the result of `py_reader`.

    Example:
        reader = fluid.layers.py_reader(4, [[-1, 8]], ['float32'])
        x = fluid.layers.read_file(reader)
    """
    source = _require_reader("read_file", reader)
    helper = LayerHelper("read_file")
    out = [
        helper.create_variable(
            name=unique_name.generate(helper.name + ".tmp"),
            dtype=dtype,
            shape=shape,
            lod_level=lod_level,
            stop_gradient=True,
        )
        for dtype, shape, lod_level in source.parts
    ]
    append_read_op(source, out, {})
    return out[0] if len(out) == 1 else out
