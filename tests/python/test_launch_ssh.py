"""--launcher ssh, through an sshd of our own on loopback."""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import textwrap
import time

import pytest
from launched import TRAIN
from penstock._src.launch.job import free_ports
from sshd import SSHD, sshd

LAUNCH = [sys.executable, "-m", "penstock.distributed.launch"]
WAIT_S = 120
ALL_ENDED_S = 5  # after Ctrl-C, kill -9 of the launcher or a cut network, on a machine that is not busy

pytestmark = pytest.mark.skipif(SSHD is None or shutil.which("ssh") is None, reason="no sshd (openssh-server)")

# Writes its arguments and environment into a file of the current folder.
DUMP = """
    name = "-".join(filter(None, [os.environ["DMLC_ROLE"], os.environ.get("DMLC_TASK_ID")]))
    with open(name + ".json", "w") as out:
        json.dump({"argv": sys.argv[1:], "environment": dict(os.environ), "folder": os.getcwd()}, out)
    print("hello from", name)
    sys.exit(int(os.environ.get("FAILS", "0")))
"""
# Runs until it is ended, with a helper that ignores signals and has left its process group.
STAY = """
    deaf = "import signal; signal.signal(15, signal.SIG_IGN); print('up', flush=True); signal.pause()"
    helper = subprocess.Popen(
        [sys.executable, "-c", deaf], start_new_session=True, stdout=subprocess.PIPE, env={"TAG": os.environ["TAG"]},
    )
    helper.stdout.readline()
    print("helper is up", flush=True)
    signal.pause()
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with sshd(tmp_path_factory.mktemp("sshd") / "files", *free_ports(1)) as server:
        yield server


class Job:
    def __init__(self, folder, server, body):
        self.folder, self.server = folder, server
        (folder / "job.py").write_text("import json, os, signal, subprocess, sys\n" + textwrap.dedent(body))
        (folder / "hosts").write_text(f"{server.host}\n")
        self.launchers = []

    def start(self, *arguments, options=None, prefix=(), **environment):
        known = {key: value for key, value in os.environ.items() if not key.startswith(("PENSTOCK_JOB", "DMLC_"))}
        launcher = subprocess.Popen(
            [*prefix, *LAUNCH, "-H", "hosts", *(options or self.server.options), *arguments],
            cwd=self.folder,
            env={**known, "DMLC_NODE_HOST": "127.0.0.1", **environment},
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        self.launchers.append(launcher)
        return launcher

    def end(self):
        for launcher in self.launchers:
            if launcher.poll() is None:
                launcher.kill()
            launcher.communicate()

    def run(self, *arguments, **environment):
        launcher = self.start(*arguments, **environment)
        text, _ = launcher.communicate(timeout=WAIT_S)
        return launcher.returncode, text

    def dumps(self, folder=None):
        return {path.stem: json.loads(path.read_text()) for path in (folder or self.folder).glob("*.json")}


@pytest.fixture
def job_of(server):
    """Makes a Job; ends its launchers after the test."""
    jobs = []

    def make(folder, body):
        jobs.append(Job(folder, server, body))
        return jobs[-1]

    yield make
    for job in jobs:
        job.end()


def tagged(tag):
    """The pids whose environment has a variable TAG of this value."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"TAG={tag}".encode() in path.read_bytes().split(b"\0"):
                found.append(int(path.parent.name))
        except OSError:
            pass
    return found


def wait_until(condition, limit_s=WAIT_S):
    deadline = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come true"
        time.sleep(0.02)


