"""DataLoader and PyReader: batches of a user's generator for the executor, prefetched by a thread.

loader = fluid.io.DataLoader.from_generator(feed_list=[image, label], capacity=16)
loader.set_sample_list_generator(reader, places=fluid.cpu_places())
for data in loader():                                            # iterable: the caller feeds
    exe.run(feed=data, fetch_list=[loss])

loader = fluid.io.DataLoader.from_generator(feed_list=[image, label], capacity=16, iterable=False)
loader.set_batch_generator(reader)
loader.start()                                                   # not iterable: the program reads
try:
    while True:
        exe.run(fetch_list=[loss])
except fluid.core.EOFException:
    loader.reset()
"""

import itertools
import random
import threading
import warnings

import numpy

from penstock._penstock import LoDTensor
from penstock._src.base.call_site import stack_level
from penstock._src.data.feeder import DataFeeder
from penstock._src.data.py_reader import ReaderNames, append_read_op, declare_reader
from penstock._src.data.reader_decorators import batch, map_readers, xmap_readers
from penstock._src.dataset.loader import DatasetLoader
from penstock._src.dataset.prefetch import Pump
from penstock._src.ir import unique_name
from penstock._src.ir.array_conversion import converted, require_unmasked_parts
from penstock._src.ir.types import CPUPlace
from penstock._src.ir.variable import Variable

__all__ = ["DataLoader", "PyReader", "default_collate_fn"]

_keeps_order = True

# Fluid generates the names of loaders' variables separately from all others.
_names = unique_name.UniqueNameGenerator()


def keep_data_loader_order(*args):
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


def default_collate_fn(batch):
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


class DataLoaderBase:
    """Base class of the loaders: an iterator of batches."""

    def __call__(self):
        return self

    def __iter__(self):
        raise NotImplementedError

    def __next__(self):
        raise NotImplementedError

    def next(self):
        """Returns the next batch.

        Returns:
            dict | list: a list with return_list=True, else a dict.

        Raises:
            StopIteration: the pass has ended.
        """
        return self.__next__()


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
        dataset,
        feed_list=None,
        places=None,
        return_list=False,
        batch_sampler=None,
        batch_size=1,
        shuffle=False,
        drop_last=False,
        collate_fn=None,
        num_workers=0,
        use_buffer_reader=True,
        use_shared_memory=True,
        timeout=0,
        worker_init_fn=None,
    ):
        if not hasattr(dataset, "__getitem__") or not hasattr(dataset, "__len__"):
            raise TypeError(f"a dataset must have __getitem__ and __len__; {type(dataset).__name__} does not")
        if batch_sampler is None:
            indices = _shuffled(len(dataset)) if shuffle else lambda: iter(range(len(dataset)))
            self._batches = batch(indices, batch_size, drop_last)
            self._count = len(dataset) // batch_size if drop_last else -(-len(dataset) // batch_size)
        elif batch_size != 1 or shuffle or drop_last:
            raise ValueError("batch_size, shuffle and drop_last exclude batch_sampler")
        else:
            self._batches, self._count = lambda: iter(batch_sampler), None
            self._sampler = batch_sampler
        collate = collate_fn or default_collate_fn
        start_worker = _once_a_thread(worker_init_fn)

        def load(indices):
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

    def __len__(self):
        """Returns the number of batches of a pass."""
        return len(self._sampler) if self._count is None else self._count

    def __iter__(self):
        return iter(self._loader)

    def __next__(self):
        return next(self._loader)

    @staticmethod
    def from_generator(
        feed_list=None,
        capacity=None,
        use_double_buffer=True,
        iterable=True,
        return_list=False,
        use_multiprocess=False,
        drop_last=True,
    ):
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
    def from_dataset(dataset, places, drop_last=True):
        """Creates a loader for the batches of a dataset, for your own training loop.

        Args:
            dataset (DatasetBase): a dataset from fluid.DatasetFactory.
            places (list of CPUPlace): their number is that of the batches in a step and of the reading threads.
            drop_last (bool): skip a thread's last batch if it is smaller than the others, and the last batches if there
                are fewer than places.

        Returns:
            DatasetLoader: each pass yields feeds for Executor.run, a list with a dict for each place.

        Example:
            x = fluid.data('x', [None, 2])
            with open('part-0', 'w') as file:
                file.write('2 0.5 1.5\\n2 1 1\\n')
            dataset = fluid.DatasetFactory().create_dataset('QueueDataset')
            dataset.set_use_var([x])
            dataset.set_batch_size(1)
            dataset.set_filelist(['part-0'])
            assert len(list(fluid.io.DataLoader.from_dataset(dataset, fluid.cpu_places(1)))) == 2
        """
        return DatasetLoader(dataset, places, drop_last)


