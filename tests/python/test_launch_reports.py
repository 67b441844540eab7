"""Reports never fail the launcher, no report is written through a link, and the end of a job without peers is early."""

import os
import resource
import subprocess
import sys
import textwrap

import pytest
from launched import TRAIN
from penstock._src.launch.errors import JobError
from penstock._src.launch.logs import last_lines, open_log, write_new
from test_launch import LAUNCH, WAIT_S, launch, write_script

FAIL = """
    if os.environ.get("PADDLE_TRAINER_ID") == "1":
        raise ValueError("the data ran out")
    signal.pause()
"""


@pytest.mark.parametrize(
    "name", ["workerlog.0", "receipt.trainer.0.json", "flight.trainer.0.jsonl", "metrics.trainer.0"]
)
@pytest.mark.parametrize("restart", [[], ["--max_restart", "1"]])
def test_logs_are_not_written_through_links(tmp_path, name, restart):
    precious = tmp_path / "precious"
    precious.write_text("precious")
    (tmp_path / "mylog").mkdir()
    (tmp_path / "mylog" / name).symlink_to(precious)
    script = write_script(
        tmp_path,
        """
        import penstock.hvd as hvd, numpy
        hvd.init()
        hvd.allreduce(numpy.ones(2))
        raise SystemExit(3)
    """,
    )
    result = launch(tmp_path, "--worker_num", "1", "--metrics", "0", *restart, script)
    assert precious.read_text() == "precious"
    assert result.returncode == (2 if name == "workerlog.0" else 1), result.stderr
    if name == "workerlog.0":
        assert "error: launch: cannot write the log" in result.stderr and "it is a link" in result.stderr


def test_a_log_path_that_is_not_a_file_is_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe")  # opening it would wait for a reader
    with pytest.raises(JobError, match="E-launch-log"):
        open_log(str(tmp_path / "pipe"), continues=False)
    with pytest.raises(JobError, match="not a regular file|Is a directory"):
        open_log(str(tmp_path), continues=False)
    with pytest.raises(JobError, match="not a regular file"):
        open_log("/dev/null", continues=False)


@pytest.mark.parametrize("continues", [False, True])
def test_hard_links_of_a_log_keep_their_content(tmp_path, continues):
    (tmp_path / "precious").write_text("precious")
    os.link(tmp_path / "precious", tmp_path / "workerlog.0")
    with open_log(str(tmp_path / "workerlog.0"), continues) as log:
        log.write(b"mine")
    assert (tmp_path / "precious").read_text() == "precious"
    assert (tmp_path / "workerlog.0").read_text() == "mine"


def test_a_log_is_truncated_or_appended_to(tmp_path):
    path = str(tmp_path / "log")
    for continues, begin in ((False, 0), (True, 3), (False, 0)):
        with open_log(path, continues) as log:
            assert log.tell() == begin
            log.write(b"one")
    write_new(path, ["two\n"])
    assert last_lines(path, 5) == ["two"]
    assert "cannot be read" in last_lines(str(tmp_path / "none"), 5)[0]


@pytest.mark.parametrize(
    "delete", ["shutil.rmtree('mylog')", "os.rename('mylog', 'other'); open('mylog', 'w').close()"]
)
def test_the_cause_is_reported_after_the_log_folder_is_deleted(tmp_path, delete):
    script = write_script(
        tmp_path,
        f"""
        import shutil
        if os.environ.get("PADDLE_TRAINER_ID") == "1":
            {delete}
            sys.exit(5)
        signal.pause()
    """,
    )
    result = launch(tmp_path, "--grace_s", "0.1", "--worker_num", "2", script)
    assert result.returncode == 1 and "Traceback" not in result.stderr, result.stderr
    assert result.stderr.splitlines()[0].startswith("error: launch: trainer 1 (pid ")
    assert result.stderr.splitlines()[-1] == "cause: trainer 1 exited with code 5"


def test_descriptor_exhaustion_is_reported_and_leaves_no_role(tmp_path):
    script = write_script(
        tmp_path,
        """
        open(f"pid.{os.getpid()}", "w").close()
        signal.pause()
    """,
    )
    result = subprocess.run(
        [*LAUNCH, "--worker_num", "20", script],
        cwd=tmp_path,
        text=True,
        capture_output=True,
        timeout=WAIT_S,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64)),
    )
    assert result.returncode == 1 and "Traceback" not in result.stderr, result.stderr
    assert "error: launch: cannot start trainer" in result.stderr and "E-launch-start" in result.stderr
    for path in tmp_path.glob("pid.*"):
        pid = path.name.rpartition(".")[2]
        assert not os.path.exists(f"/proc/{pid}"), pid


