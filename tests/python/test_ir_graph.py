"""IrGraph: a program as a graph that is changed and becomes a program again."""

import numpy as np
import pytest


@pytest.fixture
def trained(fluid):
    """The graph of a training program, the program, and its loss."""
    x = fluid.data("x", [None, 4])
    hidden = fluid.layers.fc(x, 3, act="relu", param_attr="w", bias_attr=False)
    loss = fluid.layers.mean(hidden)
    fluid.optimizer.SGD(0.1).minimize(loss)
    main = fluid.default_main_program()
    return fluid.framework.IrGraph(fluid.core.Graph(main.desc)), main, loss


def kinds(program):
    return [op.type for op in program.global_block().ops]


def step(fluid, program, loss):
    """The loss of two steps from the same start."""
    exe = fluid.Executor(fluid.CPUPlace())
    with fluid.scope_guard(fluid.Scope()):
        exe.run(fluid.default_startup_program())
        fluid.global_scope().find_var("w").get_tensor().set(np.arange(12, dtype="float32").reshape(4, 3) - 3)
        feed = {"x": np.ones((2, 4), "float32")}
        return [exe.run(program, feed=feed, fetch_list=[loss.name])[0].item() for _ in range(2)]


def op_of(graph, kind):
    (found,) = [node for node in graph.all_op_nodes() if node.name() == kind]
    return found


def test_an_unchanged_graph_equals_its_program(fluid, trained):
    graph, main, loss = trained
    for one in (graph, graph.clone()):
        assert kinds(one.to_program()) == kinds(main)
        assert step(fluid, one.to_program(), loss) == step(fluid, main, loss)
    assert {node.name() for node in graph.all_persistable_nodes()} == {"w", "learning_rate_0"}
    assert not graph.is_test() and not graph.has_circle() and graph.graph_num() == 1


def test_nodes_compare_by_op_or_variable(fluid, trained):
    graph, main, _ = trained
    assert len(graph.all_nodes() | graph.all_op_nodes() | graph.all_var_nodes()) == len(graph.all_nodes())
    mul = op_of(graph, "mul")
    assert mul == op_of(graph, "mul") and mul != op_of(graph, "relu") and mul != mul.node
    assert {node.name() for node in mul.inputs} == {"x", "w"} and mul.outputs[0].inputs == [mul]
    assert mul.input_arg_names() == ["x", "w"] and mul.output("Out") == mul.output_arg_names()
    (x,) = [node for node in mul.inputs if node.name() == "x"]
    assert (x.shape(), x.dtype(), x.type()) == (
        [-1, 4],
        fluid.core.VarDesc.VarType.FP32,
        fluid.core.VarDesc.VarType.LOD_TENSOR,
    )
    assert (mul.is_op(), mul.is_var(), mul.var()) == (True, False, None) and x.op() is None
    order = graph.create_control_dep_var()
    assert order.is_ctrl_var()
    with pytest.raises(ValueError, match="has no VarDesc"):
        order.shape()


def test_inserting_an_op_keeps_updates_after_their_readers(fluid, trained):
    """A pass doubles the weights before mul reads them, by a node that is newer than that of the update."""
    graph, main, loss = trained
    types = fluid.core.VarDesc.VarType
    before, mul = kinds(main), op_of(graph, "mul")
    (w,) = [node for node in mul.inputs if node.name() == "w"]
    doubled = graph.create_var_node("w.doubled", types.LOD_TENSOR, [4, 3], types.FP32)
    scale = graph.create_op_node("scale", {"scale": 2.0}, {"X": w}, {"Out": doubled})
    graph.link_to(w, scale)
    graph.link_to(scale, doubled)
    graph.update_input_link(w, doubled, mul)
    graph.resolve_hazard()
    made = graph.to_program()
    assert sorted(kinds(made)) == sorted(before + ["scale"]) and kinds(main) == before
    assert kinds(made).index("scale") < kinds(made).index("mul") < kinds(made).index("sgd")
    assert made.global_block().var("w.doubled").shape == (4, 3)
    assert step(fluid, made, loss)[0] == 2 * step(fluid, main, loss)[0]
    assert kinds(graph.clone().to_program()) == kinds(made)


def test_readers_precede_overwriting_ops(fluid):
    """Only the order of the program says so: nothing flows between them."""
    x = fluid.layers.fill_constant([1], "float32", 1.0)
    first = fluid.layers.scale(x, 3.0)
    fluid.layers.increment(x)
    graph = fluid.framework.IrGraph(fluid.core.Graph(fluid.default_main_program().desc))
    scale, increment = op_of(graph, "scale"), op_of(graph, "increment")
    (order,) = [node for node in graph.all_var_nodes() if node.is_ctrl_var()]
    assert order.inputs == [scale] and order.outputs == [increment]
    assert graph.build_adjacency_list()[increment] == {scale, op_of(graph, "fill_constant")}
    assert fluid.Executor().run(graph.to_program(), fetch_list=[first.name])[0] == 3.0


