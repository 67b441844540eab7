"""Shares: divides the examples of an epoch among trainers, and lets fast ones take over examples of slow ones."""

from __future__ import annotations

import itertools
import secrets
import time
from typing import TYPE_CHECKING

from penstock._src.base import environment, log
from penstock._src.base.errors import program_error, state_error
from penstock._src.work.board import Board
from penstock._src.work.client import Remote
from penstock._src.work.desk import Desk
from penstock._src.work.messages import Hello, Request, read_answer
from penstock._src.work.portions import Portions, order_of
from penstock._src.work.process import this_process
from penstock._src.work.service import Service, the_service

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from penstock._src.launch.channel import Message
    from penstock._src.work.portions import Portion


RECONNECT_S = 60.0
START_S = 900.0
REPORT_AFTER_S = 10.0
_numbers = itertools.count()  # of the Shares objects of this process


class Round:
    """What this trainer works on in one round: an iterable of arrays of indices.

    Iterate over it once, add the gradients of all examples that it yields, and exchange the sum with the other trainers
    before the next round, also if it has yielded nothing.
    """

    def __init__(self, take: Callable[[], Any], number: int, size: int, workers: int) -> None:
        self._take = take
        self.number = number  # within the epoch
        self.size = size  # examples of all trainers
        self.examples = 0  # that this trainer has got so far
        self._workers = workers

    def __iter__(self) -> Iterator[Any]:
        while (indices := self._take()) is not None:
            self.examples += len(indices)
            yield indices

    @property
    def weight(self) -> float:
        """The factor of this trainer's mean gradient, if the exchange computes the mean over trainers: its examples,
        as a multiple of an equal part of the round."""
        return self.examples * self._workers / self.size