def test_the_line_of_mxnet_runs_on_a_host_with_words_intact(tmp_path, server, job_of):
    """Also where the host's login files print something before the keeper starts."""
    job = job_of(tmp_path, DUMP)
    noisy = tmp_path / "noisy python"
    noisy.write_text(f'#!/bin/sh\necho "welcome to this host"\nexec {sys.executable} "$@"\n')
    noisy.chmod(0o755)
    before = server.connections()
    code, text = job.run(
        "-n", "2", "-s", "1", "--launcher", "ssh", "--remote_python", str(noisy), "--env", "SHOWN",
        "--env-server", "DEEP:1:2", "--env-worker", "WIDE:x y",
        sys.executable, "job.py", "a b", "$HOME", "it's", "-n", "--", "*", SHOWN="se cret", HIDDEN="1",
    )  # fmt: skip
    assert code == 0, text
    dumps = job.dumps()
    assert set(dumps) == {"scheduler", "server-2", "worker-0", "worker-1"}
    assert all(dump["argv"] == ["a b", "$HOME", "it's", "-n", "--", "*"] for dump in dumps.values())
    assert all(dump["folder"] == str(tmp_path) for dump in dumps.values())
    worker, pserver = dumps["worker-1"]["environment"], dumps["server-2"]["environment"]
    assert worker["SHOWN"] == "se cret" and worker["WIDE"] == "x y" and "DEEP" not in worker and "HIDDEN" not in worker
    assert pserver["DEEP"] == "1:2" and "WIDE" not in pserver
    assert worker["DMLC_NODE_HOST"] == "127.0.0.1" and worker["DMLC_NUM_WORKER"] == "2"
    tokens = {dump["environment"]["PENSTOCK_JOB_TOKEN"] for dump in dumps.values()}
    assert len(tokens) == 1 and tokens.pop() not in text
    assert "[trainer 1] hello from worker-1" in text and "welcome to this host" in text
    assert (tmp_path / "mylog" / "workerlog.1").read_text() == "hello from worker-1\n"
    assert server.connections() == before + 1


@pytest.mark.slow
def test_the_exit_code_is_that_of_the_first_failure(tmp_path, job_of):
    job = job_of(tmp_path, DUMP)
    code, text = job.run("-n", "2", "-s", "1", "--env", "trainer.1:FAILS=7", sys.executable, "job.py")
    assert code == 7
    assert "trainer 1 on " in text and "exited with code 7" in text and "hello from worker-1" in text


@pytest.mark.parametrize("path", [None, pytest.param("tar", marks=pytest.mark.slow)])
def test_the_folder_is_copied_before_processes_start(tmp_path, server, job_of, path):
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "data").write_text("some data")
    job = job_of(tmp_path / "here", DUMP)
    there = tmp_path / "on it's host"
    before = server.connections()
    environment = {}
    if path is not None:  # a launcher without rsync
        (tmp_path / "bin").mkdir()
        for name in ("ssh", "tar", "sh", "gzip"):
            (tmp_path / "bin" / name).symlink_to(shutil.which(name))
        environment["PATH"] = str(tmp_path / "bin")
    code, text = job.run(
        "-n", "1", "-s", "1", "--sync-dst-dir", str(there), sys.executable, "job.py", **environment
    )  # fmt: skip
    assert code == 0, text
    assert (there / "data").read_text() == "some data"
    assert set(job.dumps(there)) == {"server-1", "worker-0"}
    assert job.dumps(there)["worker-0"]["folder"] == str(there)
    assert server.connections() == before + 1


def test_a_copy_that_fails_is_an_error(tmp_path, job_of):
    (tmp_path / "file").write_text("")
    job = job_of(tmp_path, DUMP)
    target = tmp_path / "file" / "below"
    code, text = job.run("-n", "1", "--sync-dst-dir", str(target), sys.executable, "job.py")
    assert code == 1 and "[E-launch-copy]" in text and str(target) in text
    assert not job.dumps()


@pytest.mark.slow
def test_a_host_that_refuses_is_named(tmp_path, server, job_of):
    job = job_of(tmp_path, DUMP)
    (closed,) = free_ports(1)
    (tmp_path / "hosts").write_text(f"{server.host}\n127.0.0.1:{closed}\n")
    code, text = job.run("-n", "1", "-s", "1", sys.executable, "job.py")
    assert code == 1 and f"127.0.0.1 port {closed} is gone: ssh could not connect   [E-launch-host]" in text
    assert not job.dumps()


