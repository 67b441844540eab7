"""A pass over a dataset ends when requested, whatever its pipe commands do."""

import signal
import subprocess
import sys

import pytest

WAIT_S = 120

SCRIPT = """
import sys
import threading
import penstock.fluid as fluid
kind, threads = sys.argv[1], int(sys.argv[2])
x = fluid.data('x', [None, 1], 'int64')
fluid.layers.cast(x, 'float32')
dataset = fluid.DatasetFactory().create_dataset(kind)
dataset.set_use_var([x])
dataset.set_batch_size(1)
dataset.set_thread(threads)
dataset.set_pipe_command('cat; echo waiting >&2; exec tail -f /dev/null')
names = ['f%d' % i for i in range(2)]
for name in names:
    with open(name, 'w') as file:
        file.write('1 5\\n1 6\\n')
dataset.set_filelist(names)
exe = fluid.Executor(fluid.CPUPlace())
exec(sys.argv[3])
try:
    if kind == 'InMemoryDataset':
        dataset.load_into_memory()
    exe.train_from_dataset(fluid.default_main_program(), dataset)
except KeyboardInterrupt:
    alive = [each.name for each in threading.enumerate() if each.name.startswith('penstock-trainer')]
    print('interrupted', *alive, flush=True)
    sys.exit(5)
"""


@pytest.mark.parametrize("kind", ["QueueDataset", "InMemoryDataset"])
@pytest.mark.parametrize("threads", [1, 2])
def test_ctrl_c_ends_a_pass_whose_commands_never_end(tmp_path, kind, threads):
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, kind, str(threads), ""],
        cwd=tmp_path,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        for _ in range(threads):  # every command that is started has written, and waits forever
            assert process.stderr.readline() == "waiting\n"
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=WAIT_S)
    finally:
        process.kill()
        process.communicate()
    assert (process.returncode, out) == (5, "interrupted\n")


# Ctrl-C raises KeyboardInterrupt in the main thread, between any two lines of its code.
INTERRUPT = """
from penstock._src.executor import dataset_training, process_end
main, calls = threading.main_thread(), []
def interrupt_once(owner, name, before=lambda *args: None):
    usual = getattr(owner, name)
    def replaced(*args, **kwargs):
        if threading.current_thread() is not main or calls:
            return usual(*args, **kwargs)
        calls.append(name)
        before(*args)
        raise KeyboardInterrupt
    setattr(owner, name, replaced)
"""
POINTS = {
    "before the first step": "interrupt_once(dataset_training._Training, '_step')",
    "while the threads start": "interrupt_once(threading.Thread, 'start', threading.Thread.start)",
    "before its own steps": "interrupt_once(process_end, 'watch_this_thread')",
    "after another thread's error": """
def failing(self, queues):
    raise ArithmeticError
def until_failed(*args):
    for each in threading.enumerate():
        if each.name.startswith('penstock-trainer'):
            each.join()
dataset_training._Training._train = failing
interrupt_once(dataset_training._Training, '_train', until_failed)
""",
    "while it waits for the others": """
dataset.set_pipe_command('read -r _ word; echo 1 5; [ "$word" = 5 ] || exec tail -f /dev/null')
with open('f1', 'w') as file:
    file.write('1 6\\n')
interrupt_once(threading.Thread, 'join')
""",
}


@pytest.mark.parametrize("point", POINTS)
def test_an_interrupt_ends_all_threads_wherever_it_comes(tmp_path, point):
    result = subprocess.run(
        [sys.executable, "-c", SCRIPT, "QueueDataset", "2", INTERRUPT + POINTS[point]],
        cwd=tmp_path,
        text=True,
        stdout=subprocess.PIPE,
        timeout=WAIT_S,
        check=False,
    )
    assert (result.returncode, result.stdout) == (5, "interrupted\n")
