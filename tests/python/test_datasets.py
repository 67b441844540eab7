"""Datasets and Executor.train_from_dataset on one machine: Fluid's numbers, order, shuffling, threads, errors."""

import re
import sys
import threading

import numpy as np
import pytest
from penstock import _penstock


def write(folder, name, lines):
    path = folder / name
    path.write_text("".join(line + "\n" for line in lines))
    return str(path)


def click_model(fluid, scale=0.1):
    """The variables of a line, and the loss."""
    words = fluid.layers.data("words", [1], dtype="int64", lod_level=1)
    price = fluid.layers.data("price", [1], dtype="float32")
    label = fluid.layers.data("label", [1], dtype="int64")
    table = fluid.ParamAttr(name="table", initializer=fluid.initializer.Constant(0.1))
    pooled = fluid.layers.sequence_pool(fluid.layers.embedding(words, [10, 4], param_attr=table), "sum")
    output = fluid.layers.fc([pooled, price], 2, act="softmax", param_attr=fluid.initializer.Constant(scale))
    loss = fluid.layers.mean(fluid.layers.cross_entropy(output, label))
    return [words, price, label], loss


CLICKS = [f"2 {i % 5} {(i + 1) % 5} 1 {i / 10:g} 1 {i % 2}" for i in range(10)]


def made(fluid, kind, variables, files, batch_size=3, **settings):
    dataset = fluid.DatasetFactory().create_dataset(kind)
    dataset.set_use_var(variables)
    dataset.set_batch_size(batch_size)
    dataset.set_filelist(files)
    for name, value in settings.items():
        getattr(dataset, "set_" + name)(value)
    if kind == "InMemoryDataset":
        dataset.load_into_memory()
    return dataset


# Of Fluid 1.8.5, one pass over CLICKS in batches of three: InMemoryDataset drops the zero ids.
FLUIDS_TABLE = {
    "QueueDataset": [0.09966975, 0.09987995, 0.09999994, 0.09988662, 0.09966308, 0.1],
    "InMemoryDataset": [0.1, 0.09988348, 0.09999931, 0.09994266, 0.09977387, 0.1],
}


@pytest.mark.parametrize("kind", FLUIDS_TABLE)
def test_training_matches_fluid(tmp_path, fluid, capfd, kind):
    variables, loss = click_model(fluid)
    fluid.optimizer.SGD(0.1).minimize(loss)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    dataset = made(fluid, kind, variables, [write(tmp_path, "a", CLICKS)])
    exe.train_from_dataset(
        fluid.default_main_program(), dataset, fetch_list=[loss, variables[0]], fetch_info=["loss", "w"], print_period=2
    )
    table = np.array(fluid.global_scope().find_var("table").get_tensor())
    np.testing.assert_allclose(table[:6], np.repeat(np.array(FLUIDS_TABLE[kind])[:, None], 4, 1), rtol=1e-6)
    if kind == "QueueDataset":
        assert capfd.readouterr().out == FLUIDS_LINES


FLUIDS_LINES = """loss	mean_0.tmp_0		lod: {}
	dim: 1
	layout: NCHW
	dtype: float
	data: [0.700014]
	
w	words		lod: {{0, 2, 4, 6}}
	dim: 6, 1
	layout: NCHW
	dtype: int64_t
	data: [3 4 4 0 0 1]
	
loss	mean_0.tmp_0		lod: {}
	dim: 1
	layout: NCHW
	dtype: float
	data: [0.717696]
	
w	words		lod: {{0, 2}}
	dim: 2, 1
	layout: NCHW
	dtype: int64_t
	data: [4 0]
	
"""  # noqa: W291, W293


