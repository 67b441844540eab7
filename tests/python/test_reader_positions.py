"""Readers of trainers that continue: they begin behind the batches of the steps that are complete."""

import pathlib
import random
import re
import subprocess
import sys
import textwrap

import job_script
import numpy as np
import penstock
import pytest
from penstock import _penstock, fluid
from penstock._src.dataset import position

WAIT_S = 120


@pytest.fixture
def complete_steps(monkeypatch):
    """Sets the number of complete steps of this trainer."""

    def complete(steps):
        monkeypatch.setattr(position, "_position", position._Position())
        monkeypatch.setattr(_penstock, "first_step", lambda: steps)

    return complete


def loader(batches, **named):
    x = fluid.data("x", [None, 1])
    made = fluid.io.DataLoader.from_generator(feed_list=[x], capacity=2, **named)

    def source():
        return iter([[np.full((1, 1), number, "float32")] for number in range(batches)])

    return made, source


def numbers(feeds):
    return [int(np.array(feed[0]["x"])[0, 0]) for feed in feeds]


def test_passes_leave_out_complete_steps(complete_steps):
    complete_steps(5)
    made, source = loader(3)
    made.set_batch_generator(source, places=fluid.CPUPlace())
    assert [numbers(made()) for _ in range(3)] == [[], [2], [0, 1, 2]]


def test_a_loop_from_resume_step_continues(complete_steps):
    complete_steps(4)
    made, source = loader(6)
    made.set_batch_generator(source, places=fluid.CPUPlace())
    batches = iter(made())
    assert [(step, numbers([next(batches)])[0]) for step in range(penstock.resume_step(), 6)] == [(4, 4), (5, 5)]


def test_only_the_first_reader_continues(complete_steps):
    complete_steps(4)
    trains, source = loader(3)
    trains.set_batch_generator(source, places=fluid.CPUPlace())
    tests, source = loader(2)
    tests.set_batch_generator(source, places=fluid.CPUPlace())
    assert numbers(trains()) == []
    assert numbers(tests()) == [0, 1]
    assert numbers(trains()) == [1, 2]


def test_a_script_may_choose_the_batches_itself(complete_steps):
    complete_steps(2)
    assert penstock.resume_step(readers=False) == 2
    made, source = loader(3)
    made.set_batch_generator(source, places=fluid.CPUPlace())
    assert numbers(made()) == [0, 1, 2]


def test_a_step_takes_a_batch_for_each_place(complete_steps):
    for batches, drop_last in ((8, True), (7, True), (7, False)):
        complete_steps(5)
        made, source = loader(batches, drop_last=drop_last)
        made.set_batch_generator(source, places=fluid.cpu_places(2))
        steps = [0, 2, 4, 6][: 3 if (batches, drop_last) == (7, True) else 4]
        assert numbers(made()) + numbers(made()) == (steps + steps)[5:]


def test_py_reader_continues(complete_steps):
    complete_steps(3)
    reader = fluid.layers.py_reader(4, [[-1, 1]], ["float32"])
    x = fluid.layers.read_file(reader)
    reader.decorate_batch_generator(lambda: iter([[np.full((1, 1), number, "float32")] for number in range(5)]))
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    reader.start()
    assert [exe.run(fetch_list=[x])[0][0, 0] for _ in range(2)] == [3, 4]
    with pytest.raises(fluid.core.EOFException):
        exe.run(fetch_list=[x])
    reader.reset()


def test_a_shuffled_reader_has_the_order_of_its_seed(complete_steps):
    def order(steps):
        complete_steps(steps)
        random.seed(7)
        made, _ = loader(0)
        shuffled = fluid.io.shuffle(lambda: iter(range(8)), 8)
        made.set_batch_generator(
            lambda: ([np.full((1, 1), number, "float32")] for number in shuffled()), places=fluid.CPUPlace()
        )
        return numbers(made()) + numbers(made())

    assert order(11) == order(0)[11:]


