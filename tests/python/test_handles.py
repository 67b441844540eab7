"""Handles: the same op or variable is always the same object, and a handle to a removed one gives an error."""

import os

import numpy as np
import penstock
import pytest


def net(fluid):
    x = fluid.data("x", [None, 13])
    y = fluid.data("y", [None, 1])
    return fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(x, 1), y))


def test_equal_objects_share_a_handle(fluid):
    loss = net(fluid)
    block = fluid.default_main_program().global_block()
    assert block.var(loss.name) is loss
    assert block.ops[0] is block.ops[0]
    assert fluid.default_main_program().block(0) is block
    assert loss.block is block


def test_existing_handles_see_changes_from_cpp(fluid):
    loss = net(fluid)
    block = fluid.default_main_program().global_block()
    first = block.ops[0]
    fluid.optimizer.SGD(0.01).minimize(loss)
    assert block.ops[0] is first
    assert block.ops[-1].type == "sgd"
    assert block.vars["fc_0.w_0@GRAD"].shape == (13, 1)
    assert loss.op.type == "mean"


def test_a_removed_op_raises(fluid):
    net(fluid)
    block = fluid.default_main_program().global_block()
    op = block.ops[0]
    block._remove_op(0)
    with pytest.raises(penstock.StateError, match="no longer in block 0") as error:
        op.type
    assert error.value.id == "E-op-gone"


def test_a_removed_variable_raises(fluid):
    x = fluid.data("x", [None, 13])
    fluid.default_main_program().global_block()._remove_var("x")
    with pytest.raises(penstock.StateError, match="variable x"):
        x.shape


def test_python_and_cpp_edit_one_program_of_4000_ops(fluid):
    x = h = fluid.data("x", [None, 8])
    y = fluid.data("y", [None, 1], dtype="int64")
    for _ in range(1333):
        h = fluid.layers.fc(h, 8, act="relu")
    loss = fluid.layers.mean(fluid.layers.cross_entropy(h, y))
    main = fluid.default_main_program()
    forward = list(main.global_block().ops)
    assert len(forward) == 4001
    ops, pairs = fluid.optimizer.SGD(0.1).minimize(loss)
    assert main.global_block().ops[:4001] == forward
    assert len(pairs) == 2666 and all(isinstance(param, fluid.Parameter) for param, _ in pairs)
    assert {op.type for op in ops} == {"sgd"}
    assert main.global_block().ops[4001].type == "fill_constant"
    assert x.op is None


def test_a_wrong_op_names_the_rule_the_op_and_the_users_line(fluid):
    x = fluid.data("x", [None, 784])
    w = fluid.layers.create_parameter([512, 10], "float32")
    with pytest.raises(penstock.ProgramError) as error:
        fluid.layers.mul(x, w)
    text = str(error.value)
    assert text.startswith("mul: width of X (784) must equal height of Y (512)")
    assert error.value.id == "E-shape-mul"
    assert "mul(X=x, Y=create_parameter_0.w_0)" in text
    assert f"test_handles.py:{error.traceback[0].lineno + 1} in test_a_wrong_op" in text


def test_an_unknown_op_is_an_error_with_suggestions(fluid):
    x = fluid.data("x", [None, 4])
    block = fluid.default_main_program().global_block()
    with pytest.raises(penstock.ProgramError, match="op type rely is not known"):
        block.append_op("rely", {"X": x}, {"Out": x})
    assert block.ops == []


def test_an_attribute_of_the_wrong_type_is_an_error(fluid):
    x = fluid.data("x", [None, 4])
    with pytest.raises(penstock.ProgramError, match="scale: attribute bias is 'two', but must be of kind float"):
        fluid.default_main_program().global_block().append_op("scale", {"X": x}, {"Out": x}, {"bias": "two"})


def test_an_unknown_variable_kind_is_an_error(fluid):
    with pytest.raises(penstock.ProgramError, match="E-var-kind"):
        fluid.default_main_program().global_block().create_var(name="x", type=99)


def test_clones_are_independent(fluid):
    loss = net(fluid)
    main = fluid.default_main_program()
    copy = main.clone()
    fluid.optimizer.SGD(0.01).minimize(loss)
    assert len(copy.global_block().ops) < len(main.global_block().ops)
    assert copy.global_block().var(loss.name) is not loss


def test_serialized_programs_keep_parameters_and_lines(fluid):
    net(fluid)
    main = fluid.default_main_program()
    again = fluid.Program.parse_from_string(main.desc.serialize_to_string())
    assert [param.name for param in again.all_parameters()] == ["fc_0.w_0", "fc_0.b_0"]
    assert "test_handles.py" in again.global_block().ops[0].location
    assert again.desc.serialize_to_string() == main.desc.serialize_to_string()
    assert str(again) == str(main)


