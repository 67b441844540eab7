"""Single properties of programs that Fluid 1.8.5 builds; tests/parity/random compares whole programs."""

import pathlib

import penstock
import pytest

RANDOM = pathlib.Path(__file__).parent.parent / "parity" / "random"
PSERVERS = "10.0.0.1:6174,10.0.0.2:6174"


def types(program):
    return [op.type for op in program.global_block().ops]


@pytest.mark.parametrize("groups, type", [(None, "conv2d"), (1, "depthwise_conv2d")])
def test_one_channel_is_depthwise_only_with_explicit_groups(fluid, groups, type):
    image = fluid.data("image", [None, 1, 8, 8])
    fluid.layers.conv2d(image, 2, 3, groups=groups, use_cudnn=False)
    fluid.layers.conv2d_transpose(image, 1, filter_size=3, groups=groups, use_cudnn=False)
    assert types(fluid.default_main_program())[::2] == [type, type + "_transpose"]
    names = [p.name for p in fluid.default_main_program().all_parameters()]
    assert names == [type + "_0.w_0", type + "_0.b_0", type + "_transpose_0.w_0", type + "_transpose_0.b_0"]


def test_the_last_param_attr_of_a_name_takes_effect(fluid):
    x = fluid.data("x", [None, 4])
    decay = fluid.regularizer.L2Decay(0.1)
    decayed = fluid.ParamAttr("w", regularizer=decay, learning_rate=0.1, do_model_average=False)
    fluid.layers.fc(x, 4, param_attr=decayed)
    fluid.layers.fc(x, 4, param_attr=fluid.ParamAttr("w"))
    param = fluid.default_main_program().global_block().var("w")
    assert (param.regularizer, param.optimize_attr["learning_rate"], param.do_model_average) == (None, 1.0, True)
    fluid.layers.fc(x, 4, param_attr=decayed)
    assert param.regularizer is decayed.regularizer


def test_a_parameters_learning_rate_is_stored_unchanged(fluid):
    fluid.layers.fc(fluid.data("x", [None, 4]), 1, param_attr=fluid.ParamAttr("w", learning_rate=0.1))
    param = fluid.default_main_program().global_block().var("w")
    assert param.optimize_attr["learning_rate"] == 0.1
    param.optimize_attr["learning_rate"] = 0.3
    assert fluid.default_main_program().clone().global_block().var("w").optimize_attr == {"learning_rate": 0.3}


def test_label_smooth_has_no_gradient_of_its_label(fluid):
    label = fluid.layers.softmax(fluid.layers.fc(fluid.data("x", [None, 4]), 3))
    smooth = fluid.layers.label_smooth(label)
    assert label.stop_gradient and not smooth.stop_gradient


def test_a_dynamic_rnn_reserves_a_name_for_its_condition(fluid):
    rnn = fluid.layers.DynamicRNN()
    with rnn.block():
        step = rnn.step_input(fluid.layers.data("x", [4], lod_level=1))
        rnn.output(step)
    one = fluid.layers.fill_constant([1], "float32", 1.0)
    assert fluid.layers.less_than(one, one).name == "less_than_1.tmp_0"


def test_a_test_clone_before_minimize_keeps_unused_data(fluid):
    fluid.data("unread", [None, 1])
    loss = fluid.layers.mean(fluid.layers.fc(fluid.data("x", [None, 4]), 1))
    main = fluid.default_main_program()
    assert main.clone(for_test=True).global_block().has_var("unread")
    fluid.optimizer.SGD(0.1).minimize(loss)
    assert not main.clone(for_test=True).global_block().has_var("unread")


def test_unused_parameters_have_no_param_grad_pairs(fluid):
    loss = fluid.layers.mean(fluid.layers.fc(fluid.data("x", [None, 4]), 1))
    fluid.layers.fc(fluid.data("y", [None, 4]), 1, param_attr="unused")
    ops, pairs = fluid.optimizer.SGD(0.1).minimize(loss, parameter_list=["unused"])
    assert (ops, pairs) == ([], [])
    assert types(fluid.default_main_program())[-1] == "mul_grad"


