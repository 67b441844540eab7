"""Program.desc, Block.desc, Operator.desc, Variable.desc: Fluid's lower interface, as views of one program."""

import re

import numpy as np
import penstock
import pytest


def relu_of_x(fluid):
    y = fluid.layers.relu(fluid.data("x", [None, 2]))
    return fluid.default_main_program(), y


def test_views_and_handles_agree(fluid):
    program, y = relu_of_x(fluid)
    block = program.desc.block(0)
    assert block == program.global_block().desc and block.id == 0 and block.parent == -1
    assert block.op_size() == 1
    op = block.op(0)
    assert op == program.global_block().ops[0].desc and hash(op) == hash(block.op(0))
    assert op.type() == "relu"
    assert op.input_names() == ["X"] and op.input("X") == ["x"] and op.input_arg_names() == ["x"]
    assert op.output("Out") == [y.name] and op.input("Nothing") == []
    assert op.has_attr("op_role") and op.attr("op_role") == 0
    assert op.attr_type("op_role") == fluid.core.AttrType.INT
    var = y.desc
    assert (var.name(), var.shape(), var.dtype(), var.type(), var.lod_level(), var.persistable()) == (
        y.name,
        [-1, 2],
        y.dtype,
        y.type,
        0,
        False,
    )
    assert block.find_var(y.name.encode()) == var and block.find_var(b"nothing") is None
    assert var in block.all_vars() and isinstance(var, fluid.core.VarDesc)


def test_changes_through_views_are_seen_by_handles(fluid):
    program, y = relu_of_x(fluid)
    handle = program.global_block().ops[0]
    handle.desc.set_type("tanh")
    handle.desc.set_input("X", ["z"])
    handle.desc._set_attr("op_device", "cpu")
    assert (handle.type, handle.input("X"), handle.attr("op_device")) == ("tanh", ["z"], "cpu")
    y.desc.set_shape([3, 4])
    y.desc.set_lod_level(1)
    y.desc.set_persistable(True)
    y.desc.set_dtype(fluid.core.VarDesc.VarType.FP64)
    assert (y.shape, y.lod_level, y.persistable, fluid.core.dtype_name(y.dtype)) == ((3, 4), 1, True, "float64")


def test_an_op_is_built_piece_by_piece_and_runs(fluid):
    program = fluid.Program()
    block = program.desc.block(0)
    for name, shape in ((b"x", [2, 3]), (b"w", [3, 1])):
        var = block.var(name)
        var.set_shape(shape)
        var.set_dtype(fluid.core.VarDesc.VarType.FP32)
    op = block.append_op()
    op.set_type("mul")
    op.set_input("X", ["x"])
    op.set_input("Y", ["w"])
    op.set_output("Out", ["h"])
    op.check_attrs()
    assert op.attr("x_num_col_dims") == 1
    op.infer_var_type(block)
    op.infer_shape(block)
    assert block.find_var("h").shape() == [2, 1]
    x, w = np.arange(6, dtype="float32").reshape(2, 3), np.ones((3, 1), "float32")
    (h,) = fluid.Executor(fluid.CPUPlace()).run(program, feed={"x": x, "w": w}, fetch_list=["h"])
    assert h.tolist() == [[3.0], [12.0]]


def test_ops_can_be_inserted_and_removed_by_position(fluid):
    block = fluid.Program().desc.block(0)
    for kind in ("b", "c"):
        block.append_op().set_type(kind)
    block._prepend_op().set_type("a")
    block._insert_op(1).set_type("ab")
    assert [block.op(i).type() for i in range(block.op_size())] == ["a", "ab", "b", "c"]
    block._remove_op(1, 3)
    assert [block.op(i).type() for i in range(block.op_size())] == ["a", "c"]
    with pytest.raises(penstock.ProgramError, match="E-op-position"):
        block._insert_op(9)
    with pytest.raises(IndexError, match="no op 2 in block 0, which has 2 ops"):
        block.op(2)


def test_a_loop_names_its_block(fluid):
    i = fluid.layers.fill_constant([1], "int64", 0)
    end = fluid.layers.fill_constant([1], "int64", 3)
    going = fluid.layers.less_than(i, end)
    loop = fluid.layers.While(going)
    with loop.block():
        fluid.layers.increment(i, in_place=True)
        fluid.layers.less_than(i, end, cond=going)
    program = fluid.default_main_program()
    op = program.global_block().ops[-1]
    inside = op.attr("sub_block")
    assert inside.id == 1 and inside.op_size() == 2 and inside.parent == 0
    assert inside == op.desc.attr("sub_block") and inside == 1
    assert op._block_attr_id("sub_block") == 1 and op._block_attr("sub_block") is program.block(1)
    assert op.all_attrs()["sub_block"] is program.block(1)
    assert op.desc.attr_type("sub_block") == fluid.core.AttrType.BLOCK
    other = program.desc.append_block(program.desc.block(0))
    op.desc.set_block_attr("sub_block", other)
    assert op.attr("sub_block").id == 2 and program.num_blocks == 3


