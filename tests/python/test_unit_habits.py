"""Interfaces besides layers that tests written for Fluid use: slices of tensors, integers in scopes, gradient flow, and
the error types for wrong arguments."""

import numpy as np
import penstock
import pytest


def test_tensor_slicing_equals_numpy(fluid):
    tensor, values = fluid.core.LoDTensor(), np.arange(27, dtype="float64").reshape(3, 3, 3)
    tensor.set(values)
    for index in (1, slice(1, None), slice(2, None, -2), (slice(None), slice(0, None, -1), slice(2, None))):
        assert np.array(tensor[index]).tolist() == values[index].tolist()
    assert np.array(tensor[2::-2][0]).tolist() == values[2].tolist()
    with pytest.raises(IndexError):
        tensor[3]


def test_tensors_are_created_with_lengths_and_capacity(fluid):
    tensor = fluid.core.LoDTensor([[2, 1]])
    assert tensor.recursive_sequence_lengths() == [[2, 1]]
    tensor.set(np.zeros([3, 1], "float32"))
    assert tensor.lod() == [[0, 2, 3]]
    assert isinstance(tensor._mutable_data(fluid.CPUPlace(), fluid.core.VarDesc.VarType.INT64), int)
    assert np.array(tensor).dtype == np.int64 and tensor.shape() == [3, 1]


def test_places_are_compared(fluid):
    tensor = fluid.core.LoDTensor()
    assert tensor._place()._equals(fluid.CPUPlace()) and fluid.CPUPlace()._equals(tensor._place())
    assert not tensor._place()._equals(fluid.CUDAPlace(0))
    assert fluid.CPUPlace()._type() == tensor._place()._type() != fluid.CUDAPlace(0)._type()


def test_a_scope_variable_holds_an_integer(fluid):
    scope = fluid.core.Scope()
    number, vector = scope.var("number"), scope.var("vector")
    vector.get_tensor().set(np.array([1], "int32"))
    assert not number.is_int() and not vector.is_int()
    number.set_int(10)
    assert number.is_int() and number.get_int() == 10
    with pytest.raises(RuntimeError, match="holds no int"):
        vector.get_int()


def test_removing_a_scope_twice_is_refused(fluid):
    scope = fluid.core.Scope()
    scope.var("a")
    scope._remove_from_pool()
    assert scope.find_var("a") is None
    with pytest.raises(RuntimeError, match="nonexistent scope"):
        scope._remove_from_pool()


def test_fill_constant_fills_selected_rows(fluid):
    scope = fluid.core.Scope()
    rows = scope.var("out").get_selected_rows()
    fluid.op.Operator("fill_constant", shape=[4, 2], value=3.5, Out="out").run(scope, fluid.CPUPlace())
    assert np.array(rows.get_tensor()).tolist() == [[3.5, 3.5]] * 4


def test_op_defaults_are_readable(fluid):
    defaults = fluid.core.get_op_attrs_default_value(b"scale")
    assert (defaults["scale"], defaults["bias_after_scale"]) == (1.0, True)
    with pytest.raises(ValueError, match="no op"):
        fluid.core.get_op_attrs_default_value("none_such")


def test_an_iterable_loader_is_reset_in_the_middle(fluid):
    x = fluid.data("x", [None, 1])
    loader = fluid.io.DataLoader.from_generator([x], capacity=2)
    loader.set_batch_generator(lambda: ([np.full([1, 1], i, "float32")] for i in range(100)), fluid.CPUPlace())
    for _ in range(2):
        first = next(iter(loader))[0]["x"]
        assert np.array(first).tolist() == [[0]]
        loader._reset()


def test_select_output_and_select_input_use_one_of_several_variables(fluid):
    control_flow = fluid.layers.control_flow
    x, mask = fluid.data("x", [2]), fluid.data("mask", [1], "int32")
    x.stop_gradient = False
    block = fluid.default_main_program().global_block()
    branches = [block.create_var(dtype="float32", type=fluid.core.VarDesc.VarType.LOD_TENSOR) for _ in range(3)]
    assert control_flow.select_output(x, branches, mask) is branches
    y = control_flow.select_input(branches, mask)
    fluid.backward.append_backward(fluid.layers.mean(y))
    for place in range(3):
        got = fluid.Executor().run(
            feed={"x": np.array([1, -2], "float32"), "mask": np.array([place], "int32")}, fetch_list=[y, x.grad_name]
        )
        assert [value.tolist() for value in got] == [[1, -2], [0.5, 0.5]]
    for wrong in (
        lambda: control_flow.select_input(x, mask),
        lambda: control_flow.select_input([x], x),
        lambda: control_flow.select_output(1, [x], mask),
        lambda: control_flow.select_output(x, x, mask),
        lambda: control_flow.select_output(x, [x], 1),
    ):
        with pytest.raises(TypeError):
            wrong()


