"""Progress lines of a trainer that calls Executor.run itself, and their plot."""

import os
import pathlib
import subprocess
import sys

import pytest
from penstock.plot import main, read_progress

LIMIT_S = 180
TRAIN = """
import numpy as np
import penstock.fluid as fluid
x = fluid.data('x', [None, 4])
loss = fluid.layers.mean(fluid.layers.fc(x, 1))
fluid.optimizer.SGD(0.1).minimize(loss)
exe = fluid.Executor(fluid.CPUPlace())
exe.run(fluid.default_startup_program())
for _ in range(5):
    exe.run(feed={'x': np.ones((8, 4), 'float32')}, fetch_list=%s)
"""


def run(folder, *command, **environment):
    return subprocess.run(
        [str(part) for part in command],
        cwd=folder,
        text=True,
        capture_output=True,
        timeout=LIMIT_S,
        env={**os.environ, **environment},
    )


@pytest.mark.parametrize("fetched, has_loss", [("[loss]", True), ("[]", False)])
def test_a_loop_reports_its_progress(tmp_path, fetched, has_loss):
    (tmp_path / "train.py").write_text(TRAIN % fetched)
    result = run(tmp_path, sys.executable, "-m", "penstock.distributed.launch", "--progress", "1e-9", "train.py")
    assert result.returncode == 0, result.stderr
    found = read_progress(result.stdout.splitlines())
    assert [one["step"] for one in found] == [1, 2, 3, 4, 5]  # a line a step; the startup program is no step
    assert all((one["loss"] is not None) == has_loss and one["examples"] > 0 for one in found)


@pytest.mark.parametrize("seconds, code, message", [("0", 2, "--progress is 0"), ("-1", 2, "--progress is -1")])
def test_invalid_intervals_are_refused(tmp_path, seconds, code, message):
    (tmp_path / "train.py").write_text("")
    result = run(tmp_path, sys.executable, "-m", "penstock.distributed.launch", "--progress", seconds, "train.py")
    assert result.returncode == code and message in result.stderr


def test_a_non_scalar_variable_is_refused(tmp_path):
    result = run(tmp_path, sys.executable, "-c", "from penstock.fluid import Executor", PENSTOCK_PROGRESS="often")
    assert result.returncode == 1
    assert 'PENSTOCK_PROGRESS is "often"; it takes a number from 0 to 1e+06' in result.stderr


LINES = [
    "noise",
    "step 1: loss 2, 100 examples/s, 0.50 s of 1.00 s in communication",
    "step 2: loss 1, 200 examples/s, 0.25 s of 1.00 s in communication",
    "step 3: 50 examples/s, 0.00 s of 0.00 s in communication",
]


def test_a_log_is_drawn_as_bars(tmp_path, capsys):
    (tmp_path / "log").write_text("\n".join(LINES))
    assert main([str(tmp_path / "log"), "--text"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[:3] == ["loss", "         1  2            " + "#" * 40, "         2  1            " + "#" * 20]
    assert "         3  50           " + "#" * 10 in shown and "         1  0.5          " + "#" * 40 in shown


def test_a_picture_is_drawn_with_matplotlib(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    (tmp_path / "log").write_text("\n".join(LINES))
    assert main([str(tmp_path / "log"), "--out", str(tmp_path / "p.png")]) == 0
    assert (tmp_path / "p.png").read_bytes()[:4] == b"\x89PNG"


def test_without_matplotlib_bars_are_printed(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)  # its import fails
    (tmp_path / "log").write_text("\n".join(LINES))
    assert main([str(tmp_path / "log"), "--out", str(tmp_path / "p.png")]) == 0
    assert "loss\n         1  2            " + "#" * 40 in capsys.readouterr().out
    assert not (tmp_path / "p.png").exists()


@pytest.mark.parametrize("text, message", [(None, "No such file"), ("nothing", "no progress line")])
def test_a_log_without_progress_is_an_error(tmp_path, capsys, text, message):
    if text is not None:
        (tmp_path / "log").write_text(text)
    assert main([str(tmp_path / "log")]) == 2 and message in capsys.readouterr().err


def test_the_command_line_tool_plots(tmp_path):
    (tmp_path / "log").write_text("\n".join(LINES))
    tool = pathlib.Path(sys.executable).with_name("penstock")
    shown = run(tmp_path, tool, "plot", "log", "--text")
    assert shown.returncode == 0 and shown.stdout.startswith("loss\n"), shown.stderr