class Shares:
    """Divides the examples of each epoch among the trainers of a job, and hands examples of slow trainers to fast ones.

    An epoch consists of rounds, in which each trainer has a batch, and a batch of portions. A trainer that has finished
    its own portions gets portions of the trainer that would need most time for its own (FlexRR). All examples are
    yielded once an epoch, to one trainer or another: read them by index. Each trainer creates the same objects in the
    same order.

    With staleness 0, trainers go through rounds together, and exchange gradients after each (`rounds`). Otherwise each
    trainer sends gradients when it likes (`batches`), and helps others instead of going too far ahead.

    If the process of a trainer dies, the portions whose results it had not passed on are yielded again: to its next
    process with `--on_trainer_loss wait`, else to others. Trainer 0 divides the work. If it dies, the others get an
    error; with staleness 0 and `--on_trainer_loss wait` they wait for its next process, and tell it what they have.
    Which trainer gets an example depends on time, so results differ between runs by rounding.

    Args:
        size (int): number of examples of an epoch, at least 1.
        batch_size (int): examples of one trainer in one round, at least 1.
        staleness (int | None): how many rounds a trainer may be ahead of the oldest round that is not finished; 0:
            trainers exchange gradients after each round; None: any number.
        portions (int): into how many portions a batch is divided, at least 1. What is handed over is a portion.
        helpers (int | None): how many trainers may help each one: those with the next numbers; 0: none; None: all.
        shuffle (bool): True: each epoch has a new order, the same in all trainers; False: the order is 0, 1, 2, ...
        seed (int): seed of the orders.
        rank (int | None): this trainer; None: PADDLE_TRAINER_ID, or 0.
        workers (int | None): number of trainers; None: PADDLE_TRAINERS_NUM, or 1.
        address (str | None): HOST:PORT at which trainer 0 listens for the others; None: PENSTOCK_WORK_ENDPOINT, which
            the launcher sets. All prove that they know the job's token, PENSTOCK_JOB_TOKEN.

    Raises:
        ValueError: a number is out of its range.
        penstock.ProgramError: there are several trainers, and no address (E-work-address); the trainers have different
            arguments (E-work-settings); ranks are elastic (E-work-elastic).
        penstock.PeerError: trainer 0 has not come in time, or is gone (E-work-gone).

    Example:
        import penstock.work

        values = np.arange(10.)
        shares = penstock.work.Shares(10, batch_size=4, portions=2)
        for epoch in range(2):
            total = 0.
            for round in shares.rounds(epoch):
                for indices in round:
                    total += values[indices].sum()
                assert round.weight == 1.0    # the only trainer
            assert total == 45.

    Reference:
        A. Harlap et al.: Addressing the straggler problem for iterative convergent parallel ML. SoCC 2016.
    """

    def __init__(
        self,
        size: int,
        batch_size: int,
        staleness: int | None = 0,
        portions: int = 8,
        helpers: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        rank: int | None = None,
        workers: int | None = None,
        address: str | None = None,
    ) -> None:
        said = environment.value
        count = said("PADDLE_TRAINERS_NUM", 1) if workers is None else _whole("workers", workers, 1)
        self._rank = said("PADDLE_TRAINER_ID", 0) if rank is None else _whole("rank", rank, 0)
        if self._rank >= count:
            raise ValueError(f"Shares: rank {self._rank} must be below the number of workers, {count}")
        self._portions = Portions(
            _whole("size", size, 1), _whole("batch_size", batch_size, 1), _whole("portions", portions, 1), count
        )
        self._staleness = None if staleness is None else _whole("staleness", staleness, 0)
        self._helpers = None if helpers is None else _whole("helpers", helpers, 0)
        self._shuffle, self._seed = bool(shuffle), int(seed)
        self._epoch, self._order = -1, None
        self._requests = itertools.count(1)
        self._number = next(_numbers)
        self._ask = self._connected(address)

    def _connected(self, address: str | None) -> Callable[[Request, Any], Message]:
        """Returns the function that asks the board of the job."""
        count, given = self._portions.workers, address or environment.text("PENSTOCK_WORK_ENDPOINT")
        if count > 1 and environment.text("PENSTOCK_ELASTIC_FD"):
            raise program_error(
                "E-work-elastic", "Shares: the ranks of this job are elastic; use hvd.elastic.ElasticSampler"
            )
        if count > 1 and not given:
            raise program_error(
                "E-work-address",
                f"Shares: the job has {count} trainers, and neither `address` nor PENSTOCK_WORK_ENDPOINT says where "
                "trainer 0 listens for the others; the launcher sets the variable",
            )
        token, reconnect_s = (
            environment.text("PENSTOCK_JOB_TOKEN"),
            environment.value("PENSTOCK_RECONNECT_S", RECONNECT_S),
        )
        keeps = environment.value("PENSTOCK_ON_TRAINER_LOSS", "") == "wait"
        returns = keeps and self._staleness == 0  # trainer 0: in rounds, the others know what it has divided
        if self._rank > 0:
            hello = Hello(self._rank, self._number, self._facts(), secrets.token_hex(8), this_process())
            start_s = environment.value("PENSTOCK_START_S", START_S)
            return Remote(given, token, hello, self._portions, reconnect_s, start_s, returns).ask
        board = Board(self._portions, self._staleness, self._helpers, keeps)
        service = the_service(given, token, count) if count > 1 else Service("", token, 1)
        resumes = count > 1 and returns and environment.value("PENSTOCK_ROLE_RESTART_COUNT", 0) > 0
        service.open(self._number, Desk(board, self._facts(), count, reconnect_s, resumes), self._facts())
        return lambda request, note: service.ask(self._number, request, note)

    def _facts(self) -> dict[str, int]:
        """Returns the settings, which must be the same in all trainers; -1: none."""
        one = self._portions
        return {
            "size": one.size,
            "batch_size": one.batch_size,
            "portions": one.per_batch,
            "workers": one.workers,
            "staleness": -1 if self._staleness is None else self._staleness,
            "helpers": -1 if self._helpers is None else self._helpers,
            "shuffle": int(self._shuffle),
            "seed": self._seed,
        }

    def __len__(self) -> int:
        """Returns the number of rounds of an epoch."""
        return self._portions.rounds

    def rounds(self, epoch: int, first: int = 0) -> Iterator[Round]:
        """Yields the rounds of an epoch, with staleness 0. The results of a round count as passed on when the next one
        is asked for.

        Args:
            epoch (int): its number, above that of the epoch before; it selects the order.
            first (int): the round with which this trainer begins, if it continues.

        Returns:
            Iterator[Round]: `for indices in round` yields arrays of int64 indices; round.size is the number of examples
            of all trainers, round.examples of this one, and round.weight = examples * workers / size.

        Raises:
            penstock.StateError: the staleness is not 0, or the epoch is not a later one (E-work-order).
            penstock.PeerError: trainer 0 is gone (E-work-gone), or has taken this process for dead (E-work-fenced).
        """
        if self._staleness != 0:
            raise state_error("E-work-order", "Shares: there are rounds only with staleness=0; use batches(epoch)")
        self._begin(epoch, first)
        return self._rounds(epoch, first)

    def _rounds(self, epoch: int, first: int) -> Iterator[Round]:
        for number in range(first, len(self)):
            size = self._portions.round_size(number)
            yield Round(lambda at=number: self._take(at), number, size, self._portions.workers)  # type: ignore[misc]
        self._send("end", epoch=epoch)

    def batches(self, epoch: int, first: int = 0) -> Iterator[Any]:
        """Yields the portions of an epoch that this trainer works on, with another staleness than 0. The result of a
        portion counts as passed on when the next one is asked for.

        Args:
            epoch (int): as in `rounds`.
            first (int): as in `rounds`.

        Returns:
            Iterator[numpy.ndarray]: arrays of int64 indices.

        Raises:
            penstock.StateError: the staleness is 0, or the epoch is not a later one (E-work-order).
            penstock.PeerError: as in `rounds`.
        """
        if self._staleness == 0:
            raise state_error("E-work-order", "Shares: with staleness=0 trainers exchange gradients; use rounds(epoch)")
        self._begin(epoch, first)
        return self._batches(epoch)

    def _batches(self, epoch: int) -> Iterator[Any]:
        while (indices := self._take(0)) is not None:
            yield indices
        self._send("end", epoch=epoch)

    def _begin(self, epoch: int, first: int) -> None:
        epoch, first = _whole("epoch", epoch, 0), _whole("first", first, 0)
        if first > len(self):
            raise ValueError(f"Shares: first is {first}, and an epoch has {len(self)} rounds")
        if epoch <= self._epoch:
            raise state_error(
                "E-work-order", f"Shares: epoch {epoch} cannot follow epoch {self._epoch}; its examples are given away"
            )
        self._epoch = epoch
        self._order = order_of(self._portions.size, self._shuffle, self._seed, epoch)
        self._send("begin", epoch=epoch, first=first)

    def _take(self, round: int) -> Any:
        """Returns the indices of the next portion, or None."""
        portion = self._send("take", round=round)
        if portion is None or self._order is None:
            return None
        begin, end = self._portions.bounds(portion)
        if portion[0] // len(self) == self._epoch:
            return self._order[begin:end]
        # A trainer that has died has left it in an earlier epoch.
        earlier = order_of(self._portions.size, self._shuffle, self._seed, portion[0] // len(self))
        return earlier[begin:end]

    def _send(self, event: str, **fields: int) -> Portion | None:
        request = Request(next(self._requests), event, **fields)
        began, after = time.monotonic(), environment.value("PENSTOCK_REPORT_AFTER", REPORT_AFTER_S)

        def note(holders: Callable[[], list[int]]) -> None:
            nonlocal after
            if time.monotonic() - began < after:
                return
            others = ", ".join(f"trainer {rank}" for rank in holders() if rank != self._rank) or "trainer 0"
            log.info(f"waiting {after:.0f} s for a portion of the work, in epoch {self._epoch}; {others} has some")
            after *= 2

        return read_answer(self._ask(request, note), self._portions)[1]


def _whole(name: str, value: Any, least: int) -> int:
    whole = int(value) if hasattr(value, "__index__") and not isinstance(value, bool) else None
    if whole is None or whole < least:
        raise ValueError(f"Shares: {name} must be an integer of at least {least}, not {value!r}")
    return whole
