"""The launchers of a job on several machines, from the view of one of them.

    cluster, facts = join(plan, port, wait_s=600, stopped=...)   # all machines' members, the job's id and token
    cluster.tell({"event": "end", ...})                          # to every launcher, this one too
    for event in cluster.pump(): ...                             # in the same order on every machine
    cluster.leave()

Node 0 is the hub: the others connect to it, and it puts all events into one order. If a node sends nothing for 8 s, or
its connection ends before it has reported that it is done, all launchers get an event "lost".
"""

from __future__ import annotations

import dataclasses
import socket
import threading
import time
from typing import TYPE_CHECKING

from penstock._src.launch.channel import BEAT_S, Channel, ChannelError, connect, is_proof, new_nonce, proof, wait_for
from penstock._src.launch.logs import say
from penstock._src.launch.messages import Facts, read_event, read_facts, read_member

if TYPE_CHECKING:
    from typing import Any

    from penstock._src.launch.channel import Message
    from penstock._src.launch.plan import Member, Plan


REPORT_EVERY_S = 10.0
HELLO_S = 5.0  # time within which a connection must prove that it knows the token
PENDING_MAX = 32
REFUSALS_TOLD_MAX = 5
POLL_S = 0.1
LEAVE_S = 2.0


class JoinError(Exception):
    """The launchers could not form a job; the message gives the reason."""

    id = "E-launch-join"


class Stopped(Exception):
    """A signal arrived while launchers waited for each other."""


def _why(error: Any) -> str:
    """Returns the reason for which a connection ends. Only a defect of this code raises other errors than ChannelError;
    what arrives on a connection must not end the launcher even then."""
    return str(error) if isinstance(error, ChannelError) else f"its messages cannot be served: {error!r}"


class Cluster:
    """Sends events to all launchers of the job and receives theirs."""

    def __init__(self, nodes: Any, rank: int, channels: Any) -> None:
        self._nodes = nodes
        self._rank = rank
        self._channels = channels  # by node: all other nodes for the hub, only the hub for a member
        self._events: list[dict[str, Any]] = []
        self._over: set[int] = set()  # nodes that are done or lost
        self._left = threading.Event()

    def tell(self, event: dict[str, Any]) -> None:
        event = {**event, "node": self._rank}
        if self._rank == 0:
            self._order(event)
        elif 0 in self._channels:
            self._channels[0].send(event)
        else:
            self._events.append(event)

    def pump(self) -> list[Any]:
        """Returns the events that have arrived since the last call. Call it a few times per second."""
        for node, channel in list(self._channels.items()):
            try:
                channel.beat()
                messages = [message for message in channel.receive() if "event" in message]
                if self._rank == 0:
                    messages = [{**message, "node": node} for message in messages]
                events = [read_event(message, len(self._nodes)) for message in messages]
            except Exception as error:
                self._lose(node, _why(error))
                continue
            for event in events:
                if self._rank == 0:
                    self._order(event)
                else:
                    self._events.append(event)
        events, self._events = self._events, []
        self._over.update(event["node"] for event in events if event["event"] in ("done", "lost"))
        return events

    def start_beating(self) -> None:
        """Starts a thread that sends heartbeats, even while this launcher waits for a terminal that accepts no output.

        Call it only after the last process was started, because a fork does not copy threads.
        """
        threading.Thread(target=self._beat, daemon=True).start()

    def _beat(self) -> None:
        while not self._left.wait(BEAT_S):
            for channel in list(self._channels.values()):
                channel.beat()

    def all_over(self) -> bool:
        """Returns whether every node has reported that it is done, or is lost."""
        return len(self._over) == len(self._nodes)

    def leave(self) -> None:
        """Sends the remaining events, for at most 2 s, and closes."""
        self._left.set()
        deadline = time.monotonic() + LEAVE_S
        waiting = list(self._channels.values())
        while waiting and time.monotonic() < deadline:
            for channel in waiting:
                channel.flush()
            waiting = [channel for channel in waiting if not channel.is_flushed()]
            wait_for([], waiting, POLL_S)
        for channel in self._channels.values():
            channel.close()
        self._channels = {}

    def _order(self, event: dict[str, Any]) -> None:
        self._events.append(event)
        for channel in self._channels.values():
            channel.send(event)

    def _lose(self, node: int, why: str) -> None:
        self._channels.pop(node).close()
        if node in self._over or any(event["node"] == node and event["event"] == "done" for event in self._events):
            return
        event = {"event": "lost", "node": node, "why": why}
        if self._rank == 0:
            self._order(event)
        else:
            self._events.append(event)
            self._over.update(range(len(self._nodes)))  # without the hub, no other node can be reached


def _resolved(host: str, port: int) -> Any:
    family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    return family, address


