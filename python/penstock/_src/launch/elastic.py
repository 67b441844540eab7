"""Elastic ranks: a rank that ends is restarted, or the others go on without it, in the processes in which they live.

    check_elastic(options, plan)                     # raises JobError
    ranks = make_elastic(options, job)               # None if the options ask for none
    link = ranks.begins(role)                        # before a process of the role is started
    ranks.takes(role, failure, now)                  # it has ended: whether the job goes on
    for role in ranks.pump(now): ...                 # the roles to start now

Ranks work together in rounds. A rank asks for its first round in hvd.init(), and for the next one when its round has
failed, or when it is told that more ranks have come. When all ranks that are expected have asked, the launcher numbers
them in the order of their roles, chooses new addresses, and answers all.

    only --max_role_restart N     the others wait for a rank that is restarted
    only --min_workers M          the others go on, while they are at least M
    both                          the others go on, and the restarted rank joins them when they next commit
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from penstock._src.launch.errors import JobError
from penstock._src.launch.job import free_ports
from penstock._src.launch.link import Link
from penstock._src.launch.logs import say

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Callable, Sequence
    from typing import Any

    from penstock._src.launch.outcome import Failure
    from penstock._src.launch.plan import Job, Plan, Role


WAIT_S = 900.0  # for the ranks of a round, unless --start_s is given
BACK_OFF_S = (0.0, 1.0, 2.0, 4.0, 10.0)  # before the first, second, ... restart of a rank
ROUNDS_WITHOUT_LOSS = 10  # in a row; more are a defect that no new round repairs


def add_elastic_options(parser: ArgumentParser, positive: Callable[[str], int]) -> None:
    """Adds the option to an argparse.ArgumentParser; `positive` reads an integer above 0. checkpoints.py adds
    --max_role_restart."""
    group = parser.add_argument_group(
        "elastic ranks", "of a job without pservers on one machine, whose script uses hvd.elastic.run"
    )
    group.add_argument(
        "--min_workers",
        type=positive,
        metavar="N",
        help="continue from the last commit with fewer ranks after a failure, while at least N are left; with "
        "--max_role_restart, a restarted rank joins when the others next commit (default: all ranks are needed)",
    )


def check_elastic(options: Namespace, plan: Plan) -> None:
    """Raises the JobError of options that the job cannot have."""
    has_pservers = bool(plan.own.pservers or plan.own.endpoints)
    if options.min_workers is None and (has_pservers or not options.max_role_restart):
        return
    given = "--min_workers" if options.min_workers is not None else "--max_role_restart"
    if has_pservers:
        raise JobError(f"{given} is about ranks, and the job has pservers; use --max_restart", "E-elastic-mode")
    if len(plan.nodes) > 1:
        raise JobError(
            f"{given} needs a job on one machine, and this one has {len(plan.nodes)}; use --max_restart",
            "E-elastic-mode",
        )
    ranks = len(plan.own.trainers)
    if options.min_workers is not None and options.min_workers > ranks:
        raise JobError(f"--min_workers is {options.min_workers}, but the job has {ranks} ranks", "E-elastic-mode")


def make_elastic(options: Namespace, job: Job) -> ElasticRanks | None:
    """Returns what decides on the rounds of the job; None if its ranks are not elastic."""
    if job.pservers or not (options.max_role_restart or options.min_workers):
        return None
    return ElasticRanks(job, options.max_role_restart or 0, options.min_workers, options.start_s or WAIT_S)


@dataclasses.dataclass
class _Rank:
    """A role, and the process that it has now."""

    role: Role
    link: Link | None = None  # None: no process
    round: int = -1  # the last round that the process was in
    asked: bool = False  # it waits for a round
    told: bool = False  # the running ranks know that it waits
    restarts: int = 0
    restart_at: float | None = None  # when to start the next process


class ElasticRanks:
    def __init__(self, job: Job, restarts: int, least: int | None, wait_s: float) -> None:
        self._addresses = job.trainers
        self._ranks = [_Rank(role) for role in job.roles]
        self._restarts, self._least, self._wait_s = restarts, least, wait_s
        self._round = -1
        self._lost: list[Failure] = []  # since the last round
        self._lost_at = 0.0
        self._waits_since: float | None = None  # for the ranks of the next round
        self._rounds_without_loss = 0
        self._end = ""  # why there is no further round

    def begins(self, role: Role) -> Link:
        """Returns the link for a process of the role that is about to be started."""
        rank = self._of(role)
        rank.link, rank.restart_at = Link(), None
        rank.round, rank.asked, rank.told = -1, False, False
        return rank.link

    def expects(self) -> bool:
        """Returns whether a process is about to be started."""
        return any(rank.restart_at is not None for rank in self._ranks)

    def takes(self, role: Role, failure: Failure | None, now: float) -> bool:
        """Notes that the role's process has ended; failure None: well. Returns whether the job goes on as if it had not
        failed."""
        rank = self._of(role)
        if rank.link is not None:
            rank.link.close()
        rank.link, rank.asked = None, False
        if failure is None:
            self._finish(f"{role.name} has ended well")
            return False
        if self._end:
            return rank.round < 0 and self._round >= 0  # it came too late to take part
        if not self._lost:
            self._lost_at = now
        if rank.restarts < self._restarts:
            rank.restart_at = now + BACK_OFF_S[min(rank.restarts, len(BACK_OFF_S) - 1)]
            rank.restarts += 1
            what = f"it is restarted ({rank.restarts} of {self._restarts})"
        elif self._least is not None and self._present() >= self._least:
            what = f"{self._present()} ranks go on, at least {self._least} (--min_workers)"
        else:
            self._finish(f"{failure.who} {failure.words}, and {self._limit(rank)}")
            say(f"launch: {role.name} is lost: {self._limit(rank)}   [E-elastic-limit]")
            return False
        self._lost.append(failure)
        say(f"launch: {failure.who} {failure.words}; {what}")
        self._tell(lambda other: other.round == rank.round >= 0, {"event": "over", "round": rank.round})
        return True

    def take_lost(self) -> list[Failure]:
        """Returns, once, the failures that the job has not recovered from."""
        lost, self._lost = self._lost, []
        return lost

    def pump(self, now: float) -> list[Role]:
        """Reads what the ranks ask, and answers. Returns the roles of which a process is to be started now."""
        for rank in self._ranks:
            for message in rank.link.read() if rank.link is not None else ():
                rank.asked = rank.asked or message.get("event") == "join"
        if self._end:
            self._refuse()
            return []
        self._form_if_complete(now)
        return [rank.role for rank in self._ranks if rank.restart_at is not None and rank.restart_at <= now]

    def _of(self, role: Role) -> _Rank:
        return next(rank for rank in self._ranks if rank.role.index == role.index)

    def _present(self) -> int:
        return sum(rank.link is not None or rank.restart_at is not None for rank in self._ranks)

    def _limit(self, rank: _Rank) -> str:
        """Says which limit does not let the job go on."""
        parts = [f"--max_role_restart is {self._restarts}"] if self._restarts else []
        if self._least is not None:
            parts.append(f"{self._present()} ranks are left, fewer than {self._least} (--min_workers)")
        return " and ".join(parts)

    def _finish(self, why: str) -> None:
        """Forms no further round; ranks that ask for one learn why."""
        self._end = self._end or why
        for rank in self._ranks:
            rank.restart_at = None
        self._refuse()

    def _refuse(self) -> None:
        for rank in self._ranks:
            if rank.link is not None and rank.asked:
                rank.asked = False
                rank.link.send({"event": "end", "why": self._end})

    def _form_if_complete(self, now: float) -> None:
        asked = [rank for rank in self._ranks if rank.asked]
        if not asked:
            self._waits_since = None
            return
        missing = [rank for rank in self._ranks if rank.link is not None and not rank.asked]
        running = [rank for rank in missing if rank.round >= 0]
        if self._least is not None and running and all(rank.round < 0 for rank in asked):
            self._tell_of_more(asked)
            return
        if self._waits_since is None:
            self._waits_since = now
        enough = self._least is not None and self._round >= 0 and len(asked) >= self._least and not running
        if enough or (not missing and not self.expects()):
            self._form(asked, now)
        elif now - self._waits_since > self._wait_s:
            names = ", ".join(rank.role.name for rank in missing)
            why = f"{names} did not come to round {self._round + 1} within {self._wait_s:.0f} s"
            say(f"launch: {why}   [E-elastic-limit]")
            self._finish(why)

    def _tell_of_more(self, asked: Sequence[_Rank]) -> None:
        """Tells the ranks of a round that others wait to join them."""
        if all(rank.told for rank in asked):
            return
        for rank in asked:
            rank.told = True
        self._tell(lambda rank: rank.round >= 0, {"event": "more"})

    def _tell(self, concerns: Callable[[_Rank], bool], message: dict[str, Any]) -> None:
        """Sends a message to the living ranks that it concerns."""
        for rank in self._ranks:
            if rank.link is not None and concerns(rank):
                rank.link.send(message)

    def _form(self, members: list[_Rank], now: float) -> None:
        """Answers the ranks of the next round."""
        changed = bool(self._lost) or any(rank.round < 0 for rank in members)
        self._rounds_without_loss = 0 if changed else self._rounds_without_loss + 1
        if self._rounds_without_loss > ROUNDS_WITHOUT_LOSS:
            why = f"{ROUNDS_WITHOUT_LOSS} rounds have failed one after the other, and no rank was lost"
            say(f"launch: {why}   [E-elastic-limit]")
            self._finish(why)
            return
        self._round += 1
        self._waits_since = None
        addresses = self._new_addresses(members)
        for number, rank in enumerate(members):
            rank.asked, rank.round = False, self._round
            if rank.link is not None:
                rank.link.send(
                    {
                        "event": "round",
                        "round": self._round,
                        "grows": self._least is not None and self._restarts > 0,
                        "environment": round_environment(rank.role, number, addresses),
                    }
                )
        if self._round > 0:
            after = f", {now - self._lost_at:.1f} s after the loss" if self._lost else ""
            say(f"launch: round {self._round} begins with {len(members)} ranks{after}")
        self._lost = []

    def _new_addresses(self, members: Sequence[_Rank]) -> list[str]:
        """Returns an address for each rank; those of the job in the first round, later others, because the earlier
        ones may still be in use."""
        own = [self._addresses[rank.role.index] for rank in members]
        if self._round == 0:
            return own
        hosts = [address.rpartition(":")[0] for address in own]
        return [f"{host}:{free_ports(1, host)[0]}" for host in hosts]


def round_environment(role: Role, rank: int, addresses: Sequence[str]) -> dict[str, Any]:
    """Returns the variables of the role's environment that state its rank, as they are in a round."""
    host, _, port = addresses[0].rpartition(":")
    count, own = str(len(addresses)), addresses[rank]
    facts = {
        "PADDLE_TRAINERS_NUM": count,
        "PADDLE_NUM_TRAINERS": count,
        "PADDLE_TRAINERS": count,
        "PADDLE_TRAINER_ENDPOINTS": ",".join(addresses),
        "DISTRIBUTED_TRAINER_ENDPOINTS": ",".join(addresses),
        "PADDLE_TRAINER_IPS": ",".join(address.rpartition(":")[0] for address in addresses),
        "TRAINER_PORTS_NUM": count,
        "PADDLE_TRAINER_ID": str(rank),
        "PADDLE_CURRENT_ENDPOINT": own,
        "RANK": str(rank),
        "WORLD_SIZE": count,
        "LOCAL_RANK": str(rank),
        "LOCAL_WORLD_SIZE": count,
        "MASTER_ADDR": host,
        "MASTER_PORT": port,
    }
    return {name: value for name, value in facts.items() if name in role.environment}