def test_outputs_are_moved_and_attributes_set(fluid):
    y = fluid.layers.scale(fluid.data("x", [2]), 2.0)
    types = fluid.core.VarDesc.VarType
    graph = fluid.framework.IrGraph(fluid.core.Graph(fluid.default_main_program().desc), for_test=True)
    scale = op_of(graph, "scale")
    kept = graph.create_persistable_node("kept", types.LOD_TENSOR, [2], types.FP32)
    graph.update_output_link(scale.outputs[0], kept, scale)
    scale.set_attr("scale", 5.0)
    kept.set_shape([-1])
    made = graph.to_program()
    assert made.global_block().ops[0].output("Out") == ["kept"] and graph.is_test()
    var = made.global_block().var("kept")
    assert var.persistable and var.shape == (-1,)
    fluid.Executor().run(made, feed={"x": np.ones(2, "float32")})
    assert np.array(fluid.global_scope().find_var("kept").get_tensor()).tolist() == [5.0, 5.0]
    assert y.block.ops[0].attr("scale") == 2.0


def test_nodes_are_removed_with_their_edges(fluid, trained):
    graph, _, _ = trained
    count, sgd = len(graph.all_nodes()), op_of(graph, "sgd")
    beside = sgd.inputs + sgd.outputs
    graph.safe_remove_nodes(sgd)
    assert len(graph.all_nodes()) == count - 1 and "sgd" not in kinds(graph.to_program())
    assert all(sgd not in node.inputs + node.outputs for node in beside)
    with pytest.raises(ValueError, match="the graph has no node <Node .* sgd>"):
        graph.safe_remove_nodes({sgd})
    with pytest.raises(ValueError, match="the graph has no node"):
        graph.link_to(sgd, beside[0])


def test_a_cycle_is_detected(fluid, trained):
    graph, _, _ = trained
    before = graph.topology_sort()
    assert len(before) == len(graph.all_op_nodes()) == len(graph.build_adjacency_list())
    order = graph.create_control_dep_var()
    graph.link_to(before[-1], order)
    graph.link_to(order, before[0])
    assert graph.has_circle()
    for use in (graph.topology_sort, graph.to_program, graph.resolve_hazard):
        with pytest.raises(ValueError, match="the graph has a circle"):
            use()
    order.remove_input_by_id(before[-1].id())
    before[-1].remove_output(order)
    assert not graph.has_circle()


def test_graph_num_counts_components(fluid):
    for _ in range(3):
        fluid.layers.relu(fluid.layers.ones([1], "float32"))
    assert fluid.framework.IrGraph(fluid.core.Graph(fluid.default_main_program().desc)).graph_num() == 3


def test_loop_blocks_are_preserved(fluid):
    i, n = fluid.layers.fill_constant([1], "int64", 0), fluid.layers.fill_constant([1], "int64", 4)
    more = fluid.layers.less_than(i, n)
    with fluid.layers.While(more).block():
        fluid.layers.increment(i)
        fluid.layers.less_than(i, n, cond=more)
    graph = fluid.framework.IrGraph(fluid.core.Graph(fluid.default_main_program().desc))
    for one in (graph, graph.clone()):
        assert fluid.Executor().run(one.to_program(), fetch_list=[i.name])[0] == 4


def test_a_graph_is_drawn(fluid, trained, tmp_path, monkeypatch):
    graph, _, _ = trained
    monkeypatch.setattr(fluid.graphviz.shutil, "which", lambda command: None)
    graph.draw(str(tmp_path / "new"), "net", marked_nodes=op_of(graph, "relu"))
    text = (tmp_path / "new" / "net.dot").read_text()
    assert 'label="relu", shape="box", style="filled", fillcolor="orange"' in text and text.count("orange") == 1
    assert "__control_var" not in text and text.count('label="w"') == 2, "before the update, and after it"


def test_wrong_arguments_are_refused(fluid, trained):
    graph, main, _ = trained
    framework = fluid.framework
    mul = op_of(graph, "mul")
    for use in (
        lambda: framework.IrGraph(main),
        lambda: framework.IrNode(mul),
        lambda: framework.IrVarNode(mul.node),
        lambda: framework.IrOpNode(mul.inputs[0].node),
    ):
        with pytest.raises(TypeError, match="Ir.* takes "):
            use()
