"""Datasets: files of MultiSlot text, read by threads through a pipe command, for Executor.train_from_dataset.

Users import penstock.fluid.dataset, whose docstring has an example.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock._src.base.errors import not_built
from penstock._src.dataset.dataset_base import DatasetBase
from penstock._src.dataset.in_memory import InMemoryDataset

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock._penstock import DatasetReading


class DatasetFactory:
    """Creates datasets by the names of their classes.

    Example:
        dataset = fluid.DatasetFactory().create_dataset('InMemoryDataset')
    """

    def create_dataset(self, datafeed_class: str = "QueueDataset") -> DatasetBase:
        """Creates a dataset.

        Args:
            datafeed_class (str): 'QueueDataset', which reads files during training, or 'InMemoryDataset', which can be
                shuffled.

        Returns:
            DatasetBase: the dataset.

        Raises:
            ValueError: the class does not exist.
            NotImplementedError: the class exists in Fluid but is not built.
        """
        if datafeed_class == "BoxPSDataset":
            raise not_built("BoxPSDataset needs BoxPS, which is not public; use InMemoryDataset")
        classes = {each.__name__: each for each in (QueueDataset, InMemoryDataset, FileInstantDataset)}
        if datafeed_class not in classes:
            raise ValueError(f"datafeed class {datafeed_class} does not exist; there are {', '.join(sorted(classes))}")
        return classes[datafeed_class]()


class QueueDataset(DatasetBase):
    """Reads files during training; each pass reads them again.

    Example:
        x, y = fluid.data('x', [None, 2]), fluid.data('y', [None, 1])
        loss = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(x, 1), y))
        with open('part-0', 'w') as file:
            file.write('2 0.5 1.5 1 2\\n2 1 1 1 2\\n')
        dataset = fluid.DatasetFactory().create_dataset('QueueDataset')
        dataset.set_use_var([x, y])
        dataset.set_filelist(['part-0'])
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(fluid.default_startup_program())
        exe.train_from_dataset(fluid.default_main_program(), dataset)
    """

    _FEED = "MultiSlotDataFeed"

    def _start(self, threads: int) -> tuple[DatasetReading, Callable[[], None]]:
        self._require_files()
        threads = max(min(threads, len(self.filelist)), 1)
        reading = self._native().read_files(
            self.filelist, self._desc["pipe_command"], threads, self._desc["batch_size"]
        )
        return reading, reading.stop


class FileInstantDataset(QueueDataset):
    """The same as QueueDataset."""

    _FEED = "MultiSlotFileInstantDataFeed"