class _Joining:
    """Base class of both sides while they wait for each other."""

    def __init__(self, plan: Plan, wait_s: Any, stopped: Any) -> None:
        self.plan = plan
        self._stopped = stopped
        self._began = self._reported = time.monotonic()
        self._wait_s = wait_s

    def check(self, waiting_for: Any) -> None:
        """Called between two polls: raises an error after a timeout or a signal, and reports every 10 s."""
        now = time.monotonic()
        if self._stopped():
            raise Stopped
        if now - self._began > self._wait_s:
            raise JoinError(f"waited {self._wait_s:.0f} s for {waiting_for}")
        if now - self._reported >= REPORT_EVERY_S:
            self._reported = now
            say(f"launch: waiting {now - self._began:.0f} s for {waiting_for}")

    def name(self, node: int) -> str:
        return f"node {node} ({self.plan.nodes[node]})"


class _Hub(_Joining):
    def __init__(self, plan: Plan, port: int, wait_s: Any, stopped: Any) -> None:
        super().__init__(plan, wait_s, stopped)
        host = plan.nodes[0]
        try:
            family, address = _resolved(host, port)
            self._listener = socket.socket(family, socket.SOCK_STREAM)
            self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self._listener.bind(address)
            self._listener.listen(PENDING_MAX)
            self._listener.setblocking(False)
        except OSError as error:
            raise JoinError(
                f"cannot listen for the other launchers on {host}:{port}: {error.strerror or error}; "
                "--control_port chooses another port"
            ) from error
        self._pending: dict[Channel, tuple[str, str]] = {}  # channel -> (peer's address, our nonce)
        self._proved: dict[Channel, int] = {}  # channel -> node
        self._joined: dict[int, tuple[Channel, Member]] = {}  # node -> (channel, member)
        self._refusals = 0
        self._can_accept = True

    def run(self) -> Any:
        plan = self.plan
        try:
            while len(self._joined) < len(plan.nodes) - 1:
                missing = [self.name(node) for node in range(1, len(plan.nodes)) if node not in self._joined]
                self.check(f"the launcher of {', '.join(missing)}")
                channels = [*self._pending, *self._proved, *(channel for channel, _ in self._joined.values())]
                # Without room or a descriptor for another connection, the listener would be ready all the time.
                listens = [self._listener] if self._can_accept else []
                wait_for([*listens, *channels], [], POLL_S)
                self._accept()
                self._look()
        finally:
            self._listener.close()
            for channel in [*self._pending, *self._proved]:
                channel.close()
        members = (plan.own, *(self._joined[node][1] for node in range(1, len(plan.nodes))))
        facts = Facts(members, plan.job_id or new_nonce()[:8], plan.token or new_nonce())
        for channel, _ in self._joined.values():
            channel.send(
                {
                    "members": [dataclasses.asdict(member) for member in members],
                    "job_id": facts.job_id,
                    **({} if plan.token else {"token": facts.token}),
                }
            )
        return Cluster(plan.nodes, 0, {node: channel for node, (channel, _) in self._joined.items()}), facts

    def _accept(self) -> None:
        self._can_accept = False
        while len(self._pending) < PENDING_MAX:
            try:
                connection, peer = self._listener.accept()
            except OSError as error:
                self._can_accept = isinstance(error, BlockingIOError)
                return
            channel = Channel(connection)
            nonce = new_nonce()
            channel.send({"penstock_launch": 1, "nonce": nonce})
            self._pending[channel] = (peer[0], nonce)

    def _look(self) -> None:
        """Serves each connection. An error on a connection is its end, and nothing else's; only a contradiction between
        launchers that know the token ends the job."""
        for channel, (peer, nonce) in list(self._pending.items()):
            try:
                for message in channel.receive(limit=1):
                    del self._pending[channel]
                    self._prove(channel, peer, nonce, message)
                if channel in self._pending and time.monotonic() - channel.opened > HELLO_S:
                    raise ChannelError("it sent nothing")
            except Exception:
                self._pending.pop(channel, None)
                channel.close()
        for channel, node in list(self._proved.items()):
            try:
                for message in channel.receive(limit=1):
                    del self._proved[channel]
                    self._admit(channel, node, message)
            except JoinError:
                raise
            except Exception:
                self._proved.pop(channel, None)
                channel.close()
        for node, (channel, _) in list(self._joined.items()):
            try:
                channel.beat()
                channel.receive()
            except Exception as error:
                del self._joined[node]
                channel.close()
                say(f"launch: {self.name(node)} has left again: {_why(error)}")

    def _prove(self, channel: Any, peer: Any, nonce: Any, message: Message) -> None:
        node, theirs = message.get("node"), message.get("nonce")
        if type(node) is not int or not 0 < node < len(self.plan.nodes) or not isinstance(theirs, str):
            self._refuse(channel, peer, "its hello is not that of a launcher of this job")
            return
        nonces = f"{nonce} {theirs}"
        if not is_proof(message.get("proof"), proof(self.plan.token, "member", nonces, node)):
            self._refuse(channel, peer, f"its launcher and that of {self.name(0)} were given different tokens")
            return
        channel.send({"proof": proof(self.plan.token, "hub", nonces, node)})
        channel.protect(self.plan.token, "hub", nonces)
        self._proved[channel] = node

    def _refuse(self, channel: Any, peer: Any, why: str) -> None:
        channel.send({"refused": why})
        channel.close()
        self._refusals += 1
        if self._refusals <= REFUSALS_TOLD_MAX:
            say(f"launch: refused a connection from {peer}: {why}")

    def _admit(self, channel: Any, node: int, message: Message) -> None:
        """Compares the settings of a launcher that knows the token with ours; a contradiction ends the job."""
        plan = self.plan
        member = read_member(message.get("member"))
        differs = [
            f"{what} is {ours or 'not given'} on {self.name(0)} and {theirs or 'not given'} on {self.name(node)}"
            for what, ours, theirs in (
                ("--cluster_node_ips", ",".join(plan.nodes), str(message.get("nodes", ""))),
                ("--endpoints", ",".join(plan.own.endpoints), ",".join(member.endpoints)),
                ("the limit of restarts", plan.restarts, str(message.get("restarts", ""))),
            )
            if ours != theirs
        ]
        theirs = str(message.get("job_id", ""))
        if theirs and plan.job_id and theirs != plan.job_id:
            differs.append(f"the job's id is {plan.job_id} on {self.name(0)} and {theirs} on {self.name(node)}")
        if node in self._joined:
            self._refuse(channel, self.plan.nodes[node], f"a launcher of {self.name(node)} is there already")
            return
        if differs:
            for other in [channel, *(joined for joined, _ in self._joined.values())]:
                other.send({"refused": differs[0]})
            raise JoinError(differs[0])
        self._joined[node] = (channel, member)


