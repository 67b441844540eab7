"""Optimizers beyond their simple use: options, wrong arguments, several losses in one program."""

import numpy as np
import pytest


def net(fluid):
    x = fluid.data("x", [None, 4])
    hidden = fluid.layers.fc(x, 3, param_attr=fluid.ParamAttr(name="w"), bias_attr=fluid.ParamAttr(name="b"))
    return fluid.layers.mean(hidden), hidden


def test_lamb_excludes_parameters_from_decay(fluid):
    loss, _ = net(fluid)
    optimizer = fluid.optimizer.Lamb(0.1, lamb_weight_decay=0.3, exclude_from_weight_decay_fn=lambda p: p.name == "b")
    ops, _ = optimizer.minimize(loss)
    decay = {op.input("Param")[0]: op.attr("weight_decay") for op in ops if op.type == "lamb"}
    assert decay == {"b": 0.0, "w": pytest.approx(0.3)}
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    exe.run(feed={"x": np.ones((2, 4), "float32")}, fetch_list=[loss])


def test_parameters_without_gradient_are_not_updated(fluid):
    loss, _ = net(fluid)
    optimizer = fluid.optimizer.SGD(0.1)
    pairs = optimizer.backward(loss)
    ops = optimizer.apply_gradients([(param, grad if param.name == "w" else None) for param, grad in pairs])
    assert [op.input("Param") for op in ops if op.type == "sgd"] == [["w"]]


@pytest.mark.parametrize(
    "make, says",
    [
        (lambda own: own.Adam(0.1, beta1=None), "Adam: beta1 must be a number, not None"),
        (lambda own: own.Momentum(0.1, None), "Momentum: momentum must be a number, not None"),
        (lambda own: own.RMSProp(0.1, rho="a"), "RMSProp: rho must be a number, not 'a'"),
        (
            lambda own: own.Lamb(0.1, exclude_from_weight_decay_fn="b"),
            "exclude_from_weight_decay_fn must be a function",
        ),
        (lambda own: own.SGD(0.1, regularization="l2"), "regularization must be an L1Decay or L2Decay, not str"),
        (lambda own: own.SGD(0.1).minimize("loss"), "minimize: the loss must be a Variable, not 'loss'"),
        (lambda own: own.SGD(0.1).backward(None), "backward: the loss must be a Variable, not None"),
    ],
)
def test_a_wrong_argument_is_reported(fluid, make, says):
    with pytest.raises(TypeError, match=says):
        make(fluid.optimizer)


@pytest.mark.parametrize(
    "arguments, says",
    [
        (dict(parameter_list="w"), "expected a list or a set of Variables or names, not 'w'"),
        (dict(parameter_list=[1]), "expected a Variable or its name, not 1"),
        (dict(no_grad_set="w"), "expected a list or a set of Variables or names, not 'w'"),
    ],
)
def test_invalid_variable_lists_are_reported(fluid, arguments, says):
    loss, _ = net(fluid)
    with pytest.raises(TypeError, match=says):
        fluid.backward.append_backward(loss, **arguments)


@pytest.mark.parametrize(
    "make, error, says",
    [
        (lambda f: f.ParamAttr(name=3), TypeError, "ParamAttr: the name must be a str, not 3"),
        (lambda f: f.ParamAttr(trainable="no"), TypeError, "trainable must be True or False, not 'no'"),
        (lambda f: f.ParamAttr(learning_rate="a"), TypeError, "learning_rate must be a number, not 'a'"),
        (lambda f: f.ParamAttr(initializer="zeros"), TypeError, "initializer must be an Initializer, not 'zeros'"),
        (lambda f: f.ParamAttr(regularizer=0.1), TypeError, "regularizer must be an L1Decay or L2Decay, not 0.1"),
        (lambda f: f.initializer.Constant(None), TypeError, "Constant: value must be a number, not None"),
        (lambda f: f.initializer.Normal(scale="a"), TypeError, "Normal: scale must be a number, not 'a'"),
        (lambda f: f.initializer.Uniform(1.0, 0.0), ValueError, r"low \(1.0\) must not be above high \(0.0\)"),
        (lambda f: f.regularizer.L2Decay("a"), TypeError, "regularization_coeff must be a number, not 'a'"),
    ],
)
def test_parameter_descriptions_are_checked_at_construction(fluid, make, error, says):
    with pytest.raises(error, match=says):
        make(fluid)


