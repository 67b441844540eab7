"""Diagnostics of a job of real processes: waits, the cause of a hang or a failure, receipts, /metrics."""

import contextlib
import json
import os
import re
import signal
import subprocess
import time
import urllib.error
import urllib.request

import penstock
import pytest
from launched import TRAIN
from test_launch import LAUNCH, WAIT_S, launch, write_script

HERE = os.path.dirname(penstock.__file__)
TOOL = next(
    filter(
        os.path.exists,
        (
            os.path.join(HERE, "bin", "penstock"),  # installed, or built
            os.path.join(HERE, "..", "..", "tools", "penstock"),
        ),
    ),
    "",
)
PROLOGUE = "import pathlib\nprint('pid', os.getpid(), flush=True)\n"


@contextlib.contextmanager
def running(folder, *arguments, environment=None):
    """A launcher, which ends with its roles at the end of the `with` block."""
    process = subprocess.Popen(
        [*LAUNCH, *arguments],
        cwd=folder,
        env={**os.environ, **(environment or {})},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        yield process
    finally:
        process.terminate()
        process.communicate(timeout=WAIT_S)


def wait_until(what, limit_s=WAIT_S):
    deadline = time.monotonic() + limit_s
    while not (found := what()):
        assert time.monotonic() < deadline, "it did not come"
        select_nothing()
    return found


def select_nothing():
    """Lets other processes run."""
    signal.sigtimedwait([signal.SIGUSR2], 0.05)


def lines_of(folder, log):
    path = folder / "mylog" / log
    return path.read_text().splitlines() if path.exists() else []


def pid_of(folder, log):
    for line in lines_of(folder, log):
        if line.startswith("pid "):
            return int(line.split()[1])
    return None


def script(folder, more=""):
    """Trains; `more` are arguments of transpile."""
    body = TRAIN.replace("\n    ", "\n").replace("t.transpile(index, ", f"t.transpile(index, {more}")
    return write_script(folder, PROLOGUE + body)


def steps_of(folder, role):
    """The step of a role by its /metrics; 0 if there are none yet."""
    try:
        address = (folder / "mylog" / f"metrics.{role}").read_text().strip()
        with urllib.request.urlopen(f"http://{address}/metrics", timeout=5) as answer:
            return float(re.search(r"^penstock_steps_total\{[^}]*\} (\S+)$", answer.read().decode(), re.M)[1])
    except (OSError, TypeError):
        return 0


def test_waiting_roles_and_the_launcher_name_a_stopped_trainer(tmp_path):
    with running(
        tmp_path,
        "--server_num",
        "1",
        "--worker_num",
        "2",
        "--hang_timeout",
        "3",
        "--metrics",
        "0",
        script(tmp_path),
        "1000000",
        environment={"PENSTOCK_REPORT_AFTER": "0.3"},
    ) as launcher:
        wait_until(lambda: steps_of(tmp_path, "trainer.0") > 3)
        os.kill(pid_of(tmp_path, "workerlog.1"), signal.SIGSTOP)
        _, errors = launcher.communicate(timeout=WAIT_S)
    assert launcher.returncode == 1, errors
    said = "\n".join(lines_of(tmp_path, "workerlog.0"))
    assert re.search(
        r"waiting \d+ s in step \d+: version \d+ of \S+ (\(rows .*\) )?on pserver \S+, which waits for "
        r"trainer 1 \(last heard \d+ s ago\); that server was last heard \d+ s ago",
        said,
    ), said
    assert re.search(
        r"trainer 0 has waited \d+ s for .* which waits for trainer 1", "\n".join(lines_of(tmp_path, "serverlog.0"))
    )
    assert "[E-launch-hang]" in errors
    assert re.search(
        r"^cause: trainer 1 is stopped by a signal at step \d+ \(last event: .* \d+\.\d s ago\); "
        r"pserver 0 and trainer 0 wait for it$",
        errors.splitlines()[-1],
    ), errors
    recorded = [json.loads(line) for line in lines_of(tmp_path, "flight.trainer.1.jsonl")]
    assert recorded[0]["role"] == "trainer 1" and recorded[0]["events"] == len(recorded) - 1 > 10
    assert {"step ended", "push sent", "push taken", "pull asked", "pull answered"} <= {
        event["kind"] for event in recorded[1:]
    }
    assert {"gradient taken", "block run", "published", "peer came"} <= {
        json.loads(line).get("kind") for line in lines_of(tmp_path, "flight.pserver.0.jsonl")
    }


def test_the_last_event_of_a_killed_trainer_is_reported(tmp_path):
    with running(
        tmp_path, "--server_num", "1", "--worker_num", "2", "--metrics", "0", script(tmp_path), "1000000"
    ) as launcher:
        wait_until(lambda: steps_of(tmp_path, "trainer.0") > 3)
        os.kill(pid_of(tmp_path, "workerlog.1"), signal.SIGKILL)
        _, errors = launcher.communicate(timeout=WAIT_S)
    assert launcher.returncode == 1, errors
    assert re.search(
        r"^cause: trainer 1 was killed by SIGKILL at step \d+ \(last event: .* \d+\.\d s before\)",
        errors.splitlines()[-1],
    ), errors


def answered(receipts):
    """The bytes that servers report as sent, which must equal those that trainers report as received."""
    out = sum(receipt["bytes_out"] for role, receipt in receipts.items() if role.startswith("pserver"))
    assert out == sum(receipt["bytes_in"] for role, receipt in receipts.items() if role.startswith("trainer"))
    return out


def test_every_role_leaves_a_receipt_and_the_launcher_prints_them(tmp_path):
    result = launch(tmp_path, "--server_num", "2", "--worker_num", "2", script(tmp_path), "5")
    assert result.returncode == 0, result.stderr
    receipts = {
        role: json.loads((tmp_path / "mylog" / f"receipt.{role}.json").read_text())
        for role in ("trainer.0", "trainer.1", "pserver.0", "pserver.1")
    }
    assert [receipts[role]["steps"] for role in receipts] == [5, 5, 5, 5]
    sent = sum(receipts[role]["bytes_out"] for role in ("trainer.0", "trainer.1"))
    received = sum(receipts[role]["bytes_in"] for role in ("pserver.0", "pserver.1"))
    assert sent == received > 0
    assert answered(receipts) > 0
    assert all(receipts[role]["exposed_s"] > 0 and receipts[role]["peers"] for role in ("trainer.0", "trainer.1"))
    assert all(receipt["staleness"] == [] for receipt in receipts.values())
    table = [line for line in result.stdout.splitlines() if re.match(r"(role|trainer \d|pserver \d) ", line)]
    assert [line.split("  ")[0].strip() for line in table] == [
        "role",
        "pserver 0",
        "pserver 1",
        "trainer 0",
        "trainer 1",
    ]
    assert "receipt: 5 steps in" in "\n".join(lines_of(tmp_path, "workerlog.0"))
    assert not list((tmp_path / "mylog").glob("flight.*"))


def test_asynchronous_servers_report_staleness(tmp_path):
    result = launch(tmp_path, "--server_num", "1", "--worker_num", "2", script(tmp_path, "sync_mode=False, "), "20")
    assert result.returncode == 0, result.stderr
    receipts = {
        role: json.loads((tmp_path / "mylog" / f"receipt.{role}.json").read_text())
        for role in ("trainer.0", "trainer.1", "pserver.0")
    }
    assert answered(receipts) > 0
    receipt = receipts["pserver.0"]
    assert receipt["updates"] == 2 * 2 * 20  # of each parameter, with each gradient of each trainer
    assert len(receipt["staleness"]) == 17 and sum(receipt["staleness"]) == receipt["updates"]
    assert "staleness" in "\n".join(lines_of(tmp_path, "serverlog.0"))


SAMPLE = re.compile(
    r'([a-zA-Z_:][a-zA-Z0-9_:]*)(\{([a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*",?)*\})? '
    r"(-?[0-9.]+(?:e[+-]?[0-9]+)?|\+Inf|-Inf|NaN)"
)


def parse(text):
    """{family: (type, samples)} of the text exposition format, strictly."""
    assert text.endswith("\n")
    families, name = {}, None
    for line in text.splitlines():
        if line.startswith("# HELP "):
            name = line.split(" ", 3)[2]
            assert name not in families and len(line.split(" ", 3)) == 4
            families[name] = (None, [])
        elif line.startswith("# TYPE "):
            _, _, of, kind = line.split(" ")
            assert of == name and families[of] == (None, []) and kind in {"counter", "gauge", "histogram"}
            families[of] = (kind, families[of][1])
        else:
            match = SAMPLE.fullmatch(line)
            assert match, line
            of = re.sub("_(bucket|sum|count)$", "", match[1]) if families[name][0] == "histogram" else match[1]
            assert of == name, line
            families[name][1].append((match[1], match[2], float(match[4])))
    assert all(kind is not None and samples for kind, samples in families.values())
    return families


def test_metrics_are_in_prometheus_format_and_top_shows_them(tmp_path):
    with running(tmp_path, "--server_num", "1", "--worker_num", "1", "--metrics", "0", script(tmp_path), "1000000"):
        wait_until(lambda: steps_of(tmp_path, "trainer.0") > 3)
        address = (tmp_path / "mylog" / "metrics.trainer.0").read_text().strip()
        with urllib.request.urlopen(f"http://{address}/metrics", timeout=30) as answer:
            assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
            families = parse(answer.read().decode())
        assert families["penstock_steps_total"][0] == "counter"
        ((_, labels, sent),) = families["penstock_sent_bytes_total"][1]
        assert sent > 0 and labels.startswith('{role="trainer 0",peer="pserver 127.0.0.1:')
        with pytest.raises(urllib.error.HTTPError):
            urllib.request.urlopen(f"http://{address}/", timeout=30)
        if not TOOL:
            pytest.skip("the tool is not built")
        top = subprocess.run(
            [TOOL, "top", "--once", "mylog"], cwd=tmp_path, capture_output=True, text=True, timeout=WAIT_S
        )
        assert top.returncode == 0, top.stderr
        rows = top.stdout.splitlines()
        assert rows[0].split()[:3] == ["role", "steps", "steps/s"]
        assert rows[1].startswith("pserver 0") and rows[2].startswith("trainer 0") and "/s" in rows[2]
        given = subprocess.run(
            [TOOL, "top", "--once", address, "127.0.0.1:1"], capture_output=True, text=True, timeout=WAIT_S
        )
        assert "trainer 0" in given.stdout and "does not answer" in given.stdout
    gone = subprocess.run(
        [TOOL, "top", "--once", "mylog"], cwd=tmp_path, capture_output=True, text=True, timeout=WAIT_S
    )
    assert gone.returncode == 2 and "E-top-nobody" in gone.stderr
