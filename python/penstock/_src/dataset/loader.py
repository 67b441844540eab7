"""DataLoader.from_dataset: the batches of a dataset for the user's own training loop."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock._src.dataset.dataset_base import DatasetBase
from penstock._src.dataset.position import behind_complete_steps

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from penstock._penstock import LoDTensor
    from penstock._src.ir.types import CPUPlace


def examples_of(batch: list[LoDTensor]) -> int:
    """Returns the number of instances in a batch."""
    tensor = batch[0]
    lod = tensor.lod()
    return len(lod[0]) - 1 if lod else tensor.shape()[0]


class DatasetLoader:
    """Each pass reads the dataset again, with one thread per place, takes the batches of the threads in turn, and
    yields one for each place."""

    def __init__(self, dataset: DatasetBase, places: Sequence[CPUPlace], drop_last: bool) -> None:
        if not isinstance(dataset, DatasetBase):
            raise TypeError(f"DataLoader.from_dataset takes a dataset of DatasetFactory, not {dataset!r}")
        self._dataset, self._drop_last = dataset, drop_last
        self._threads = len(places) if isinstance(places, (list, tuple)) else 1
        if self._threads == 0:
            raise ValueError("DataLoader.from_dataset: places is empty")

    def __call__(self) -> DatasetLoader:
        return self

    def __iter__(self) -> Iterator[list[dict[str, LoDTensor]]]:
        return behind_complete_steps(self._dataset, self._steps)()

    def _steps(self) -> Iterator[list[dict[str, LoDTensor]]]:
        names, least = self._dataset._names(), self._dataset._desc["batch_size"] if self._drop_last else 1
        reading, stop = self._dataset._start(self._threads)
        group = []
        try:
            queues = list(reading.queues)
            while queues:
                for queue in list(queues):
                    batch = queue.pop()
                    if batch is None:
                        queues.remove(queue)
                    elif examples_of(batch) >= least:
                        group.append(dict(zip(names, batch)))
                    if len(group) == self._threads:
                        yield group
                        group = []
            if group and not self._drop_last:
                yield group
        finally:
            stop()
