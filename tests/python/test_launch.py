"""The launcher: real processes, real signals."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import textwrap
import time

import pytest
from launched import TRAIN

LAUNCH = [sys.executable, "-m", "penstock.distributed.launch"]
WAIT_S = 180


def write_script(folder, body):
    path = folder / "job.py"
    path.write_text("import json, os, signal, sys, time\n" + textwrap.dedent(body))
    return str(path)


def launch(folder, *arguments, environment=None):
    return subprocess.run(
        [*LAUNCH, *arguments],
        cwd=folder,
        env={**os.environ, **(environment or {})},
        text=True,
        capture_output=True,
        timeout=WAIT_S,
    )


DUMP = "print(json.dumps({'argv': sys.argv[1:], **os.environ}))"


def environment_of(folder, log, log_dir="mylog"):
    return json.loads((folder / log_dir / log).read_text())


def test_roles_receive_their_identity_in_both_spellings(tmp_path):
    script = write_script(tmp_path, DUMP)
    result = launch(tmp_path, "--server_num", "2", "--worker_num", "2", script, "--epochs", "3")
    assert result.returncode == 0, result.stderr
    servers = [environment_of(tmp_path, f"serverlog.{i}") for i in range(2)]
    trainers = [environment_of(tmp_path, f"workerlog.{i}") for i in range(2)]
    endpoints = servers[0]["PADDLE_PSERVERS_IP_PORT_LIST"].split(",")
    assert len(set(endpoints)) == 2
    for i, server in enumerate(servers):
        assert server["TRAINING_ROLE"] == server["PADDLE_TRAINING_ROLE"] == "PSERVER"
        assert server["PADDLE_CURRENT_ENDPOINT"] == f"{server['POD_IP']}:{server['PADDLE_PORT']}" == endpoints[i]
        assert "PADDLE_TRAINER_ID" not in server
    for i, trainer in enumerate(trainers):
        assert trainer["TRAINING_ROLE"] == "TRAINER"
        assert trainer["PADDLE_TRAINER_ID"] == str(i)
        assert trainer["PADDLE_TRAINERS_NUM"] == trainer["PADDLE_NUM_TRAINERS"] == "2"
        assert trainer["PADDLE_PSERVER_ENDPOINTS"] == ",".join(endpoints)
        assert "PADDLE_PORT" not in trainer
        assert trainer["argv"] == ["--epochs", "3"]
    assert len({role["PENSTOCK_JOB_TOKEN"] for role in servers + trainers}) == 1
    assert len(servers[0]["PENSTOCK_JOB_TOKEN"]) >= 32


def test_safety_options_reach_every_role_with_absolute_paths(tmp_path):
    script = write_script(tmp_path, DUMP)
    result = launch(
        tmp_path,
        "--server_num",
        "1",
        "--worker_num",
        "1",
        "--tls_cert",
        "a.pem",
        "--tls_key",
        "/b/key.pem",
        "--tls_ca",
        "ca.pem",
        "--tls_mutual",
        "--checkpoint_dir",
        "model",
        "--transport",
        "tcp",
        script,
    )
    assert result.returncode == 0, result.stderr
    for log in ("serverlog.0", "workerlog.0"):
        role = environment_of(tmp_path, log)
        assert role["PENSTOCK_TLS_CERT"] == str(tmp_path / "a.pem")
        assert role["PENSTOCK_TLS_KEY"] == "/b/key.pem"
        assert role["PENSTOCK_TLS_CA"] == str(tmp_path / "ca.pem")
        assert role["PENSTOCK_TLS_MUTUAL"] == "1"
        assert role["PENSTOCK_CHECKPOINT_DIR"] == str(tmp_path / "model")
        assert role["PENSTOCK_TRANSPORT"] == "tcp"


def test_the_wire_reaches_every_role(tmp_path):
    script = write_script(tmp_path, DUMP)
    result = launch(tmp_path, "--server_num", "1", "--worker_num", "1", "--wire", "fluid", script)
    assert result.returncode == 0, result.stderr
    for log in ("serverlog.0", "workerlog.0"):
        assert environment_of(tmp_path, log)["PENSTOCK_WIRE"] == "fluid"
    assert launch(tmp_path, "--wire", "brpc", script).returncode == 2


def test_options_may_follow_the_script_as_in_fluids_manual(tmp_path):
    script = write_script(tmp_path, DUMP)
    result = launch(
        tmp_path, script, "--gpus", "2", "--log_dir", "logs", "--lr", "1", environment={"PADDLE_NUM_TRAINERS": "2"}
    )
    assert result.returncode == 0, result.stderr
    for i in range(2):
        trainer = environment_of(tmp_path, f"workerlog.{i}", "logs")
        assert trainer["FLAGS_selected_gpus"] == str(i)
        assert trainer["argv"] == ["--lr", "1"]


def test_arguments_after_two_dashes_belong_to_the_script(tmp_path):
    script = write_script(tmp_path, DUMP)
    assert launch(tmp_path, script, "--", "--gpus", "4").returncode == 0
    assert environment_of(tmp_path, "workerlog.0")["argv"] == ["--gpus", "4"]


def test_the_first_failure_is_reported_with_role_signal_and_last_lines(tmp_path):
    script = write_script(
        tmp_path,
        """
        if os.environ.get("PADDLE_TRAINER_ID") == "1":
            print("about to fall", flush=True)
            os.kill(os.getpid(), signal.SIGKILL)
        signal.pause()
    """,
    )
    result = launch(tmp_path, "--grace_s", "0.2", "--server_num", "1", "--worker_num", "2", script)
    assert result.returncode == 1
    assert "trainer 1" in result.stderr.splitlines()[0] and "was killed by SIGKILL" in result.stderr.splitlines()[0]
    assert "about to fall" in result.stderr
    assert "pserver 0 was ended by the launcher" in result.stderr


REACT = """
    def react(code):  # like the C++ side of a role when a peer reports an error
        os.write(int(os.environ["PENSTOCK_LAUNCH_FD"].split(":")[0]), b"reacted\\ttrainer 1 is gone\\n")
        sys.exit(code)