def test_infer_shape_reports_errors(fluid):
    block = fluid.Program().desc.block(0)
    op = block.append_op()
    op.set_type("no_such_op")
    with pytest.raises(penstock.ProgramError, match="E-op-unknown"):
        op.infer_shape(block)
    with pytest.raises(penstock.ProgramError, match="E-op-unknown"):
        op.check_attrs()


def test_gradient_ops_of_an_op(fluid):
    x, w = fluid.data("x", [2, 3]), fluid.data("w", [3, 1])
    h = fluid.layers.mul(x, w)
    op = fluid.default_main_program().global_block().ops[0]
    (grad,), belongs_to = fluid.core.get_grad_op_desc(op.desc, {"x@GRAD"}, [])
    assert grad.type() == "mul_grad"
    assert grad.input("Out@GRAD") == [h.name + "@GRAD"] and grad.input("X") == ["x"]
    assert grad.output("X@GRAD") == [] and grad.output("Y@GRAD") == ["w@GRAD"]
    assert belongs_to == {"w@GRAD": "w", h.name + "@GRAD": h.name}
    copy = fluid.Program().desc.block(0).append_op()
    copy.copy_from(grad)
    grad.infer_shape(fluid.default_main_program().desc.block(0))  # of an op that stands elsewhere
    assert fluid.default_main_program().global_block().var("w@GRAD").shape == (3, 1)
    assert copy.type() == "mul_grad" and copy.output_arg_names() == ["w@GRAD"] and copy != grad
    assert fluid.default_main_program().desc.op_count(0) == 1  # the program has no gradient op


def test_op_declarations_are_readable(fluid):
    holder = fluid.framework.OpProtoHolder.instance()
    assert holder is fluid.framework.OpProtoHolder.instance()
    concat = holder.get_op_proto("concat")
    slots = {slot.name: slot for slot in concat.inputs}
    assert slots["X"].duplicable and not slots["X"].dispensable
    assert slots["AxisTensor"].dispensable and not slots["AxisTensor"].duplicable
    attrs = {attr.name: attr for attr in concat.attrs}
    assert attrs["axis"].type == fluid.core.AttrType.INT and not attrs["axis"].generated
    assert attrs["op_role"].generated and "op_role" in holder.generated_op_attr_names()
    dropout = holder.get_op_proto("dropout")
    assert [slot.name for slot in dropout.outputs if slot.intermediate] == ["Mask"]
    assert len(fluid.core.get_all_op_protos()) == len(fluid.op.Operator.types()) == len(holder.op_proto_map)
    with pytest.raises(ValueError, match='"no_such_op" has not been registered'):
        holder.get_op_proto("no_such_op")
    kernels = fluid.core._get_all_register_op_kernels()
    assert "data_type[FP64]:place[CPUPlace]" in kernels["relu_grad"]
    assert "data_type[INT32]:place[CPUPlace]" not in kernels["relu_grad"]
    assert fluid.core.has_grad_op_maker("relu") and not fluid.core.has_grad_op_maker("accuracy")


def test_every_op_has_the_framework_attributes(fluid):
    maker = fluid.core.op_proto_and_checker_maker
    loss = fluid.layers.mean(fluid.layers.fc(fluid.data("x", [None, 2]), 1))
    with fluid.name_scope("part"):
        fluid.optimizer.SGD(0.1).minimize(loss)
    ops = fluid.default_main_program().global_block().ops
    roles = {op.type: op.attr(maker.kOpRoleAttrName()) for op in ops}
    assert (roles["mul"], roles["mul_grad"], roles["sgd"]) == (
        maker.OpRole.Forward,
        maker.OpRole.Backward,
        maker.OpRole.Optimize,
    )
    assert roles["mean"] == maker.OpRole.Forward | maker.OpRole.Loss
    assert ops[-1].attr(maker.kOpRoleVarAttrName()) in (["fc_0.w_0", "fc_0.w_0@GRAD"], ["fc_0.b_0", "fc_0.b_0@GRAD"])
    assert ops[-1].attr(maker.kOpNameScopeAttrName()).startswith("/part/")
    callstack = maker.kOpCreationCallstackAttrName()
    (line,) = ops[0].attr(callstack)
    assert re.fullmatch(r'  File ".*test_descs.py", line [0-9]+, in test_every_op_has_.*', line)
    assert ops[0].has_attr(callstack) and callstack in ops[0].attr_names and callstack not in ops[0].all_attrs()
    assert ops[0].attr_type(callstack) == "STRINGS"
