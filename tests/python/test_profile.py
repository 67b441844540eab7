"""`penstock profile`: the page of a step, from the trace of a real process; the page of the documentation about it."""

import html.parser
import os
import pathlib
import re
import subprocess
import sys

import pytest
from test_launch import WAIT_S, launch, write_script
from test_trace import JOB, penstock, trace_alone

PAGE = pathlib.Path(__file__).resolve().parents[2] / "python" / "docs" / "pages" / "howto" / "profile.md"
VOID = {"meta"}


class Page(html.parser.HTMLParser):
    """Reads a page: its tables by heading as lists of rows, its drawings; notes tags that are not closed in order."""

    def __init__(self, path):
        super().__init__()
        self.tables, self.open, self.errors, self.circles, self.text = {}, [], [], [], ""
        self.heading, self.cell = "", None
        self.feed(path.read_text("utf-8"))
        self.close()
        self.errors += self.open

    def handle_starttag(self, tag, attrs):
        assert tag not in ("script", "iframe", "object", "embed", "link", "img"), tag
        for name, value in attrs:
            assert name not in ("src", "href") and not name.startswith("on"), (tag, name, value)
        if tag not in VOID:
            self.open.append(tag)
        if tag in ("h1", "h2"):
            self.heading = ""
        if tag == "tr":
            self.tables.setdefault(self.heading, []).append([])
        if tag in ("td", "th"):
            self.cell = ""
        if tag == "circle":
            self.circles.append(dict(attrs))

    def handle_startendtag(self, tag, attrs):
        assert tag in ("line", "rect", "path"), tag

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.errors.append(f"</{tag}>")
        if tag in ("td", "th"):
            self.tables[self.heading][-1].append(self.cell)
            self.cell = None

    def handle_data(self, data):
        self.text += data
        if self.cell is not None:
            self.cell += data
        elif self.open and self.open[-1] in ("h1", "h2"):
            self.heading += data

    def rows(self, heading):
        """The rows of a table as dicts by column."""
        head, *rows = self.tables[heading]
        return [dict(zip(head, row)) for row in rows]


def documented(folder):
    """Writes the script of the documentation's page, and returns its commands."""
    text = PAGE.read_text()
    for found in re.finditer(r"```python\n# (\w+\.py)\n(.*?)```", text, re.DOTALL):
        (folder / found[1]).write_text(found[2])
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    return [line for language, block in blocks if language == "sh" for line in block.splitlines()]


def test_the_commands_of_the_documentation_write_the_page(tmp_path):
    commands = documented(tmp_path)
    assert len(commands) == 3
    tools = os.path.dirname(sys.executable)
    environment = {**os.environ, "PATH": tools + os.pathsep + os.environ["PATH"], "OMP_NUM_THREADS": "1"}
    for command in commands:
        done = subprocess.run(
            command,
            shell=True,
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=WAIT_S,
        )
        assert done.returncode == 0, done.stderr
    assert "20 steps of process " in done.stdout and "open step.html in a browser" in done.stdout
    page = Page(tmp_path / "step.html")
    assert page.errors == []
    types = {row["type"]: row for row in page.rows("Ops by type")}
    assert types["fc"]["calls"] == "40" and types["adam"]["calls"] == "80"
    # Two products of 64 x 784 by 256 and 64 x 256 by 10, a call of the mean of both: flops of the shapes.
    assert float(types["fc"]["MFLOP"]) == pytest.approx((2 * 64 * 784 * 256 + 2 * 64 * 256 * 10) / 2e6, rel=0.01)
    assert float(types["fc"]["MB"]) == pytest.approx(
        4 * (64 * 784 + 784 * 256 + 64 * 256 + 64 * 256 + 256 * 10 + 64 * 10) / 2e6, rel=0.01
    )
    shares = [float(row["share"].split()[0]) for row in page.rows("Ops by type")]
    assert sum(shares) == pytest.approx(100, abs=2)
    assert all("measured.py:" in row["written at"] for row in page.rows("Slowest ops") if row["type"] == "fc")
    assert page.circles and "measured with 1 thread" in page.text
    assert {row["variable"] for row in page.rows("Temporaries at the peak")}
    assert "persistable variables" in page.text


