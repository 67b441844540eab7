"""Launchers on several machines form one job. The machines are loopback addresses here, and network namespaces in the
slow tests."""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import textwrap
import time

import pytest
from launched import TRAIN
from penstock._src.launch.job import free_ports

LAUNCH = [sys.executable, "-m", "penstock.distributed.launch"]
WAIT_S = 180
HOSTS = ("127.0.0.1", "127.0.0.2")
ALL_KNOW_S = 30  # by then, the failure of a node has ended the others

DUMP = "print(json.dumps(dict(os.environ)))"
# Runs until it is ended. Writes a file with its pid and the pid of a helper.
PAUSE = """
    import subprocess
    name = f"{os.environ['TRAINING_ROLE']}.{os.environ.get('PADDLE_TRAINER_ID', os.environ.get('PADDLE_PSERVER_ID'))}"
    helper = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
    with open(f"{name}.part", "w") as out:
        out.write(f"{os.getpid()} {helper.pid}")
    os.rename(f"{name}.part", f"{name}.pids")
    fails = os.environ.get("FAILS") == name
    while fails and len([f for f in os.listdir(".") if f.endswith(".pids")]) < 4:
        pass
    if fails:
        raise ValueError("no more data")
    signal.pause()
"""


GARBAGE = [
    b"",
    b"x" * 100_000,
    b"{}\n",
    b"[" * 4000 + b"\n",
    b'{"node":1,"nonce":"","proof":""}\n',
    b'{"node":1,"nonce":"\\ud800","proof":"x"}\n',
    b'{"node":1,"nonce":"a","proof":"\\ud800"}\n',
    b'{"node":1,"\\udfff":1}\n',
    b'{"node":true,"nonce":"a","proof":"x"}\n',
    b'{"node":1e400,"nonce":"a"}\n',
    b'{"node":' + b"1" * 4000 + b"}\n",
    b'{"node":1,"nonce":"a","proof":{}}\n',
    b"[1]\n",
    b"\xff\xfe\n",
    b"\0\n",
]