def test_find_op_path_excludes_unrelated_ops(fluid):
    layers, backward = fluid.layers, fluid.backward
    x, label = fluid.data("x", [2, 3]), fluid.data("label", [2, 1])
    hidden = layers.fc(x, 1)
    layers.sigmoid(hidden)
    loss = layers.mean(layers.square(layers.elementwise_sub(hidden, label)))
    block, stopped = fluid.default_main_program().global_block(), {"x", "label"}
    path = backward._find_op_path_(block, [loss], [], stopped)
    assert [op.type for op in path] == ["mul", "elementwise_add", "elementwise_sub", "square", "mean"]
    assert backward._find_no_grad_vars(block, path, [loss], stopped) == set()
    assert [op.type for op in backward._find_op_path_(block, [loss], [label], set())] == [
        "elementwise_sub",
        "square",
        "mean",
    ]
    assert [op.type for op in backward._find_op_path_(block, [hidden], [], stopped)] == ["mul", "elementwise_add"]
    assert backward._find_no_grad_vars(block, path, [hidden], stopped) == {loss.name}


def test_arguments_of_wrong_types_are_type_errors(fluid):
    layers = fluid.layers
    x, whole = fluid.data("x", [2, 4, 3, 3]), fluid.data("whole", [2, 4, 3, 3], "int32")
    y = layers.relu(x)
    for wrong in (
        lambda: fluid.gradients(y.name, x),
        lambda: fluid.gradients(y, x.name),
        lambda: fluid.gradients([y], [x], target_gradients=x.name),
        lambda: layers.cast(x, "int16"),
        lambda: layers.less_than(x, x, force_cpu=1),
        lambda: layers.fill_constant([1], "uint8", 5),
        lambda: layers.group_norm(whole, 2),
        lambda: layers.instance_norm(whole),
        lambda: layers.deformable_roi_pooling(x, x, x, group_size=1),
        lambda: layers.deformable_roi_pooling(x, x, x, part_size=8),
    ):
        with pytest.raises(TypeError):
            wrong()
    with pytest.raises(AssertionError, match="extent"):
        layers.fill_constant([], "float32", 1)
    flags = fluid.data("flags", [4], "bool")
    flags.stop_gradient = True
    with pytest.raises(ValueError, match="stop_gradient"):
        layers.expand(flags, [2])


def test_a_table_adds_rows_within_its_capacity(fluid):
    scope, place = fluid.core.Scope(), fluid.CPUPlace()
    table = scope.var("w").get_selected_rows()
    table.set_height(6)
    table.get_tensor().set(np.arange(6, dtype="float32").reshape(6, 1), place)
    op = fluid.op.Operator("lookup_sparse_table", W="w", Ids="ids", Out="out")
    for ids, expected in (([0, 5, 9, 5], [0, 1, 2, 1]), ([7, 5], [3, 1]), ([20, 21, 22, 9], [4, 5, 0, 2])):
        scope.var("ids").get_tensor().set(np.array(ids, "int64"), place)
        op.run(scope, place)
        assert np.array(scope.find_var("out").get_tensor()).ravel().tolist() == expected
    assert table.rows() == [0, 5, 9, 7, 20, 21, 22]


def test_a_trainer_desc_keeps_settings(fluid):
    desc = fluid.trainer_desc.MultiTrainer()
    desc._set_dump_fields(["a", "b"])
    desc._set_mpi_rank(1)
    desc._set_fetch_var_and_info([fluid.data("x", [1])], ["%f"], 5)
    desc._gen_trainer_desc()
    proto = desc.proto_desc
    assert (proto.dump_fields, proto.mpi_rank, proto.class_name) == (["a", "b"], 1, "MultiTrainer")
    assert (proto.fetch_config.fetch_var_names, proto.fetch_config.print_period) == (["x"], 5)