def test_a_trainers_page_shows_its_waits_and_each_role_has_one(tmp_path):
    saves = "    open('main.%d.pb' % index, 'wb').write(main.desc.serialize_to_string())\n"
    script = write_script(tmp_path, JOB + saves)
    result = launch(tmp_path, "--worker_num", "2", "--server_num", "1", "--trace", "traces", script, "sync")
    assert result.returncode == 0, result.stderr
    waits = []
    for trainer in (0, 1):  # the one that is ahead waits for the other
        done = penstock(
            "profile",
            tmp_path / "traces",
            tmp_path / "one.html",
            "--program",
            tmp_path / (f"main.{trainer}.pb"),
            "--batch",
            "2",
            "--role",
            f"trainer {trainer}",
            "--gemm-gflops",
            "100",
            "--copy-gbytes",
            "10",
        )
        assert done.returncode == 0 and done.stdout.startswith(f"4 steps of trainer {trainer}, median "), done.stderr
        page = Page(tmp_path / "one.html")
        assert page.errors == [] and "GFLOP/s, given" in page.text
        waits += [row["type"] for row in page.rows("Ops by type") if row.get("waiting, ms")]
    # The first op of the next step that reads a parameter, or a barrier, waits for it.
    assert {"fc", "mul", "send", "fetch_barrier", "recv", "send_barrier"} & set(waits), waits
    done = penstock("profile", tmp_path / "traces", "--role", "pserver 0")
    assert done.returncode == 0 and (tmp_path / "traces" / "profile.html").exists(), done.stderr
    assert "sgd" in {row["type"] for row in Page(tmp_path / "traces" / "profile.html").rows("Ops by type")}


def test_names_of_a_program_are_text_and_a_nested_block_counts_once(tmp_path):
    trace_alone(
        tmp_path,
        """
        import penstock.fluid as fluid
        x = fluid.data('<script>alert(1)</script>', [None, 4])
        i, n = fluid.layers.fill_constant([1], 'int64', 0), fluid.layers.fill_constant([1], 'int64', 3)
        less = fluid.layers.less_than(i, n)
        total = fluid.layers.relu(x)
        loop = fluid.layers.While(less)
        with loop.block():
            fluid.layers.assign(fluid.layers.tanh(total), total)
            fluid.layers.increment(i)
            fluid.layers.less_than(i, n, cond=less)
        exe = fluid.Executor()
        import numpy
        for _ in range(2):
            exe.run(feed={'<script>alert(1)</script>': numpy.ones((2, 4), 'float32')}, fetch_list=[total])
        open('main.pb', 'wb').write(fluid.default_main_program().desc.serialize_to_string())
    """,
    )
    done = penstock("profile", tmp_path, "--program", tmp_path / "main.pb", "--batch", "2", "--threads", "1")
    assert done.returncode == 0 and done.stdout.startswith("2 steps of "), done.stderr
    page = Page(tmp_path / "profile.html")
    assert page.errors == []
    calls = {row["type"]: row["calls"] for row in page.rows("Ops by type")}
    assert calls["while"] == "2" and calls["tanh"] == "6" and calls["relu"] == "2"
    shares = [float(row["share"].split()[0]) for row in page.rows("Ops by type")]
    assert sum(shares) == pytest.approx(100, abs=2)


def test_mismatched_profiles_are_refused(tmp_path):
    trace_alone(
        tmp_path,
        """
        import penstock.fluid as fluid
        import numpy
        x = fluid.data('x', [None, 4])
        fluid.Executor().run(feed={'x': numpy.ones((2, 4), 'float32')}, fetch_list=[fluid.layers.relu(x)])
        other = fluid.Program()
        with fluid.program_guard(other):
            fluid.layers.tanh(fluid.data('x', [None, 4]))
        open('other.pb', 'wb').write(other.desc.serialize_to_string())
    """,
    )
    other = ["--program", tmp_path / "other.pb"]
    for arguments, error in (
        ([], "E-usage"),
        ([tmp_path, *other], "E-usage"),
        ([tmp_path, "--batch", "2"], "E-usage"),
        ([tmp_path, "--threads", "2"], "E-usage"),
        ([tmp_path, *other, "--batch", "2", "--threads", "-1"], "E-usage"),
        ([tmp_path, *other, "--batch", "2", "--feed", "x"], "E-usage"),
        ([tmp_path, *other, "--batch", "2", "--feed", "x=2x3"], "E-memory-feed"),
        ([tmp_path, *other, "--batch", "2", "--feed", "y=2x4"], "E-memory-feed"),
        ([tmp_path, *other, "--batch", "0"], "E-memory-batch"),
        ([tmp_path, *other, "--batch", "2"], "E-profile-runs"),
        ([tmp_path, "--role", "trainer 3"], "E-profile-role"),
        ([tmp_path / "none"], "E-trace-folder"),
        ([tmp_path, tmp_path / "none" / "page.html"], "E-file-write"),
    ):
        done = penstock("profile", *arguments)
        assert done.returncode == 2 and f"[{error}]" in done.stderr, (arguments, done.stderr)