class Nodes:
    """A launcher on each of two machines."""

    def __init__(self, folder, body, hosts=HOSTS, prefixes=((), ())):
        self.folder = folder
        self.script = folder / "job.py"
        self.script.write_text("import json, os, signal, sys, time\n" + textwrap.dedent(body))
        self.hosts, self.prefixes = hosts, prefixes
        self.control, start = free_ports(2)
        self.ports = ["--control_port", str(self.control), "--start_port", str(start)]
        self.launchers = {}

    def start(self, node, *arguments, counts=("--server_num", "1", "--worker_num", "1"), **environment):
        base = {key: value for key, value in os.environ.items() if not key.startswith("PENSTOCK_JOB")}
        launcher = subprocess.Popen(
            [
                *self.prefixes[node],
                *LAUNCH,
                "--cluster_node_ips",
                ",".join(self.hosts),
                "--node_ip",
                self.hosts[node],
                *self.ports,
                "--log_dir",
                f"logs{node}",
                *counts,
                *arguments,
                str(self.script),
            ],
            cwd=self.folder,
            env={**base, **environment},
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.launchers[node] = launcher
        return launcher

    def wait(self, limit=WAIT_S):
        """{node: (exit code, output, errors)}"""
        end = time.monotonic() + limit
        return {
            node: (launcher.returncode, *texts)
            for node, launcher in self.launchers.items()
            for texts in [launcher.communicate(timeout=max(1, end - time.monotonic()))]
        }

    def pids(self, count=8):
        """Of all roles of PAUSE and their helpers, once they run."""
        end = time.monotonic() + WAIT_S
        files = []
        while 2 * len(files) < count:
            assert time.monotonic() < end, files
            files = list(self.folder.glob("*.pids"))
        return [int(pid) for file in files for pid in file.read_text().split()]

    def environment(self, node, log):
        return json.loads((self.folder / f"logs{node}" / log).read_text())


@pytest.fixture
def nodes(tmp_path):
    made = []

    def make(body, **how):
        made.append(Nodes(tmp_path, body, **how))
        return made[-1]

    yield make
    for one in made:
        for launcher in one.launchers.values():
            if launcher.poll() is None:
                launcher.terminate()
                launcher.communicate(timeout=WAIT_S)


def alive(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def expect_none_alive(pids):
    end = time.monotonic() + WAIT_S
    while any(alive(pid) for pid in pids) and time.monotonic() < end:
        pass
    assert [pid for pid in pids if alive(pid)] == []


@pytest.mark.parametrize("order, token", [((0, 1), ""), ((1, 0), "a secret of this job")])
def test_two_launchers_form_one_job(nodes, order, token):
    job = nodes(DUMP)
    for node in order:
        job.start(node, **({"PENSTOCK_JOB_TOKEN": token} if token else {}))
    results = job.wait()
    assert {node: result[0] for node, result in results.items()} == {0: 0, 1: 0}, results
    roles = {
        (node, kind): job.environment(node, f"{kind}log.{node}") for node in (0, 1) for kind in ("server", "worker")
    }
    for key in (
        "PADDLE_PSERVERS_IP_PORT_LIST",
        "PADDLE_PSERVER_ENDPOINTS",
        "PADDLE_TRAINER_ENDPOINTS",
        "PADDLE_TRAINERS_NUM",
        "PENSTOCK_JOB_TOKEN",
        "PENSTOCK_JOB_ID",
    ):
        assert len({role[key] for role in roles.values()}) == 1, key
    pservers = roles[0, "server"]["PADDLE_PSERVERS_IP_PORT_LIST"].split(",")
    start = job.ports[-1]
    assert pservers == [f"127.0.0.1:{start}", f"127.0.0.2:{start}"]
    assert roles[0, "server"]["PADDLE_TRAINERS_NUM"] == "2"
    assert roles[0, "server"]["PADDLE_TRAINER_ENDPOINTS"] == "127.0.0.1:6070,127.0.0.2:6070"
    for node in (0, 1):
        assert roles[node, "server"]["PADDLE_CURRENT_ENDPOINT"] == pservers[node]
        assert roles[node, "server"]["PADDLE_PSERVER_ID"] == str(node)
        assert roles[node, "worker"]["PADDLE_TRAINER_ID"] == str(node)
    made = roles[0, "worker"]["PENSTOCK_JOB_TOKEN"]
    assert made == token if token else len(made) >= 32
    warned = "any process of this machine can join" in results[1][2]
    assert warned == (not token)


def test_default_ports_are_fluids(tmp_path):
    from penstock._src.launch.job import make_plan
    from penstock._src.launch.options import parse_options

    script = tmp_path / "job.py"
    script.write_text("")
    options = parse_options(
        [
            "--cluster_node_ips",
            "10.0.0.1,10.0.0.2",
            "--node_ip",
            "10.0.0.2",
            "--server_num",
            "2",
            "--worker_num",
            "2",
            str(script),
        ]
    )
    plan = make_plan(options, {"PENSTOCK_JOB_TOKEN": "secret"})
    assert plan.rank == 1
    assert plan.own.pservers == ("10.0.0.2:6170", "10.0.0.2:6171")
    assert plan.own.trainers == ("10.0.0.2:6070", "10.0.0.2:6071")


def test_nodes_may_bring_different_counts(nodes):
    job = nodes(DUMP)
    job.start(0, counts=("--worker_num", "2"))
    job.start(1, counts=("--server_num", "1", "--worker_num", "1"))
    results = job.wait()
    assert {result[0] for result in results.values()} == {0}, results
    trainer = job.environment(1, "workerlog.2")
    assert trainer["PADDLE_TRAINER_ID"] == "2" and trainer["PADDLE_TRAINERS_NUM"] == "3"
    assert job.environment(1, "serverlog.0")["PADDLE_PSERVERS_IP_PORT_LIST"].startswith("127.0.0.2:")


def test_endpoints_are_assigned_to_machines_in_order(nodes):
    job = nodes(DUMP)
    ports = free_ports(2)
    given = f"127.0.0.2:{ports[0]},127.0.0.1:{ports[1]}"
    for node in (0, 1):
        job.start(node, "--endpoints", given)
    results = job.wait()
    assert {result[0] for result in results.values()} == {0}, results
    assert job.environment(1, "serverlog.0")["PADDLE_CURRENT_ENDPOINT"] == f"127.0.0.2:{ports[0]}"
    assert job.environment(0, "serverlog.1")["PADDLE_PSERVERS_IP_PORT_LIST"] == given


def test_the_token_file_and_job_id_reach_the_roles(nodes, tmp_path):
    (tmp_path / "token").write_text("from the file\n")
    job = nodes(DUMP)
    job.start(0, "--token_file", "token")
    job.start(1, "--token_file", "token", PENSTOCK_JOB_ID="")
    assert {result[0] for result in job.wait().values()} == {0}
    assert job.environment(1, "workerlog.1")["PENSTOCK_JOB_TOKEN"] == "from the file"
    job.start(0, "--token_file", "token", "--job_id", "night run")
    job.start(1, "--token_file", "token")
    assert {result[0] for result in job.wait().values()} == {0}
    assert job.environment(1, "workerlog.1")["PENSTOCK_JOB_ID"] == "night run"


@pytest.mark.parametrize(
    "arguments, message",
    [
        (("--cluster_node_ips", "10.0.0.1,10.0.0.2", "--node_ip", "10.0.0.1"), "needs one secret"),
        (("--token_file", "nowhere"), "--token_file nowhere: No such file"),
        (("--cluster_node_ips", "127.0.0.1,127.0.0.1"), "127.0.0.1 is listed twice"),
        (
            ("--cluster_node_ips", "127.0.0.1,127.0.0.2", "--endpoints", "10.0.0.9:7000"),
            "is on none of the job's machines",
        ),
    ],
)
def test_invalid_job_options_are_refused(tmp_path, arguments, message):
    (tmp_path / "job.py").write_text("")
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PENSTOCK_JOB")}
    result = subprocess.run(
        [*LAUNCH, *arguments, "job.py"], cwd=tmp_path, text=True, capture_output=True, timeout=WAIT_S, env=environment
    )
    assert result.returncode == 2, result.stderr
    assert message in result.stderr and len(result.stderr.splitlines()) == 1


def test_a_job_of_two_machines_trains(nodes):
    job = nodes(TRAIN)
    for node in (0, 1):
        job.start(node, "--job_id", "both")
    results = job.wait()
    assert {result[0] for result in results.values()} == {0}, results


def test_launchers_with_different_options_report_the_difference(nodes):
    job = nodes(DUMP)
    job.start(0, "--job_id", "a")
    job.start(1, "--job_id", "b")
    results = job.wait()
    for node in (0, 1):
        assert results[node][0] == 1
        assert "the job's id is a on node 0 (127.0.0.1) and b on node 1 (127.0.0.2)" in results[node][2]


def test_a_wrong_token_is_refused_and_the_job_continues(nodes):
    job = nodes(DUMP)
    first = job.start(0, PENSTOCK_JOB_TOKEN="right")
    stranger = job.start(1, PENSTOCK_JOB_TOKEN="wrong")
    _, errors = stranger.communicate(timeout=WAIT_S)
    assert stranger.returncode == 1 and "were given different tokens" in errors
    assert first.poll() is None
    job.start(1, PENSTOCK_JOB_TOKEN="right")
    results = job.wait()
    assert {result[0] for result in results.values()} == {0}, results
    assert "refused a connection from 127.0.0.1: its launcher and that of node 0" in results[0][2]
    assert "right" not in errors and "right" not in results[0][2]


def test_foreign_connections_do_not_disturb_waiting_launchers(nodes):
    job = nodes(DUMP)
    job.start(0, PENSTOCK_JOB_TOKEN="right")
    end = time.monotonic() + WAIT_S
    strangers = []
    while len(strangers) < 40:  # more than may be pending
        assert time.monotonic() < end
        one = socket.socket()
        strangers.append(one) if one.connect_ex((HOSTS[0], job.control)) == 0 else one.close()
    for number, one in enumerate(strangers):
        one.settimeout(WAIT_S)
        try:
            one.sendall(GARBAGE[number % len(GARBAGE)])
        except OSError:
            pass  # closed already
    job.start(1, PENSTOCK_JOB_TOKEN="right")
    results = job.wait()
    assert {result[0] for result in results.values()} == {0}, results
    assert len(results[0][2].splitlines()) <= 5 and "Traceback" not in results[0][2]
    for one in strangers:
        one.close()


def test_a_replayed_hello_is_refused(nodes):
    """Node 1's hello, read off the network and sent again."""
    from penstock._src.launch.channel import proof

    job = nodes(DUMP)
    job.start(0, PENSTOCK_JOB_TOKEN="right")
    end = time.monotonic() + WAIT_S
    hello, answers = None, []
    while len(answers) < 2:
        assert time.monotonic() < end
        try:
            hub = socket.create_connection((HOSTS[0], job.control), timeout=WAIT_S)
        except ConnectionRefusedError:
            continue
        with hub, hub.makefile("rw") as lines:
            nonce = json.loads(lines.readline())["nonce"]
            if hello is None:
                nonces = f"{nonce} mine"
                hello = {"node": 1, "nonce": "mine", "proof": proof("right", "member", nonces, 1)}
            lines.write(json.dumps(hello) + "\n")
            lines.flush()
            answers.append(json.loads(lines.readline()))
    assert answers[0] == {"proof": proof("right", "hub", nonces, 1)}
    assert "different tokens" in answers[1]["refused"]


def test_a_waiting_launcher_times_out_and_can_be_interrupted(nodes):
    job = nodes(DUMP)
    job.start(0, "--join_s", "0.5")
    code, _, errors = job.wait()[0]
    assert code == 1 and "waited 0 s for the launcher of node 1 (127.0.0.2)" in errors
    waiting = job.start(1)
    assert "any process" in waiting.stderr.readline()
    waiting.send_signal(signal.SIGINT)
    assert waiting.wait(timeout=WAIT_S) == 130


def test_a_failed_role_is_reported_on_both_machines(nodes):
    job = nodes(PAUSE)
    for node in (0, 1):
        job.start(node, "--grace_s", "0.5", FAILS="TRAINER.1")
    pids = job.pids()
    results = job.wait(ALL_KNOW_S)
    for node in (0, 1):
        first = results[node][2].splitlines()[1]
        assert results[node][0] == 1
        assert "trainer 1 (pid" in first and "on node 1 (127.0.0.2) exited with code 1" in first, results
        assert "ValueError: no more data" in results[node][2]
    expect_none_alive(pids)


@pytest.mark.parametrize(
    "number, words", [(signal.SIGINT, "was stopped by SIGINT"), (signal.SIGKILL, "was stopped by SIGTERM")]
)
@pytest.mark.parametrize("node", [0, 1])
def test_ending_a_launcher_ends_the_others(nodes, node, number, words):
    job = nodes(PAUSE)
    for each in (0, 1):
        job.start(each, "--grace_s", "0.5")
    pids = job.pids()
    job.launchers[node].send_signal(number)
    results = job.wait(ALL_KNOW_S)
    assert results[node][0] not in (0, 1)
    assert results[1 - node][0] == 1
    assert f"node {node} ({HOSTS[node]}) " in results[1 - node][2] and words in results[1 - node][2]
    expect_none_alive(pids)


@pytest.mark.slow
def test_a_blocked_terminal_does_not_end_the_job(nodes):
    job = nodes("""
        import threading
        if os.environ["TRAINING_ROLE"] == "TRAINER" and os.environ["PADDLE_TRAINER_ID"] == "0":
            print("x" * 1_000_000)  # it is not read for a while, and a pipe holds 64 KB
        elif os.environ["TRAINING_ROLE"] == "TRAINER":
            threading.Event().wait(12)  # longer than the allowed silence
            open("waited", "w").close()
    """)
    for node in (0, 1):
        job.start(node)
    end = time.monotonic() + WAIT_S
    while not (job.folder / "waited").exists():
        assert time.monotonic() < end and job.launchers[1].poll() is None
    results = job.wait()
    assert {result[0] for result in results.values()} == {0}, results[1]
    assert len(results[0][1]) > 1_000_000


@pytest.mark.slow
def test_a_silent_machine_is_lost(nodes):
    job = nodes(PAUSE)
    for node in (0, 1):
        job.start(node, "--grace_s", "0.5")
    pids = job.pids()
    supervisor = int(pathlib.Path(f"/proc/{job.launchers[1].pid}/task/{job.launchers[1].pid}/children").read_text())
    os.kill(supervisor, signal.SIGSTOP)
    _, errors = job.launchers[0].communicate(timeout=ALL_KNOW_S)
    assert job.launchers[0].returncode == 1
    assert "node 1 (127.0.0.2) is gone: its launcher has not answered for 8 s" in errors
    os.kill(supervisor, signal.SIGCONT)
    code, _, errors = job.wait()[1]
    assert code == 1 and "node 0 (127.0.0.1) is gone" in errors
    expect_none_alive(pids)


@contextlib.contextmanager
def network_namespaces():
    """Two machines' networks joined by a wire: (names, addresses). Skips the test where none can be made."""
    ip = shutil.which("ip")
    if os.geteuid() != 0 or ip is None:
        pytest.skip("network namespaces take root and iproute2")
    tag = f"pk{os.getpid()}"
    names, addresses = (f"{tag}a", f"{tag}b"), ("10.213.7.1", "10.213.7.2")
    steps = [["netns", "add", name] for name in names]
    steps += [["link", "add", f"{tag}0", "netns", names[0], "type", "veth", "peer", f"{tag}1", "netns", names[1]]]
    for i, name in enumerate(names):
        steps += [
            ["-n", name, "addr", "add", f"{addresses[i]}/24", "dev", f"{tag}{i}"],
            ["-n", name, "link", "set", f"{tag}{i}", "up"],
            ["-n", name, "link", "set", "lo", "up"],
        ]
    try:
        for step in steps:
            done = subprocess.run([ip, *step], text=True, capture_output=True, timeout=WAIT_S)
            if done.returncode != 0:
                pytest.skip(f"ip {' '.join(step)}: {done.stderr.strip()}")
        yield names, addresses
    finally:
        for name in names:
            subprocess.run([ip, "netns", "del", name], capture_output=True, timeout=WAIT_S)


@pytest.mark.slow
def test_machines_with_networks_of_their_own_form_one_job(nodes):
    with network_namespaces() as (names, addresses):
        job = nodes(DUMP, hosts=addresses, prefixes=[("ip", "netns", "exec", name) for name in names])
        for node in (1, 0):
            job.start(node, PENSTOCK_JOB_TOKEN="a secret of this job")
        results = job.wait()
        assert {result[0] for result in results.values()} == {0}, results
        start = job.ports[-1]
        for log in ("serverlog", "workerlog"):
            assert job.environment(1, f"{log}.1")["PADDLE_PSERVERS_IP_PORT_LIST"] == (
                f"{addresses[0]}:{start},{addresses[1]}:{start}"
            )


@pytest.mark.slow
def test_a_disconnected_machine_is_lost_on_both_sides(nodes):
    with network_namespaces() as (names, addresses):
        job = nodes(PAUSE, hosts=addresses, prefixes=[("ip", "netns", "exec", name) for name in names])
        for node in (0, 1):
            job.start(node, "--grace_s", "0.5", PENSTOCK_JOB_TOKEN="a secret of this job")
        pids = job.pids()
        link = f"pk{os.getpid()}0"
        subprocess.run(["ip", "-n", names[0], "link", "set", link, "down"], check=True, timeout=WAIT_S)
        results = job.wait(ALL_KNOW_S)
        for node in (0, 1):
            other = 1 - node
            assert results[node][0] == 1
            assert f"node {other} ({addresses[other]}) is gone: " in results[node][2], results
        expect_none_alive(pids)


@pytest.mark.slow
def test_an_unroutable_address_is_reported_at_once(nodes):
    with network_namespaces() as (names, addresses):
        job = nodes(DUMP, hosts=("198.51.100.1", addresses[0]), prefixes=[(), ("ip", "netns", "exec", names[0])])
        launcher = job.start(1, PENSTOCK_JOB_TOKEN="a secret of this job")
        assert "cannot reach node 0 (198.51.100.1) on port" in launcher.stderr.readline()
        launcher.send_signal(signal.SIGTERM)
        assert launcher.wait(timeout=WAIT_S) == 128 + signal.SIGTERM