def test_a_graph_has_a_node_for_each_value(fluid):
    layers, core = fluid.layers, fluid.core
    x = fluid.data("x", [2, 2])
    layers.increment(layers.mean(x))
    graph = core.Graph(fluid.default_main_program().desc)
    names = sorted(node.name() for node in graph.nodes())
    assert names == ["increment", "mean", "mean_0.tmp_0", "mean_0.tmp_0", "x"]
    op = next(node for node in graph.nodes() if node.is_op() and node.name() == "increment")
    assert [node.name() for node in op.inputs + op.outputs] == ["mean_0.tmp_0"] * 2 and op.inputs != op.outputs
    assert op.inputs[0].inputs[0].op().type() == "mean" and op.node_type() == core.Node.Type.Operation
    assert graph.create_control_dep_var().is_ctrl_var() and graph.retrieve_node(op.id()) is op
    graph.set("a", 0.5)
    assert graph.has("a") and graph.get_float("a") == 0.5
    graph.erase("a")
    assert not graph.has("a")
    op.inputs[0].remove_output(op)
    assert op.inputs[0].outputs == []
    graph.remove_node(op)
    assert len(graph.release_nodes()) == 5 and graph.nodes() == set()
    with pytest.raises(TypeError, match="Program"):
        fluid.Executor().run(fluid.CompiledProgram(graph))
    with pytest.raises(TypeError, match="NoneType"):
        fluid.io._get_valid_program(fluid.CompiledProgram(graph))


def test_a_dry_run_does_nothing(fluid):
    loss = fluid.layers.mean(fluid.data("x", [None, 2]))
    strategy = fluid.ExecutionStrategy()
    strategy._dry_run = True
    compiled = fluid.CompiledProgram(fluid.default_main_program()).with_data_parallel(loss.name, exec_strategy=strategy)
    assert fluid.Executor().run(compiled) == []


def test_a_parallel_executor_reports_whether_it_creates_scopes(fluid):
    loss = fluid.layers.mean(fluid.data("x", [None, 2]))
    exe = fluid.ParallelExecutor(use_cuda=False, loss_name=loss.name)
    exe.run([loss.name], feed={"x": np.ones([1, 2], "float32")})
    assert not exe._need_create_local_exe_scopes()
    exe.drop_local_exe_scopes()
    assert exe._need_create_local_exe_scopes()


def test_suppression_refuses_arguments_of_wrong_types(fluid):
    boxes, scores = fluid.data("boxes", [None, 9, 8]), fluid.data("scores", [None, 1, 9])
    for wrong in (
        ([1, 2], scores, 0.5, 4, 2),
        (boxes, scores, 1, 4, 2),
        (boxes, scores, 0.5, 4.5, 2),
        (boxes, scores, 0.5, 4, 2, 0),
        (boxes, scores, 0.5, 4, 2, 0.5, 1),
    ):
        with pytest.raises(TypeError):
            fluid.layers.locality_aware_nms(*wrong)


def test_protos_make_descs(fluid):
    pb = fluid.proto.framework_pb2
    proto = pb.OpProto(type="test")
    slot = proto.inputs.add()
    slot.name, slot.comment, slot.duplicable = "X", "", True
    assert not proto.IsInitialized()
    proto.comment = ""
    out = proto.outputs.add()
    out.name, out.comment = "Out", ""
    for name, kind in (("number", pb.INT), ("names", pb.STRINGS)):
        attr = proto.attrs.add()
        attr.name, attr.type, attr.comment = name, kind, ""
    assert proto.IsInitialized() and not proto.inputs[0].HasField("dispensable")
    made = fluid.op.OpDescCreationMethod(proto)(X=["a", "b"], Out="c", number=3, names=["d"])
    expected = pb.OpDesc(type="test")
    for slots, name, arguments in ((expected.inputs, "X", ["a", "b"]), (expected.outputs, "Out", ["c"])):
        slot = slots.add()
        slot.parameter = name
        slot.arguments.extend(arguments)
    first, second = expected.attrs.add(), expected.attrs.add()
    first.name, first.type, first.i = "number", pb.INT, 3
    second.name, second.type = "names", pb.STRINGS
    assert made != expected
    second.strings.extend(["d"])
    assert made == expected
    with pytest.raises(ValueError, match="takes one variable"):
        fluid.op.OpDescCreationMethod(proto)(Out=["c", "d"])
    with pytest.raises(AttributeError, match="no field"):
        proto.kind = "test"
    assert str(fluid.op.Operator("sum", X=["a", "b"], Out="z")) == "Op(sum), inputs:{X[a, b]}, outputs:{Out[z]}."
    assert all(each.IsInitialized() for each in fluid.op.get_all_op_protos())


def test_input_arrays_and_versions_are_checked(fluid):
    check = fluid.reader.GeneratorLoader._check_input_array
    assert check([np.zeros(2), np.ones(2)]).shape == (2, 2)
    with pytest.raises(TypeError, match="equal length"):
        check([np.zeros(2), np.ones(3)])
    for version in ("1.8.5.0.0", "1.a"):
        with pytest.raises(ValueError, match="version"):
            fluid.require_version(version)
    with pytest.raises(TypeError, match="dtype"):
        fluid.layers.randint(5, shape=[2], dtype="float32")