@pytest.mark.slow
@pytest.mark.parametrize(
    "line",
    ['{"out": "nobody", "text": "x"}', '{"end": "trainer 0"}', '{"made": 1, "why": []}', '{"out": [], "text": 1}'],
)
def test_a_host_that_speaks_nonsense_ends_the_job(tmp_path, job_of, line):
    job = job_of(tmp_path, DUMP)
    fake = tmp_path / "fake"
    fake.write_text(f"#!/bin/sh\necho '{{\"keeper\": 1, \"rsync\": false}}'\necho '{line}'\ncat >/dev/null\n")
    fake.chmod(0o755)
    code, text = job.run("-n", "1", "-s", "1", "--remote_python", str(fake), sys.executable, "job.py")
    assert code == 1 and "[E-launch-host]" in text and "Traceback" not in text


def test_a_folder_or_program_that_is_missing_there_is_named(tmp_path, job_of):
    job = job_of(tmp_path, DUMP)
    code, text = job.run("-n", "1", "-s", "0", "no-such-program", "job.py")
    assert code == 1 and "no-such-program: No such file or directory   [E-launch-start]" in text


@pytest.mark.parametrize("ending", ["SIGINT", pytest.param("SIGTERM", marks=pytest.mark.slow), "SIGKILL"])
def test_no_process_is_left_when_the_launcher_ends(tmp_path, server, job_of, ending):
    job = job_of(tmp_path, STAY)
    tag = f"{tmp_path.name}-{ending}"
    launcher = job.start("-n", "2", "-s", "1", "--env", f"TAG={tag}", sys.executable, "job.py")
    logs = [tmp_path / "mylog" / name for name in ("schedulerlog.0", "serverlog.0", "workerlog.0", "workerlog.1")]
    wait_until(lambda: all(log.exists() and "helper is up" in log.read_text() for log in logs), 30)
    assert len(tagged(tag)) == 8
    assert not any(tag in " ".join(map(str, line)) for line in command_lines() if "ssh" in line[0])
    launcher.send_signal(getattr(signal, ending))
    wait_until(lambda: not tagged(tag), 30)
    launcher.communicate(timeout=WAIT_S)
    assert launcher.returncode == {"SIGINT": 130, "SIGTERM": 143, "SIGKILL": -9}[ending]


@contextlib.contextmanager
def star_of_namespaces():
    """The networks of a launcher and of two hosts, each joined with it by a wire: (names, addresses of the hosts,
    addresses of the launcher, wires). Skips the test where none can be made."""
    ip = shutil.which("ip")
    if os.geteuid() != 0 or ip is None:
        pytest.skip("network namespaces take root and iproute2")
    tag = f"ps{os.getpid()}"
    names = [f"{tag}{letter}" for letter in "lab"]
    wires = [f"{tag}x", f"{tag}y"]
    steps = [["netns", "add", name] for name in names]
    steps += [["-n", name, "link", "set", "lo", "up"] for name in names]
    for i, wire in enumerate(wires):
        there = names[1 + i]
        steps += [
            ["link", "add", wire, "netns", names[0], "type", "veth", "peer", f"{wire}p", "netns", there],
            ["-n", names[0], "addr", "add", f"10.213.{8 + i}.1/24", "dev", wire],
            ["-n", there, "addr", "add", f"10.213.{8 + i}.2/24", "dev", f"{wire}p"],
            ["-n", names[0], "link", "set", wire, "up"],
            ["-n", there, "link", "set", f"{wire}p", "up"],
        ]
    try:
        for step in steps:
            done = subprocess.run([ip, *step], text=True, capture_output=True, timeout=WAIT_S)
            if done.returncode != 0:
                pytest.skip(f"ip {' '.join(step)}: {done.stderr.strip()}")
        yield names, ["10.213.8.2", "10.213.9.2"], ["10.213.8.1", "10.213.9.1"], wires
    finally:
        for name in names:
            subprocess.run([ip, "netns", "del", name], capture_output=True, timeout=WAIT_S)


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["cut", "SIGINT", "SIGKILL"])
def test_no_process_is_left_on_two_hosts(tmp_path, ending):
    with star_of_namespaces() as (names, there, here, wires), contextlib.ExitStack() as stack:
        servers = [
            stack.enter_context(
                sshd(tmp_path / f"sshd{i}", 2222, address=there[i], prefix=("ip", "netns", "exec", names[1 + i]))
            )
            for i in range(2)
        ]
        options = [
            *(one for one in servers[0].options if "UserKnownHostsFile" not in one and "IdentityFile" not in one),
            *(one for server in servers for one in server.options if "IdentityFile" in one),
            f"--ssh_option=UserKnownHostsFile={tmp_path / 'known_hosts'}",
        ]
        job = Job(tmp_path, servers[0], STAY)
        stack.callback(job.end)
        (tmp_path / "hosts").write_text("".join(f"{server.host}\n" for server in servers))
        target = tmp_path / "copied"
        tag = f"{tmp_path.name}-{ending}"
        launcher = job.start(
            "-n", "2", "-s", "2", "--sync-dst-dir", str(target), "--env", f"TAG={tag}", sys.executable, "job.py",
            options=options, prefix=("ip", "netns", "exec", names[0]), DMLC_NODE_HOST=here[0],
        )  # fmt: skip
        logs = [f"{kind}log.{i}" for kind in ("server", "worker") for i in range(2)]
        logs = [tmp_path / "mylog" / name for name in ["schedulerlog.0", *logs]]
        wait_until(lambda: all(log.exists() and "helper is up" in log.read_text() for log in logs), 30)
        assert len(tagged(tag)) == 10 and (target / "job.py").exists()
        if ending == "cut":
            subprocess.run(["ip", "-n", names[0], "link", "set", wires[1], "down"], check=True, timeout=WAIT_S)
        else:
            launcher.send_signal(getattr(signal, ending))
        wait_until(lambda: not tagged(tag), ALL_ENDED_S)
        text, _ = launcher.communicate(timeout=WAIT_S)
        assert launcher.returncode == {"cut": 1, "SIGINT": 130, "SIGKILL": -9}[ending]
        if ending == "cut":
            assert f"{there[1]} port 2222 is gone: " in text and "[E-launch-host]" in text


