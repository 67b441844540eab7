"""What IrGraph, in program.py, does with a core.Graph."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from penstock._penstock import ProgramDesc
from penstock._src.base.doc_texts import with_texts
from penstock._src.ir import graph_order, graphviz
from penstock._src.ir.descs import OpDesc
from penstock._src.ir.graph import Graph
from penstock._src.ir.graph_nodes import IrNode, IrOpNode, IrVarNode, set_attr, view_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import TypeVar

    from penstock._src.ir.graph import Node
    from penstock._src.ir.program import Program
    from penstock._src.ir.types import VarType
    from penstock._src.ir.typing import Attrs
    from penstock._src.ir.var_desc import VarDesc

    _View = TypeVar("_View", bound="GraphView")


def _listed(nodes: IrNode | Iterable[IrNode] | None) -> list[IrNode]:
    return [nodes] if isinstance(nodes, IrNode) else list(nodes or ())


_LINKS = {
    "another_value": """Makes an op {does} another value.

        Args:
            old_{way}_node (IrVarNode): the value that it {did}.
            new_{way}_node (IrVarNode): the other one.
            op_node (IrOpNode): the op.

        Raises:
            ValueError: a node is not in the graph.
        """
}


_NODES = {
    "new_variable": """Args:
    name (str): its name.
    var_type (VarType): its kind, such as LOD_TENSOR.
    shape (list[int]): its shape.
    var_dtype (VarType): the type of its elements.

