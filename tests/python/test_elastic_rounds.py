"""How the launcher forms the rounds of elastic ranks: decisions without processes."""

import functools
import json
import os
import socket

import pytest
from penstock._src.launch.elastic import ElasticRanks
from penstock._src.launch.messages import MessageError, read_event
from penstock._src.launch.outcome import OWN
from penstock._src.launch.plan import Job, Role


class Job3:
    """Three ranks and the launcher's decisions; the test is the ranks."""

    def __init__(self, restarts=0, least=None, ranks=3):
        addresses = tuple(f"127.0.0.1:{1000 + rank}" for rank in range(ranks))
        names = ("PADDLE_TRAINER_ID", "PADDLE_TRAINER_ENDPOINTS", "PADDLE_TRAINERS_NUM")
        roles = tuple(Role("trainer", i, f"workerlog.{i}", dict.fromkeys(names, "")) for i in range(ranks))
        job = Job(roles, (), "", (), addresses, ("127.0.0.1",), 0, 0, (0,) * ranks)
        self.roles, self.now, self.ends = roles, 0.0, {}
        self.goes_on = None
        self.elastic = ElasticRanks(job, restarts, least, 60.0, self.apply)
        for role in roles:
            self.begin(role.index)

    def apply(self, event):
        self.goes_on = self.elastic.apply({**event, "node": 0}, self.now)

    def begin(self, rank):
        link = self.elastic.begins(self.roles[rank])
        self.ends[rank] = socket.socket(fileno=os.dup(link.descriptor))
        self.ends[rank].setblocking(False)
        link.close_theirs()

    def ask(self, *ranks):
        for rank in ranks:
            self.ends[rank].sendall(b'{"event": "join", "after": 0, "why": ""}\n')
        return self.pump()

    def pump(self, passes=0.0):
        self.now += passes
        return [role.index for role in self.elastic.pump(self.now)]

    def end(self, rank, well=False):
        failure = {"who": f"trainer {rank} (pid 7)", "words": "was killed", "kind": OWN, "lines": []}
        self.elastic.ends(self.roles[rank], None if well else failure)
        return self.goes_on

    def heard(self, rank):
        """The messages that a rank has received; of rounds (number, rank, ranks)."""
        try:
            lines = self.ends[rank].recv(1 << 16).splitlines()
        except BlockingIOError:
            return []
        return [_brief(json.loads(line)) for line in lines]


def _brief(message):
    if message["event"] != "round":
        return message["event"]
    facts = message["environment"]
    ranks = facts["PADDLE_TRAINER_ENDPOINTS"].split(",")
    assert facts["PADDLE_TRAINERS_NUM"] == str(len(ranks)) == str(len(set(ranks)))
    return message["round"], int(facts["PADDLE_TRAINER_ID"]), len(ranks)


def test_a_round_begins_when_all_ranks_have_asked():
    job = Job3(restarts=1)
    job.ask(0, 2)
    assert job.heard(0) == []
    job.ask(1)
    assert [job.heard(rank) for rank in range(3)] == [[(0, rank, 3)] for rank in range(3)]


def test_a_restarted_rank_keeps_its_number_and_the_others_wait_for_it():
    job = Job3(restarts=1)
    job.ask(0, 1, 2)
    assert job.end(0) and job.elastic.expects()
    assert job.ask(1, 2) == [0]
    job.begin(0)
    assert not job.elastic.expects()
    job.pump()
    assert job.heard(1) == [(0, 1, 3), "over"]
    job.ask(0)
    assert [job.heard(rank)[-1] for rank in range(3)] == [(1, rank, 3) for rank in range(3)]
    assert job.elastic.take_lost() == []


def test_ranks_that_are_left_are_numbered_without_gaps():
    job = Job3(least=2)
    job.ask(0, 1, 2)
    job.ask(0, 2)  # rank 1 is still there, as far as the launcher knows
    assert job.heard(0) == [(0, 0, 3)]
    assert job.end(1)
    job.pump()
    assert job.heard(0) == ["over", (1, 0, 2)] and job.heard(2) == [(0, 2, 3), "over", (1, 1, 2)]