def test_a_dataset_continues(complete_steps, tmp_path):
    complete_steps(3)
    (tmp_path / "part-0").write_text("".join(f"1 {number}\n" for number in range(5)))
    x = fluid.data("x", [None, 1])
    dataset = fluid.DatasetFactory().create_dataset("QueueDataset")
    dataset.set_use_var([x])
    dataset.set_batch_size(1)
    dataset.set_filelist([str(tmp_path / "part-0")])
    batches = fluid.io.DataLoader.from_dataset(dataset, fluid.cpu_places(1))
    assert [numbers(batches()) for _ in range(2)] == [[3, 4], [0, 1, 2, 3, 4]]


def test_a_reader_that_starts_too_early_in_a_job_that_continues_is_an_error(monkeypatch):
    monkeypatch.setattr(position, "_position", position._Position())
    made, source = loader(2)
    made.set_batch_generator(source, places=fluid.CPUPlace())
    assert numbers(made()) == [0, 1], "a new job"
    monkeypatch.setenv("PENSTOCK_RESUME_STEP", "5")
    with pytest.raises(penstock.StateError) as raised:
        iter(made())
    assert raised.value.id == "E-resume-early"


# Prints the batches of this job, which saves after every second step. KIND: the reader.
SCRIPT = """
    import os, sys
    import numpy as np
    import penstock
    import penstock.fluid as fluid
    from job_script import launched_program_of

    steps, kind = int(sys.argv[1]), os.environ['KIND']
    x = fluid.data('x', [None, 1])
    loss = fluid.layers.mean(fluid.layers.fc(x, 1))
    fluid.optimizer.SGD(0.01).minimize(loss)
    t = fluid.DistributeTranspiler()
    t.transpile(0, pservers=os.environ['PADDLE_PSERVER_ENDPOINTS'], trainers=1)
    exe = fluid.Executor(fluid.CPUPlace())
    program = launched_program_of(exe, t)
    exe.run(fluid.default_startup_program())
    seen = []
    if kind == 'dataset':
        dataset = fluid.DatasetFactory().create_dataset('InMemoryDataset')
        dataset.set_use_var([x])
        dataset.set_batch_size(1)
        dataset.set_filelist(['data'])
        dataset.load_into_memory()
        for epoch in range(steps // 4):
            dataset.local_shuffle()
            exe.train_from_dataset(program, dataset, fetch_list=[x], fetch_info=['batch'], print_period=1)
    else:
        loader = fluid.io.DataLoader.from_generator(feed_list=[x], capacity=2)
        loader.set_batch_generator(
            lambda: ([np.full((1, 1), number, 'float32')] for number in range(steps)), places=fluid.CPUPlace())
        batches = iter(loader())
        for step in range(penstock.resume_step(), steps):
            feed = next(batches)
            exe.run(program, feed=feed, fetch_list=[loss])
            print('batch data: [%d]' % np.array(feed[0]['x'])[0, 0], flush=True)
    exe.close()
"""


def batches_of_job(folder, steps, *options, kind):
    if not folder.exists():
        folder.mkdir()
        (folder / "train.py").write_text(textwrap.dedent(SCRIPT))
        (folder / "data").write_text("".join(f"1 {number}\n" for number in range(4)))
    command = [sys.executable, "-m", "penstock.distributed.launch", "--server_num", "1", "--worker_num", "1"]
    command += ["--log_dir", "logs", *options, "train.py", str(steps)]
    done = subprocess.run(
        command, cwd=folder, env=job_script.environment(KIND=kind), capture_output=True, text=True, timeout=WAIT_S
    )
    logs = "\n".join(path.read_text() for path in sorted(pathlib.Path(folder, "logs").glob("*")))
    assert done.returncode == 0, done.stdout + done.stderr + logs
    return [int(number) for number in re.findall(r"data: \[(\d+)", done.stdout)]


@pytest.mark.parametrize("kind", ["generator", "dataset"])
def test_a_job_that_continues_reads_the_batches_that_follow(tmp_path, kind):
    saved = ["--checkpoint_dir", "ckpt", "--checkpoint_steps", "2"]
    whole = batches_of_job(tmp_path / "whole", 8, kind=kind)
    assert len(whole) == 8
    first = batches_of_job(tmp_path / "job", 4, *saved, kind=kind)
    rest = batches_of_job(tmp_path / "job", 8, *saved, "--resume", kind=kind)
    assert (first, rest) == (whole[:4], whole[4:])
