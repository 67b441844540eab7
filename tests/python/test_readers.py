"""Input: loaders and py_reader; end of data, errors, Ctrl-C."""

import gc
import signal
import subprocess
import sys
import textwrap
import threading
import traceback
import warnings

import numpy as np
import penstock
import pytest
from penstock.fluid import io


# Loaders that the caller feeds from.
def samples(n):
    def read():
        for i in range(n):
            yield np.full(2, i, "float32"), np.array([i], "int64")

    return read


def twice(fluid):
    x, y = fluid.data("x", [None, 2]), fluid.data("y", [None, 1], "int64")
    return [x, y], [fluid.layers.scale(x, 2.0), fluid.layers.scale(y, 3.0)]


def run_all(fluid, loader, out):
    exe = fluid.Executor()
    return [np.concatenate(parts) for parts in zip(*(exe.run(feed=data, fetch_list=out) for data in loader()))]


def batches_of(n, size):
    def read():
        reused = np.zeros((size, 2))  # of another type, and the same memory for every batch
        for i in range(0, n, size):
            reused[:] = np.arange(i, i + size)[:, None]
            yield reused, np.arange(i, i + size).reshape(-1, 1)

    return read


@pytest.mark.parametrize(
    "set_source",
    [
        lambda loader, place: loader.set_sample_generator(samples(9), 4, drop_last=True, places=place),
        lambda loader, place: loader.set_sample_list_generator(io.batch(samples(8), 3), places=place),
        lambda loader, place: loader.set_batch_generator(batches_of(8, 4), places=place),
    ],
)
@pytest.mark.parametrize("use_double_buffer", [True, False])
def test_a_loader_yields_feeds_in_each_pass(fluid, set_source, use_double_buffer):
    feed_list, out = twice(fluid)
    loader = io.DataLoader.from_generator(feed_list, 2, use_double_buffer)
    set_source(loader, fluid.cpu_places(1))
    for _ in range(2):
        x, y = run_all(fluid, loader, out)
        assert x.tolist() == [[2 * i, 2 * i] for i in range(8)] and y.ravel().tolist() == [3 * i for i in range(8)]


def test_a_loader_yields_lists_and_per_place_feeds(fluid):
    feed_list, _ = twice(fluid)
    for drop_last, count in ((True, 2), (False, 3)):
        loader = io.DataLoader.from_generator(feed_list, 2, return_list=True, drop_last=drop_last)
        loader.set_sample_generator(samples(5), 1, places=fluid.cpu_places(2))
        got = [[np.array(tensors[1]).item() for tensors in places] for places in loader]
        assert got == [[0, 1], [2, 3], [4]][:count]


def test_sequences_are_read_with_their_lengths(fluid):
    words = fluid.data("words", [None, 1], "int64", lod_level=1)
    reader = io.PyReader([words], 2)
    reader.decorate_sample_generator(
        lambda: iter([([1, 2],), ([3],), ([4, 5, 6],)]), 2, drop_last=False, places=fluid.CPUPlace()
    )
    tensors = [data[0]["words"] for data in reader()]
    assert [tensor.recursive_sequence_lengths() for tensor in tensors] == [[[2, 1]], [[3]]]
    assert np.array(tensors[0]).ravel().tolist() == [1, 2, 3]


def test_a_pass_may_be_interrupted_and_restarted(fluid):
    feed_list, _ = twice(fluid)
    left = []

    def endless():
        try:
            for i in range(10**9):
                yield np.full(2, i), np.array([i])
        finally:
            left.append(True)

    loader = io.DataLoader.from_generator(feed_list, 2)
    loader.set_sample_generator(endless, 3, places=fluid.CPUPlace())
    for passes in range(1, 4):
        data = next(iter(loader()))
        assert np.array(data[0]["y"]).ravel().tolist() == [0, 1, 2]
        assert len(left) == passes - 1
    alive = threading.active_count()
    del loader, data
    gc.collect()
    for thread in threading.enumerate():
        if thread.name == "penstock-reader":
            thread.join()
    assert len(left) == 3 and threading.active_count() < alive


def failing(n):
    def read():
        yield from samples(n)()
        raise OSError("disk 7 is gone")

    return read