"""


def test_the_cause_is_reported_not_the_first_reaction(tmp_path):
    script = write_script(
        tmp_path,
        textwrap.dedent(REACT)
        + textwrap.dedent("""
        if os.environ["TRAINING_ROLE"] == "PSERVER":
            with open("server", "w") as file:
                file.write(str(os.getpid()))
            os.rename("server", "pserver")
            react(1)
        if os.environ["PADDLE_TRAINER_ID"] == "0":
            react(1)
        while not os.path.exists("pserver"):
            pass
        server = int(open("pserver").read())
        while open(f"/proc/{server}/stat").read().rsplit(")", 1)[1].split()[0] != "Z":
            pass  # the launcher keeps it until the end of the job
        raise ValueError("the data ran out")
    """),
    )
    result = launch(tmp_path, "--server_num", "1", "--worker_num", "2", "--quiet", script)
    assert result.returncode == 1
    first = result.stderr.splitlines()[0]
    assert first.startswith("error: launch: trainer 1 (pid ") and "exited with code 1" in first, result.stderr
    assert "ValueError: the data ran out" in result.stderr
    assert "pserver 0 exited with code 1" in result.stderr and "trainer 0 exited with code 1" in result.stderr


def test_the_first_of_several_reactions_is_reported(tmp_path):
    script = write_script(tmp_path, textwrap.dedent(REACT) + "react(3)")
    result = launch(tmp_path, script)
    assert result.returncode == 1
    assert "trainer 0" in result.stderr.splitlines()[0] and "exited with code 3" in result.stderr.splitlines()[0]


@pytest.mark.parametrize(
    "make, reason",
    [
        (lambda path: path.write_text("a file"), "not a folder"),
        (lambda path: path.symlink_to("/proc/self/fdinfo"), "cannot create a file there"),
    ],
)
def test_an_invalid_log_folder_is_refused_in_one_line(tmp_path, make, reason):
    make(tmp_path / "logs")
    script = write_script(tmp_path, "")
    result = launch(tmp_path, "--log_dir", "logs", script)
    assert result.returncode == 2, result.stderr
    assert result.stderr.startswith("error: launch: --log_dir logs: ") and len(result.stderr.splitlines()) == 1
    assert reason in result.stderr


# Calls the launcher with an os.killpg that looks whether the group's leader is a child that was not waited for.
WATCHED = """
import os, sys
from penstock.distributed.launch.main import main
real = os.killpg
def watched(group, number):
    try:
        fields = open(f"/proc/{group}/stat").read().rsplit(")", 1)[1].split()
        ours = int(fields[1]) == os.getpid()
    except FileNotFoundError:
        ours = False
    print("signalled", "a child" if ours else "NO CHILD", flush=True)
    real(group, number)