def test_the_description_equals_fluids(fluid):
    variables, _ = click_model(fluid)
    dataset = fluid.DatasetFactory().create_dataset("QueueDataset")
    dataset.set_use_var(variables[:2])
    dataset.set_batch_size(3)
    assert (
        dataset.desc()
        == """name: "MultiSlotDataFeed"
batch_size: 3
multi_slot_desc {
  slots {
    name: "words"
    type: "uint64"
    is_used: true
  }
  slots {
    name: "price"
    type: "float"
    is_dense: true
    is_used: true
    shape: -1
    shape: 1
  }
}
pipe_command: "cat"
"""
    )


class Seen:
    """Records the batches of a program, with a py_func."""

    def __init__(self, fluid, shape=(None, 1), dtype="int64"):
        self.batches, self._lock = [], threading.Lock()
        self.x = fluid.data("x", list(shape), dtype)
        out = fluid.default_main_program().global_block().create_var(name="seen", shape=[1], dtype="float32")
        fluid.layers.py_func(self._keep, self.x, out)
        self.out = out

    def _keep(self, value):
        with self._lock:
            self.batches.append(np.array(value).tolist())
        return np.zeros(1, "float32")

    def run(self, fluid, dataset, **arguments):
        """The batches of one pass."""
        self.batches = []
        exe = fluid.Executor(fluid.CPUPlace())
        exe.infer_from_dataset(fluid.default_main_program(), dataset, fetch_list=[self.out], **arguments)
        return [sum(batch, []) for batch in self.batches]


def numbers(begin, end):
    return [f"1 {i}" for i in range(begin, end)]


def test_batches_span_files_in_each_pass(tmp_path, fluid):
    seen = Seen(fluid)
    files = [write(tmp_path, "a", numbers(0, 3)), write(tmp_path, "b", []), write(tmp_path, "c", numbers(3, 7))]
    dataset = made(fluid, "QueueDataset", [seen.x], files, 2)
    for _ in range(2):
        assert seen.run(fluid, dataset) == [[0, 1], [2, 3], [4, 5], [6]]


@pytest.mark.parametrize("kind", ["QueueDataset", "InMemoryDataset"])
def test_files_are_divided_among_threads(tmp_path, fluid, kind):
    seen = Seen(fluid)
    files = [write(tmp_path, f"f{i}", numbers(10 * i, 10 * i + 4)) for i in range(3)]
    dataset = made(fluid, kind, [seen.x], files, 3, thread=2)
    expected = {
        "QueueDataset": [[0, 1, 2], [3, 20, 21], [22, 23], [10, 11, 12], [13]],
        "InMemoryDataset": [[0, 1, 2], [3, 10, 11], [12, 13, 20], [21, 22, 23]],
    }[kind]
    for _ in range(2):
        assert sorted(seen.run(fluid, dataset)) == sorted(expected)
    assert seen.run(fluid, dataset, thread=1) == [[0, 1, 2], [3, 10, 11], [12, 13, 20], [21, 22, 23]]


def test_a_pipe_command_makes_the_lines(tmp_path, fluid):
    seen = Seen(fluid)
    (tmp_path / "gen.py").write_text("import sys\nfor line in sys.stdin:\n    print(1, int(line) * 2)\n")
    file = write(tmp_path, "a", ["1", "2", "3"])
    for kind in ("QueueDataset", "InMemoryDataset"):
        dataset = made(fluid, kind, [seen.x], [file], 2, pipe_command=f"{sys.executable} {tmp_path / 'gen.py'}")
        assert seen.run(fluid, dataset) == [[2, 4], [6]]


def test_dense_slots_have_rows_of_their_shape(tmp_path, fluid):
    seen = Seen(fluid, (None, 2, 2), "float32")
    dataset = made(fluid, "QueueDataset", [seen.x], [write(tmp_path, "a", ["4 1 2 3 4", "4 5 6 7 8"])], 2)
    seen.run(fluid, dataset)
    assert seen.batches == [[[[1, 2], [3, 4]], [[5, 6], [7, 8]]]]