def test_a_readers_error_is_raised_in_the_trainer_with_its_traceback(fluid):
    feed_list, out = twice(fluid)
    loader = io.DataLoader.from_generator(feed_list, 2)
    loader.set_sample_generator(failing(4), 2, places=fluid.CPUPlace())
    got = []
    with pytest.raises(OSError, match="disk 7 is gone") as error:
        for data in loader():
            got.append(data)
    assert len(got) == 2
    assert "in read" in "".join(traceback.format_tb(error.value.__traceback__))


def test_batches_keep_their_order_with_keep_data_loader_order_off(fluid):
    keeps = fluid.reader.keep_data_loader_order
    assert keeps() is True
    try:
        keeps(False)
        assert keeps() is False
        x = fluid.data("x", [1])
        loader = fluid.io.DataLoader.from_generator(feed_list=[x], capacity=2)
        loader.set_batch_generator(lambda: ([np.full(1, i, "float32")] for i in range(9)), places=fluid.CPUPlace())
        assert [float(np.array(feed[0]["x"])[0]) for feed in loader()] == list(range(9))
    finally:
        keeps(True)
    with pytest.raises(TypeError, match="keep_data_loader_order takes one bool"):
        keeps(1)


def test_invalid_loader_arguments_are_refused(fluid):
    feed_list, _ = twice(fluid)
    for arguments, says in (
        (([], 2), "feed_list"),
        ((feed_list[0], 2), "feed_list"),
        ((["x"], 2), "feed_list"),
        ((feed_list, None), "capacity"),
        ((feed_list, 0), "capacity"),
    ):
        with pytest.raises((TypeError, ValueError), match=says):
            io.DataLoader.from_generator(*arguments)
    loader = io.DataLoader.from_generator(feed_list, 2)
    with pytest.raises(ValueError, match="needs places"):
        loader.set_batch_generator(batches_of(4, 2))
    with pytest.raises(RuntimeError, match="has no data"):
        iter(loader)
    with pytest.raises(RuntimeError, match="for a loader with iterable=False"):
        loader.start()
    loader.set_batch_generator(lambda: iter([[np.zeros((1, 2))]]), fluid.CPUPlace())
    with pytest.raises(ValueError, match="gave 1 values for the 2 variables x, y"):
        next(iter(loader))


def test_a_feeder_decorates_readers(fluid):
    feed_list, _ = twice(fluid)
    feeder = fluid.DataFeeder(feed_list, fluid.CPUPlace())
    batches = io.batch(samples(5), 2)
    assert [np.array(feed["y"]).ravel().tolist() for feed in feeder.decorate_reader(batches, False)()] == [
        [0, 1],
        [2, 3],
        [4],
    ]
    groups = list(feeder.decorate_reader(batches, True, num_places=2)())
    assert [[np.array(feed["y"]).ravel().tolist() for feed in group] for group in groups] == [[[0, 1], [2, 3]]]
    with pytest.raises(ValueError, match="not enough for all 2 places"):
        list(feeder.decorate_reader(batches, True, num_places=2, drop_last=False)())
    with pytest.raises(ValueError, match="one batch for each of the 2 places, not 1"):
        list(feeder.feed_parallel([list(samples(2)())], 2))


class Squares:
    def __len__(self):
        return 7

    def __getitem__(self, i):
        if i > 6:
            raise IndexError(f"no sample {i}")
        return np.full(2, i * i, "float32"), np.array([i])


@pytest.mark.parametrize("num_workers", [0, 3])
def test_a_dataset_is_loaded_in_batches(fluid, num_workers):
    feed_list, out = twice(fluid)
    started = []
    loader = io.DataLoader(Squares(), feed_list, batch_size=2, num_workers=num_workers, worker_init_fn=started.append)
    assert len(loader) == 4
    for _ in range(2):
        x, y = run_all(fluid, loader, out)
        assert y.ravel().tolist() == [3 * i for i in range(7)] and x[:, 1].tolist() == [2 * i * i for i in range(7)]
    assert started and len(set(started)) == len(started)
    shuffled = io.DataLoader(Squares(), feed_list, batch_size=3, shuffle=True, drop_last=True, num_workers=num_workers)
    passes = [run_all(fluid, shuffled, out)[1].ravel().tolist() for _ in range(6)]
    assert len(shuffled) == 2 and all(len(set(one)) == 6 for one in passes) and len(set(map(tuple, passes))) > 1
    sampled = io.DataLoader(Squares(), feed_list, batch_sampler=[[6, 0], [1]], num_workers=num_workers)
    assert len(sampled) == 2 and run_all(fluid, sampled, out)[1].ravel().tolist() == [18, 0, 3]
    with pytest.raises(IndexError, match="no sample 7"):
        run_all(fluid, io.DataLoader(Squares(), feed_list, batch_sampler=[[7]], num_workers=num_workers), out)