def test_feeds_and_fetches_use_arrays_of_a_scope(fluid):
    core, scope = fluid.core, fluid.core.Scope()
    tensor = core.LoDTensor([[2, 2]])
    tensor.set(np.arange(8, dtype="float32").reshape(4, 2))
    core.set_feed_variable(scope, tensor, "feed", 0)
    core.set_feed_variable(scope, tensor, "feed", 0)
    assert len(scope.find_var("feed").get_lod_tensor_array()) == 1
    scope.var("fetch").get_fetch_list().append(tensor)
    got = core.get_fetch_variable(scope, "fetch", 0)
    assert got.recursive_sequence_lengths() == [[2, 2]] and np.array(got)[3].tolist() == [6, 7]


def test_errors_of_a_reader_process_are_program_errors(fluid):

    def broken():
        raise KeyError("lost")
        yield

    for kind in (RuntimeError, fluid.core.EnforceNotMet):
        with pytest.raises(kind, match="lost"):
            list(fluid.io.multiprocess_reader([broken])())


def test_perm_and_lod_must_be_lists(fluid):
    x = fluid.data("x", [None, 2], lod_level=1)
    for wrong in (lambda: fluid.layers.transpose(x, "[1, 0]"), lambda: fluid.layers.sequence_concat(x)):
        with pytest.raises(TypeError, match="list"):
            wrong()
    with pytest.raises(AssertionError, match="logsumexp"):
        fluid.layers.logsumexp(None)


def test_a_script_fills_the_queue_of_a_reader_itself(fluid):
    reader = fluid.layers.py_reader(capacity=4, shapes=[[-1, 2]], dtypes=["float32"])
    x = fluid.layers.read_file(reader)
    total = fluid.layers.reduce_sum(x)
    exe, queue = fluid.Executor(), reader.queue
    exe.run(fluid.default_startup_program())
    for value in (1, 2):
        batch = fluid.LoDTensorArray()
        tensor = fluid.core.LoDTensor()
        tensor.set(np.full([3, 2], value, "float32"))
        batch.append(tensor)
        assert queue.push(batch)
    assert queue.size() == 2
    queue.close()
    assert [exe.run(fetch_list=[total])[0].item() for _ in range(2)] == [6, 12]
    with pytest.raises(fluid.core.EOFException):
        exe.run(fetch_list=[total])
    reader.exited = True
    reader.thread.join(10)
    assert not reader.thread.is_alive()


@pytest.mark.parametrize("wide, error", [(2, None), (3, "E-op-rows")])
def test_sgd_updates_rows_of_a_shard_by_id(fluid, wide, error):
    """A shard and a gradient may have different heights."""
    scope, place = fluid.Scope(), fluid.CPUPlace()
    param, grad = scope.var("w").get_selected_rows(), scope.var("g").get_selected_rows()
    param.set_height(6)
    param.set_rows([1, 5])
    param.sync_index()
    param.get_tensor().set(np.ones((2, 2), "float32"), place)
    grad.set_height(10)
    grad.set_rows([5, 5])
    grad.get_tensor().set(np.full((2, wide), 2.0, "float32"), place)
    scope.var("rate").get_tensor().set(np.array([0.25], "float32"), place)
    op = fluid.op.Operator("sgd", Param="w", Grad="g", ParamOut="w", LearningRate="rate")
    if error is not None:
        with pytest.raises(penstock.ProgramError, match=error):
            op.run(scope, place)
    else:
        op.run(scope, place)
        assert np.array(param.get_tensor()).tolist() == [[1, 1], [0, 0]]


def test_parts_are_merged_again_for_inference(fluid):
    x, mask = fluid.data("x", [4, 1]), fluid.data("mask", [4, 1], "bool")
    block = fluid.default_main_program().current_block()
    yes, no = fluid.layers.control_flow.split_lod_tensor(x, mask)
    out = block.create_var(name="out", dtype="float32")
    block.append_op(
        "merge_lod_tensor_infer", {"X": x, "Mask": mask, "InTrue": yes, "InFalse": no}, {"Out": out}, {"level": 0}
    )
    feed = {"x": np.arange(4, dtype="float32").reshape(4, 1), "mask": np.array([[1], [0], [0], [1]], "bool")}
    assert fluid.Executor().run(feed=feed, fetch_list=[out])[0].ravel().tolist() == [0, 1, 2, 3]