def test_running_ranks_learn_that_a_restarted_one_waits():
    job = Job3(restarts=1, least=2)
    job.ask(0, 1, 2)
    assert job.end(1)
    assert job.ask(0, 2) == [1]
    assert job.heard(0)[-1] == (1, 0, 2)
    job.begin(1)
    job.ask(1)
    job.pump()
    assert job.heard(0) == ["more"] and job.heard(1) == []
    job.ask(0)
    assert job.heard(0) == []  # rank 2 has not come to its commit yet
    job.ask(2)
    assert [job.heard(rank)[-1] for rank in range(3)] == [(2, rank, 3) for rank in range(3)]


def test_restarts_are_delayed_more_and_more_and_limited():
    job = Job3(restarts=3)
    for wait_s in (0.0, 1.0, 2.0):
        assert job.end(1)
        if wait_s:
            assert job.pump() == []
        assert job.pump(wait_s) == [1]
        job.begin(1)
    assert not job.end(1)
    assert len(job.elastic.take_lost()) == 3 and job.elastic.take_lost() == []
    job.ask(0)
    assert job.heard(0) == ["end"]


@pytest.mark.parametrize("least, goes_on", [(2, True), (3, False), (None, False)])
def test_the_least_number_of_ranks(least, goes_on):
    job = Job3(least=least)
    job.ask(0, 1, 2)
    assert job.end(1) is goes_on


def test_no_round_follows_a_rank_that_has_ended_well():
    job = Job3(restarts=1)
    job.ask(0, 1, 2)
    assert not job.end(0, well=True)
    job.ask(1)
    assert job.heard(1)[-1] == "end"
    assert not job.end(1)


def test_a_rank_that_is_too_late_to_take_part_does_not_fail_the_job():
    job = Job3(restarts=1, least=2)
    job.ask(0, 1, 2)
    assert job.end(1)
    assert job.ask(0, 2) == [1]
    job.begin(1)
    job.end(0, well=True)
    job.ask(1)
    assert job.heard(1) == ["end"] and job.end(1)


def test_a_rank_that_does_not_come_ends_the_job(capsys):
    job = Job3(restarts=1)
    job.ask(0, 1, 2)
    job.ask(0, 1)
    job.pump(61.0)
    assert job.heard(0)[-1] == "end"
    assert "trainer 2 did not come to round 1 within 60 s   [E-elastic-limit]" in capsys.readouterr().err


def test_rounds_that_fail_without_a_loss_are_limited():
    job = Job3(restarts=1)
    for _ in range(11):
        job.ask(0, 1, 2)
    assert job.heard(0)[-1] == (10, 0, 3)
    job.ask(0, 1, 2)
    assert job.heard(0) == ["end"]


def test_messages_that_are_none_are_ignored():
    job = Job3(restarts=1)
    for garbage in (b"\xff\n", b"[]\n", b'{"event": 3}\n', b"x" * 100_000 + b"\n", b"no end"):
        try:
            job.ends[0].sendall(garbage)
        except BlockingIOError:
            pass
        job.pump()
    job.ask(1, 2)
    assert job.heard(1) == []


