"""DataLoader and PyReader: batches of a user's generator for the executor, prefetched by a thread.

Users import penstock.fluid.reader, whose docstring has an example.
"""

from __future__ import annotations

import itertools
import random
import threading
from typing import TYPE_CHECKING

import numpy

from penstock._src.base.argument_texts import DATASET
from penstock._src.base.doc_texts import with_texts
from penstock._src.data.generator_loader import DataLoaderBase, GeneratorLoader
from penstock._src.data.parallel_readers import xmap_readers
from penstock._src.data.reader_decorators import batch, map_readers
from penstock._src.dataset.loader import DatasetLoader
from penstock._src.ir.array_conversion import require_unmasked_parts
from penstock._src.ir.types import CPUPlace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any

    from penstock._penstock import LoDTensor
    from penstock._src.dataset.dataset_base import DatasetBase
    from penstock._src.ir.typing import Array, Place
    from penstock._src.ir.variable import Variable


_keeps_order = True


def keep_data_loader_order(*args: Any) -> bool | None:
    """Returns, or sets, whether the batches of a non-iterable loader reach the program in the reader's order.

    Penstock keeps the order in either case: with False, Fluid may exchange batches.

    Args:
        args (bool): the new setting; without one, the function returns the setting.

    Returns:
        bool | None: the setting, True by default; None if a new one is given.

    Raises:
        TypeError: `args` is not one bool.

    Example:
        from penstock.fluid.reader import keep_data_loader_order

        assert keep_data_loader_order()
    """
    global _keeps_order
    if not args:
        return _keeps_order
    if len(args) != 1 or not isinstance(args[0], bool):
        raise TypeError(f"keep_data_loader_order takes one bool, not {args!r}")
    _keeps_order = args[0]
    return None


def default_collate_fn(batch: Sequence[Sequence[Array]]) -> list[Array]:
    """Stacks samples to one array per field.

    Args:
        batch (list): the samples, which are arrays or tuples of fields.

    Returns:
        list[numpy.ndarray]: the fields, each of shape [samples, ...].

    Raises:
        penstock.ProgramError: E-array-masked: an element is masked.

    Example:
        fields = fluid.io.default_collate_fn([(np.zeros(3), 0), (np.ones(3), 1)])
        assert fields[0].shape == (2, 3)
    """
    if isinstance(batch[0], numpy.ndarray):
        require_unmasked_parts(batch, "sample", "default_collate_fn")
        return [numpy.stack(batch)]
    for number, field in enumerate(zip(*batch)):
        require_unmasked_parts(field, f"field {number}", "default_collate_fn")
    return [numpy.stack([numpy.asarray(value) for value in field]) for field in zip(*batch)]