def test_name_scopes_and_unique_names_match_fluid(fluid):
    with fluid.name_scope("encoder"), fluid.unique_name.guard("A_"):
        x = fluid.layers.fc(fluid.data("x", [None, 4]), 2)
    assert x.name == "A_A_fc_0.tmp_1"  # as in Fluid: the layer's name has the prefix already
    assert fluid.default_main_program().global_block().ops[0].attr("op_namescope").endswith("encoder/")
    assert fluid.unique_name.generate("fc") == "fc_0"


def test_contradicting_declarations_are_an_error(fluid):
    fluid.data("x", [None, 4])
    with pytest.raises(ValueError, match="variable x already exists"):
        fluid.data("x", [None, 5])


def test_invalid_program_bytes_are_an_error(fluid):
    net(fluid)
    data = fluid.default_main_program().desc.serialize_to_string()
    for wrong in (b"\x0a", data[:-3], b"\xff" * 64):
        with pytest.raises(ValueError):
            fluid.Program.parse_from_string(wrong)
    with pytest.raises(penstock.DataError) as caught:
        fluid.Program.parse_from_string(data[:-3])
    assert caught.value.id == "E-program-bytes"


def test_non_utf8_names_are_supported(fluid):
    weird = fluid.data("weird", [None, 4])
    out = fluid.layers.scale(weird, 2.0)
    data = fluid.default_main_program().desc.serialize_to_string()
    renamed = data.replace(b"weird", b"w\xff\xc3(d")
    program = fluid.Program.parse_from_string(renamed)
    block, name = program.global_block(), os.fsdecode(b"w\xff\xc3(d")
    assert list(block.vars) == [name, out.name] and list(block.vars.values())[0].name == name
    assert block.var(name).shape == (-1, 4) and block.has_var(name)
    assert block.ops[0].input("X") == [name] and block.ops[0].input_arg_names == [name]
    assert program.desc.serialize_to_string() == renamed
    exe = fluid.Executor()
    (given,) = exe.run(program, feed={name: np.ones((2, 4), "float32")}, fetch_list=[out.name])
    assert given.tolist() == [[2.0] * 4] * 2
    tall = block.create_var(name="tall", shape=[5, 4], dtype="float32")
    with pytest.raises(penstock.ProgramError) as caught:
        block.append_op("mul", {"X": name, "Y": tall}, {"Out": out.name})
    assert caught.value.id == "E-shape-mul" and "width of X (4)" in str(caught.value)
    with pytest.raises(TypeError):  # a surrogate that stands for no byte
        program.desc.has_var(0, "\ud800")


def python_sgd(fluid):

    class Plain(fluid.optimizer.Optimizer):
        type = "plain"

        def _append_optimize_op(self, block, param_and_grad):
            param, grad = param_and_grad
            rate = self._create_param_lr(param_and_grad)
            return block.append_op("sgd", {"Param": param, "Grad": grad, "LearningRate": rate}, {"ParamOut": param})

    return Plain


def test_a_python_optimizer_builds_the_same_program(fluid):
    loss = net(fluid)
    ops, pairs = python_sgd(fluid)(0.01, regularization=fluid.regularizer.L2Decay(1e-4)).minimize(loss)
    made = fluid.default_main_program().desc.serialize_to_string()
    assert [op.type for op in ops] == ["sgd", "sgd"]
    with fluid.unique_name.guard(), fluid.program_guard(fluid.Program(), fluid.Program()):
        fluid.optimizer.SGD(0.01, regularization=fluid.regularizer.L2Decay(1e-4)).minimize(net(fluid))
        fast = fluid.default_main_program()
    slow = fluid.Program.parse_from_string(made)
    assert [op.type for op in slow.global_block().ops] == [op.type for op in fast.global_block().ops]
    for a, b in zip(slow.global_block().ops, fast.global_block().ops):
        assert (a._inputs(), a._outputs()) == (b._inputs(), b._outputs())
        ignored = ("op_namescope",)
        assert {k: v for k, v in a.all_attrs().items() if k not in ignored} == {
            k: v for k, v in b.all_attrs().items() if k not in ignored
        }


def test_python_and_native_minimize_update_sharded_tables_first(fluid):
    ids = fluid.layers.data("ids", [1], dtype="int64")
    rows = fluid.layers.embedding(ids, [10, 4], is_sparse=True, is_distributed=True)
    loss = fluid.layers.reduce_mean(fluid.layers.fc(fluid.layers.fc(rows, 3, param_attr="a"), 2, param_attr="b"))
    for optimizer in (fluid.optimizer.SGD, python_sgd(fluid)):
        main, startup = loss.block.program.clone(), fluid.Program()
        with fluid.program_guard(main, startup):
            ops, _ = optimizer(0.1).minimize(main.global_block().var(loss.name))
        assert [op.output("ParamOut")[0] for op in ops if op.type == "sgd"] == [
            "embedding_0.w_0",
            "a",
            "b",
            "fc_0.b_0",
            "fc_1.b_0",
        ]
        scopes = [op.attr("op_namescope") for op in ops]
        assert len(set(scopes)) == len(ops)
        (rate,) = [op for op in startup.global_block().ops if op.type == "fill_constant"]
        assert rate.attr("op_namescope") == scopes[0]
