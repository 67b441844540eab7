"""Elastic ranks: a rank that ends is restarted, or the others go on without it, in the processes in which they live.

    check_elastic(options, plan)                     # raises JobError
    ranks = make_elastic(options, job, tell)         # None if the options ask for none
    link = ranks.begins(role)                        # before a process of the role is started
    ranks.ends(role, failure)                        # it has ended
    ranks.apply(event, now)                          # what a launcher has told; of an end: whether the job goes on
    for role in ranks.pump(now): ...                 # the roles to start now

Ranks work together in rounds. A rank asks for its first round in hvd.init(), and for the next one when its round has
failed, or when it is told that more ranks have come. When all ranks that are expected have asked, the launcher numbers
them in the order of their roles, chooses new addresses, and answers all.

    only --max_role_restart N     the others wait for a rank that is restarted
    only --min_workers M          the others go on, while they are at least M
    both                          the others go on, and the restarted rank joins them when they next commit

With several machines each launcher tells all others what happens to its own ranks. All apply the same events in the
same order to their own Rounds (elastic_rounds.py), and each answers its own ranks. If a launcher is gone, so are its
ranks; without node 0, which puts the events in order, the job ends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock._src.launch.elastic_rounds import Rounds
from penstock._src.launch.errors import JobError
from penstock._src.launch.job import free_ports
from penstock._src.launch.link import Link
from penstock._src.launch.logs import say
from penstock._src.launch.outcome import OWN, Failure, read_failure
from penstock._src.launch.rank_environment import round_environment

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Callable, Sequence
    from typing import Any

    from penstock._src.launch.plan import Job, Plan, Role


WAIT_S = 900.0  # for the ranks of a round, unless --start_s is given
BACK_OFF_S = (0.0, 1.0, 2.0, 4.0, 10.0)  # before the first, second, ... restart of a rank


def add_elastic_options(parser: ArgumentParser, positive: Callable[[str], int]) -> None:
    """Adds the option to an argparse.ArgumentParser; `positive` reads an integer above 0. checkpoints.py adds
    --max_role_restart."""
    group = parser.add_argument_group("elastic ranks", "of a job without pservers, whose script uses hvd.elastic.run")
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
    if len(plan.nodes) == 1:
        check_min_workers(options.min_workers, len(plan.own.trainers))


def check_min_workers(least: int | None, ranks: int) -> None:
    """Raises JobError if --min_workers asks for more ranks than the job has."""
    if least is not None and least > ranks:
        raise JobError(f"--min_workers is {least}, but the job has {ranks} ranks", "E-elastic-mode")


def make_elastic(options: Namespace, job: Job, tell: Callable[[dict[str, Any]], None]) -> ElasticRanks | None:
    """Returns what decides on the rounds of the job; None if its ranks are not elastic. `tell` passes an event to
    `apply` of all launchers of the job, this one's too, in one order."""
    if job.pservers or job.root or not (options.max_role_restart or options.min_workers):
        return None
    wait_s = options.start_s or WAIT_S
    return ElasticRanks(job, options.max_role_restart or 0, options.min_workers, wait_s, tell)