Returns:
    IrVarNode: its node."""
}


class GraphView:
    """The base of IrGraph, without its way back to a Program."""

    def __init__(self, graph: Graph | Program, for_test: bool = False) -> None:
        if not isinstance(graph, Graph):
            raise TypeError(f"IrGraph takes a core.Graph, not {graph!r}; core.Graph(program.desc) makes one")
        self.graph = graph
        self._for_test = for_test

    def clone(self: _View) -> _View:
        """Copies the nodes, without the attributes of the graph.

        Returns:
            IrGraph: the copy.
        """
        return type(self)(self.graph.clone(), self._for_test)

    def is_test(self) -> bool:
        """Tells whether the graph is one for tests.

        Returns:
            bool: what the constructor was told.
        """
        return self._for_test

    # Nodes.
    def all_nodes(self) -> set[IrNode]:
        """Returns all nodes.

        Returns:
            set[IrNode]: ops and variables.
        """
        return {view_of(node) for node in self.graph.nodes()}

    def all_op_nodes(self) -> set[IrOpNode]:
        """Returns all ops.

        Returns:
            set[IrOpNode]: the ops.
        """
        return {IrOpNode(node) for node in self.graph.nodes() if node.is_op()}

    def all_var_nodes(self) -> set[IrVarNode]:
        """Returns all values of variables.

        Returns:
            set[IrVarNode]: the values, those that only order ops too.
        """
        return {IrVarNode(node) for node in self.graph.nodes() if node.is_var()}

    def all_persistable_nodes(self) -> set[IrVarNode]:
        """Returns the values of variables that keep theirs between runs.

        Returns:
            set[IrVarNode]: the values.
        """
        return {node for node in self.all_var_nodes() if node.var() is not None and node.persistable()}

    @with_texts(_NODES)
    def create_persistable_node(
        self, name: str, var_type: VarType, shape: Sequence[int], var_dtype: VarType
    ) -> IrVarNode:
        """Adds a variable that keeps its value between runs.

        {new_variable}
        """
        node = self.create_var_node(name, var_type, shape, var_dtype)
        node._var_desc().set_persistable(True)
        return node

    @with_texts(_NODES)
    def create_var_node(self, name: str, var_type: VarType, shape: Sequence[int], var_dtype: VarType) -> IrVarNode:
        """Adds a variable.

        {new_variable}
        """
        desc = ProgramDesc().block(0).var(name)
        desc.set_type(var_type)
        desc.set_dtype(var_dtype)
        desc.set_shape(shape)
        return self.create_var_node_from_desc(desc)

    def create_var_node_from_desc(self, var_desc: VarDesc) -> IrVarNode:
        """Adds a value of a declared variable.

        Args:
            var_desc (VarDesc): the declaration, such as that of another node.

        Returns:
            IrVarNode: its node.
        """
        return IrVarNode(self.graph.create_var_node(var_desc))

    def create_control_dep_var(self) -> IrVarNode:
        """Adds a variable that only orders ops.

        Returns:
            IrVarNode: its node.
        """
        return IrVarNode(self.graph.create_control_dep_var())

    def create_op_node(
        self, op_type: str, attrs: Attrs, inputs: Mapping[str, IrVarNode], outputs: Mapping[str, IrVarNode]
    ) -> IrOpNode:
        """Adds an op, without edges.

        Args:
            op_type (str): its type.
            attrs (dict): its attributes.
            inputs (dict): {slot: IrVarNode, or a list of them}.
            outputs (dict): {slot: IrVarNode, or a list of them}.

        Returns:
            IrOpNode: its node.
        """
        desc = OpDesc()
        desc.set_type(op_type)
        for name, value in attrs.items():
            set_attr(desc, name, value)
        for slot, nodes in inputs.items():
            desc.set_input(slot, [node.name() for node in _listed(nodes)])
        for slot, nodes in outputs.items():
            desc.set_output(slot, [node.name() for node in _listed(nodes)])
        return self.create_op_node_from_desc(desc)

    def create_op_node_from_desc(self, op_desc: OpDesc) -> IrOpNode:
        """Adds an op, without edges.

        Args:
            op_desc (OpDesc): the op.

        Returns:
            IrOpNode: its node.
        """
        return IrOpNode(self.graph.create_op_node(op_desc))

    # Edges.
    def _require(self, *nodes: IrNode) -> None:
        there = self.graph.nodes()
        for node in nodes:
            if node.node not in there:
                raise ValueError(f"the graph has no node {node!r}")

    def link_to(self, node_in: IrNode, node_out: IrNode) -> None:
        """Adds an edge.

        Args:
            node_in (IrNode): where it starts.
            node_out (IrNode): where it ends.

        Raises:
            ValueError: a node is not in the graph.
        """
        self._require(node_in, node_out)
        node_in.append_output(node_out)
        node_out.append_input(node_in)

    @with_texts(_LINKS, way="input", does="read", did="read")
    def update_input_link(self, old_input_node: IrVarNode, new_input_node: IrVarNode, op_node: IrOpNode) -> None:
        """{another_value}"""
        self._require(old_input_node, new_input_node, op_node)
        old_input_node.remove_output(op_node)
        op_node.remove_input(old_input_node)
        self.link_to(new_input_node, op_node)
        op_node.rename_input(old_input_node.name(), new_input_node.name())

    @with_texts(_LINKS, way="output", does="write", did="wrote")
    def update_output_link(self, old_output_node: IrVarNode, new_output_node: IrVarNode, op_node: IrOpNode) -> None:
        """{another_value}"""
        self._require(old_output_node, new_output_node, op_node)
        old_output_node.remove_input(op_node)
        op_node.remove_output(old_output_node)
        self.link_to(op_node, new_output_node)
        op_node.rename_output(old_output_node.name(), new_output_node.name())

    def safe_remove_nodes(self, remove_nodes: IrNode | Sequence[IrNode] | set[IrNode]) -> None:
        """Removes nodes and their edges.

        Args:
            remove_nodes (IrNode | list[IrNode] | set[IrNode]): the nodes.

        Raises:
            ValueError: a node is not in the graph.
        """
        nodes = _listed(remove_nodes)
        self._require(*nodes)
        graph_order.graph_safe_remove_nodes(self.graph, {node.node for node in nodes})

    # Order.
    def resolve_hazard(self) -> None:
        """Orders the ops that use a value of a variable before the op that makes its next value. Call it after edges
        have changed.

        Raises:
            ValueError: the graph has a circle.
        """
        values: dict[str, list[Node]] = {}
        for op in graph_order.topology_sort(self.graph):
            for var in op.inputs:
                values.setdefault(var.name(), [var])
            for var in op.outputs:
                if var not in values.setdefault(var.name(), []):
                    values[var.name()].append(var)
        self.graph.resolve_hazard(values)

    def has_circle(self) -> bool:
        """Tells whether ops wait for each other.

        Returns:
            bool: True if some do.
        """
        return graph_order.has_circle(self.graph)

    def graph_num(self) -> int:
        """Counts the parts between which nothing is exchanged.

        Returns:
            int: their number.
        """
        return graph_order.graph_num(self.graph)

    def topology_sort(self) -> list[IrOpNode]:
        """Orders the ops so that each comes after those that make what it reads.

        Returns:
            list[IrOpNode]: all ops.

        Raises:
            ValueError: the graph has a circle.
        """
        return [IrOpNode(node) for node in graph_order.topology_sort(self.graph)]

    def build_adjacency_list(self) -> dict[IrOpNode, set[IrOpNode]]:
        """Lists for each op those that make what it reads.

        Returns:
            dict[IrOpNode, set[IrOpNode]]: all ops.
        """
        return {
            IrOpNode(op): {IrOpNode(maker) for maker in makers}
            for op, makers in graph_order.build_adjacency_list(self.graph).items()
        }

    def draw(
        self,
        save_path: str,
        name: str,
        marked_nodes: IrNode | Sequence[IrNode] | set[IrNode] | None = None,
        remove_ctr_var: bool = True,
    ) -> None:
        """Writes the graph in Graphviz's language, as `name`.dot, and draws it as `name`.pdf if the command `dot` is
        installed.

        Args:
            save_path (str): the folder; made if it does not exist.
            name (str): the name of the files.
            marked_nodes (IrNode | list[IrNode] | set[IrNode] | None): nodes to be drawn in orange.
            remove_ctr_var (bool): leave out variables that only order ops.
        """
        marked, drawing = set(_listed(marked_nodes)), graphviz.GraphPreviewGenerator(name)
        drawn: dict[IrNode, graphviz.Node] = {}
        for node in sorted(self.all_nodes(), key=lambda node: node.id()):
            if not (remove_ctr_var and node.is_ctrl_var()):
                add = drawing.add_op if node.is_op() else drawing.add_arg
                drawn[node] = add(node.name(), highlight=node in marked)
        for node, source in drawn.items():
            for target in node.outputs:
                if target in drawn:
                    drawing.add_edge(source, drawn[target])
        os.makedirs(save_path, exist_ok=True)
        drawing(os.path.join(save_path, name + ".dot"))