def test_a_summed_gradient_keeps_its_numbered_name(fluid):
    """The input from which sequence_expand_as only copies lengths has no gradient; Fluid adds a name for one."""
    sequence = fluid.layers.data("x", [4], lod_level=1)
    h = fluid.layers.fc(sequence, 4, bias_attr=False)
    spread = fluid.layers.sequence_expand_as(fluid.layers.sequence_first_step(h), fluid.layers.tanh(h))
    fluid.optimizer.SGD(0.1).minimize(fluid.layers.mean(spread))
    summed = [op for op in fluid.default_main_program().global_block().ops if op.type == "sum"]
    assert [op.input("X") for op in summed] == [["fc_0.tmp_0@GRAD@RENAME@block0@1"]]


def test_the_gradient_of_a_static_rnn_names_its_step_scopes_twice(fluid):
    rows = fluid.data("x", [3, 2, 4])
    rnn = fluid.layers.StaticRNN()
    with rnn.step():
        step = rnn.step_input(rows)
        before = rnn.memory(shape=[-1, 4], batch_ref=step)
        after = fluid.layers.fc([step, before], 4)
        rnn.update_memory(before, after)
        rnn.step_output(after)
    fluid.optimizer.SGD(0.1).minimize(fluid.layers.mean(rnn()))
    op = next(op for op in fluid.default_main_program().global_block().ops if op.type == "recurrent_grad")
    assert op.input("step_scopes@GRAD") == op.input("step_scopes") != []


@pytest.mark.parametrize("seed", range(1, 13))
def test_role_programs_of_a_random_program_are_valid(fluid, seed, monkeypatch):
    """transpile() raises for a set that fails the proof; this needs no Fluid."""
    monkeypatch.syspath_prepend(str(RANDOM))
    network = pytest.importorskip("network")
    try:
        network.Generator(fluid, seed).build()
    except (ValueError, NotImplementedError):
        pytest.skip("no program comes of this seed")
    t = fluid.DistributeTranspiler()
    t.config.min_block_size = 8
    t.transpile(0, pservers=PSERVERS, trainers=2)
    assert "listen_and_serv" in types(t.get_pserver_program("10.0.0.1:6174"))


def test_compat_updates_a_distributed_table_by_sgd_alone(fluid):
    ids = fluid.layers.data("ids", [1], dtype="int64")
    table = fluid.layers.embedding(ids, [100, 8], is_sparse=True, is_distributed=True, param_attr="table")
    loss = fluid.layers.mean(fluid.layers.fc(table, 1))
    fluid.optimizer.Adam(0.1, regularization=fluid.regularizer.L2Decay(0.1)).minimize(loss)
    programs = fluid.default_main_program(), fluid.default_startup_program()
    roles = penstock.transpile(*programs, PSERVERS, trainers=2, compat="fluid-1.8")
    main, startup = roles.pservers["10.0.0.1:6174"].main, roles.trainers[0].startup
    updates = {op.input("Param")[0]: op.type for block in main.blocks for op in block.ops if "Param" in op.input_names}
    assert updates["table"] == "sgd" and "adam" in updates.values()
    assert [name for name in startup.global_block().vars if name.startswith("table")] == ["table"]


def test_a_feed_may_be_marked_persistable(fluid):
    x = fluid.data("x", [None, 4])
    x.persistable = True
    fluid.optimizer.SGD(0.1).minimize(fluid.layers.mean(fluid.layers.fc(x, 1)))
    t = fluid.DistributeTranspiler()
    t.transpile(0, pservers=PSERVERS, trainers=2)  # an error, if the proof wants an initial value of it
    assert t.get_trainer_program().global_block().var("x").persistable
