"""The scheduler of jobs that MXNet's launcher starts: it deals numbers by task, refuses strangers, knows the dead."""

import json
import socket
import threading

import penstock
import pytest
from penstock._src.kv.member import Member
from penstock._src.kv.nodes import nodes_of
from penstock._src.kv.scheduler import Scheduler

WAIT_S = 60


class Meeting:
    """A scheduler in a thread, and members that join it in theirs."""

    def __init__(self, workers, servers, token="secret"):
        self.scheduler = Scheduler("127.0.0.1", 0, workers, servers, token)
        self.failed = None
        self.thread = threading.Thread(target=self._serve)
        self.thread.start()

    def _serve(self):
        try:
            self.scheduler.serve()
        except penstock.StateError as error:
            self.failed = error

    def member(self, token="secret"):
        return Member("127.0.0.1", self.scheduler.address[1], token)

    def join(self, *those):
        """[(member, what it was dealt)] of (role, task, address), in this order."""
        members, dealt = [self.member() for _ in those], [None] * len(those)

        def join(place):
            dealt[place] = members[place].join(*those[place])

        threads = [threading.Thread(target=join, args=[place]) for place in range(len(those))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(WAIT_S)
        return list(zip(members, dealt))

    def end(self):
        self.thread.join(WAIT_S)
        assert not self.thread.is_alive()


def test_numbers_follow_task_ids_and_not_the_order_of_arrival():
    meeting = Meeting(2, 2)
    joined = meeting.join(("worker", 1, ""), ("server", 3, "b:2"), ("worker", 0, ""), ("server", 2, "a:1"))
    assert [dealt.number for _, dealt in joined] == [1, 1, 0, 0]
    assert {tuple(dealt.servers) for _, dealt in joined} == {("a:1", "b:2")}
    assert len({dealt.job for _, dealt in joined}) == 1
    for member, _ in joined:
        member.complete()
    meeting.end()
    assert meeting.failed is None


def test_a_process_that_ends_without_completing_is_dead_until_it_comes_back():
    meeting = Meeting(2, 1)
    (one, _), (two, dealt), (server, _) = meeting.join(("worker", 0, ""), ("worker", 1, ""), ("server", 2, "a:1"))
    assert one.dead(nodes_of(7)) == 0
    two._lines.close()
    while one.dead(nodes_of(7)) == 0:
        pass
    # 4: the workers, 2: the pservers, 9 + 2 n: worker n, 8 + 2 n: pserver n
    assert [one.dead(nodes_of(number)) for number in (4, 2, 6, 1, 11, 9, 10)] == [1, 0, 1, 0, 1, 0, 0]
    ((again, dealt_again),) = meeting.join(("worker", 1, ""))
    assert dealt_again == dealt and one.dead(nodes_of(7)) == 0
    again._lines.close()
    one.complete()
    server.complete()
    meeting.end()
    assert meeting.failed.id == "E-kv-job-failed" and "worker 1" in str(meeting.failed)


def test_strangers_are_refused_and_the_job_goes_on():
    meeting = Meeting(1, 1)
    with pytest.raises(penstock.PeerError, match="E-kv-scheduler"):
        meeting.member(token="another").join("worker", 0, "")
    for line in (b"GET / HTTP/1.1\r\n\r\n", b"x" * 5000, b'00 {"role": "worker"}\n', b"\xff\xfe\n"):
        with socket.create_connection(meeting.scheduler.address) as stranger:
            stranger.sendall(line)
            while stranger.recv(100):
                pass
    (worker, _), (server, _) = meeting.join(("worker", 0, ""), ("server", 1, "a:1"))
    with pytest.raises(penstock.PeerError, match="the job has 1 workers, and all have come"):
        meeting.member().join("worker", 7, "")
    worker.complete()
    server.complete()
    meeting.end()
    assert meeting.failed is None


def test_a_line_cannot_be_replayed():
    meeting = Meeting(1, 1)
    (worker, _), (server, _) = meeting.join(("worker", 0, ""), ("server", 1, "a:1"))
    text = json.dumps({"ask": "complete"}, separators=(",", ":"))
    line = f"{worker._lines._proof('member', 0, text)} {text}\n".encode()  # of line 0, sent as line 1
    worker._socket.sendall(line)
    worker._socket.settimeout(WAIT_S)
    assert worker._socket.recv(100) == b""
    server.complete()
    meeting.end()
    assert "worker 0" in str(meeting.failed)
