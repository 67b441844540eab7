"""Runs in special environments: child processes, an interpreter that exits, nested calls."""

import os
import re
import subprocess
import sys
import textwrap

HEAD = """
import os, threading, time
import numpy as np
import penstock.fluid as fluid
layers = fluid.layers
exe = fluid.Executor(fluid.CPUPlace())
"""

ENDLESS = """
i, n = layers.fill_constant([1], 'int64', 0), layers.fill_constant([1], 'int64', 10**12)
more = layers.less_than(i, n)
loop = layers.While(more)
with loop.block():
    layers.increment(i, 1, in_place=True)
    layers.less_than(i, n, cond=more)
"""


def run(script):
    done = subprocess.run(
        [sys.executable, "-c", HEAD + textwrap.dedent(script)], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split("\n")[:-1]


def test_a_forked_process_can_run_programs_of_its_parent():
    assert run("""
        x = layers.data('x', [4])
        mean = layers.reduce_mean(layers.fc(x, 3))
        def losses(executor):
            executor.run(fluid.default_startup_program())
            return executor.run(feed={'x': np.ones((2, 4), np.float32)}, fetch_list=[mean])[0].shape
        losses(exe)
        child = os.fork()
        if child == 0:
            print(losses(exe), losses(fluid.Executor(fluid.CPUPlace())), flush=True)
            raise SystemExit(0)    # Python's normal exit, with registered handlers
        print(os.waitpid(child, 0)[1], losses(exe))
        """) == ["(1,) (1,)", "0 (1,)"]


def test_the_interpreter_ends_while_a_daemon_thread_runs_something():
    assert run(
        ENDLESS
        + textwrap.dedent("""
        started = threading.Event()
        def work():
            started.set()
            exe.run()
        threading.Thread(target=work, daemon=True).start()
        started.wait()
        print('over')
        """)
    ) == ["over"]


def test_the_depth_of_nested_runs_is_bounded():
    assert run("""
        x = layers.data('x', [1])
        out = fluid.default_main_program().current_block().create_var(name='out', shape=[-1, 1], dtype='float32')
        calls, most = [0], [20]
        def again(a):
            calls[0] += 1
            if calls[0] < most[0]:
                exe.run(feed={'x': np.ones((1, 1), np.float32)}, fetch_list=[out])
            return np.array(a)
        layers.py_func(again, x, out)
        again(np.ones((1, 1), np.float32))
        print(calls[0])
        most[0] = 10**9
        try:
            again(np.ones((1, 1), np.float32))
        except Exception as error:
            print('E-run-depth' in str(error))
        """) == ["20", "True"]


LINE = r"[IWE]\d{8} \d\d:\d\d:\d\d\.\d{6} +\d+ [\w.<>]+:\d+\] "


def logged(folder, script, **environment):
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        cwd=folder,
        env={**os.environ, "GLOG_log_dir": str(folder), **environment},
    )
    assert done.returncode == 0, done.stderr
    assert os.listdir(folder) == []  # glog writes no files
    return done.stderr.splitlines()


LOG = """
import penstock
from penstock._src.base import log as _log
_log.name_process()
def work():
    _log.info('an info')
    _log.warning('a warning')
    _log.error('an error')
work()
"""


def test_log_lines_carry_time_severity_place_and_role(tmp_path):
    lines = logged(tmp_path, LOG, TRAINING_ROLE="TRAINER", PADDLE_TRAINER_ID="3")
    assert [line[0] for line in lines] == ["I", "W", "E"]
    assert all(re.match(LINE + "trainer 3: an? ", line) for line in lines), lines
    lines = logged(tmp_path, LOG, PADDLE_TRAINING_ROLE="PSERVER", PADDLE_PSERVER_ID="1")
    assert all(re.match(LINE + "pserver 1: an? ", line) for line in lines), lines


def test_a_process_without_a_role_logs_without_one(tmp_path):
    lines = logged(tmp_path, LOG, TRAINING_ROLE="", PADDLE_TRAINING_ROLE="")
    assert all(re.match(LINE + "an? ", line) for line in lines), lines


def test_glog_variables_set_the_minimum_severity(tmp_path):
    lines = logged(tmp_path, LOG, GLOG_minloglevel="2")
    assert len(lines) == 1 and lines[0].startswith("E") and lines[0].endswith("an error")


def test_a_child_of_fork_may_log(tmp_path):
    lines = logged(
        tmp_path,
        LOG
        + """
import os
child = os.fork()
if child == 0:
    _log.info('from the child')
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
""",
    )
    assert lines[-1].endswith("from the child")