def command_lines():
    """The command lines of all processes."""
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            yield path.read_bytes().decode(errors="replace").split("\0")
        except OSError:
            pass


@pytest.mark.slow
def test_launchers_on_the_hosts_run_a_script_with_pservers(tmp_path, server, job_of):
    job = job_of(tmp_path, TRAIN)
    code, text = job.run("--launcher", "ssh", "--server_num", "1", "--worker_num", "2", "job.py", "4")
    assert code == 0, text
    assert "job: 1 pservers, 2 trainers" in text
    assert (tmp_path / "mylog" / "workerlog.1").exists()


@pytest.mark.slow
def test_launchers_on_the_hosts_save_the_last_step_at_sigterm(tmp_path, job_of):
    loop = "for step in range(int(sys.argv[1] if len(sys.argv) > 1 else 5)):"
    assert loop in TRAIN
    job = job_of(tmp_path, TRAIN.replace(loop, "for step in range(10**7):"))
    options = ["--checkpoint_dir", "saved", "--checkpoint_steps", "20", "--server_num", "1", "--worker_num", "1"]
    launcher = job.start(*options, "job.py")
    wait_until(lambda: list((tmp_path / "saved").glob("step-*")), 60)
    launcher.send_signal(signal.SIGTERM)
    text, _ = launcher.communicate(timeout=WAIT_S)
    assert launcher.returncode == 0, text
    assert "launch: stopped by SIGTERM after step" in text and "--resume continues it" in text


def test_the_shell_of_the_host_may_be_csh():
    """The fixed command and the command of tar mean the same in csh."""
    csh = shutil.which("tcsh") or shutil.which("csh")
    if csh is None:
        pytest.skip("no csh")
    from penstock._src.launch.backends.connection import KEEPER_COMMAND

    source = b"print('read:', i.readline())\n"
    done = subprocess.run(
        [csh, "-c", KEEPER_COMMAND.format(python=sys.executable)],
        input=b"%d\n%srest\n" % (len(source), source),
        capture_output=True,
        timeout=WAIT_S,
    )
    assert done.stdout == b"read: b'rest\\n'\n", done
