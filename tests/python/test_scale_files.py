"""The files by which a job's number of pservers changes: between command and launcher, and launcher and trainers."""

import pytest
from penstock._src.base.move_files import MoveFiles
from penstock._src.executor import moves
from penstock._src.launch.scale_files import Request, Requests, has_launcher


def files_of(folder, job="a1b2", attempt="0"):
    names = {"PADDLE_TRAINERS_NUM": "2", "PENSTOCK_CHECKPOINT_DIR": str(folder), "PENSTOCK_JOB_ID": job}
    return MoveFiles({**names, "PENSTOCK_RESTART_COUNT": attempt})


def test_a_request_is_taken_once_and_answered(tmp_path):
    folder = str(tmp_path)
    assert not has_launcher(folder)
    launcher = Requests(folder)
    assert has_launcher(folder)
    assert launcher.take() is None
    request = Request(folder, 3)
    servers, name = launcher.take()
    assert servers == 3
    assert launcher.take() is None
    assert request.answer() is None
    launcher.answer("another", "of another request", True)
    assert request.answer() is None
    launcher.answer(name, "done", False)
    assert request.answer() == ("done", False)
    launcher.close()
    assert not has_launcher(folder)


def test_a_second_launcher_with_the_folder_takes_no_requests(tmp_path):
    first = Requests(str(tmp_path))
    second = Requests(str(tmp_path))
    Request(str(tmp_path), 2)
    assert second.take() is None
    assert first.take()[0] == 2
    first.close()
    second.close()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"servers": "3", "name": "x"}', '{"servers": 3}'])
def test_a_file_that_is_no_request_is_ignored(tmp_path, text):
    launcher = Requests(str(tmp_path))
    (tmp_path / "scale.request").write_text(text)
    assert launcher.take() is None
    assert not (tmp_path / "scale.request").exists()
    launcher.close()


def test_files_of_another_run_or_request_do_not_count(tmp_path):
    files = files_of(tmp_path)
    files.write("limit-0", 2, step=7)
    files.write("limit-1", 1, step=5)
    assert files.of_trainers("limit", 2) == [{"run": "a1b2.0", "number": 2, "step": 7}]
    assert files_of(tmp_path, attempt="1").read("limit-0") is None
    assert files_of(tmp_path, job="c3d4").read("limit-0") is None
    assert files.read("go") is None
    files.clear()
    assert files.read("limit-0") is None


class Stepping:
    """A trainer that follows requests; its step is set by the test."""

    def __init__(self, folder, number, monkeypatch, done=0):
        self.files, self.number, self.step = files_of(folder), number, 0
        self.follower = moves._Follower(self.files, number, done)
        self.patch = monkeypatch

    def follow(self):
        """Whether it waits before its step, instead of beginning it."""
        self.patch.setattr(moves._penstock, "step_here", lambda: self.step)
        self.patch.setattr(moves, "_sends_gradients", lambda program: True)
        self.patch.setattr(moves, "_why_not", lambda program: "")

        def waits(_):
            raise InterruptedError

        self.patch.setattr(moves.time, "sleep", waits)
        try:
            self.follower.follow(None)
        except InterruptedError:
            return True
        return False


def test_trainers_agree_on_the_highest_limit_and_nobody_begins_a_step_beyond_it(tmp_path, monkeypatch):
    first, second = (Stepping(tmp_path, number, monkeypatch) for number in range(2))
    assert not first.follow()  # nothing is asked for
    first.files.write("request", 1)
    first.step = 4
    assert not first.follow()
    assert first.files.read("limit-0")["step"] == 6
    first.step = 5
    assert not first.follow()
    first.step = 6
    assert first.follow()  # the other has not answered
    assert first.files.read("there-0") is None
    second.step = 6
    assert not second.follow()
    assert second.files.read("limit-1")["step"] == 8
    for step in (6, 7):
        first.step = step
        assert not first.follow()
    first.step = 8
    assert first.follow()
    assert first.files.read("there-0")["step"] == 8
    again = Stepping(tmp_path, 0, monkeypatch)  # a new process of the same trainer
    again.step = 8
    assert again.follow()
    assert again.files.read("limit-0")["step"] == 6
    first.files.write("go", 1, error="a trainer has completed")
    assert not first.follow()
    first.step = 9
    assert not first.follow()  # the request is over


def test_a_process_that_began_with_the_new_pservers_does_not_follow_their_request(tmp_path, monkeypatch):
    trainer = Stepping(tmp_path, 0, monkeypatch, done=1)
    trainer.files.write("request", 1)
    assert not trainer.follow()
    assert trainer.files.read("limit-0") is None
