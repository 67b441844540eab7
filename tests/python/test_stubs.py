"""The type stubs match the modules, and a strict type checker accepts a script that uses them."""

import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
SAMPLE = ROOT / "tests" / "python" / "typed_sample.py"
LIMIT_S = 300


def run(*command, **environment):
    return subprocess.run(
        [sys.executable, *map(str, command)],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
        env=dict(os.environ, **environment),
    )


def test_stubs_are_up_to_date():
    done = run(ROOT / "tools" / "dev" / "gen_stubs.py", "--check")
    assert done.returncode == 0, done.stdout + done.stderr


def check(tmp_path, script):
    return run("-m", "mypy", "--strict", "--cache-dir", tmp_path / "cache", script, MYPYPATH=str(ROOT / "python"))


def test_a_strict_checker_accepts_a_script(tmp_path):
    done = check(tmp_path, SAMPLE)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_checker_finds_a_wrong_argument(tmp_path):
    wrong = tmp_path / "wrong.py"
    wrong.write_text(SAMPLE.read_text().replace("size=width", "size='wide'"))
    done = check(tmp_path, wrong)
    assert done.returncode == 1 and 'Argument "size" to "fc" has incompatible type "str"' in done.stdout


def test_the_script_runs():
    done = run(SAMPLE)
    assert done.returncode == 0 and done.stdout.startswith("["), done.stderr