def test_a_shuffle_depends_on_seed_and_number(tmp_path, fluid):
    seen = Seen(fluid)
    file = write(tmp_path, "a", numbers(0, 50))

    def passes(seed):
        fluid.default_main_program().random_seed = seed
        dataset = made(fluid, "InMemoryDataset", [seen.x], [file], 50)
        orders = []
        for shuffle in (dataset.local_shuffle, dataset.global_shuffle):
            shuffle()
            orders += seen.run(fluid, dataset)
        return orders

    first, again, other = passes(1), passes(1), passes(2)
    assert first == again and first[0] != first[1] and first[0] != other[0]
    for order in first + other:
        assert sorted(order) == list(range(50)) and order != list(range(50))


def test_loading_keeps_the_file_order_with_any_threads(tmp_path, fluid):
    seen = Seen(fluid)
    files = [write(tmp_path, f"f{i}", numbers(100 * i, 100 * i + 100 - 10 * i)) for i in range(7)]
    expected = [100 * i + j for i in range(7) for j in range(100 - 10 * i)]
    for threads in (1, 4):
        dataset = made(fluid, "InMemoryDataset", [seen.x], files, 1000, thread=threads)
        assert seen.run(fluid, dataset, thread=1) == [expected]


def test_memory_is_preloaded_and_released(tmp_path, fluid):
    seen = Seen(fluid)
    dataset = made(fluid, "InMemoryDataset", [seen.x], [write(tmp_path, "a", numbers(0, 5))], 10)
    assert dataset.get_memory_data_size() == dataset.get_shuffle_data_size() == 5
    dataset.set_filelist([write(tmp_path, "b", numbers(5, 8))])
    dataset.preload_into_memory(2)
    with pytest.raises(_penstock.StateError, match="already preloading"):
        dataset.preload_into_memory()
    assert seen.run(fluid, dataset) == [[0, 1, 2, 3, 4]]
    dataset.wait_preload_done()
    assert seen.run(fluid, dataset) == [[5, 6, 7]]
    dataset.release_memory()
    assert dataset.get_memory_data_size() == 0
    with pytest.raises(_penstock.StateError, match="nothing is loaded; call load_into_memory"):
        seen.run(fluid, dataset)
    with pytest.raises(_penstock.StateError, match="nothing is preloading"):
        dataset.wait_preload_done()
    dataset.set_filelist([str(tmp_path / "missing")])
    dataset.preload_into_memory()
    with pytest.raises(_penstock.StateError, match="missing cannot be read"):
        dataset.wait_preload_done()


def test_a_dataset_without_lines_trains_nothing(tmp_path, fluid):
    seen = Seen(fluid)
    assert seen.run(fluid, made(fluid, "QueueDataset", [seen.x], [])) == []
    empty = [write(tmp_path, "a", [])]
    for kind in ("QueueDataset", "InMemoryDataset"):
        assert seen.run(fluid, made(fluid, kind, [seen.x], empty, thread=3)) == []


@pytest.mark.parametrize(
    "lines, command, threads, message",
    [
        (numbers(0, 5) + ["1 x"], "cat", 1, r'a, line 6: slot x: "x" is no integer of 64 bits   \[E-dataset-number\]'),
        (numbers(0, 5) + ["2 1 2"], "cat", 2, r"a, line 6: slot x: its count is 2, but an instance of \[1\] has 1"),
        (["1"], "cat", 1, "a, line 1: slot x: its count is 1, but the line ends after 0 numbers"),
        (numbers(0, 5), "cat; exit 3", 1, 'b: the pipe command "cat; exit 3" ended with exit code 3 after 3 lines'),
        (numbers(0, 5), "no-such-command-here", 2, "ended with exit code 127 after 0 lines"),
        (numbers(0, 5), "cat; kill -9 $$", 1, "was ended by signal 9 after 3 lines"),
    ],
)
@pytest.mark.parametrize("kind", ["QueueDataset", "InMemoryDataset"])
def test_a_data_error_is_reported_once_with_file_and_line(tmp_path, fluid, kind, lines, command, threads, message):
    seen = Seen(fluid)
    files = [write(tmp_path, "b", numbers(0, 3)), write(tmp_path, "a", lines)]
    with pytest.raises((_penstock.ProgramError, _penstock.StateError), match=message):
        seen.run(fluid, made(fluid, kind, [seen.x], files, 1, thread=threads, pipe_command=command))


