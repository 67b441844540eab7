"""Environment variables: one reader with types and ranges, for C++ and Python; other values are refused by name."""

import os
import pathlib
import re
import subprocess
import sys

import pytest
from penstock import ProgramError, _penstock
from penstock._src.base import environment as _environment
from penstock._src.launch.errors import JobError
from penstock._src.launch.job import make_plan
from penstock._src.launch.options import parse_options

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Files that pass a whole environment on, or that set a variable, and read none.
PASS_ON = {
    "python/penstock/compat/__init__.py",
    "python/penstock/compat/__main__.py",
    "python/penstock/compat/alias/paddle/distributed/utils.py",
    "python/penstock/_src/launch/backends/keeper.py",
    "python/penstock/_src/launch/job.py",
    "python/penstock/_src/launch/main.py",
    "python/penstock/_src/launch/role_process.py",
}


def test_only_the_environment_module_reads_variables():
    readers = set()
    for folder in ("framework", "operators", "transpiler", "executor", "python/src"):
        for file in (ROOT / folder).rglob("*"):
            if file.suffix in (".cc", ".h") and re.search(r"\b(secure_)?getenv\b|\benviron\b", file.read_text()):
                readers.add(file.relative_to(ROOT).as_posix())
    readers.discard("executor/dataset/line_source.cc")  # passes the whole environment to a pipe command
    assert readers == {"framework/base/environment.cc"}
    readers = set()
    for file in (ROOT / "python/penstock").rglob("*.py"):
        text = file.read_text()
        if re.search(r"\bos\.(environb?|getenvb?)\b|from os import .*\b(environ|getenv)", text):
            readers.add(file.relative_to(ROOT).as_posix())
    assert readers == PASS_ON | {"python/penstock/_src/base/environment.py"}
    for name in PASS_ON:
        assert not re.search(r"os\.environ(\.get|\[[^]]*\](?! =))", (ROOT / name).read_text()), name


def test_every_variable_that_the_sources_name_is_in_the_table():
    table = set(_penstock.setting_names())
    # Set by the launcher or a script for scripts; Penstock reads none of them.
    others = {"PADDLE_PSERVER_IPS", "PADDLE_TRAINER_IPS", "PADDLE_PSERVER_PORT", "PADDLE_CURRENT_IP"}
    for folder in ("executor", "python/penstock", "python/src"):
        for file in (ROOT / folder).rglob("*"):
            if file.suffix not in (".cc", ".h", ".py"):
                continue
            for name in re.findall(
                r"""["'](PENSTOCK_[A-Z0-9_]+|PADDLE_[A-Z0-9_]+|FLAGS_[a-z0-9_]*[a-z0-9])["']""", file.read_text()
            ):
                of_fluid = file.name in ("flags.py", "registry.py")  # flags that are only stored
                assert name in table | others or of_fluid, (file, name)


@pytest.mark.parametrize(
    "name, odd",
    [
        ("PENSTOCK_TLS_MUTUAL", ["2", "y", "t", "enabled", "truee", "-1", "1.0", "é"]),
        ("PENSTOCK_CUDA_FALLBACK", ["maybe", "10"]),
        ("PADDLE_IS_BARRIER_ALL_ROLE", ["none"]),
        ("PADDLE_TRAINERS_NUM", ["abc", "0", "-2", "1.5", "1e3", "0x2", "99999999999999999999"]),
        ("PADDLE_TRAINER_ID", ["-1", "first", "2000000"]),
        ("PADDLE_PORT", ["0", "65536", "http"]),
        ("PENSTOCK_METRICS", ["65536", "-1", "all"]),
        ("PENSTOCK_PROGRESS", ["-1", "nan", "inf", "often"]),
        ("PENSTOCK_RECONNECT_S", ["-1", "nan", "soon"]),
        ("PENSTOCK_START_S", ["0", "-1", "nan", "soon"]),
        ("FLAGS_rpc_deadline", ["0", "-1", "3s"]),
        ("PENSTOCK_VERIFY", ["all"]),
    ],
)
def test_an_invalid_value_is_refused_with_its_variable(monkeypatch, name, odd):
    for text in odd:
        monkeypatch.setenv(name, text)
        with pytest.raises(ProgramError, match=f"the environment variable {name} is .*E-environment"):
            _environment.value(name)
    for empty in ("", "  "):
        monkeypatch.setenv(name, empty)
        assert _environment.value(name, "the default") == "the default"


def test_bytes_that_are_not_utf8_are_refused(monkeypatch):
    monkeypatch.setitem(os.environ, "PENSTOCK_TLS_MUTUAL", "\udcff")
    with pytest.raises(ProgramError, match="PENSTOCK_TLS_MUTUAL"):
        _environment.value("PENSTOCK_TLS_MUTUAL")


@pytest.mark.parametrize(
    "name, text",
    [
        ("PENSTOCK_TLS_MUTUAL", "maybe"),
        ("PADDLE_TRAINERS_NUM", "abc"),
        ("PENSTOCK_REPORT_AFTER", "soon"),
        ("PENSTOCK_METRICS", "yes"),
        ("FLAGS_check_nan_inf", "perhaps"),
        ("FLAGS_rpc_deadline", "never"),
        ("PENSTOCK_VERIFY", "everything"),
        ("PENSTOCK_PROGRESS", "x"),
        ("CPU_NUM", "all"),
    ],
)
def test_an_executor_refuses_an_invalid_variable(name, text):
    script = "import penstock.fluid as fluid; fluid.Executor(); fluid.cpu_places()"
    ended = subprocess.run(
        [sys.executable, "-c", script], env={**os.environ, name: text}, capture_output=True, text=True
    )
    assert ended.returncode == 1 and f"the environment variable {name} is" in ended.stderr, ended.stderr


@pytest.mark.parametrize(
    "arguments, environment, said",
    [
        (["--env", "PENSTOCK_TLS_MUTUAL=maybe"], {}, "PENSTOCK_TLS_MUTUAL"),
        (["--env", "trainer.1:PADDLE_TRAINERS_NUM=two"], {}, "PADDLE_TRAINERS_NUM"),
        ([], {"PENSTOCK_TLS_MUTUAL": "ja"}, "PENSTOCK_TLS_MUTUAL"),
        ([], {"PADDLE_NUM_TRAINERS": "many"}, "PADDLE_NUM_TRAINERS"),
        (
            ["--use_paddlecloud"],
            {"PADDLE_TRAINERS": "127.0.0.1", "POD_IP": "127.0.0.1", "PADDLE_PORT": "x"},
            "PADDLE_PORT",
        ),
    ],
)
def test_the_launcher_refuses_an_invalid_variable_before_starting_roles(tmp_path, arguments, environment, said):
    (tmp_path / "s.py").write_text("")
    with pytest.raises(JobError, match=f"{said} is .*E-environment"):
        make_plan(parse_options([*arguments, str(tmp_path / "s.py")]), environment)


@pytest.mark.parametrize("option", ["--grace_s", "--join_s", "--start_s", "--hang_timeout"])
@pytest.mark.parametrize("text", ["nan", "inf", "-1", "1e9", "soon"])
def test_options_in_seconds_have_a_range(capsys, option, text):
    with pytest.raises(SystemExit):
        parse_options([f"{option}={text}", "s.py"])
    assert option in capsys.readouterr().err


def test_a_variable_outside_the_table_cannot_be_read():
    with pytest.raises(KeyError):
        _environment.value("PENSTOCK_UNKNOWN")