class TwoMachines:
    """The launchers of two machines with two ranks each, which see the same events in the same order."""

    def __init__(self, restarts=0, least=None):
        addresses = tuple(f"{host}:{1000 + rank}" for host in ("127.0.0.1", "127.0.0.2") for rank in range(2))
        names = (
            "PADDLE_TRAINER_ID",
            "PADDLE_TRAINER_ENDPOINTS",
            "PADDLE_TRAINERS_NUM",
            "LOCAL_RANK",
            "LOCAL_WORLD_SIZE",
        )
        self.roles = [Role("trainer", i, f"workerlog.{i}", dict.fromkeys(names, "")) for i in range(4)]
        self.events, self.ends, self.went_on = [], {}, []
        self.launchers = []
        for node in range(2):
            roles = tuple(self.roles[2 * node : 2 * node + 2])
            job = Job(roles, (), "", (), addresses, ("127.0.0.1", "127.0.0.2"), node, 2, (0, 0, 1, 1))
            tell = functools.partial(self.tell, node)
            self.launchers.append(ElasticRanks(job, restarts, least, 60.0, tell))
        for rank in range(4):
            self.begin(rank)

    def tell(self, node, event):
        self.events.append({**event, "node": node})

    def deliver(self):
        """Passes the events on, and what they lead to."""
        while self.events:
            event = read_event(json.loads(json.dumps(self.events.pop(0))), 2)
            answers = [launcher.apply(event, 0.0) for launcher in self.launchers]
            assert answers[0] == answers[1]  # the launchers decide alike
            self.went_on += [answers[0]] if answers[0] is not None else []

    def begin(self, rank):
        link = self.launchers[rank // 2].begins(self.roles[rank])
        self.ends[rank] = socket.socket(fileno=os.dup(link.descriptor))
        self.ends[rank].setblocking(False)
        link.close_theirs()
        self.deliver()

    def ask(self, *ranks):
        """Lets ranks ask for a round; returns which roles each launcher is to start."""
        for rank in ranks:
            self.ends[rank].sendall(b'{"event": "join", "after": 0, "why": ""}\n')
        starts = [[role.index for role in launcher.pump(9.0)] for launcher in self.launchers]
        self.deliver()
        return starts

    def end(self, rank):
        failure = {"who": f"trainer {rank} (pid 7)", "words": "was killed", "kind": OWN, "lines": [], "stopped": False}
        facts = {**failure, "log": "", "role": f"trainer {rank}", "outcome": "was killed", "note": "", "met": True}
        self.launchers[rank // 2].ends(self.roles[rank], facts)
        self.deliver()
        return self.went_on[-1]

    def heard(self, rank):
        lines = [json.loads(line) for line in self.ends[rank].recv(1 << 16).splitlines()]
        return [(_brief(line), line.get("environment")) for line in lines]


def test_ranks_of_two_machines_form_a_round_with_places_on_each():
    job = TwoMachines(restarts=1)
    job.ask(0, 1, 2)
    job.ask(3)
    for rank in range(4):
        ((brief, facts),) = job.heard(rank)
        assert brief == (0, rank, 4) and (facts["LOCAL_RANK"], facts["LOCAL_WORLD_SIZE"]) == (str(rank % 2), "2")
        assert facts["PADDLE_TRAINER_ENDPOINTS"].split(",")[2] == "127.0.0.2:1000"


def test_a_rank_is_restarted_by_the_launcher_of_its_machine():
    job = TwoMachines(restarts=1)
    job.ask(0, 1, 2, 3)
    assert job.end(2) and job.launchers[1].expects() and not job.launchers[0].expects()
    assert job.ask(0, 1, 3) == [[], [2]]
    job.begin(2)
    job.ask(2)
    assert [job.heard(rank)[-1][0] for rank in range(4)] == [(1, rank, 4) for rank in range(4)]


@pytest.mark.parametrize("least, goes_on", [(2, True), (3, False), (None, False)])
def test_the_ranks_of_a_machine_that_is_gone_are_lost_together(least, goes_on, capfd):
    job = TwoMachines(least=least, restarts=3)
    job.ask(0, 1, 2, 3)
    assert job.launchers[0].lose(1, "is gone: its connection has ended", 0.0) is goes_on
    err = capfd.readouterr().err
    assert ("node 1 (127.0.0.2) is gone" in err and "2 ranks go on" in err) is goes_on, err
    assert ("trainer 2, trainer 3 is lost" in err) is not goes_on, err
    job.ask(0, 1)
    assert [brief for brief, _ in job.heard(1)][1:] == (["over", (1, 1, 2)] if goes_on else ["end"])
    assert not TwoMachines(least=1).launchers[1].lose(0, "is gone", 0.0)  # nobody orders the events then


def test_an_event_of_a_rank_of_another_machine_is_ignored(capfd):
    job = TwoMachines(restarts=1)
    job.tell(1, {"event": "rank", "what": "asks", "rank": 0, "address": "127.0.0.2:1"})
    job.tell(1, {"event": "rank", "what": "begins", "rank": 4})
    job.deliver()
    assert capfd.readouterr().err.count("which is not on it; ignored") == 4
    with pytest.raises(BlockingIOError):
        job.heard(0)


@pytest.mark.parametrize(
    "facts",
    [
        {"what": "asks", "rank": 0, "address": "a\nb"},
        {"what": "asks", "rank": 0},
        {"what": "begins", "rank": -1},
        {"what": "begins", "rank": True},
        {"what": "ends", "rank": 0, "failure": 3},
        {"what": "else", "rank": 0},
        {"what": "late", "rank": 0},
    ],
)
def test_events_of_ranks_are_checked(facts):
    with pytest.raises(MessageError):
        read_event({"event": "rank", "node": 0, **facts}, 1)