def test_a_terminal_on_a_full_disk_does_not_end_the_job(tmp_path):
    script = write_script(tmp_path, "print('x' * 100000)")
    with open("/dev/full", "w") as full:
        result = subprocess.run(
            [*LAUNCH, "--worker_num", "2", script],
            cwd=tmp_path,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=WAIT_S,
        )
    assert result.returncode == 0, result.stderr


# Runs the launcher with a grace period that never ends, unless the failed role had met no other.
GRACES = """
import sys
import penstock._src.launch.supervisor as supervisor
from penstock.distributed.launch.main import main
supervisor.GRACE_S, supervisor.GRACE_ALONE_S = 1e6, 0.1
sys.exit(main(sys.argv[1:]))
"""


def test_a_role_that_dies_before_connecting_ends_the_job(tmp_path):
    script = write_script(tmp_path, FAIL)
    for counts in (["--worker_num", "2"], ["--server_num", "1", "--worker_num", "2"]):
        result = subprocess.run(
            [sys.executable, "-c", GRACES, *counts, script],
            cwd=tmp_path,
            text=True,
            capture_output=True,
            timeout=WAIT_S,
        )
        assert result.returncode == 1, result.stderr
        assert result.stderr.splitlines()[-1] == "cause: trainer 1 exited with code 1", result.stderr


RANKS = """
    import penstock.hvd as hvd, numpy
    hvd.init()
    hvd.allreduce(numpy.ones(2))
    if hvd.rank() == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    hvd.allreduce(numpy.ones(2))
"""


def test_the_cause_among_ranks_is_reported(tmp_path):
    result = launch(tmp_path, "--worker_num", "2", write_script(tmp_path, RANKS))
    assert result.returncode == 1
    assert result.stderr.splitlines()[-1] == "cause: trainer 1 was killed by SIGKILL", result.stderr


ABSENT = textwrap.dedent("""
    if os.environ.get("ABSENT") == os.environ["TRAINING_ROLE"] + os.environ.get("PADDLE_TRAINER_ID", ""):
        signal.pause()
""") + textwrap.dedent(TRAIN)


@pytest.mark.parametrize(
    "absent, who", [("TRAINER1", "trainer 1 did not start within"), ("PSERVER", "has not answered for")]
)
def test_a_missing_peer_is_reported_after_the_start_timeout(tmp_path, absent, who):
    result = launch(
        tmp_path,
        "--start_s",
        "3",
        "--grace_s",
        "1",
        "--server_num",
        "1",
        "--worker_num",
        "2",
        write_script(tmp_path, ABSENT),
        environment={"ABSENT": absent},
    )
    assert result.returncode == 1
    logs = "".join(path.read_text() for path in (tmp_path / "mylog").glob("*log.*"))
    assert who in logs, logs
    assert result.stderr.splitlines()[-1].startswith(
        "cause: trainer 1 did not start" if absent == "TRAINER1" else "cause: pserver 127.0.0.1:"
    ), result.stderr


def test_missing_ranks_are_reported_after_fluids_deadline(tmp_path):
    script = write_script(
        tmp_path,
        """
        import penstock.hvd as hvd
        if os.environ["PADDLE_TRAINER_ID"] == "1":
            signal.pause()
        hvd.init()
    """,
    )
    result = launch(tmp_path, "--grace_s", "1", "--worker_num", "2", script, environment={"FLAGS_rpc_deadline": "3000"})
    assert result.returncode == 1
    assert "rank 1 (" in result.stderr and "has not come" in result.stderr, result.stderr
    assert result.stderr.splitlines()[-1].startswith("cause: rank 0 waited 3 s"), result.stderr


@pytest.mark.parametrize("speaks", ["trainer.1", "pserver.0"])
def test_different_wires_in_one_job_are_reported(tmp_path, speaks):
    result = launch(
        tmp_path,
        "--env",
        f"{speaks}:PENSTOCK_WIRE=fluid",
        "--grace_s",
        "3",
        "--server_num",
        "1",
        "--worker_num",
        "2",
        write_script(tmp_path, textwrap.dedent(TRAIN)),
    )
    assert result.returncode == 1
    logs = "".join(path.read_text() for path in (tmp_path / "mylog").glob("workerlog.*"))
    wire = (
        "the native wire, and this process Fluid's" if speaks == "trainer.1" else "Fluid's wire, and this process the"
    )
    assert wire in logs and "E-wire-differs" in logs, logs
    if speaks == "trainer.1":
        assert "it speaks Fluid's wire, and this pserver the native one" in (tmp_path / "mylog/serverlog.0").read_text()
        assert "cause: trainer 1 exited with code 1" in result.stderr