def test_the_first_error_of_a_thread_ends_all(tmp_path, fluid):
    x = fluid.data("x", [None, 1], "int64")
    out = fluid.default_main_program().global_block().create_var(name="seen", shape=[1], dtype="float32")

    def fails(value):
        if np.array(value)[0, 0] == 1003:
            raise ValueError("the third step")
        return np.zeros(1, "float32")

    fluid.layers.py_func(fails, x, out)
    files = [write(tmp_path, f"f{i}", numbers(1000 * i, 1000 * i + 900)) for i in range(3)]
    dataset = made(fluid, "QueueDataset", [x], files, 1, thread=3)
    exe = fluid.Executor(fluid.CPUPlace())
    with pytest.raises(_penstock.StateError, match="the third step") as error:
        exe.train_from_dataset(fluid.default_main_program(), dataset, fetch_list=[out])
    assert isinstance(error.value.__cause__, ValueError)
    assert not [each for each in threading.enumerate() if "penstock-trainer" in each.name]


def test_several_threads_train_the_same_parameters(tmp_path, fluid):
    x, y = fluid.data("x", [None, 4]), fluid.data("y", [None, 1])
    loss = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(x, 1), y))
    fluid.optimizer.SGD(0.05).minimize(loss)
    random, files = np.random.RandomState(0), []
    for i in range(4):
        rows = random.rand(400, 4)
        files.append(write(tmp_path, f"f{i}", [f"4 {' '.join(f'{v:f}' for v in row)} 1 {row.sum():f}" for row in rows]))
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    dataset = made(fluid, "InMemoryDataset", [x, y], files, 8, thread=4)
    for _ in range(4):
        exe.train_from_dataset(fluid.default_main_program(), dataset)
    weight = np.array(fluid.global_scope().find_var("fc_0.w_0").get_tensor())
    np.testing.assert_allclose(weight, np.ones((4, 1)), atol=0.05)


def test_progress_shows_step_loss_and_speed(tmp_path, fluid, capfd, monkeypatch):
    variables, loss = click_model(fluid)
    fluid.optimizer.SGD(0.1).minimize(loss)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    dataset = made(fluid, "QueueDataset", variables, [write(tmp_path, "a", CLICKS)])
    line = r"step %d: loss 0\.\d+, \d+ examples/s, 0.00 s of \d+\.\d\d s in communication"
    exe.train_from_dataset(fluid.default_main_program(), dataset, debug=True, print_period=3)
    assert re.fullmatch(line % 3 + "\n", capfd.readouterr().out)
    monkeypatch.setenv("PENSTOCK_PROGRESS", "1")
    exe.train_from_dataset(fluid.default_main_program(), dataset, print_period=2)
    assert re.fullmatch(line % 2 + "\n" + line % 4 + "\n", capfd.readouterr().out)


@pytest.mark.parametrize(
    "places, drop_last, expected",
    [
        (2, True, [[[0, 1], [4, 5]]]),
        (2, False, [[[0, 1], [4, 5]], [[2], [6, 7]], [[8]]]),
        (1, True, [[[0, 1]], [[2, 4]], [[5, 6]], [[7, 8]]]),
    ],
)
def test_a_loader_yields_the_batches_to_a_loop(tmp_path, fluid, places, drop_last, expected):
    seen = Seen(fluid)
    files = [write(tmp_path, "a", numbers(0, 3)), write(tmp_path, "b", numbers(4, 9))]
    dataset = made(fluid, "QueueDataset", [seen.x], files, 2)
    loader = fluid.io.DataLoader.from_dataset(dataset, fluid.cpu_places(places), drop_last)
    exe = fluid.Executor(fluid.CPUPlace())
    for _ in range(2):
        groups = []
        for feeds in loader():
            seen.batches = []
            for feed in feeds:
                exe.run(feed=feed, fetch_list=[seen.out])
            groups.append([sum(batch, []) for batch in seen.batches])
        assert groups == expected
    with pytest.raises(TypeError, match="takes a dataset of DatasetFactory, not 5"):
        fluid.io.DataLoader.from_dataset(5, fluid.cpu_places(1))