class ElasticRanks:
    def __init__(
        self, job: Job, restarts: int, least: int | None, wait_s: float, tell: Callable[[dict[str, Any]], None]
    ) -> None:
        self._job, self._wait_s, self._tell = job, wait_s, tell
        self._roles = {role.index: role for role in job.roles}
        self._links: dict[int, Link] = {}  # of the processes of this machine
        self._asks: set[int] = set()  # the ranks of this machine that have told so
        self._restart_at: dict[int, float] = {}  # when to start the next process
        names = [f"trainer {rank}" for rank in range(len(job.trainers))]
        self._rounds = Rounds(names, job.trainer_nodes, restarts, least)
        self._lost_at: float | None = None  # when the first rank was lost since the last round
        self._waits_since: float | None = None  # for the ranks of the next round

    def begins(self, role: Role) -> Link:
        """Returns the link for a process of the role that is about to be started."""
        self._restart_at.pop(role.index, None)
        self._asks.discard(role.index)
        link = self._links[role.index] = Link()
        self._tell_of(role.index, "begins")
        return link

    def ends(self, role: Role, failure: dict[str, Any] | None) -> None:
        """The role's process has ended; failure None: well. `apply` decides what follows."""
        self._links.pop(role.index).close()
        self._tell_of(role.index, "ends", failure=failure)

    def expects(self) -> bool:
        """Returns whether a process is about to be started on this machine."""
        return bool(self._restart_at)

    def apply(self, event: dict[str, Any], now: float) -> bool | None:
        """Applies an event that a launcher has told. Returns, of the end of a process, whether the job goes on as if it
        had not failed; None of another event."""
        rank, what = event["rank"], event["what"]
        if what == "late":
            self._rounds.finish(event["why"])
            say(f"launch: {event['why']}   [E-elastic-limit]")
        elif rank >= len(self._rounds.ranks) or self._rounds.ranks[rank].node != event["node"]:
            say(f"launch: node {event['node']} told of trainer {rank}, which is not on it; ignored")
        elif what == "begins":
            self._rounds.begins(rank)
        elif what == "asks":
            self._rounds.asks(rank, event["address"])
        else:
            failure = event["failure"]
            return self._end(rank, None if failure is None else read_failure(event["node"], failure), now)
        self._answer(now)
        return None

    def lose(self, node: int, words: str, now: float) -> bool:
        """Notes that the launcher of a machine is gone, and its ranks with it. Returns whether the job goes on."""
        failure = Failure(node, f"node {node} ({self._job.nodes[node]})", words, OWN)
        goes_on = node != 0 and self._rounds.loses(node, failure)
        if goes_on and self._lost_at is None:
            self._lost_at = now
        self._answer(now)
        return goes_on

    def take_lost(self) -> list[Failure]:
        """Returns, once, the failures that the job has not recovered from."""
        return self._rounds.take_lost()

    def pump(self, now: float) -> list[Role]:
        """Reads what the ranks of this machine ask, and tells it. Returns the roles of which a process is to be started
        now."""
        for rank, link in list(self._links.items()):
            if any(message.get("event") == "join" for message in link.read()) and rank not in self._asks:
                self._asks.add(rank)
                self._tell_of(rank, "asks", address=self._address(rank))
        if self._job.rank == 0:
            self._end_if_late(now)
        return [self._roles[rank] for rank, at in self._restart_at.items() if at <= now]

    def _tell_of(self, rank: int, what: str, **facts: Any) -> None:
        self._tell({"event": "rank", "what": what, "rank": rank, **facts})

    def _end(self, rank: int, failure: Failure | None, now: float) -> bool:
        goes_on = self._rounds.ends(rank, failure)
        one = self._rounds.ranks[rank]
        if goes_on and self._lost_at is None and not self._rounds.end:
            self._lost_at = now
        if one.expected and rank in self._roles:
            self._restart_at[rank] = now + BACK_OFF_S[min(one.restarts, len(BACK_OFF_S)) - 1]
        self._answer(now)
        return goes_on

    def _answer(self, now: float) -> None:
        """Tells the ranks of this machine, and the terminal, what has been decided."""
        for line in self._rounds.take_reports():
            say(f"launch: {line}")
        if self._rounds.end:
            self._restart_at.clear()
        messages = self._rounds.take_messages()
        formed = next((message for _, message in messages if message["event"] == "round"), None)
        if formed is not None and formed["round"] > 0:
            after = "" if self._lost_at is None else f", {now - self._lost_at:.1f} s after the loss"
            say(f"launch: round {formed['round']} begins with {len(formed['members'])} ranks{after}")
        if formed is not None:
            self._lost_at = None
        for rank, message in messages:
            self._send(rank, message)

    def _send(self, rank: int, message: dict[str, Any]) -> None:
        if rank not in self._links:
            return
        if message["event"] in ("round", "end"):
            self._asks.discard(rank)
        if message["event"] == "round":
            facts = {key: value for key, value in message.items() if key != "members"}
            message = {**facts, "environment": self._environment(rank, message["members"])}
        self._links[rank].send(message)

    def _end_if_late(self, now: float) -> None:
        awaited = self._rounds.awaited()
        if awaited is None:
            self._waits_since = None
        elif self._waits_since is None:
            self._waits_since = now
        elif now - self._waits_since > self._wait_s:
            number = self._rounds.number + 1
            why = f"{', '.join(awaited)} did not come to round {number} within {self._wait_s:.0f} s"
            self._tell_of(0, "late", why=why)

    def _address(self, rank: int) -> str:
        """Returns the address at which a rank is reached in the next round: that of the job in the first one, later
        another, because the earlier one may still be in use."""
        address = self._job.trainers[rank]
        if self._rounds.number < 0:
            return address
        host = address.rpartition(":")[0]
        return f"{host}:{free_ports(1, host)[0]}"

    def _environment(self, rank: int, members: Sequence[tuple[int, str]]) -> dict[str, str]:
        """Returns the variables of a rank's environment that state its place among the members of a round."""
        here = [each for each, _ in members if self._rounds.ranks[each].node == self._job.rank]
        number = [each for each, _ in members].index(rank)
        addresses = [address for _, address in members]
        return round_environment(self._roles[rank], number, addresses, here.index(rank), len(here))
