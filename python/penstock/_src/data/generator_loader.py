"""Loaders for the batches of a generator: GeneratorLoader, and PyReader, its older interface."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, cast

import numpy

from penstock._penstock import LoDTensor
from penstock._src.base.call_site import stack_level
from penstock._src.base.doc_texts import with_texts
from penstock._src.base.errors import program_error, state_error
from penstock._src.data.feeder import DataFeeder
from penstock._src.data.py_reader import ReaderNames, append_read_op, declare_reader
from penstock._src.data.reader_decorators import batch
from penstock._src.dataset.position import behind_complete_steps
from penstock._src.dataset.prefetch import Pump
from penstock._src.ir import unique_name
from penstock._src.ir.array_conversion import converted
from penstock._src.ir.types import CPUPlace
from penstock._src.ir.variable import Variable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any, TypeVar

    from numpy import dtype, ndarray

    from penstock._penstock import BatchQueue
    from penstock._src.ir.typing import Array, Place

    _Loader = TypeVar("_Loader", bound="DataLoaderBase")


# Fluid generates the names of loaders' variables separately from all others.
_names = unique_name.UniqueNameGenerator()


class DataLoaderBase:
    """Base class of the loaders: an iterator of batches."""

    def __call__(self: _Loader) -> _Loader:
        return self

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError

    def __next__(self) -> Any:
        raise NotImplementedError

    def next(self) -> Any:
        """Returns the next batch.

        Returns:
            dict | list: a list with return_list=True, else a dict.

        Raises:
            StopIteration: the pass has ended.
        """
        return self.__next__()


_GENERATOR = {
    "batches": """batch_size (int): number of samples in a batch.
drop_last (bool): skip a last batch that is smaller.""",
    "places": "places (Place | list[Place] | None): the places of the batches; required for an iterable {kind}.",
    "samples": """Sets a generator of samples, which are combined into batches.

        Args:
            {reader} (callable): returns an iterable of samples, with a value for each variable.
            {batches}
            {places}""",
    "lists": """Sets a generator of lists of samples.

        Args:
            reader (callable): returns an iterable of lists of samples.
            {places}""",
    "whole_batches": """Sets a generator of batches.

        Args:
            reader (callable): returns an iterable of batches: an array or LoDTensor for each variable.
            {places}""",
}
_LOADER = {
    "queue": """feed_list (list[Variable]): the variables of a batch, in its order.
capacity (int): the maximum number of batches in the queue.
use_double_buffer (bool): prefetch one more batch.
iterable (bool): True: the caller iterates over the loader and feeds the batches; False: ops of the program read
    them.
