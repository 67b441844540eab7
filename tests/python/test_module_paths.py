"""Names under the module paths that Fluid's scripts use, and Fluid's small modules."""

import importlib
import logging

import numpy
import pytest

# Modules of fluid.layers in Fluid, and layers that they define there.
PATHS = {
    "nn": "fc reduce_sum elementwise_max conv2d topk",
    "sequence_lod": "sequence_pool sequence_conv",
    "rnn": "dynamic_gru dynamic_lstm beam_search lstm_unit",
    "detection": "mean",
    "loss": "cross_entropy nce warpctc_is_elsewhere",
    "tensor": "concat argmax",
    "control_flow": "While less_than",
    "io": "data py_reader",
    "ops": "tanh",
    "metric_op": "accuracy",
    "learning_rate_scheduler": "noam_decay _decay_step_counter",
    "math_op_patch": "fill_constant",
    "distributions": "log",
    "layer_function_generator": "generate_activation_fn generate_layer_fn templatedoc",
    "device": "get_places",
    "utils": "map_structure convert_to_list",
    "collective": "_c_allreduce _allreduce",
}


@pytest.mark.parametrize("path", PATHS)
def test_each_layers_module_provides_every_layer(fluid, path):
    module = importlib.import_module("penstock.fluid.layers." + path)
    for name in PATHS[path].split():
        if name.endswith("_elsewhere"):
            with pytest.raises(AttributeError, match=f"penstock.fluid.layers.{path} has no {name}"):
                getattr(module, name)
        elif hasattr(fluid.layers, name):
            assert getattr(module, name) is getattr(fluid.layers, name)
        else:
            assert callable(getattr(module, name))


def test_a_layer_added_later_is_found(fluid, monkeypatch):
    monkeypatch.setattr(fluid.layers, "brand_new", len, raising=False)
    from penstock.fluid.layers.detection import brand_new

    assert brand_new is len


def test_modules_of_layers_hide_no_layer(fluid):
    for name in fluid.layers.__all__:
        assert type(getattr(fluid.layers, name)) is not type(fluid), name


def test_an_operator_library_is_refused_with_the_reason(fluid):
    with pytest.raises(NotImplementedError, match="libmine.so is linked against Fluid's own C\\+\\+ classes"):
        fluid.load_op_library("libmine.so")


def test_nested_structures_are_flattened_and_mapped(fluid):
    utils = fluid.layers.utils
    from collections import namedtuple

    state = namedtuple("state", "h c")
    nest = {"b": [1, state(2, 3)], "a": 4}
    assert utils.flatten(nest) == [4, 1, 2, 3] and utils.flatten(5) == [5]
    doubled = utils.map_structure(lambda x, y: x + y, nest, nest)
    assert doubled == {"b": [2, state(4, 6)], "a": 8} and list(doubled) == ["b", "a"]
    assert isinstance(doubled["b"][1], state)
    with pytest.raises(ValueError, match="has 4 leaves, but there are 2 values"):
        utils.pack_sequence_as(nest, [1, 2])
    with pytest.raises(TypeError, match="flat_sequence must be a sequence, not 3"):
        utils.pack_sequence_as(nest, 3)
    utils.assert_same_structure([1, (2,)], [3, (4,)])
    utils.assert_same_structure([1, (2,)], [3, [4]], check_types=False)
    for other, error in (([3, [4]], TypeError), ([3, 4], ValueError), ([3, (4, 5)], ValueError)):
        with pytest.raises(error, match="the structures differ"):
            utils.assert_same_structure([1, (2,)], other)
    with pytest.raises(ValueError, match="the structures differ"):
        utils.assert_same_structure({"a": 1}, {"b": 1})
    with pytest.raises(TypeError, match="must be comparable"):
        utils.flatten({"a": 1, 2: 3})
    assert utils.convert_to_list(2, 3, "stride") == [2, 2, 2] and utils.convert_to_list((1, 2), 2, "stride") == [1, 2]
    for wrong in ("ab", [1], None):
        with pytest.raises(ValueError, match="stride must be one int or 2 of them, not "):
            utils.convert_to_list(wrong, 2, "stride")
    assert utils.hold_mutable_vars([[1]]) and not utils.hold_mutable_vars([1])
    copy = utils.copy_mutable_vars(nest)
    assert copy == nest and copy["b"] is not nest["b"]


def test_collective_layers_append_their_ops(fluid):
    from penstock.fluid.layers import collective

    x = fluid.data("x", [4, 3])
    shapes = {
        "c_allreduce_max": collective._c_allreduce(x, reduce_type="max", ring_id=1),
        "allreduce": collective._allreduce(x, reduce_type="min"),
        "c_broadcast": collective._c_broadcast(x, root=1),
        "broadcast": collective._broadcast(x, root=1),
        "c_allgather": collective._c_allgather(x, 2),
        "c_reducescatter": collective._c_reducescatter(x, 2),
        "c_sync_calc_stream": collective._c_sync_calc_stream(x),
        "c_sync_comm_stream": collective._c_sync_comm_stream(x, 1),
    }
    assert [op.type for op in fluid.default_main_program().global_block().ops] == list(shapes)
    assert [var.shape for var in shapes.values()] == [(4, 3)] * 4 + [(8, 3), (2, 3)] + [(4, 3)] * 2
    assert shapes["c_allgather"].name.startswith("x.c_allgather")
    assert fluid.default_main_program().global_block().ops[1].attr("reduce_type") == 3
    with pytest.raises(TypeError, match="must be one of sum, prod, max, min, not 'mean'"):
        collective._c_allreduce(x, reduce_type="mean")
    with pytest.raises(ValueError, match="the 4 rows of x are not a multiple of nranks, 3"):
        collective._c_reducescatter(x, 3)
    with pytest.raises(NotImplementedError, match="Fluid 1.8 has no op get_places"):
        fluid.layers.device.get_places()


