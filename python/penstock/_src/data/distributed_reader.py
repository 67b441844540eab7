"""distributed_batch_reader divides batches among trainers."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from penstock._src.base import environment
from penstock._src.base.errors import program_error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any


def distributed_batch_reader(batch_reader: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a reader of this trainer's batches: of every PADDLE_TRAINERS_NUM batches, the one at PADDLE_TRAINER_ID.

    Args:
        batch_reader (callable): returns an iterable of batches, the same ones in every trainer.

    Returns:
        function: a reader. All trainers read the same number of batches: batches at the end that are not enough for all
        trainers are skipped.

    Raises:
        ValueError: PADDLE_TRAINER_ID is not less than PADDLE_TRAINERS_NUM.

    Example:
        batches = fluid.io.batch(lambda: range(6), 2)
        mine = fluid.contrib.reader.distributed_batch_reader(batches)
        assert list(mine()) == [[0, 1], [2, 3], [4, 5]]    # of the only trainer
    """
    trainers = environment.value("PADDLE_TRAINERS_NUM", 1)
    trainer = environment.value("PADDLE_TRAINER_ID", 0)
    if not 0 <= trainer < trainers:
        raise program_error(
            "E-reader-trainers",
            f"distributed_batch_reader: PADDLE_TRAINER_ID is {trainer}, but PADDLE_TRAINERS_NUM is {trainers}",
        )

    def reader() -> Iterator[Any]:
        batches = iter(batch_reader())
        while True:
            row = list(itertools.islice(batches, trainers))
            if len(row) < trainers:
                return
            yield row[trainer]

    return reader