def test_a_fetch_handler_receives_values_during_training(tmp_path, fluid):
    variables, loss = click_model(fluid)
    got = []

    class Mine(fluid.executor.FetchHandler):
        def handler(self, res_dict):
            got.append(res_dict)

    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    dataset = made(fluid, "QueueDataset", variables, [write(tmp_path, "a", CLICKS)])
    exe.infer_from_dataset(fluid.default_main_program(), dataset, fetch_handler=Mine({"price": variables[1]}, 0))
    assert [each["price"].reshape(-1).tolist() for each in got][0] == pytest.approx([0, 0.1, 0.2])
    assert len(got) == 4
    with pytest.raises(ValueError, match="FetchHandler needs the variables"):
        fluid.executor.FetchHandler()


def test_invalid_arguments_are_refused(fluid):
    exe, factory = fluid.Executor(fluid.CPUPlace()), fluid.DatasetFactory()
    with pytest.raises(TypeError, match="needs a dataset of DatasetFactory, not None"):
        exe.train_from_dataset(fluid.default_main_program())
    dataset = factory.create_dataset()
    assert type(dataset).__name__ == "QueueDataset"
    with pytest.raises(_penstock.StateError, match="there are no files; call set_filelist"):
        exe.train_from_dataset(fluid.default_main_program(), dataset)
    dataset.set_filelist(["a"])
    with pytest.raises(_penstock.ProgramError, match="no slot is used; call set_use_var"):
        exe.train_from_dataset(fluid.default_main_program(), dataset)
    with pytest.raises(ValueError, match="only supports dtype=float32 and dtype=int64; d is FP64"):
        dataset.set_use_var([fluid.data("d", [None, 1], "float64")])
    dataset.set_use_var([fluid.data("u", [None, None], "float32")])
    with pytest.raises(_penstock.ProgramError, match=r"the dense slot u has instances of shape \[\?\]"):
        exe.train_from_dataset(fluid.default_main_program(), dataset)
    with pytest.raises(ValueError, match="fetch_info has 1 texts for the 0 variables"):
        exe.train_from_dataset(fluid.default_main_program(), dataset, fetch_info=["x"])
    with pytest.raises(ValueError, match="print_period must be at least 1, not 0"):
        exe.train_from_dataset(fluid.default_main_program(), dataset, print_period=0)
    with pytest.raises(ValueError, match="datafeed class NoDataset does not exist; there are"):
        factory.create_dataset("NoDataset")
    with pytest.raises(NotImplementedError, match="BoxPSDataset needs BoxPS"):
        factory.create_dataset("BoxPSDataset")
    for setter, value, message in [
        ("set_batch_size", 0, "batch_size must be at least 1, not 0"),
        ("set_thread", -1, "thread_num must be at least 1, not -1"),
    ]:
        with pytest.raises(ValueError, match=message):
            getattr(dataset, setter)(value)
    with pytest.raises(TypeError, match="filelist must be a list of paths"):
        dataset.set_filelist("a")
    with pytest.raises(NotImplementedError, match="QueueDataset does not support local shuffle"):
        dataset.local_shuffle()
    with pytest.raises(NotImplementedError, match="QueueDataset does not support global shuffle"):
        dataset.global_shuffle()
    for call in (lambda: dataset.set_hdfs_config("afs://x", "user"), lambda: dataset.set_pv_batch_size(2)):
        with pytest.raises(NotImplementedError, match="is not built"):
            call()