def test_invalid_datasets_are_refused(fluid):
    feed_list, _ = twice(fluid)
    for arguments, says in (
        (dict(dataset=iter([])), "must have __getitem__"),
        (dict(feed_list=None), "feed_list"),
        (dict(batch_sampler=[[0]], shuffle=True), "exclude batch_sampler"),
        (dict(num_workers=-1), "num_workers"),
        (dict(batch_size=0), "batch_size"),
    ):
        with pytest.raises((TypeError, ValueError), match=says):
            io.DataLoader(**dict(dict(dataset=Squares(), feed_list=feed_list), **arguments))


# Loaders that the program reads from.
def read_all(fluid, exe, out, reader):
    got = []
    reader.start()
    try:
        while True:
            got.append(exe.run(fetch_list=out))
    except fluid.core.EOFException:
        reader.reset()
    return [np.concatenate(parts) for parts in zip(*got)]


def not_iterable(fluid, use_double_buffer=True):
    feed_list = [fluid.data("x", [None, 2]), fluid.data("y", [None, 1], "int64")]
    loader = io.DataLoader.from_generator(feed_list, 2, use_double_buffer, iterable=False)
    return loader, [fluid.layers.scale(feed_list[0], 2.0), fluid.layers.scale(feed_list[1], 3.0)]


@pytest.mark.parametrize("use_double_buffer", [True, False])
def test_a_program_reads_until_the_end_pass_after_pass(fluid, use_double_buffer):
    loader, out = not_iterable(fluid, use_double_buffer)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    loader.set_sample_generator(samples(7), 3, drop_last=False)
    for _ in range(3):
        x, y = read_all(fluid, exe, out, loader)
        assert x.tolist() == [[2 * i, 2 * i] for i in range(7)] and y.ravel().tolist() == [3 * i for i in range(7)]
    with pytest.raises(penstock.StateError, match="the reader is not started"):
        exe.run(fetch_list=out)


def test_a_py_reader_reads_and_trains(fluid):
    reader = fluid.layers.py_reader(4, [[-1, 13], [-1, 1]], ["float32", "float32"])
    x, y = fluid.layers.read_file(reader)
    assert (x.name, x.shape, x.stop_gradient) == ("read_file_0.tmp_0", (-1, 13), True)
    loss = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(x, 1), y))
    fluid.optimizer.SGD(0.01).minimize(loss)
    random = np.random.RandomState(0).rand(64, 13).astype("float32")
    reader.decorate_sample_list_generator(io.batch(lambda: ((row, row.sum()) for row in random), 16))
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    losses = [read_all(fluid, exe, [loss], reader)[0] for _ in range(20)]
    assert losses[0].shape == (4,) and losses[-1].mean() < 0.1 * losses[0].mean()


def test_a_run_is_planned_for_the_next_batch(fluid):
    """Loss by loss, a program that reads its images equals one that is fed, in every batch size and layout."""
    data = [
        (np.random.RandomState(i).rand(rows, 8, 12, 12).astype("float32"), np.full((rows, 1), i % 4))
        for i, rows in enumerate([4, 4, 2, 4, 3, 2])
    ]

    def losses(read):
        main, startup = fluid.Program(), fluid.Program()
        startup.random_seed = 5
        exe, got = fluid.Executor(), []
        with fluid.scope_guard(fluid.Scope()), fluid.program_guard(main, startup):
            image = fluid.data("image", [None, 8, 12, 12])
            label = fluid.data("label", [None, 1], "int64")
            loader = io.DataLoader.from_generator([image, label], 2, iterable=False) if read else None
            x = image
            for filters in (16, 16):
                x = fluid.layers.batch_norm(fluid.layers.conv2d(x, filters, 3, padding=1, bias_attr=False), act="relu")
            x = fluid.layers.fc(fluid.layers.pool2d(x, global_pooling=True), 4)
            loss = fluid.layers.mean(fluid.layers.softmax_with_cross_entropy(x, label))
            fluid.optimizer.SGD(0.1).minimize(loss)
            exe.run(startup)
            if read:
                loader.set_batch_generator(lambda: iter(data))
                return read_all(fluid, exe, [loss], loader)[0].tolist()
            for image, label in data:
                got.append(float(exe.run(main, {"image": image, "label": label.astype("int64")}, [loss])[0][0]))
        return got

    fed, read = losses(False), losses(True)
    assert len(read) == len(data) and read == fed


