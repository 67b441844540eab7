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

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.data.feeder import DataFeeder as DataFeeder
    from penstock._src.data.generator_loader import DataLoaderBase as DataLoaderBase
    from penstock._src.data.generator_loader import GeneratorLoader as GeneratorLoader, PyReader
    from penstock._src.data.reader import DataLoader, default_collate_fn
    from penstock._src.data.reader import keep_data_loader_order as keep_data_loader_order
    from penstock._src.dataset.loader import DatasetLoader as DatasetLoader
    from penstock._src.ir.variable import Variable as Variable

__all__ = ['DataLoader', 'PyReader', 'default_collate_fn']

facade.make(__name__)
