"""A pass over a dataset ends when requested, whatever its pipe commands do."""

import signal
import subprocess
import sys

import pytest

WAIT_S = 120

SCRIPT = """
import sys
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
try:
    if kind == 'InMemoryDataset':
        dataset.load_into_memory()
    exe.train_from_dataset(fluid.default_main_program(), dataset)
except KeyboardInterrupt:
    print('interrupted', flush=True)
    sys.exit(5)
"""


@pytest.mark.parametrize("kind", ["QueueDataset", "InMemoryDataset"])
@pytest.mark.parametrize("threads", [1, 2])
def test_ctrl_c_ends_a_pass_whose_commands_never_end(tmp_path, kind, threads):
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, kind, str(threads)],
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