def _shuffled(count):

    def indices():
        order = list(range(count))
        random.shuffle(order)
        return iter(order)

    return indices


def _once_a_thread(init):
    """Returns a function that calls init(thread number) at the first call of each thread."""
    known, numbers = threading.local(), itertools.count()

    def start():
        if init is not None and not hasattr(known, "number"):
            known.number = next(numbers)
            init(known.number)

    return start


class GeneratorLoader(DataLoaderBase):
    """A loader for the batches of a generator. DataLoader.from_generator creates it.

    Args:
        feed_list (list[Variable]): the variables of a batch, in its order.
        capacity (int): the maximum number of batches in the queue.
        use_double_buffer (bool): prefetch one more batch.
        iterable (bool): True: the caller iterates over the loader and feeds the batches; False: ops of the program read
            them.
        return_list (bool): return lists of tensors instead of dicts.
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
        self, feed_list=None, capacity=None, use_double_buffer=True, iterable=True, return_list=False, drop_last=True
    ):
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
        self._places = None
        self._source = None
        self._pump = Pump(capacity + bool(use_double_buffer))
        if not iterable:
            names = ReaderNames(
                _names("lod_tensor_blocking_queue"), _names("create_py_reader"), _names("double_buffer")
            )
            reader = declare_reader(self._pump.queue, names, self._feed_list, use_double_buffer)
            append_read_op(reader, self._feed_list, {"drop_last": drop_last})

    @property
    def queue(self):
        """The queue of batches."""
        return self._pump.queue

    @staticmethod
    def _check_input_array(item):
        """Returns the array of a list of numbers or arrays; raises TypeError if these differ in size."""
        try:
            array = numpy.asarray(item)
        except ValueError as error:
            raise TypeError(f"a batch must be an array or lists of equal length: {error}") from None
        if array.dtype == object:
            raise TypeError("a batch must be an array or lists of equal length")
        return array

    @property
    def iterable(self):
        """Whether the caller iterates."""
        return self._iterable

    # The source of batches.
    def set_sample_generator(self, reader, batch_size, drop_last=True, places=None):
        """Sets a generator of samples, which are combined into batches.

        Args:
            reader (callable): returns an iterable of samples, with a value for each variable.
            batch_size (int): number of samples in a batch.
            drop_last (bool): skip a last batch that is smaller.
            places (Place | list[Place] | None): the places of the batches; required for an iterable loader.

        Returns:
            GeneratorLoader: the loader.
        """
        return self.set_sample_list_generator(batch(reader, batch_size, drop_last), places)

    def set_sample_list_generator(self, reader, places=None):
        """Sets a generator of lists of samples.

        Args:
            reader (callable): returns an iterable of lists of samples.
            places (Place | list[Place] | None): the places of the batches; required for an iterable loader.

        Returns:
            GeneratorLoader: the loader.
        """
        feed_list = self._feed_list  # not self: the thread must not keep the loader alive
        feeder = DataFeeder(feed_list, CPUPlace())

        def batches():
            for samples in reader():
                tensors = feeder.feed(samples)
                yield [tensors[var.name] for var in feed_list]

        return self.set_batch_generator(batches, places)

    def set_batch_generator(self, reader, places=None):
        """Sets a generator of batches.

        Args:
            reader (callable): returns an iterable of batches: an array or LoDTensor for each variable.
            places (Place | list[Place] | None): the places of the batches; required for an iterable loader.

        Returns:
            GeneratorLoader: the loader.

        Raises:
            ValueError: places are missing for an iterable loader.
        """
        if self._iterable:
            if places is None:
                raise ValueError("an iterable loader needs places")
            self._places = list(places) if isinstance(places, (list, tuple)) else [places]
            if not self._places:
                raise ValueError("places is empty")
        elif places is not None:
            warnings.warn("places have no effect on a loader with iterable=False", stacklevel=stack_level())
        feed_list = self._feed_list
        self._source = lambda: (_checked(values, feed_list) for values in reader())
        return self

    def _require_source(self):
        if self._source is None:
            raise RuntimeError("the loader has no data: give it a generator first")

    # Iterable.
    def __iter__(self):
        if not self._iterable:
            raise RuntimeError(
                "the loader was created with iterable=False: the program reads from it, between start() and reset()"
            )
        self._require_source()
        self._pump.stop()
        self._pump.start(self._source)
        return self

    def __next__(self):
        if not self._pump.started:
            raise StopIteration
        batches = []
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
    def start(self):
        """Starts a pass over the data, for a loader with iterable=False.

        Raises:
            RuntimeError: the loader is iterable, or has no generator.
        """
        if self._iterable:
            raise RuntimeError("start() is for a loader with iterable=False; iterate over this one")
        self._require_source()
        self._pump.start(self._source)

    def reset(self):
        """Ends a pass, even before its last batch, for a loader with iterable=False.

        Raises:
            RuntimeError: the loader is iterable.
        """
        if self._iterable:
            raise RuntimeError("reset() is for a loader with iterable=False; iterate over this one")
        self._reset()

    def _reset(self):
        self._pump.stop()


def _checked(values, feed_list):
    """Converts arrays to the variables' element types, as for a feed."""
    values = list(values)
    if len(values) != len(feed_list):
        raise ValueError(
            f"the generator gave {len(values)} values for the {len(feed_list)} variables "
            f"{', '.join(var.name for var in feed_list)}"
        )
    return [
        value if isinstance(value, LoDTensor) else converted(value, var, "the generator")
        for value, var in zip(values, feed_list)
    ]