def test_create_py_reader_by_data_creates_equal_variables(fluid):
    reader = fluid.layers.create_py_reader_by_data(2, [fluid.data("x", [None, 2])], name="in")
    read = fluid.layers.read_file(reader)
    assert (read.name, read.shape) == ("read_file_0.tmp_0", (-1, 2))
    out = [fluid.layers.scale(read, 2.0)]
    reader.decorate_batch_generator(lambda: iter([[np.ones((3, 2), "float32")]]))
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    assert read_all(fluid, exe, out, reader)[0].tolist() == [[2, 2]] * 3


def test_reader_programs_use_fluids_ops(fluid):
    not_iterable(fluid)
    main, startup = fluid.default_main_program(), fluid.default_startup_program()
    assert startup.global_block().ops == []
    create, ahead, read = main.global_block().ops[:3]
    assert create.type == "create_py_reader" and create.input("blocking_queue")[0].startswith("lod_tensor_blocking")
    attrs = {name: create.attr(name) for name in ("shape_concat", "lod_levels", "dtypes", "need_check_feed", "ranks")}
    assert attrs == {
        "shape_concat": [-1, 2, -1, 1],
        "lod_levels": [0, 0],
        "dtypes": [5, 3],
        "need_check_feed": [1, 1],
        "ranks": [2, 2],
    }
    assert ahead.type == "create_double_buffer_reader" and read.type == "read"
    assert ahead.input("UnderlyingReader") == create.output("Out") and read.input("Reader") == ahead.output("Out")
    assert read.output("Out") == ["x", "y"] and read.attr("drop_last") is True
    again = fluid.Program.parse_from_string(main.desc.serialize_to_string())
    assert again.desc.var_reader(0, ahead.output("Out")[0]) == [(5, [-1, 2], 0), (3, [-1, 1], 0)]
    assert again.global_block().var(ahead.output("Out")[0]).type.name == "READER"


def test_a_readers_error_is_raised_by_the_run(fluid):
    loader, out = not_iterable(fluid)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    loader.set_sample_generator(failing(2), 2)
    loader.start()
    with pytest.raises(RuntimeError, match="started already"):
        loader.start()
    exe.run(fetch_list=out)
    for _ in range(2):
        with pytest.raises(OSError, match="disk 7 is gone") as error:
            exe.run(fetch_list=out)
    assert "in read" in "".join(traceback.format_tb(error.value.__traceback__))
    loader.reset()
    loader.set_sample_generator(samples(2), 2)
    assert len(read_all(fluid, exe, out, loader)[0]) == 2


@pytest.mark.parametrize(
    "batch, says",
    [
        ([np.zeros((2, 3)), np.zeros((2, 1), "int64")], "for x, which is declared f32"),
        ([np.zeros((2, 2))], "gave 1 values for the 2 variables"),
    ],
)
def test_mismatched_batches_are_reported(fluid, batch, says):
    loader, out = not_iterable(fluid)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    loader.set_batch_generator(lambda: iter([batch]))
    loader.start()
    with pytest.raises(ValueError, match=says):
        exe.run(fetch_list=out)


def test_a_program_without_its_reader_is_reported(fluid):
    loader, out = not_iterable(fluid)
    exe = fluid.Executor()
    del loader
    gc.collect()
    with pytest.raises(penstock.StateError, match="does not exist in this process any more"):
        exe.run(fetch_list=out)
    out = fluid.layers.read_file(fluid.layers.py_reader(2, [[-1, 2]], ["float32"]))
    with pytest.raises(penstock.StateError, match="create_py_reader"):
        exe.run(fluid.default_main_program()._prune([out]), fetch_list=[out])