class _Member(_Joining):
    def __init__(self, plan: Plan, port: int, wait_s: Any, stopped: Any) -> None:
        super().__init__(plan, wait_s, stopped)
        self._port = port
        self._trouble = ""

    def run(self) -> Any:
        channel = None
        try:
            channel = self._connect()
            nonces = self._prove(channel)
            channel.protect(self.plan.token, "member", nonces)
            channel.send(
                {
                    "member": dataclasses.asdict(self.plan.own),
                    "nodes": ",".join(self.plan.nodes),
                    "restarts": self.plan.restarts,
                    "job_id": self.plan.job_id,
                }
            )
            job = self._next(channel, "all machines' launchers to join", skip_empty=True)
            facts = read_facts(job, self.plan.nodes, self.plan.token)
            return Cluster(self.plan.nodes, self.plan.rank, {0: channel}), facts
        except (JoinError, Stopped):
            raise
        except Exception as error:
            raise JoinError(f"{self.name(0)}: {_why(error)}") from error

    def _connect(self) -> Any:
        while True:
            self.check(f"the launcher of {self.name(0)} on port {self._port}{self._trouble}")
            try:
                channel = connect(self.plan.nodes[0], self._port)
                if channel is not None:
                    return channel
                self._trouble = ""
            except OSError as error:  # no address or no route: perhaps temporary, but reported at once
                trouble = f": {error.strerror or error}"
                if trouble != self._trouble:
                    say(f"launch: cannot reach {self.name(0)} on port {self._port}{trouble}")
                self._trouble = trouble
            time.sleep(POLL_S)

    def _next(self, channel: Any, what: str, skip_empty: bool = False) -> Any:
        while True:
            self.check(f"{what} ({self.name(0)} is there)")
            wait_for([channel], [], POLL_S)
            if skip_empty:
                channel.beat()
            for message in channel.receive(limit=1):
                if "refused" in message:
                    why = "".join(c if c.isprintable() else " " for c in str(message["refused"])[:300])
                    raise JoinError(f"{self.name(0)} refused this machine's launcher: {why}")
                if message or not skip_empty:
                    return message

    def _prove(self, channel: Any) -> str:
        greeting = self._next(channel, "a greeting")
        theirs = greeting.get("nonce")
        if greeting.get("penstock_launch") != 1 or not isinstance(theirs, str):
            raise ChannelError("the process that answers there is not a launcher of this version of penstock")
        ours = new_nonce()
        nonces = f"{theirs} {ours}"
        rank = self.plan.rank
        channel.send({"node": rank, "nonce": ours, "proof": proof(self.plan.token, "member", nonces, rank)})
        answer = self._next(channel, "a proof of the job's token")
        if not is_proof(answer.get("proof"), proof(self.plan.token, "hub", nonces, rank)):
            raise ChannelError("the process that answers there does not know the job's token")
        return nonces


def join(plan: Plan, port: int, wait_s: Any, stopped: Any) -> Any:
    """Returns (Cluster, Facts) once the launchers of all machines have joined. Raises JoinError or Stopped.

    port     where node 0's launcher listens, the same on every machine
    wait_s   how long to wait for the others
    stopped  returns whether a signal has requested this launcher's end
    """
    if not plan.token:
        say(
            "launch: no --token_file and no PENSTOCK_JOB_TOKEN: any process of this machine can join the job while it "
            "starts"
        )
    side = _Hub if plan.rank == 0 else _Member
    return side(plan, port, wait_s, stopped).run()