class PyReader(DataLoaderBase):
    """The older interface of DataLoader.from_generator.

    Args:
        feed_list (list[Variable]): the variables of a batch, in its order.
        capacity (int): the maximum number of batches in the queue.
        use_double_buffer (bool): prefetch one more batch.
        iterable (bool): True: the caller iterates over the loader and feeds the batches; False: ops of the program read
            them.
        return_list (bool): return lists of tensors instead of dicts.

    Example:
        x = fluid.data('x', [None, 3])
        reader = fluid.io.PyReader(feed_list=[x], capacity=2)
        reader.decorate_batch_generator(lambda: iter([[np.ones((2, 3), 'float32')]]), places=fluid.CPUPlace())
        assert len(list(reader())) == 1
    """

    def __init__(self, feed_list=None, capacity=None, use_double_buffer=True, iterable=True, return_list=False):
        self._loader = GeneratorLoader(feed_list, capacity, use_double_buffer, iterable, return_list)

    @property
    def queue(self):
        """The queue of batches."""
        return self._loader.queue

    @property
    def iterable(self):
        """Whether the caller iterates."""
        return self._loader.iterable

    def __iter__(self):
        return self._loader.__iter__()

    def __next__(self):
        return self._loader.__next__()

    def start(self):
        """Starts a pass over the data, for a reader with iterable=False."""
        self._loader.start()

    def reset(self):
        """Ends a pass, even before its last batch, for a reader with iterable=False."""
        self._loader.reset()

    def decorate_sample_generator(self, sample_generator, batch_size, drop_last=True, places=None):
        """Sets a generator of samples, which are combined into batches.

        Args:
            sample_generator (callable): returns an iterable of samples, with a value for each variable.
            batch_size (int): number of samples in a batch.
            drop_last (bool): skip a last batch that is smaller.
            places (Place | list[Place] | None): the places of the batches; required for an iterable reader.
        """
        self._loader.set_sample_generator(sample_generator, batch_size, drop_last, places)

    def decorate_sample_list_generator(self, reader, places=None):
        """Sets a generator of lists of samples.

        Args:
            reader (callable): returns an iterable of lists of samples.
            places (Place | list[Place] | None): the places of the batches; required for an iterable reader.
        """
        self._loader.set_sample_list_generator(reader, places)

    def decorate_batch_generator(self, reader, places=None):
        """Sets a generator of batches.

        Args:
            reader (callable): returns an iterable of batches: an array or LoDTensor for each variable.
            places (Place | list[Place] | None): the places of the batches; required for an iterable reader.
        """
        self._loader.set_batch_generator(reader, places)