def test_py_reader_batches_are_checked_against_the_program(fluid):
    reader = fluid.layers.py_reader(2, [[-1, 2], [-1, 1]], ["float32", "int64"])
    fluid.layers.read_file(reader)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    with pytest.raises(RuntimeError, match="has no data"):
        reader.start()
    for batch, says in (
        ([np.zeros((2, 2), "float32")], "gives 1 tensors; the program reads 2"),
        ([np.zeros((2, 2), "float32"), np.zeros((2, 1))], "gives f64.* which is declared i64"),
    ):
        reader.decorate_batch_generator(lambda: iter([batch]))
        reader.start()
        with pytest.raises(penstock.ProgramError, match=says) as error:
            exe.run()
        assert "test_readers.py" in str(error.value)
        reader.reset()
    with pytest.raises(ValueError, match="2 shapes, 1 dtypes and 2 lod_levels"):
        fluid.layers.py_reader(2, [[-1, 2], [-1, 1]], ["float32"])
    fluid.global_scope().find_var("lod_tensor_blocking_queue_0").get_tensor().set(np.zeros(1, "float32"), None)
    with pytest.raises(penstock.StateError, match="lod_tensor_blocking_queue_0 is no queue of batches"):
        exe.run(fluid.default_startup_program())


def test_a_trainer_program_keeps_the_reader(fluid):
    reader = fluid.layers.py_reader(4, [[-1, 13], [-1, 1]], ["float32", "float32"])
    x, y = fluid.layers.read_file(reader)
    loss = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(x, 1), y))
    fluid.optimizer.SGD(0.01).minimize(loss)
    transpiler = fluid.DistributeTranspiler()
    transpiler.transpile(0, pservers="127.0.0.1:6174,127.0.0.1:6175", trainers=2)
    trainer = transpiler.get_trainer_program(wait_port=False)
    assert [op.type for op in trainer.global_block().ops][:2] == ["create_double_buffer_reader", "read"]
    assert "create_py_reader" in [op.type for op in fluid.default_startup_program().global_block().ops]
    served = transpiler.get_pserver_program("127.0.0.1:6174")
    startup = transpiler.get_startup_program("127.0.0.1:6174", served)
    assert not [op.type for block in served.blocks + startup.blocks for op in block.ops if "read" in op.type]


WAITS = textwrap.dedent("""
    import sys, threading
    import numpy as np
    import penstock.fluid as fluid
    x = fluid.data('x', [None, 2])
    never = threading.Event()
    def reader():
        yield [np.zeros((1, 2), 'float32')]
        print('waiting', flush=True)
        never.wait()
    iterable = sys.argv[1] == 'iterable'
    loader = fluid.io.DataLoader.from_generator([x], 2, iterable=iterable)
    loader.set_batch_generator(reader, fluid.cpu_places(1) if iterable else None)
    out = fluid.layers.scale(x, 2.0)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    try:
        if iterable:
            for data in loader():
                exe.run(feed=data, fetch_list=[out])
        else:
            loader.start()
            while True:
                exe.run(fetch_list=[out])
    except KeyboardInterrupt:
        print('stopped', flush=True)
""")


@pytest.mark.parametrize("kind", ["iterable", "read"])
def test_ctrl_c_ends_the_wait_for_a_reader(tmp_path, kind):
    script = tmp_path / "train.py"
    script.write_text(WAITS)
    process = subprocess.Popen([sys.executable, str(script), kind], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "waiting\n"
    process.send_signal(signal.SIGINT)
    rest, _ = process.communicate(timeout=180)
    assert (rest, process.returncode) == ("stopped\n", 0)


def test_flags_are_set_and_read(fluid):
    assert fluid.get_flags("FLAGS_check_nan_inf") == {"FLAGS_check_nan_inf": False}
    with pytest.warns(UserWarning, match="FLAGS_eager_delete_tensor_gb has no effect"):
        fluid.set_flags({"FLAGS_eager_delete_tensor_gb": 1.0})
    assert fluid.get_flags(["FLAGS_eager_delete_tensor_gb"]) == {"FLAGS_eager_delete_tensor_gb": 1.0}
    for name in ("FLAGS_nobody", "check_nan_inf"):
        with pytest.raises(ValueError, match=f"flag {name} has not been set"):
            fluid.get_flags(name)
    with pytest.raises(ValueError, match="check_nan_inf is not a flag"), warnings.catch_warnings():
        fluid.set_flags({"check_nan_inf": 1})
