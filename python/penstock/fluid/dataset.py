"""Datasets: files of MultiSlot text, read by threads through a pipe command, for Executor.train_from_dataset.

    dataset = fluid.DatasetFactory().create_dataset('InMemoryDataset')
    dataset.set_use_var([words, label])
    dataset.set_pipe_command('python gen.py')      # reads a file's lines, writes MultiSlot lines; the default is cat
    dataset.set_batch_size(32)
    dataset.set_thread(4)
    dataset.set_filelist(fleet.split_files(files))
    dataset.load_into_memory()
    dataset.global_shuffle(fleet)
    exe.train_from_dataset(fleet.main_program, dataset)

A line of MultiSlot text contains, for each variable of set_use_var in order, a count and that many numbers.
incubate.data_generator writes such lines.
"""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.dataset.dataset import DatasetFactory, FileInstantDataset as FileInstantDataset, QueueDataset
    from penstock._src.dataset.dataset_base import DatasetBase as DatasetBase
    from penstock._src.dataset.in_memory import InMemoryDataset

__all__ = ['DatasetFactory', 'InMemoryDataset', 'QueueDataset']

facade.make(__name__)