def test_decay_step_counter_advances_in_each_run(fluid):
    step = fluid.layers.learning_rate_scheduler._decay_step_counter(1)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    assert [exe.run(fetch_list=[step])[0].tolist() for _ in range(2)] == [[1.0], [2.0]]


def test_layers_are_generated_from_op_types(fluid):
    from penstock.fluid.layers import layer_function_generator as generator

    x = fluid.data("x", [2])
    y = generator.generate_activation_fn("sqrt")(x)
    assert fluid.Executor().run(feed={"x": numpy.array([4, 9], "float32")}, fetch_list=[y])[0].tolist() == [2, 3]

    out = y.block.create_var(name="out", shape=[2], dtype="float32")
    scaled = generator.generate_layer_fn("scale")(x, scale=3.0, bias=1.0, out=out, act="square")
    factor = fluid.layers.fill_constant([1], "float32", 2.0)
    by_tensor = generator.generate_layer_fn("scale")(x=x, scale_tensor=factor, name="doubled")
    assert by_tensor.name == "doubled.tmp_0"
    flat = generator.generate_layer_fn("reshape2")(x, shape=[1, 2])
    assert len(flat.op.output("XShape")) == 1
    got = fluid.Executor().run(feed={"x": numpy.array([1, 2], "float32")}, fetch_list=[out, scaled, by_tensor, flat])
    assert [value.tolist() for value in got] == [[4, 7], [16, 49], [2, 4], [[1, 2]]]

    @generator.autodoc(" More.")
    @generator.templatedoc()
    def layer():
        """One."""

    assert layer.__doc__ == "One. More."
    with pytest.warns(DeprecationWarning, match="layer is deprecated"):
        generator.deprecated(layer)()


@pytest.mark.parametrize(
    "call, says",
    [
        (lambda make, x: make("no_such_op"), "no_such_op"),
        (lambda make, x: make("split"), "op split must have one result, a single variable"),
        (lambda make, x: make("top_k"), "op top_k must have one result, a single variable"),
        (lambda make, x: make("scale")(3), "scale: an input must be a Variable, not 3"),
        (
            lambda make, x: make("elementwise_add")(x, x.block.create_var(name="y", dtype="int64", shape=[2])),
            "elementwise_add: its inputs must have one element type, but x has FP32 and y has INT64",
        ),
    ],
)
def test_unsuitable_ops_for_generated_layers_are_refused(fluid, call, says):
    from penstock.fluid.layers.layer_function_generator import generate_layer_fn

    with pytest.raises(ValueError, match=says):
        call(generate_layer_fn, fluid.data("x", [2]))


def test_a_layer_takes_no_more_arguments_than_its_op_has_inputs(fluid):
    from penstock.fluid.layers.layer_function_generator import generate_layer_fn

    x = fluid.data("x", [2])
    with pytest.raises(TypeError, match="relu: 1 positional arguments too many"):
        generate_layer_fn("relu")(x, x)


def test_loggers_write_by_themselves(fluid, capsys):
    for text in ("%(message)s!", "%(levelname)s %(message)s"):
        logger = fluid.log_helper.get_logger("penstock.test", logging.INFO, fmt=text)
    logger.debug("a")
    logger.info("b")
    assert capsys.readouterr().err == "INFO b\n" and not logger.propagate


def test_scopes_are_stacked(fluid):
    scopes = fluid.default_scope_funcs
    outer = scopes.get_cur_scope()
    scopes.var("x")

    def inside():
        assert scopes.get_cur_scope() is not outer
        scopes.var("y")
        assert scopes.find_var("x") is not None and scopes.find_var("y") is not None

    scopes.scoped_function(inside)
    assert scopes.get_cur_scope() is outer and scopes.find_var("y") is None
    with pytest.raises(RuntimeError, match="no scope has been entered"):
        scopes.leave_local_scope()


def test_the_deprecated_decorator_names_the_replacement(fluid, capsys):

    @fluid.annotations.deprecated(since="1.0", instead="new", extra_message="Or not.")
    def old(x):
        return x + 1

    assert old(1) == 2 and "Please use new instead.\nOr not." in old.__doc__
    assert capsys.readouterr().err == "API old is deprecated since 1.0. Please use new instead.\nOr not.\n"

    @fluid.wrapped_decorator.signature_safe_contextmanager
    def guard():
        yield 3

    with guard() as value:
        assert value == 3 and guard.__name__ == "guard"


def test_the_installation_checks_itself(fluid, capsys, monkeypatch):
    fluid.install_check.run_check()
    assert "one training step gave the right numbers" in capsys.readouterr().out
    assert fluid.default_main_program().global_block().ops == []
    monkeypatch.setattr(fluid.install_check, "_train_a_step", lambda parallel: (0.4, numpy.zeros((2, 3))))
    with pytest.raises(RuntimeError, match="a step computed loss 0.4 and weights"):
        fluid.install_check.run_check()


def test_a_variable_is_found_by_name(fluid):
    x = fluid.data("x", [1])
    assert fluid.framework._get_var("x") is x
    with pytest.raises(ValueError, match="y"):
        fluid.framework._get_var("y", fluid.Program())


def test_init_on_cpu_initializes_variables(fluid):
    with fluid.initializer.init_on_cpu():
        var = fluid.layers.create_global_var([1], 2.5, "float32", persistable=True)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    assert exe.run(fetch_list=[var])[0].tolist() == [2.5]