def test_types_print_their_names(fluid):
    assert str(fluid.data("x", [1]).dtype) == "VarType.FP32"


def test_test_clones_contain_no_readers(fluid):
    reader = fluid.layers.py_reader(2, [[-1, 4]], ["float32"], use_double_buffer=True)
    out = fluid.layers.dropout(fluid.layers.read_file(reader), 0.5)
    program = fluid.default_main_program()
    copy = program._inference_optimize()
    assert [op.type for op in copy.global_block().ops] == ["dropout"] and out.name in copy.global_block().vars
    assert copy.global_block().ops[0].attr("is_test") and not program.global_block().ops[-1].attr("is_test")
    assert not any(var.type.name == "READER" for var in copy.list_vars())
    assert "read" in [op.type for op in program._inference_optimize(prune_read_op=False).global_block().ops]


def test_the_rate_of_one_parameter_may_be_set_in_place(fluid):
    loss, _ = net(fluid)
    param = fluid.default_main_program().global_block().var("w")
    param.optimize_attr["learning_rate"] *= 0.25
    assert param.optimize_attr == {"learning_rate": 0.25}
    ops, _ = fluid.optimizer.SGD(fluid.layers.noam_decay(8, 10)).minimize(loss)
    (scale,) = [op for op in ops if op.type == "scale"]
    assert scale.attr("scale") == 0.25
    with pytest.raises(KeyError, match="optimize_attr may hold learning_rate only"):
        param.optimize_attr["momentum"] = 0.9


def test_state_is_found_by_the_name_of_its_kind(fluid):
    loss, _ = net(fluid)
    optimizer = fluid.optimizer.Adam(0.1, name="mine")
    optimizer.minimize(loss)
    w = fluid.default_main_program().global_block().var("w")
    first, power = (
        optimizer._get_accumulator(name, w) for name in (optimizer._moment1_acc_str, optimizer._beta1_pow_acc_str)
    )
    assert (first.name, first.shape) == ("w_mine_moment1_0", (4, 3))
    assert (power.name, power.shape) == ("w_mine_beta1_pow_acc_0", (1,))
    assert {name: sorted(by_param) for name, by_param in optimizer._accumulators.items()} == {
        f"mine_{kind}": ["b", "w"] for kind in ("moment1", "moment2", "beta1_pow_acc", "beta2_pow_acc")
    }


@pytest.mark.parametrize(
    "name, arguments",
    [
        ("Momentum", [0.9]),
        ("LarsMomentum", [0.9]),
        ("Adagrad", []),
        ("DecayedAdagrad", []),
        ("Adam", []),
        ("Lamb", []),
        ("Adamax", []),
        ("Adadelta", []),
        ("RMSProp", []),
        ("Ftrl", []),
    ],
)
def test_each_optimizer_names_its_kinds_of_state(fluid, name, arguments):
    loss, _ = net(fluid)
    optimizer = getattr(fluid.optimizer, name)(0.1, *arguments)
    optimizer.minimize(loss)
    named = {getattr(optimizer, field) for field in dir(optimizer) if field.endswith("_acc_str")}
    assert set(optimizer._accumulators) == named


def test_a_program_is_pruned_to_one_target_or_op(fluid):
    loss, hidden = net(fluid)
    main = fluid.default_main_program()
    assert [op.type for op in main._prune(hidden).global_block().ops] == ["mul", "elementwise_add"]
    assert [op.type for op in main._prune([main.global_block().ops[0]]).global_block().ops] == ["mul"]
    with pytest.raises(ValueError, match="_prune: a target is a Variable, an Operator or a name, not None"):
        main._prune(None)


def test_an_optimizer_without_an_update_is_refused(fluid):
    loss = fluid.layers.mean(fluid.layers.fc(fluid.data("x", [None, 4]), 1))
    with pytest.raises(NotImplementedError, match="Optimizer must define _append_optimize_op"):
        fluid.optimizer.Optimizer(0.1).minimize(loss)
