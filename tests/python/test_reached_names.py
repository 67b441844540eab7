"""Undocumented names of Fluid that scripts and tests use."""

import numpy as np
import pytest


def test_a_program_is_pruned_between_feeds_and_targets(fluid):
    x = fluid.data("x", [None, 2])
    hidden = fluid.layers.fc(x, 3)
    loss = fluid.layers.mean(hidden)
    fluid.layers.scale(loss, 2.0)
    program = fluid.default_main_program()
    cut = program._prune_with_input(feeded_var_names=[hidden.name], targets=[loss])
    assert [op.type for op in cut.global_block().ops] == ["mean"]
    with pytest.raises(ValueError):
        program._prune_with_input([2], [loss])
    for copy in (program._copy_param_info_from, program._copy_dist_param_info_from):
        with pytest.raises(TypeError):
            copy("program")


def test_numbers_and_arrays_become_tensors(fluid):
    make, place = fluid.executor._as_lodtensor, fluid.CPUPlace()
    number = make(1.0, place, fluid.core.VarDesc.VarType.INT32)
    assert number._dtype() == fluid.core.VarDesc.VarType.INT32 and np.array(number).tolist() == [1]
    assert np.array(make(np.ones((2, 3)), place)).shape == (2, 3)
    with pytest.raises(AssertionError):
        make(1, place)
    with pytest.raises(RuntimeError):
        make([np.ones(2)], place)


def test_inert_and_unsupported_core_names_behave_as_documented(fluid):
    fluid.core._set_eager_deletion_mode(0.0, 1.0, True)
    with pytest.raises(NotImplementedError, match="DynamicRNN"):
        fluid.op.DynamicRecurrentOp()


def test_layers_refuse_invalid_shapes_and_numbers(fluid):
    layers, x = fluid.layers, fluid.data("x", [2, 2])
    for call, text in (
        (lambda: layers.randint(5, shape=np.array([2, 3])), "randint: shape"),
        (lambda: layers.create_parameter(3, "float32"), "create_parameter: shape"),
        (lambda: layers.create_parameter([3], "float32", default_initializer=np.ones(3)), "Initializer"),
        (lambda: layers.tril(x, diagonal=1.5), "diagonal in tril must be a python Int"),
        (lambda: layers.triu(x, diagonal="2"), "diagonal in triu must be a python Int"),
    ):
        with pytest.raises(TypeError, match=text):
            call()
    with pytest.raises(ValueError, match="input shape in tril must be at least 2-D"):
        layers.tril(fluid.data("v", [4]))


def test_dicts_and_lists_of_variables_are_loop_variables(fluid):
    layers = fluid.layers
    i, ten = layers.zeros([1], "int64"), layers.fill_constant([1], "int64", 10)
    held = {"b": [layers.fill_constant([1], "float32", 1.0)], "a": layers.zeros([1], "int64")}

    def body(i, held):
        held["a"] = held["a"] + i
        held["b"][0] = held["b"][0] * 2.0
        return layers.increment(i), held

    layers.while_loop(lambda i, _: i < ten, body, [i, held])
    total, power = fluid.Executor().run(fetch_list=[held["a"], held["b"][0]])
    assert (total.item(), power.item()) == (45, 1024)

    def grows(i, held):
        return i, {**held, "c": i}

    def appends(i, some):
        some.append(i)
        return i, some

    with pytest.raises(ValueError, match="keys"):
        layers.while_loop(lambda i, _: i < ten, grows, [i, held])
    with pytest.raises(ValueError, match="sizes"):
        layers.while_loop(lambda i, _: i < ten, appends, [i, [ten]])
