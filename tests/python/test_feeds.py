"""The values that a program accepts as feeds, and what happens to fed tensors."""

import numpy as np
import penstock
import pytest


def test_tensor_set_keeps_the_lod(fluid):
    tensor = fluid.LoDTensor()
    tensor.set_lod([[0, 2, 5]])
    tensor.set(np.zeros((5, 1), "float32"), fluid.CPUPlace())
    assert tensor.lod() == [[0, 2, 5]]
    tensor.set(np.ones((5, 1), "float32"))
    assert tensor.lod() == [[0, 2, 5]] and tensor.has_valid_recursive_sequence_lengths()
    tensor.set(np.ones((4, 1), "float32"))  # as in Fluid, until set_lod says what they are now
    assert tensor.lod() == [[0, 2, 5]] and not tensor.has_valid_recursive_sequence_lengths()
    x = fluid.data("x", [None, 1], lod_level=1)
    out = fluid.layers.sequence_pool(x, "sum")
    with pytest.raises(penstock.ProgramError, match="do not cover the 4 rows") as error:
        fluid.Executor().run(feed={"x": tensor}, fetch_list=[out])
    assert error.value.id == "E-lod-cover"
    tensor.set_lod([[0, 1, 4]])
    assert fluid.Executor().run(feed={"x": tensor}, fetch_list=[out])[0].tolist() == [[1], [3]]


def test_scope_variable_set_keeps_a_matching_lod(fluid):
    held = fluid.global_scope().var("held").get_tensor()
    held.set(np.zeros((3, 1), "float32"))
    held.set_lod([[0, 3]])
    held.set(np.ones((3, 1), "float32"))
    assert held.lod() == [[0, 3]]
    held.set(np.ones((2, 1), "float32"))  # a program that runs meanwhile must not read beyond them
    assert held.lod() == []


def test_layers_data_accepts_other_shapes_than_declared(fluid):
    """Declares the maximum length and feeds the length of the batch: Fluid only checks extents of fluid.data."""
    words = fluid.layers.data("words", [8, 3, 1], append_batch_size=False, dtype="int64")
    label = fluid.layers.data("label", [8, 1], append_batch_size=False)
    vectors = fluid.layers.embedding(words, [20, 4])
    output = fluid.layers.fc(fluid.layers.reduce_sum(vectors, dim=1), 1)
    loss = fluid.layers.mean(fluid.layers.square_error_cost(output, label))
    fluid.optimizer.SGD(0.1).minimize(loss)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    shapes = []
    for rows, longest in ((8, 3), (2, 7), (5, 1), (8, 3)):
        feed = {"words": np.ones((rows, longest, 1), "int64"), "label": np.ones((rows, 1), "float32")}
        shapes.append(exe.run(feed=feed, fetch_list=[output, loss])[0].shape)
    assert shapes == [(8, 1), (2, 1), (5, 1), (8, 1)]
    with pytest.raises(penstock.ProgramError) as error:  # an op names the mismatch
        exe.run(feed=dict(feed, label=np.ones((3, 1), "float32")), fetch_list=[loss])
    assert error.value.id.startswith("E-shape-")


def test_fluid_data_accepts_only_the_declared_shape(fluid):
    x = fluid.data("x", [None, 3])
    with pytest.raises(penstock.ProgramError) as error:
        fluid.Executor().run(feed={"x": np.ones((2, 4), "float32")}, fetch_list=[fluid.layers.mean(x)])
    assert error.value.id == "E-feed-shape"


@pytest.mark.parametrize("kind", ["py_reader", "DataLoader"])
def test_a_reader_may_yield_other_shapes_than_declared(fluid, kind):
    """Variables of py_reader, and of a DataLoader of layers.data; batches differ in length."""
    batches = [np.full(shape, 2, "float32") for shape in ((4, 3), (2, 3), (4, 5), (4, 3))]
    if kind == "py_reader":
        reader = fluid.layers.py_reader(2, [[4, 3]], ["float32"])
        x = fluid.layers.read_file(reader)
        reader.decorate_batch_generator(lambda: ([batch] for batch in batches))
    else:
        x = fluid.layers.data("x", [4, 3], append_batch_size=False)
        reader = fluid.io.DataLoader.from_generator([x], capacity=2, iterable=False)
        reader.set_batch_generator(lambda: ([batch] for batch in batches))
    out = fluid.layers.reduce_sum(fluid.layers.relu(x), dim=1)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    reader.start()
    for batch in batches:
        assert exe.run(fetch_list=[out])[0].tolist() == [2.0 * batch.shape[1]] * batch.shape[0]
    reader.reset()


def test_a_loader_of_fluid_data_checks_shapes(fluid):
    x = fluid.data("x", [None, 3])
    loader = fluid.io.DataLoader.from_generator([x], capacity=2, iterable=False)
    out = fluid.layers.mean(x)
    loader.set_batch_generator(lambda: iter([[np.zeros((2, 4), "float32")]]))
    loader.start()
    with pytest.raises(penstock.ProgramError, match=r"gives f32\[2, 4\] for x, which is declared f32\[\?, 3\]"):
        fluid.Executor().run(fetch_list=[out])
    loader.reset()
