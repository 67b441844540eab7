"""Roles that the launcher starts again by itself."""

import re

import pytest
import role_starts
from role_starts import restarts

# Pserver 1 kills itself in its first KILLS starts, once all roles have begun. The others end when it has ended well.
ROLES = """
    def is_alive(pid):
        try:
            return open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[0] != "Z"
        except OSError:
            return False

    if name.startswith("PSERVER.1."):
        for other in ("PSERVER.0.0", "TRAINER.0.0", "TRAINER.1.0"):
            await_file(other)
        if restart < int(os.environ.get("KILLS", "1")):
            helper = subprocess.Popen(["sleep", "1000"])
            with open("helper", "w") as file:
                file.write(str(helper.pid))
            if "FIXED" in os.environ:
                tell(b"fixed\\tit exchanges sums\\n")
            if "EXITS" in os.environ:
                sys.exit(3)
            os.kill(os.getpid(), signal.SIGKILL)
        assert not is_alive(int(open("helper").read())), "a helper of the earlier process lives"
        tell(b"back\\tstep 5 restored, steps 6 to 8 sent again\\n")
        time.sleep(0.3)
        open("ended", "w").close()
    elif "COMPLETES" in os.environ and name == "TRAINER.0.0":
        pass
    else:
        await_file("ended")
"""

OPTIONS = ("--checkpoint_dir", "ckpt", "--checkpoint_steps", "5")


def launch(folder, *options, **environment):
    return role_starts.launch(folder, ROLES, 2, *options, **environment)


def test_a_killed_pserver_is_started_again_by_itself(tmp_path):
    code, said = launch(tmp_path, *OPTIONS)
    assert code == 0, said
    assert restarts(tmp_path) == ["PSERVER.1.1"]
    died = (
        r"launch: pserver 1 \(pid \d+\) was killed by SIGKILL, \d+\.\d s after its start; it is started again in 0.25 s"
    )
    assert re.search(died + ", restart 1 of 3, and the other roles wait for it", said)
    back = r"launch: pserver 1 \(pid \d+\) is back \d+\.\d s after its end: step 5 restored, steps 6 to 8 sent again"
    assert re.search(back, said)
    log = (tmp_path / "mylog" / "serverlog.1").read_text()
    addresses = re.findall(r"this is PSERVER.1.\d \S+ (\S+)", log)
    assert len(addresses) == 2 and addresses[0] == addresses[1]
    assert "launch: restart 1\n" in log


def test_a_role_is_started_again_as_often_as_the_option_says(tmp_path):
    code, said = launch(tmp_path, *OPTIONS, KILLS="2")
    assert code == 0, said
    assert restarts(tmp_path) == ["PSERVER.1.1", "PSERVER.1.2"]
    assert "it is started again in 1 s, restart 2 of 3" in said


def test_the_job_ends_if_a_role_is_killed_more_often(tmp_path):
    code, said = launch(tmp_path, *OPTIONS, "--max_role_restart", "1", KILLS="2")
    assert code == 1
    assert restarts(tmp_path) == ["PSERVER.1.1"]
    assert "it cannot be started again: it has been restarted 1 times (--max_role_restart)" in said
    assert "error: launch: pserver 1" in said and "[E-launch-role]" in said


@pytest.mark.parametrize(
    ("options", "environment", "why"),
    [
        ([], {}, None),
        ([*OPTIONS, "--max_role_restart", "0"], {}, None),
        ([*OPTIONS, "--reconnect_s", "0"], {}, None),
        (OPTIONS, {"EXITS": "1"}, None),
        (OPTIONS, {"FIXED": "1"}, "it exchanges sums"),
    ],
    ids=["no checkpoints", "none", "no reconnecting", "an error of its own", "told"],
)
def test_a_role_that_cannot_continue_ends_the_job(tmp_path, options, environment, why):
    code, said = launch(tmp_path, *options, **environment)
    assert code == 1
    assert restarts(tmp_path) == []
    assert ("cannot be started again" in said) == (why is not None)
    assert why is None or f"it cannot be started again: {why}" in said


def test_role_restarts_need_checkpoints(tmp_path):
    code, said = launch(tmp_path, "--max_role_restart", "2")
    assert code == 2
    assert "--max_role_restart needs --checkpoint_dir DIR and --checkpoint_steps K" in said
    assert "[E-checkpoint-folder]" in said
