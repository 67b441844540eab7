"""The rounds of elastic ranks: who works together, decided from what happens to the ranks of a job.

    rounds = Rounds(names, nodes, restarts=3, least=None)
    rounds.begins(0)                                 # a process of rank 0 has been started
    rounds.asks(0, "127.0.0.1:6070")                 # it wants to be in the next round, at this address
    rounds.ends(1, failure)                          # it has ended: whether the job goes on
    for rank, message in rounds.take_messages(): ... # what the ranks learn

Every launcher of a job has its own Rounds and applies the same events in the same order, so that all decide alike
without asking each other. Nothing here depends on clocks, links or machines.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from penstock._src.launch.outcome import Failure


ROUNDS_WITHOUT_LOSS = 10  # in a row; more are a defect that no new round repairs


@dataclasses.dataclass
class Rank:
    """A rank of the job, and the process that it has now."""

    name: str
    node: int  # the machine on which it runs
    lives: bool = False  # it has a process
    expected: bool = True  # a process is about to be started
    round: int = -1  # the last round that the process was in
    address: str = ""  # where it wants to be reached in the next round; "": it does not wait for one
    told: bool = False  # the running ranks know that it waits
    restarts: int = 0


class Rounds:
    """`restarts`: how often each rank may be restarted; `least`: the number of ranks below which the job ends, None if
    all are needed."""

    def __init__(self, names: Sequence[str], nodes: Sequence[int], restarts: int, least: int | None) -> None:
        self.ranks = [Rank(name, node) for name, node in zip(names, nodes)]
        self.number = -1  # of the last round
        self.end = ""  # why there is no further round
        self.reports: list[str] = []  # lines for the terminal, without a prefix
        self._restarts, self._least = restarts, least
        self._lost: list[Failure] = []  # since the last round
        self._rounds_without_loss = 0
        self._messages: list[tuple[int, dict[str, Any]]] = []

    def begins(self, rank: int) -> None:
        one = self.ranks[rank]
        one.lives, one.expected, one.round, one.address, one.told = True, False, -1, "", False

    def asks(self, rank: int, address: str) -> None:
        if self.ranks[rank].lives:
            self.ranks[rank].address = address
        self.go_on()

    def ends(self, rank: int, failure: Failure | None) -> bool:
        """Notes that the process of a rank has ended; failure None: well. Returns whether the job goes on as if it had
        not failed."""
        one = self.ranks[rank]
        one.lives, one.expected, one.address = False, False, ""
        if failure is None:
            self.finish(f"{one.name} has ended well")
            return False
        if self.end:
            return one.round < 0 and self.number >= 0  # it came too late to take part
        if one.restarts < self._restarts:
            one.restarts += 1
            one.expected = True
            return self._goes_on([one], failure, f"it is restarted ({one.restarts} of {self._restarts})")
        return self._is_enough([one], failure)

    def loses(self, node: int, failure: Failure) -> bool:
        """Notes that a machine is gone. Returns whether the job goes on."""
        lost = [rank for rank in self.ranks if rank.node == node and (rank.lives or rank.expected)]
        for rank in lost:
            rank.lives, rank.expected, rank.address = False, False, ""
            rank.restarts = self._restarts
        return not lost or bool(self.end) or self._is_enough(lost, failure)

    def take_lost(self) -> list[Failure]:
        """Returns, once, the failures that the job has not recovered from."""
        lost, self._lost = self._lost, []
        return lost

    def take_messages(self) -> list[tuple[int, dict[str, Any]]]:
        """Returns, once, what ranks are to be told. That of a new round lacks its environment: `members` are the ranks
        in their new order, with their addresses."""
        messages, self._messages = self._messages, []
        return messages

    def take_reports(self) -> list[str]:
        reports, self.reports = self.reports, []
        return reports

    def expects(self) -> bool:
        """Returns whether a process of a rank is about to be started."""
        return any(rank.expected for rank in self.ranks)

    def awaited(self) -> list[str] | None:
        """Returns the names of the ranks for which others wait; None if nobody waits for a round that must begin."""
        asked, missing = self._asked(), self._missing()
        return None if self.end or not asked or self._wait_to_join(asked, missing) else [one.name for one in missing]

    def finish(self, why: str) -> None:
        """Forms no further round; ranks that ask for one learn why."""
        self.end = self.end or why
        for rank in self.ranks:
            rank.expected = False
        self.go_on()

    def go_on(self) -> None:
        """Answers the ranks that ask, if that can be done now."""
        if self.end:
            self._refuse()
            return
        asked, missing = self._asked(), self._missing()
        if not asked:
            return
        if self._wait_to_join(asked, missing):
            self._tell_of_more(asked)
            return
        running = any(rank.round >= 0 for rank in missing)
        enough = self._least is not None and self.number >= 0 and len(asked) >= self._least and not running
        if enough or (not missing and not self.expects()):
            self._form(asked)

    def _asked(self) -> list[Rank]:
        return [rank for rank in self.ranks if rank.address]

    def _missing(self) -> list[Rank]:
        return [rank for rank in self.ranks if rank.lives and not rank.address]

    def _wait_to_join(self, asked: Sequence[Rank], missing: Sequence[Rank]) -> bool:
        """Returns whether those that ask are new, and the others run without them until they next commit."""
        running = any(rank.round >= 0 for rank in missing)
        return self._least is not None and running and all(rank.round < 0 for rank in asked)

    def _is_enough(self, lost: Sequence[Rank], failure: Failure) -> bool:
        """Returns whether the ranks that are left are enough, once ranks are lost for good."""
        if self._least is not None and self._present() >= self._least:
            return self._goes_on(
                lost, failure, f"{self._present()} ranks go on, at least {self._least} (--min_workers)"
            )
        limit = self._limit()
        self.reports.append(f"{', '.join(rank.name for rank in lost)} is lost: {limit}   [E-elastic-limit]")
        self.finish(f"{failure.who} {failure.words}, and {limit}")
        return False

    def _goes_on(self, lost: Sequence[Rank], failure: Failure, how: str) -> bool:
        self._lost.append(failure)
        self.reports.append(f"{failure.who} {failure.words}; {how}")
        last = max(rank.round for rank in lost)
        if last >= 0:
            self._tell(lambda other: other.round == last, {"event": "over", "round": last})
        self.go_on()
        return True

    def _present(self) -> int:
        return sum(rank.lives or rank.expected for rank in self.ranks)

    def _limit(self) -> str:
        """Says which limit does not let the job go on."""
        parts = [f"--max_role_restart is {self._restarts}"] if self._restarts else []
        if self._least is not None:
            parts.append(f"{self._present()} ranks are left, fewer than {self._least} (--min_workers)")
        return " and ".join(parts)

    def _refuse(self) -> None:
        for number, rank in enumerate(self.ranks):
            if rank.address:
                rank.address = ""
                self._messages.append((number, {"event": "end", "why": self.end}))

    def _tell_of_more(self, asked: Sequence[Rank]) -> None:
        """Tells the ranks of a round that others wait to join them."""
        if all(rank.told for rank in asked):
            return
        for rank in asked:
            rank.told = True
        self._tell(lambda rank: rank.round >= 0, {"event": "more"})

    def _tell(self, concerns: Callable[[Rank], bool], message: dict[str, Any]) -> None:
        """Sends a message to the living ranks that it concerns."""
        self._messages += [(i, message) for i, rank in enumerate(self.ranks) if rank.lives and concerns(rank)]

    def _form(self, asked: Sequence[Rank]) -> None:
        """Answers the ranks of the next round, which are numbered in the order of the job."""
        changed = bool(self._lost) or any(rank.round < 0 for rank in asked)
        self._rounds_without_loss = 0 if changed else self._rounds_without_loss + 1
        if self._rounds_without_loss > ROUNDS_WITHOUT_LOSS:
            why = f"{ROUNDS_WITHOUT_LOSS} rounds have failed one after the other, and no rank was lost"
            self.reports.append(f"{why}   [E-elastic-limit]")
            self.finish(why)
            return
        self.number += 1
        members = [(i, rank.address) for i, rank in enumerate(self.ranks) if rank.address]
        grows = self._least is not None and self._restarts > 0
        for number, _ in members:
            self.ranks[number].address, self.ranks[number].round = "", self.number
            message = {"event": "round", "round": self.number, "grows": grows, "members": members}
            self._messages.append((number, message))
        self._lost = []