return_list (bool): return lists of tensors instead of dicts."""
}


@with_texts(_LOADER)
class GeneratorLoader(DataLoaderBase):
    """A loader for the batches of a generator. DataLoader.from_generator creates it.

    Args:
        {queue}
        drop_last (bool): with several places, skip the last batches if there are not enough for all places.

    Raises:
        ValueError, TypeError: `feed_list` or `capacity` is missing or has the wrong type.

    Example:
        x = fluid.data('x', [None, 3])
        loader = fluid.io.DataLoader.from_generator(feed_list=[x], capacity=2)
        loader.set_batch_generator(lambda: iter([[np.ones((2, 3), 'float32')]]), places=fluid.CPUPlace())
        assert [np.array(feed[0]['x']).shape for feed in loader()] == [(2, 3)]
    """

    def __init__(
        self,
        feed_list: Sequence[Variable] | None = None,
        capacity: int | None = None,
        use_double_buffer: bool = True,
        iterable: bool = True,
        return_list: bool = False,
        drop_last: bool = True,
    ) -> None:
        if not isinstance(feed_list, (list, tuple)) or not feed_list:
            raise ValueError(f"feed_list must list the variables that the loader fills, not be {feed_list!r}")
        if not isinstance(capacity, int) or capacity < 1:
            raise ValueError(f"capacity must be a positive number of batches, not {capacity!r}")
        self._feed_list = list(feed_list)
        for var in self._feed_list:
            if not isinstance(var, Variable):
                raise TypeError(f"feed_list must hold the variables that the loader fills, not {var!r}")
        self._iterable = iterable
        self._return_list = return_list
        self._drop_last = drop_last
        self._places: Sequence[Place] = ()
        self._source: Callable[[], Iterator[list[Any]]] | None = None
        self._pump = Pump(capacity + bool(use_double_buffer))
        if not iterable:
            names = ReaderNames(
                _names("lod_tensor_blocking_queue"), _names("create_py_reader"), _names("double_buffer")
            )
            reader = declare_reader(self._pump.queue, names, self._feed_list, use_double_buffer)
            append_read_op(reader, self._feed_list, {"drop_last": drop_last})

    @property
    def queue(self) -> BatchQueue:
        """The queue of batches."""
        return self._pump.queue

    @staticmethod
    def _check_input_array(item: object) -> ndarray[tuple[Any, ...], dtype[Any]]:
        """Returns the array of a list of numbers or arrays; raises TypeError if these differ in size."""
        try:
            array = numpy.asarray(item)
        except ValueError as error:
            raise TypeError(f"a batch must be an array or lists of equal length: {error}") from None
        if array.dtype == object:
            raise TypeError("a batch must be an array or lists of equal length")
        return array

    @property
    def iterable(self) -> bool:
        """Whether the caller iterates."""
        return self._iterable

    # The source of batches.
    @with_texts(_GENERATOR, kind="loader", reader="reader")
    def set_sample_generator(
        self,
        reader: Callable[..., Any],
        batch_size: int,
        drop_last: bool = True,
        places: Place | Sequence[Place] | None = None,
    ) -> GeneratorLoader:
        """{samples}

        Returns:
            GeneratorLoader: the loader.
        """
        return self.set_sample_list_generator(batch(reader, batch_size, drop_last), places)

    @with_texts(_GENERATOR, kind="loader")
    def set_sample_list_generator(
        self, reader: Callable[..., Any], places: Place | Sequence[Place] | None = None
    ) -> GeneratorLoader:
        """{lists}

        Returns:
            GeneratorLoader: the loader.
        """
        feed_list = self._feed_list  # not self: the thread must not keep the loader alive
        feeder = DataFeeder(feed_list, CPUPlace())

        def batches() -> Iterator[list[LoDTensor]]:
            for samples in reader():
                tensors = feeder.feed(samples)
                yield [tensors[var.name] for var in feed_list]

        return self.set_batch_generator(batches, places)

    @with_texts(_GENERATOR, kind="loader")
    def set_batch_generator(
        self, reader: Callable[..., Any], places: Place | Sequence[Place] | None = None
    ) -> GeneratorLoader:
        """{whole_batches}

        Returns:
            GeneratorLoader: the loader.

        Raises:
            ValueError: places are missing for an iterable loader.
        """
        if self._iterable:
            if places is None:
                raise ValueError("an iterable loader needs places")
            self._places = cast("list[Place]", list(places) if isinstance(places, (list, tuple)) else [places])
            if not self._places:
                raise ValueError("places is empty")
        elif places is not None:
            warnings.warn("places have no effect on a loader with iterable=False", stacklevel=stack_level())
        feed_list = self._feed_list
        self._source = lambda: (_checked(values, feed_list) for values in reader())
        return self

    def _require_source(self) -> Callable[[], Iterator[list[Any]]]:
        if self._source is None:
            raise state_error("E-reader-order", "the loader has no data: give it a generator first")
        return self._source

    # Iterable.
    def __iter__(self) -> GeneratorLoader:
        if not self._iterable:
            raise state_error(
                "E-reader-order",
                "the loader was created with iterable=False: the program reads from it, between start() and reset()",
            )
        source = self._require_source()
        self._pump.stop()
        self._pump.start(behind_complete_steps(self._pump, source, len(self._places), self._drop_last))
        return self

    def __next__(self) -> list[Any]:  # dicts, or lists with return_list
        if not self._pump.started:
            raise StopIteration
        batches: list[list[LoDTensor]] = []
        while len(batches) < len(self._places):
            tensors = self._pump.next()
            if tensors is None:
                break
            batches.append(tensors)
        if not batches or (self._drop_last and len(batches) < len(self._places)):
            self._pump.stop()
            raise StopIteration
        if self._return_list:
            return batches
        return [{var.name: tensor for var, tensor in zip(self._feed_list, tensors)} for tensors in batches]

    # Not iterable.
    def start(self) -> None:
        """Starts a pass over the data, for a loader with iterable=False.

        Raises:
            RuntimeError: the loader is iterable, or has no generator.
        """
        if self._iterable:
            raise state_error("E-reader-order", "start() is for a loader with iterable=False; iterate over this one")
        self._pump.start(behind_complete_steps(self._pump, self._require_source()))

    def reset(self) -> None:
        """Ends a pass, even before its last batch, for a loader with iterable=False.

        Raises:
            RuntimeError: the loader is iterable.
        """
        if self._iterable:
            raise state_error("E-reader-order", "reset() is for a loader with iterable=False; iterate over this one")
        self._reset()

    def _reset(self) -> None:
        self._pump.stop()


def _checked(values: Sequence[Array | LoDTensor], feed_list: list[Variable]) -> list[Array | LoDTensor]:
    """Converts arrays to the variables' element types, as for a feed."""
    values = list(values)
    if len(values) != len(feed_list):
        raise program_error(
            "E-reader-values",
            f"the generator gave {len(values)} values for the {len(feed_list)} variables "
            f"{', '.join(var.name for var in feed_list)}",
        )
    return [
        value if isinstance(value, LoDTensor) else converted(value, var, "the generator")
        for value, var in zip(values, feed_list)
    ]


