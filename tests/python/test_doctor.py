"""penstock doctor: what it finds, what it advises, its forms and exit codes."""

import json
import pathlib
import subprocess
import sys

import penstock
import pytest
from penstock import doctor
from penstock._src.doctor import installation, machine
from penstock._src.doctor.findings import NOTE, OK, PROBLEM, Finding, lines

SUBJECTS = {
    "penstock",
    "Python",
    "libraries",
    "command",
    "CUDA",
    "NCCL",
    "MPI",
    "torch",
    "processors",
    "CPU quota",
    "memory",
    "shared memory",
    "limits",
    "clock",
    "network",
}


def test_everything_is_looked_at(capsys):
    code = doctor.main(["--json"])
    found = json.loads(capsys.readouterr().out)
    assert {one["subject"] for one in found} >= SUBJECTS
    assert {one["level"] for one in found} <= {OK, NOTE, PROBLEM} and all(one["found"] for one in found)
    assert code == any(one["level"] == PROBLEM for one in found)
    by_subject = {one["subject"]: one["found"] for one in found}
    assert penstock.__version__ in by_subject["penstock"] and "gRPC" in by_subject["libraries"]


def test_the_table_marks_notes_and_problems(capsys, monkeypatch):
    monkeypatch.setattr(machine, "findings", lambda: [Finding("network", "none", PROBLEM, "Bring it up.")])
    monkeypatch.setattr(installation, "findings", lambda: [Finding("torch", "old", NOTE), Finding("Python", "new")])
    assert doctor.main([]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "- torch          old",
        "  Python         new",
        "! network        none",
        "                 -> Bring it up.",
    ]


def test_long_findings_wrap():
    wrapped = lines([Finding("libraries", "word " * 60, OK, "more " * 60)])
    assert len(wrapped) == 8 and max(map(len, wrapped)) <= 110


@pytest.mark.parametrize(
    "flags, isa",
    [
        ("sse4_2 avx2 fma avx512f avx512bw avx512dq avx512vl", "avx512"),
        ("fma avx2", "avx2"),
        ("sse4_2", "sse4"),
        ("", ""),
    ],
)
def test_the_instruction_set_is_the_best_that_the_flags_allow(flags, isa):
    assert machine.instruction_set(set(flags.split())) == isa


@pytest.mark.parametrize(
    "file, found",
    [
        ("libdnnl.so.2.6", ("libdnnl", "2.6")),
        ("libgrpc++-0123abcd.so.1.51.1", ("libgrpc++", "1.51.1")),
        ("_penstock.cpython-311-x86_64-linux-gnu.so", None),
    ],
)
def test_versions_of_libraries_are_read_from_their_names(file, found):
    assert installation.version_of(file) == found


def test_a_capped_instruction_set_is_noted(monkeypatch):
    monkeypatch.setenv("PENSTOCK_ISA", "sse4")
    assert machine.processors().level == NOTE and "PENSTOCK_ISA=sse4" in machine.processors().found


def test_too_few_files_are_noted(monkeypatch):
    monkeypatch.setattr(machine.resource, "getrlimit", lambda which: (256, 4096))
    assert machine.limits().level == NOTE and "ulimit -n 4096" in machine.limits().advice


def test_a_quota_of_the_container_is_noted(monkeypatch):
    monkeypatch.setattr(machine, "_read", lambda path: "150000 100000" if path.endswith("cpu.max") else "")
    monkeypatch.setattr(machine.os, "sched_getaffinity", lambda process: range(8))
    assert machine.quota().found == "1.5 cores, of 8 that are visible" and "at most 1 thread" in machine.quota().advice


def test_without_numpy_there_is_a_problem(monkeypatch):
    monkeypatch.setattr(installation.importlib.util, "find_spec", lambda name: None)
    assert installation.python().level == PROBLEM
    assert all("pip install 'penstock[" in one.advice for one in installation.optional())


def test_the_command_line_tool_runs_it():
    tool = pathlib.Path(sys.executable).with_name("penstock")
    if not tool.exists():
        pytest.skip("the project has no .venv here")
    done = subprocess.run([tool, "doctor", "--json"], capture_output=True, text=True, check=False)
    assert {one["subject"] for one in json.loads(done.stdout)} >= SUBJECTS, done.stderr
