"""Whatever a process sends to a launcher ends at most the connection on which it arrives."""

import json
import socket
import threading

import pytest
from penstock._src.launch.channel import Channel, ChannelError, new_nonce, proof, wait_for
from penstock._src.launch.cluster import Cluster, JoinError, join
from penstock._src.launch.job import make_plan
from penstock._src.launch.messages import read_event, read_facts, read_member
from penstock._src.launch.options import parse_options
from test_launch_nodes import DUMP, HOSTS, WAIT_S, nodes  # noqa: F401

TOKEN = "right"
MEMBER = {"pservers": ["127.0.0.2:1"], "trainers": ["127.0.0.2:2"], "endpoints": []}
LINES = [
    b"[1]",
    b"nonsense",
    b"\xff",
    b"{}",
    b'{"penstock_launch":1,"nonce":"\\ud800"}',
    b'{"penstock_launch":1,"nonce":7}',
    b'{"penstock_launch":1,"nonce":{}}',
    b'{"penstock_launch":[1],"nonce":"a"}',
    b"[" * 3000,
    b'{"\\udc00":1}',
    b'{"penstock_launch":1,"nonce":"a"}\n{"proof":"\\ud800"}',
    b'{"penstock_launch":1,"nonce":"a"}\n{"proof":[]}',
    b'{"penstock_launch":1,"nonce":"a"}\n{"refused":{"a":"\\u001b[2J"}}',
    b"1" * 3000,
]


def member_plan(tmp_path, *more):
    (tmp_path / "s.py").write_text("")
    options = parse_options(
        ["--cluster_node_ips", ",".join(HOSTS), "--node_ip", HOSTS[1], *more, str(tmp_path / "s.py")]
    )
    return make_plan(options, {"PENSTOCK_JOB_TOKEN": TOKEN})


@pytest.mark.parametrize("line", LINES)
def test_members_report_a_foreign_process_at_node_0(tmp_path, line):
    listener = socket.create_server((HOSTS[0], 0))

    def answer():
        connection, _ = listener.accept()
        with connection:
            connection.sendall(line + b"\n")
            while connection.recv(4096):
                pass

    stranger = threading.Thread(target=answer, daemon=True)
    stranger.start()
    with pytest.raises(JoinError, match=r"node 0 \(127.0.0.1\)"):
        join(member_plan(tmp_path), listener.getsockname()[1], WAIT_S, lambda: False)
    listener.close()


def proved(job):
    """A connection to node 0's launcher, which has accepted this process's proof of the token."""
    while True:
        try:
            channel = Channel(socket.create_connection((HOSTS[0], job.control), timeout=WAIT_S))
            break
        except ConnectionRefusedError:
            continue

    def next_message():
        while True:
            wait_for([channel], [], 0.1)
            for message in channel.receive(limit=1):
                return message

    theirs, ours = next_message()["nonce"], new_nonce()
    nonces = f"{theirs} {ours}"
    channel.send({"node": 1, "nonce": ours, "proof": proof(TOKEN, "member", nonces, 1)})
    assert next_message() == {"proof": proof(TOKEN, "hub", nonces, 1)}
    channel.protect(TOKEN, "member", nonces)
    return channel


def ends(channel):
    try:
        while True:
            wait_for([channel], [], 0.1)
            channel.receive()
    except ChannelError:
        return True


def test_a_launcher_of_another_version_does_not_end_the_first(nodes):  # noqa: F811
    job = nodes(DUMP)
    job.start(0, PENSTOCK_JOB_TOKEN=TOKEN)
    for member in (
        {},
        [],
        {"member": 1},
        {"member": {}},
        {"member": dict(MEMBER, pservers=5)},
        {"member": dict(MEMBER, trainers=[["a"]])},
        {"member": dict(MEMBER, trainers=["a\0b"])},
        {"member": dict(MEMBER, trainers={"a": 1})},
    ):
        channel = proved(job)
        if isinstance(member, dict):
            channel.send(dict(member, nodes=",".join(HOSTS), job_id=""))
        else:
            channel.send(member)
        assert ends(channel)
        channel.close()
    job.start(1, PENSTOCK_JOB_TOKEN=TOKEN)
    results = job.wait()
    assert {result[0] for result in results.values()} == {0}, results


EVENTS = [
    {"event": "end"},
    {"event": "end", "kind": "trainer", "failure": 3},
    {"event": "end", "kind": "t", "failure": {}},
    {"event": "end", "kind": "t", "failure": {"who": "a", "kind": "own", "log": "", "words": "", "lines": "abc"}},
    {"event": "hang"},
    {"event": "report"},
    {"event": "saved", "why": None},
    {"event": "stop", "why": 7},
    {"event": {}},
    {"event": "other"},
    {"event": "done", "node": 7},
    {"event": "done", "node": True},
    {"event": "done", "node": "0"},
]


@pytest.mark.parametrize("event", EVENTS)
@pytest.mark.parametrize("rank", [0, 1])
def test_an_invalid_event_loses_only_its_node(event, rank):
    if rank == 0 and event["event"] == "done":
        pytest.skip("node 0 itself writes which node sent an event")
    here, there = socket.socketpair()
    cluster = Cluster(HOSTS, rank, {1 - rank: Channel(here)})
    there.sendall(json.dumps({"node": 0, **event}).encode() + b"\n")
    events = []
    while not events:
        wait_for([here], [], 0.1)
        events = cluster.pump()
    assert [(one["event"], one["node"]) for one in events] == [("lost", 1 - rank)]
    there.close()


def test_launcher_events_round_trip():
    failure = {
        "who": "trainer 1 (pid 7)",
        "kind": "own",
        "log": "logs/\udce9",
        "words": "exited",
        "lines": ["a\tb"],
        "role": "trainer 1",
        "outcome": "exited",
        "note": "",
        "stopped": False,
        "met": True,
    }
    here, there = map(Channel, socket.socketpair())
    here.send({"event": "end", "kind": "trainer", "failure": failure, "node": 1})  # a log folder that is not UTF-8
    wait_for([there], [], 10)
    (message,) = there.receive()
    assert read_event(message, 2) == {
        "event": "end",
        "node": 1,
        "kind": "trainer",
        "failure": dict(failure, log="logs/?"),
    }
    line = {"event": "report", "node": 1, "why": "launch: pserver 1 \x1b[2J is back"}
    assert read_event(line, 2)["why"] == "launch: pserver 1  [2J is back"
    assert read_member(MEMBER).trainers == ("127.0.0.2:2",)
    facts = read_facts({"members": [MEMBER, MEMBER], "job_id": "j", "token": "drawn"}, HOSTS, "")
    assert (len(facts.members), facts.job_id, facts.token) == (2, "j", "drawn")
    for channel in (here, there):
        channel.close()
