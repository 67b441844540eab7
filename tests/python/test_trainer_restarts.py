"""Trainers that the launcher starts again by itself (--on_trainer_loss), with scripts that only act as roles."""

import pytest
import role_starts
from role_starts import restarts

# Trainer 1 kills itself in its first KILLS starts, once all roles have begun. The others end when it has made the file
# `go`, or with ALONE=N when it is in its start N. With PAST it never ends by itself; with LAST it kills itself when the
# launcher knows that the others have ended.
ROLES = """
    if name.startswith("TRAINER.1."):
        for other in ("PSERVER.0.0", "TRAINER.0.0"):
            await_file(other)
        if "LAST" in os.environ:
            children = f"/proc/{os.getppid()}/task/{os.getppid()}/children"
            end = time.monotonic() + 60
            while any(open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[0] != "Z"
                      for pid in open(children).read().split() if int(pid) != os.getpid()):
                assert time.monotonic() < end
                time.sleep(0.01)
            time.sleep(1)
        if restart < int(os.environ.get("KILLS", "1")):
            os.kill(os.getpid(), signal.SIGKILL)
        if "PAST" in os.environ:
            time.sleep(1000)
        tell(b"back\\tit continues with step 5\\n")
        time.sleep(0.3)
        open("go", "w").close()
    elif "ALONE" in os.environ:
        await_file("TRAINER.1." + os.environ["ALONE"])
        if os.environ["ALONE"] == "0":
            time.sleep(0.3)
    else:
        await_file("go")
"""


def launch(folder, *options, **environment):
    return role_starts.launch(folder, ROLES, 1, *options, **environment)


CHECKPOINTS = ("--checkpoint_dir", "ckpt", "--checkpoint_steps", "5")


@pytest.mark.parametrize(
    ("options", "loss"),
    [(("--on_trainer_loss", "wait"), "wait"), (CHECKPOINTS, "wait"), (("--on_trainer_loss", "shrink"), "shrink")],
)
def test_a_killed_trainer_is_started_again_by_itself(tmp_path, options, loss):
    code, said = launch(tmp_path, *options)
    assert code == 0, said
    assert restarts(tmp_path) == ["TRAINER.1.1"]
    assert f"this is TRAINER.1.1 {loss}" in said and f"this is PSERVER.0.0 {loss}" in said
    others = "wait for it" if loss == "wait" else "go on without it until then"
    assert f"it is started again in 0.25 s, restart 1 of 3, and the other roles {others}" in said
    assert "after its end: it continues with step 5" in said


@pytest.mark.parametrize(
    "options", [(), ("--on_trainer_loss", "abort"), (*CHECKPOINTS, "--max_role_restart", "0"), CHECKPOINTS[:2]]
)
def test_otherwise_the_death_of_a_trainer_ends_the_job(tmp_path, options):
    code, said = launch(tmp_path, *options)
    assert code == 1
    assert restarts(tmp_path) == []
    assert "error: launch: trainer 1" in said and "[E-launch-role]" in said


def test_the_job_ends_if_a_trainer_is_killed_more_often(tmp_path):
    code, said = launch(tmp_path, "--on_trainer_loss", "wait", "--max_role_restart", "1", KILLS="9")
    assert code == 1
    assert restarts(tmp_path) == ["TRAINER.1.1"]
    assert "it cannot be started again: it has been restarted 1 times (--max_role_restart)" in said


def test_where_others_go_on_the_job_ends_well_without_the_trainer(tmp_path):
    options = ("--on_trainer_loss", "shrink", "--max_role_restart", "1")
    code, said = launch(tmp_path, *options, KILLS="9", ALONE="1")
    assert code == 0, said
    assert "was killed by SIGKILL; the job goes on without it" in said


def test_a_trainer_that_comes_back_when_all_others_have_ended_is_ended(tmp_path):
    code, said = launch(tmp_path, "--on_trainer_loss", "shrink", ALONE="1", PAST="1")
    assert code == 0, said
    assert restarts(tmp_path) == ["TRAINER.1.1"]
    code, said = launch(tmp_path, "--on_trainer_loss", "shrink", ALONE="0")  # it has yet to be started again
    assert code == 0, said


def test_only_jobs_with_pservers_have_trainers_that_return(tmp_path):
    code, said = launch(tmp_path, "--server_num", "0", "--on_trainer_loss", "wait")
    assert code == 2
    assert "--on_trainer_loss wait needs pservers, and the job has none   [E-trainer-loss-mode]" in said


@pytest.mark.parametrize("options", [(), ("--on_trainer_loss", "wait")])
def test_a_trainer_that_fails_after_the_pservers_have_ended_is_a_failure(tmp_path, options):
    code, said = launch(tmp_path, *options, ALONE="0", LAST="1")
    assert code == 1
    assert restarts(tmp_path) == []
    assert "error: launch: trainer 1" in said
    assert ("cannot be started again: a pserver has ended" in said) == bool(options)
