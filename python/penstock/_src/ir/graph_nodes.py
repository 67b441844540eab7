"""IrNode, IrVarNode and IrOpNode: nodes of a core.Graph as Fluid's Python passes hold them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock._src.base.doc_texts import with_texts
from penstock._src.ir.block import Block
from penstock._src.ir.graph import Node

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from penstock._penstock import _Attr
    from penstock._src.ir.descs import OpDesc
    from penstock._src.ir.types import VarType
    from penstock._src.ir.var_desc import VarDesc


def view_of(node: Node) -> IrOpNode | IrVarNode:
    """Returns the IrOpNode or IrVarNode of a core.Node."""
    return IrOpNode(node) if node.is_op() else IrVarNode(node)


def set_attr(desc: OpDesc, name: str, value: Any) -> None:
    """Sets an attribute of an OpDesc; its value may be a Block, or a list of them."""
    if isinstance(value, Block):
        desc.set_block_attr(name, value.desc)
    elif isinstance(value, list) and value and all(isinstance(one, Block) for one in value):
        desc.set_blocks_attr(name, [one.desc for one in value])
    else:
        desc._set_attr(name, value)


_NODE = {
    "whether": """Returns:
    bool: True if it is."""
}


class IrNode:
    """A node of an IrGraph. Two of the same core.Node are equal.

    Args:
        node (Node): the node of the core.Graph; the attribute `node`.

    Raises:
        TypeError: `node` is not a core.Node.

    Example:
        fluid.layers.relu(fluid.data('x', [2]))
        graph = fluid.framework.IrGraph(fluid.core.Graph(fluid.default_main_program().desc))
        assert sorted(node.name() for node in graph.all_nodes()) == ['relu', 'relu_0.tmp_0', 'x']
    """

    def __init__(self, node: Node) -> None:
        if not isinstance(node, Node):
            raise TypeError(f"{type(self).__name__} takes a core.Node, not {node!r}")
        self.node = node

    def __eq__(self, other: object) -> bool:
        return isinstance(other, IrNode) and self.node is other.node

    def __hash__(self) -> int:
        return hash(self.node)

    def __repr__(self) -> str:
        return repr(self.node)

    def name(self) -> str:
        """Returns the type of the op, or the name of the variable.

        Returns:
            str: the text.
        """
        return self.node.name()

    def node_type(self) -> Node.Type:
        """Returns the kind of the node.

        Returns:
            Node.Type: Operation or Variable.
        """
        return self.node.node_type()

    def var(self) -> VarDesc | None:
        """Returns the declaration of the variable.

        Returns:
            VarDesc: None for an op, and for a variable that only orders ops.
        """
        return self.node.var()

    def op(self) -> OpDesc | None:
        """Returns the op.

        Returns:
            OpDesc: None for a variable.
        """
        return self.node.op()

    def id(self) -> int:
        """Returns the number of the node.

        Returns:
            int: unique in the graph.
        """
        return self.node.id()

    @with_texts(_NODE)
    def is_op(self) -> bool:
        """Tells whether it is an op.

        {whether}
        """
        return self.node.is_op()

    @with_texts(_NODE)
    def is_var(self) -> bool:
        """Tells whether it is a variable.

        {whether}
        """
        return self.node.is_var()

    @with_texts(_NODE)
    def is_ctrl_var(self) -> bool:
        """Tells whether it is a variable that only orders ops.

        {whether}
        """
        return self.node.is_ctrl_var()

    @property
    def inputs(self) -> list[IrOpNode | IrVarNode]:
        """The nodes before it, a list."""
        return [view_of(node) for node in self.node.inputs]

    @property
    def outputs(self) -> list[IrOpNode | IrVarNode]:
        """The nodes behind it, a list."""
        return [view_of(node) for node in self.node.outputs]

    def clear_inputs(self) -> None:
        """Removes the edges from the nodes before it; these keep theirs."""
        self.node.clear_inputs()

    def clear_outputs(self) -> None:
        """Removes the edges to the nodes behind it; these keep theirs."""
        self.node.clear_outputs()

    def append_input(self, node: IrNode) -> None:
        """Adds an edge from a node; that one needs append_output.

        Args:
            node (IrNode): the node before it.
        """
        self.node.append_input(node.node)

    def append_output(self, node: IrNode) -> None:
        """Adds an edge to a node; that one needs append_input.

        Args:
            node (IrNode): the node behind it.
        """
        self.node.append_output(node.node)

    def remove_input(self, node: IrNode) -> None:
        """Removes the edge from a node.

        Args:
            node (IrNode): the node before it.
        """
        self.node.remove_input(node.node)

    def remove_output(self, node: IrNode) -> None:
        """Removes the edge to a node.

        Args:
            node (IrNode): the node behind it.
        """
        self.node.remove_output(node.node)

    def remove_input_by_id(self, node_id: int) -> None:
        """Removes the edge from a node.

        Args:
            node_id (int): the number of the node before it.
        """
        self.node.remove_input(node_id)

    def remove_output_by_id(self, node_id: int) -> None:
        """Removes the edge to a node.

        Args:
            node_id (int): the number of the node behind it.
        """
        self.node.remove_output(node_id)

    def _var_desc(self) -> VarDesc:
        desc = self.node.var()
        if desc is None:
            raise ValueError(f"{self.name()} has no VarDesc")
        return desc

    def _op_desc(self) -> OpDesc:
        desc = self.node.op()
        if desc is None:
            raise ValueError(f"{self.name()} has no OpDesc")
        return desc


class IrVarNode(IrNode):
    """A value of a variable in an IrGraph.

    Args:
        node (Node): the node of the core.Graph.

    Raises:
        TypeError: `node` is not a variable's.

    Example:
        fluid.layers.relu(fluid.data('x', [2]))
        graph = fluid.framework.IrGraph(fluid.core.Graph(fluid.default_main_program().desc))
        x, = [node for node in graph.all_var_nodes() if node.name() == 'x']
        assert x.shape() == [2] and not x.persistable()
    """

    def __init__(self, node: Node) -> None:
        super().__init__(node)
        if not node.is_var():
            raise TypeError(f"IrVarNode takes the node of a variable, not {node!r}")

    def set_shape(self, shape: Sequence[int]) -> None:
        """Changes the shape of the variable.

        Args:
            shape (list[int]): the shape.
        """
        self._var_desc().set_shape(shape)

    def persistable(self) -> bool:
        """Tells whether the variable keeps its value between runs.

        Returns:
            bool: True if it does.
        """
        return self._var_desc().persistable()

    def type(self) -> VarType:
        """Returns the kind of the variable.

        Returns:
            VarType: such as LOD_TENSOR.
        """
        return self._var_desc().type()

    def dtype(self) -> VarType:
        """Returns the type of its elements.

        Returns:
            VarType: such as FP32.
        """
        return self._var_desc().dtype()

    def shape(self) -> list[int]:
        """Returns its shape.

        Returns:
            list[int]: -1: known at run time.
        """
        return self._var_desc().shape()


class IrOpNode(IrNode):
    """An op in an IrGraph.

    Args:
        node (Node): the node of the core.Graph.

    Raises:
        TypeError: `node` is not an op's.

    Example:
        fluid.layers.relu(fluid.data('x', [2]))
        graph = fluid.framework.IrGraph(fluid.core.Graph(fluid.default_main_program().desc))
        relu, = graph.all_op_nodes()
        assert relu.input('X') == ['x'] and [node.name() for node in relu.outputs] == ['relu_0.tmp_0']
    """

    def __init__(self, node: Node) -> None:
        super().__init__(node)
        if not node.is_op():
            raise TypeError(f"IrOpNode takes the node of an op, not {node!r}")

    def rename_input(self, old_input_name: str, new_input_name: str) -> None:
        """Makes the op read another variable, without a change of edges.

        Args:
            old_input_name (str): the variable that it read.
            new_input_name (str): the other one.
        """
        self._op_desc()._rename_input(old_input_name, new_input_name)

    def rename_output(self, old_output_name: str, new_output_name: str) -> None:
        """Makes the op write another variable, without a change of edges.

        Args:
            old_output_name (str): the variable that it wrote.
            new_output_name (str): the other one.
        """
        self._op_desc()._rename_output(old_output_name, new_output_name)

    def input(self, name: str) -> list[str]:
        """Returns the variables of an input.

        Args:
            name (str): the slot.

        Returns:
            list[str]: their names.
        """
        return self._op_desc().input(name)

    def output(self, name: str) -> list[str]:
        """Returns the variables of an output.

        Args:
            name (str): the slot.

        Returns:
            list[str]: their names.
        """
        return self._op_desc().output(name)

    def set_type(self, new_type: str) -> None:
        """Changes the type of the op; name() stays.

        Args:
            new_type (str): the type.
        """
        self._op_desc().set_type(new_type)

    def set_attr(self, name: str, val: Block | _Attr) -> None:
        """Sets an attribute.

        Args:
            name (str): its name.
            val (bool | int | float | str | list | Block): its value.
        """
        set_attr(self._op_desc(), name, val)

    def input_arg_names(self) -> list[str]:
        """Returns the variables that the op reads.

        Returns:
            list[str]: their names.
        """
        return self._op_desc().input_arg_names()

    def output_arg_names(self) -> list[str]:
        """Returns the variables that the op writes.

        Returns:
            list[str]: their names.
        """
        return self._op_desc().output_arg_names()
