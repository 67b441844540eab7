"""The examples of an epoch, divided among the ranks of an elastic job."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from penstock._src.base.doc_texts import with_texts
from penstock._src.hvd.job import rank, size
from penstock._src.hvd.texts import ARRAYS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence, Sized


@with_texts(ARRAYS)
class ElasticSampler:
    """Iterates over this rank's part of the indices of a data set. As a value of a state, it divides the examples of
    the epoch that are not processed yet among the ranks of the next round.

    Call `record_batch` after each batch, and `set_epoch` at the end of each epoch.

    Args:
        dataset (Sized): its length counts.
        shuffle (bool): whether the order is random; it is the same on all ranks.
        seed (int): of the order, with the number of the epoch; equal on all ranks.

    {example}
        examples = np.arange(10.)
        state = hvd.elastic.ObjectState(sampler=hvd.elastic.ElasticSampler(examples), total=0.)
        for batch, index in enumerate(state.sampler):
            state.total += examples[index]
            state.sampler.record_batch(batch, 1)
            state.commit()
        assert state.total == 45.
    """

    def __init__(self, dataset: Sized, shuffle: bool = True, seed: int = 0) -> None:
        self.dataset, self.shuffle, self.seed = dataset, shuffle, seed
        self.epoch = 0
        self.processed_num = 0
        self.reset()

    def set_epoch(self, epoch: int) -> None:
        """Begins an epoch: no example is processed.

        Args:
            epoch (int): its number, which changes the order.
        """
        self.epoch, self.processed_num = epoch, 0
        self.reset()

    def record_batch(self, batch_idx: int, batch_size: int) -> None:
        """Notes that each rank has processed a batch.

        Args:
            batch_idx (int): accepted for Horovod's scripts.
            batch_size (int): examples of one rank.
        """
        self.processed_num += batch_size * self.num_replicas

    def state_dict(self) -> dict[str, int]:
        """Returns what the sampler is to continue from.

        Returns:
            dict[str, int]: epoch and processed_num.
        """
        return {"epoch": self.epoch, "processed_num": self.processed_num}

    def load_state_dict(self, state_dict: dict[str, int]) -> None:
        """Continues from a result of `state_dict`, with the ranks that the job has now.

        Args:
            state_dict (dict[str, int]): epoch and processed_num.
        """
        self.epoch, self.processed_num = state_dict["epoch"], state_dict["processed_num"]
        self.reset()

    def reset(self) -> None:
        """Divides the examples that are not processed yet among the ranks of the job."""
        self.num_replicas, self.rank = size(), rank()
        order = list(range(len(self.dataset)))
        if self.shuffle:
            random.Random(self.seed + self.epoch).shuffle(order)
        self.remaining_indices: Sequence[int] = order[self.processed_num :]
        self.num_samples = -(-len(self.remaining_indices) // self.num_replicas)
        self.total_size = self.num_samples * self.num_replicas

    def __iter__(self) -> Iterator[int]:
        """Iterates over this rank's indices; all ranks have equally many, so the first ones may come twice."""
        left = self.remaining_indices
        return (left[at % len(left)] for at in range(self.rank, self.total_size, self.num_replicas))

    def __len__(self) -> int:
        return self.num_samples