@with_texts(_LOADER)
class PyReader(DataLoaderBase):
    """The older interface of DataLoader.from_generator.

    Args:
        {queue}

    Example:
        x = fluid.data('x', [None, 3])
        reader = fluid.io.PyReader(feed_list=[x], capacity=2)
        reader.decorate_batch_generator(lambda: iter([[np.ones((2, 3), 'float32')]]), places=fluid.CPUPlace())
        assert len(list(reader())) == 1
    """

    def __init__(
        self,
        feed_list: Sequence[Variable] | None = None,
        capacity: int | None = None,
        use_double_buffer: bool = True,
        iterable: bool = True,
        return_list: bool = False,
    ) -> None:
        self._loader = GeneratorLoader(feed_list, capacity, use_double_buffer, iterable, return_list)

    @property
    def queue(self) -> BatchQueue:
        """The queue of batches."""
        return self._loader.queue

    @property
    def iterable(self) -> bool:
        """Whether the caller iterates."""
        return self._loader.iterable

    def __iter__(self) -> GeneratorLoader:
        return self._loader.__iter__()

    def __next__(self) -> list[Any]:  # dicts, or lists with return_list
        return self._loader.__next__()

    def start(self) -> None:
        """Starts a pass over the data, for a reader with iterable=False."""
        self._loader.start()

    def reset(self) -> None:
        """Ends a pass, even before its last batch, for a reader with iterable=False."""
        self._loader.reset()

    @with_texts(_GENERATOR, kind="reader", reader="sample_generator")
    def decorate_sample_generator(
        self,
        sample_generator: Callable[..., Any],
        batch_size: int,
        drop_last: bool = True,
        places: Place | Sequence[Place] | None = None,
    ) -> None:
        """{samples}"""
        self._loader.set_sample_generator(sample_generator, batch_size, drop_last, places)

    @with_texts(_GENERATOR, kind="reader")
    def decorate_sample_list_generator(
        self, reader: Callable[..., Any], places: Place | Sequence[Place] | None = None
    ) -> None:
        """{lists}"""
        self._loader.set_sample_list_generator(reader, places)

    @with_texts(_GENERATOR, kind="reader")
    def decorate_batch_generator(
        self, reader: Callable[..., Any], places: Place | Sequence[Place] | None = None
    ) -> None:
        """{whole_batches}"""
        self._loader.set_batch_generator(reader, places)
