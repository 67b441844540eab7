"""Runs where Python does more than call them: child processes, an interpreter that ends, calls within calls."""
import subprocess
import sys
import textwrap

HEAD = '''
import os, threading, time
import numpy as np
import penstock.fluid as fluid
layers = fluid.layers
exe = fluid.Executor(fluid.CPUPlace())
'''

ENDLESS = '''
i, n = layers.fill_constant([1], 'int64', 0), layers.fill_constant([1], 'int64', 10**12)
more = layers.less_than(i, n)
loop = layers.While(more)
with loop.block():
    layers.increment(i, 1, in_place=True)
    layers.less_than(i, n, cond=more)
'''


def run(script):
    done = subprocess.run([sys.executable, '-c', HEAD + textwrap.dedent(script)],
                          capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.split('\n')[:-1]


def test_a_forked_process_runs_what_its_parent_ran():
    assert run('''
        x = layers.data('x', [4])
        mean = layers.reduce_mean(layers.fc(x, 3))
        def losses(executor):
            executor.run(fluid.default_startup_program())
            return executor.run(feed={'x': np.ones((2, 4), np.float32)}, fetch_list=[mean])[0].shape
        losses(exe)
        child = os.fork()
        if child == 0:
            print(losses(exe), losses(fluid.Executor(fluid.CPUPlace())), flush=True)
            raise SystemExit(0)    # Python's own way out, with what is registered for it
        print(os.waitpid(child, 0)[1], losses(exe))
        ''') == ['(1,) (1,)', '0 (1,)']


def test_the_interpreter_ends_while_a_daemon_thread_runs_something():
    assert run(ENDLESS + textwrap.dedent('''
        started = threading.Event()
        def work():
            started.set()
            exe.run()
        threading.Thread(target=work, daemon=True).start()
        started.wait()
        print('over')
        ''')) == ['over']


def test_runs_within_runs_have_an_end():
    assert run('''
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
        ''') == ['20', 'True']