class DataLoader(DataLoaderBase):
    """Loads batches of a dataset, which threads prefetch.

    Args:
        dataset (object): supports len(dataset) and dataset[i], which returns a sample.
        feed_list (list[Variable]): the variables of a sample, in its order.
        places (Place | list[Place] | None): the places of the batches; None: the CPU.
        return_list (bool): return lists of tensors instead of dicts.
        batch_sampler (Iterable | None): yields lists of indices, instead of `batch_size`, `shuffle` and `drop_last`.
        batch_size (int): number of samples in a batch.
        shuffle (bool): use a new random order in each pass.
        drop_last (bool): skip a last batch that is smaller.
        collate_fn (callable | None): combines a list of samples to the arrays of a batch; None: default_collate_fn.
        num_workers (int): number of threads that get samples and collate them; 0: the reading thread does it.
        use_buffer_reader (bool): prefetch one more batch.
        use_shared_memory (bool): ignored; accepted for compatibility with Fluid.
        timeout (int): ignored; accepted for compatibility with Fluid.
        worker_init_fn (callable | None): called with the worker's number before its first batch.

    Raises:
        TypeError: `dataset` lacks __getitem__ or __len__.
        ValueError: arguments contradict each other.

    Example:
        x = fluid.data('x', [None, 3])
        data = [(np.full(3, i, 'float32'),) for i in range(4)]
        loader = fluid.io.DataLoader(data, feed_list=[x], batch_size=2)
        assert [np.array(batch[0]['x']).shape for batch in loader] == [(2, 3), (2, 3)]
    """

    def __init__(
        self,
        dataset: object,
        feed_list: Sequence[Variable] | None = None,
        places: Place | Sequence[Place] | None = None,
        return_list: bool = False,
        batch_sampler: Iterable[Any] | None = None,
        batch_size: int = 1,
        shuffle: bool = False,
        drop_last: bool = False,
        collate_fn: Callable[..., Any] | None = None,
        num_workers: int = 0,
        use_buffer_reader: bool = True,
        use_shared_memory: bool = True,
        timeout: int = 0,
        worker_init_fn: Callable[..., Any] | None = None,
    ) -> None:
        if not hasattr(dataset, "__getitem__") or not hasattr(dataset, "__len__"):
            raise TypeError(f"a dataset must have __getitem__ and __len__; {type(dataset).__name__} does not")
        if batch_sampler is None:
            indices = _shuffled(len(dataset)) if shuffle else lambda: iter(range(len(dataset)))
            self._batches = batch(indices, batch_size, drop_last)
            self._count: int | None = len(dataset) // batch_size if drop_last else -(-len(dataset) // batch_size)
        elif batch_size != 1 or shuffle or drop_last:
            raise ValueError("batch_size, shuffle and drop_last exclude batch_sampler")
        else:
            self._batches = lambda: iter(batch_sampler)
            self._count = None
            self._sampler: Any = batch_sampler  # len() needs its length
        collate = collate_fn or default_collate_fn
        start_worker = _once_a_thread(worker_init_fn)

        def load(indices: list[int]) -> list[Array]:
            start_worker()
            return collate([dataset[i] for i in indices])

        if num_workers < 0:
            raise ValueError(f"num_workers must not be negative, but is {num_workers}")
        batches = (
            map_readers(load, self._batches)
            if num_workers == 0
            else xmap_readers(load, self._batches, num_workers, 2 * num_workers, order=True)
        )
        self._loader = GeneratorLoader(feed_list, max(2 * num_workers, 1), use_buffer_reader, True, return_list)
        self._loader.set_batch_generator(batches, places or CPUPlace())

    def __len__(self) -> int:
        """Returns the number of batches of a pass."""
        return len(self._sampler) if self._count is None else self._count

    def __iter__(self) -> GeneratorLoader:
        return iter(self._loader)

    def __next__(self) -> list[dict[str, LoDTensor] | list[LoDTensor]]:
        return next(self._loader)

    @staticmethod
    def from_generator(
        feed_list: Sequence[Variable] | None = None,
        capacity: int | None = None,
        use_double_buffer: bool = True,
        iterable: bool = True,
        return_list: bool = False,
        use_multiprocess: bool = False,
        drop_last: bool = True,
    ) -> GeneratorLoader:
        """Creates a loader for the batches of a generator.

        Set the generator with set_sample_generator, set_sample_list_generator or set_batch_generator.

        Args:
            feed_list (list[Variable]): the variables of a batch, in its order.
            capacity (int): the maximum number of batches in the queue.
            use_double_buffer (bool): prefetch one more batch.
            iterable (bool): True: the caller iterates over the loader and feeds the batches; False: ops of the program
                read them, and start() and reset() begin and end a pass.
            return_list (bool): return lists of tensors instead of dicts.
            use_multiprocess (bool): ignored; accepted for compatibility with Fluid.
            drop_last (bool): with several places, skip the last batches if there are not enough for all places.

        Returns:
            GeneratorLoader: the loader.
        """
        return GeneratorLoader(feed_list, capacity, use_double_buffer, iterable, return_list, drop_last)

    @staticmethod
    @with_texts(DATASET)
    def from_dataset(dataset: DatasetBase, places: Sequence[CPUPlace], drop_last: bool = True) -> DatasetLoader:
        """Creates a loader for the batches of a dataset, for your own training loop.

        Args:
            dataset (DatasetBase): a dataset from fluid.DatasetFactory.
            places (list of CPUPlace): their number is that of the batches in a step and of the reading threads.
            drop_last (bool): skip a thread's last batch if it is smaller than the others, and the last batches if there
                are fewer than places.

        Returns:
            DatasetLoader: each pass yields feeds for Executor.run, a list with a dict for each place.

        Example:
            {file_of_two}
            dataset = fluid.DatasetFactory().create_dataset('QueueDataset')
            dataset.set_use_var([x])
            dataset.set_batch_size(1)
            dataset.set_filelist(['part-0'])
            assert len(list(fluid.io.DataLoader.from_dataset(dataset, fluid.cpu_places(1)))) == 2
        """
        return DatasetLoader(dataset, places, drop_last)


def _shuffled(count: int) -> Callable[..., Any]:

    def indices() -> Iterator[int]:
        order = list(range(count))
        random.shuffle(order)
        return iter(order)

    return indices


def _once_a_thread(init: Callable[..., Any] | None) -> Callable[..., Any]:
    """Returns a function that calls init(thread number) at the first call of each thread."""
    known, numbers = threading.local(), itertools.count()

    def start() -> None:
        if init is not None and not hasattr(known, "number"):
            known.number = next(numbers)
            init(known.number)

    return start