os.killpg = watched
sys.exit(main(sys.argv[1:]))
"""


def test_process_groups_of_reaped_leaders_are_not_signalled(tmp_path):
    script = write_script(tmp_path, "")
    result = subprocess.run(
        [sys.executable, "-c", WATCHED, "--server_num", "1", "--worker_num", "2", script],
        cwd=tmp_path,
        text=True,
        capture_output=True,
        timeout=WAIT_S,
    )
    assert result.returncode == 0, result.stderr
    assert "signalled a child" in result.stdout and "NO CHILD" not in result.stdout


def test_reaped_children_are_not_signalled(monkeypatch):
    from penstock._src.launch import guard

    signalled = []
    monkeypatch.setattr(os, "killpg", lambda group, number: signalled.append((group, number)))
    child = subprocess.Popen([sys.executable, "-c", ""], start_new_session=True)
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    guard.signal_group(child.pid, signal.SIGTERM)
    assert signalled == [(child.pid, signal.SIGTERM)]
    child.wait()
    guard.signal_group(child.pid, signal.SIGTERM)
    assert len(signalled) == 1


def test_the_exit_code_is_reported(tmp_path):
    script = write_script(tmp_path, "sys.exit(7)")
    result = launch(tmp_path, script)
    assert result.returncode == 1
    assert "trainer 0" in result.stderr and "exited with code 7" in result.stderr


@pytest.mark.parametrize(
    "arguments, environment, message",
    [
        (["--endpoints", "127.0.0.1:7000,127.0.0.1:7000"], {}, "is listed twice"),
        (["--endpoints", "127.0.0.1:7000", "--server_num", "2"], {}, "--server_num is 2, but --endpoints lists 1"),
        (["--endpoints", "7000"], {}, "is not host:port"),
        (["--node_ip", "10.0.0.9"], {}, "10.0.0.9 is not among"),
        (["--worker_num", "3", "--gpus", "2"], {}, "--worker_num says 3, --gpus says 2"),
        (["--gpus", "2"], {"PADDLE_NUM_TRAINERS": "4"}, "--gpus says 2, PADDLE_NUM_TRAINERS says 4"),
        ([], {"PADDLE_NUM_TRAINERS": "many"}, "PADDLE_NUM_TRAINERS is"),
        (["--selected_gpus", "4, 6"], {"CUDA_VISIBLE_DEVICES": "4,5"}, "GPU 6 of --selected_gpus"),
    ],
)
def test_contradictions_are_refused(tmp_path, arguments, environment, message):
    script = write_script(tmp_path, "")
    result = launch(tmp_path, *arguments, script, environment=environment)
    assert result.returncode == 2
    assert message in result.stderr and len(result.stderr.splitlines()) == 1


def test_a_missing_script_is_refused(tmp_path):
    result = launch(tmp_path, "nowhere.py")
    assert result.returncode == 2 and "nowhere.py: no such file" in result.stderr


def _alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def _children(pid):
    return [int(child) for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.mark.parametrize("target", ["launcher", "supervisor"])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_nothing_outlives_the_launcher(tmp_path, number, target):
    script = write_script(
        tmp_path,
        """
        import subprocess
        helper = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
        with open(f"pids.{os.getpid()}.part", "w") as out:
            out.write(f"{os.getpid()} {helper.pid}")
        os.rename(f"pids.{os.getpid()}.part", f"pids.{os.getpid()}")
        signal.pause()
    """,
    )
    launcher = subprocess.Popen(
        [*LAUNCH, "--server_num", "1", "--worker_num", "2", script],
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + WAIT_S
    files = []
    while len(files) < 3 and time.monotonic() < deadline:
        files = [path for path in pathlib.Path(tmp_path).glob("pids.*") if path.suffix != ".part"]
    assert len(files) == 3
    pids = [int(pid) for path in files for pid in path.read_text().split()]
    assert all(_alive(pid) for pid in pids)
    (supervisor,) = _children(launcher.pid)
    os.kill(launcher.pid if target == "launcher" else supervisor, number)
    assert launcher.wait(timeout=WAIT_S) != 0
    pids.append(supervisor)
    while any(_alive(pid) for pid in pids) and time.monotonic() < deadline:
        pass
    assert [pid for pid in pids if _alive(pid)] == []


def test_the_trainer_that_raised_is_the_cause(tmp_path):
    script = write_script(tmp_path, TRAIN)
    result = launch(
        tmp_path, "--server_num", "2", "--worker_num", "2", "--quiet", script, "100000", environment={"RAISES": "1"}
    )
    assert result.returncode == 1
    assert result.stderr.startswith("error: launch: trainer 1 (pid ") and "the data ran out" in result.stderr
    for log in ("workerlog.0", "serverlog.0", "serverlog.1"):
        assert "trainer 1 failed: ValueError: the data ran out" in (tmp_path / "mylog" / log).read_text()
