"""fluid.core.Graph: a program as nodes for its ops and for each value of its variables, as Fluid's passes see it. A
Graph cannot run; a Program can, and IrGraph.to_program makes one."""

from __future__ import annotations

import enum
import itertools
from typing import TYPE_CHECKING

from penstock._penstock import ProgramDesc
from penstock._src.ir.descs import OpDesc
from penstock._src.ir.var_desc import VarDesc

if TYPE_CHECKING:
    from collections.abc import Set
    from typing import Any


CONTROL_VAR = "__control_var"  # prefix of the names of variables that only order ops
_made_names = itertools.count()


def generate_control_dev_var_name() -> str:
    """Makes a name for a variable that only orders ops.

    Returns:
        str: '__control_var@' and a number, which no other name of the process has.

    Example:
        name = fluid.framework.generate_control_dev_var_name()
        assert name.startswith('__control_var@') and name != fluid.framework.generate_control_dev_var_name()
    """
    return f"{CONTROL_VAR}@{next(_made_names)}"


class Node:
    """An op, or one value of a variable; `inputs` and `outputs` are the nodes before and after it."""

    class Type(enum.IntEnum):
        Operation = 0
        Variable = 1

    def __init__(self, number: int, kind: Node.Type, name: str, desc: OpDesc | VarDesc | None = None) -> None:
        self._id, self._kind, self._name, self._desc = number, kind, name, desc
        self.inputs: list[Node] = []
        self.outputs: list[Node] = []

    def id(self) -> int:
        """Its number, unique in the graph."""
        return self._id

    def name(self) -> str:
        """The type of the op, or the name of the variable."""
        return self._name

    def node_type(self) -> Node.Type:
        """Node.Type.Operation or Node.Type.Variable."""
        return self._kind

    def op(self) -> OpDesc | None:
        """The OpDesc, or None."""
        return self._desc if isinstance(self._desc, OpDesc) else None

    def var(self) -> VarDesc | None:
        """The VarDesc, or None."""
        return self._desc if isinstance(self._desc, VarDesc) else None

    def is_op(self) -> bool:
        """Whether it is an op."""
        return self._kind == Node.Type.Operation

    def is_var(self) -> bool:
        """Whether it is a variable."""
        return self._kind == Node.Type.Variable

    def is_ctrl_var(self) -> bool:
        """Whether it is a variable that only orders ops."""
        return self.is_var() and CONTROL_VAR in self._name

    def clear_inputs(self) -> None:
        """Removes the edges from the nodes before it."""
        self.inputs = []

    def clear_outputs(self) -> None:
        """Removes the edges to the nodes after it."""
        self.outputs = []

    def append_input(self, node: Node) -> None:
        """Adds an edge from a node before it."""
        self.inputs.append(node)

    def append_output(self, node: Node) -> None:
        """Adds an edge to a node after it."""
        self.outputs.append(node)

    def remove_input(self, node: Node | int) -> None:
        """Removes the edge from a node, given as a Node or its number."""
        self.inputs = [one for one in self.inputs if node not in (one, one.id())]

    def remove_output(self, node: Node | int) -> None:
        """Removes the edge to a node, given as a Node or its number."""
        self.outputs = [one for one in self.outputs if node not in (one, one.id())]

    def __repr__(self) -> str:
        return f"<Node {self._id} {self._name}>"


class Graph:
    """The nodes of a program's first block. Each op that writes a variable creates a new node for it. Where only the
    program's order says that an op comes before one that overwrites what it read, a control variable says so.

    Args:
        program (ProgramDesc): the program; the graph has a copy of it.

    Raises:
        TypeError: `program` is not a ProgramDesc.

    Example:
        y = fluid.layers.relu(fluid.data('x', [2]))
        graph = fluid.core.Graph(fluid.default_main_program().desc)
        assert sorted(node.name() for node in graph.nodes()) == ['relu', 'relu_0.tmp_0', 'x']
    """

    def __init__(self, program: ProgramDesc) -> None:
        if not isinstance(program, ProgramDesc):
            raise TypeError(f"Graph takes a ProgramDesc, not {program!r}")
        self._program, self._made = program.copy(), 0
        self._attrs: dict[str, Any] = {}
        self._nodes: dict[int, Node] = {}
        block = self._program.block(0)
        values: dict[str, list[Node]] = {}

        def value(name: str) -> Node:
            desc = block.find_var(name)
            return self.create_empty_node(name, Node.Type.Variable) if desc is None else self.create_var_node(desc)

        for op in (block.op(i) for i in range(block.op_size())):
            node = self.create_op_node(op)
            for name in dict.fromkeys(op.input_arg_names()):
                if name not in values:
                    values[name] = [value(name)]
                self._link(values[name][-1], node)
            for name in dict.fromkeys(op.output_arg_names()):
                values.setdefault(name, []).append(value(name))
                self._link(node, values[name][-1])
        self.resolve_hazard(values)

    def resolve_hazard(self, values: dict[str, list[Node]]) -> None:
        """Adds control variables: the op that makes a value of a variable comes after all that use the value before.

        values  {name: its nodes, in order}
        """
        for nodes in values.values():
            for old, new in zip(nodes, nodes[1:]):
                for writer in new.inputs[:1]:
                    for before in old.inputs[:1] + old.outputs:
                        if before is not writer and not set(before.outputs) & set(writer.inputs):
                            order = self.create_control_dep_var()
                            self._link(before, order)
                            self._link(order, writer)

    @staticmethod
    def _link(before: Node, behind: Node) -> None:
        before.append_output(behind)
        behind.append_input(before)

    def _add(self, kind: Node.Type, name: str, desc: OpDesc | VarDesc | None = None) -> Node:
        node = Node(self._made, kind, name, desc)
        self._nodes[node.id()] = node
        self._made += 1
        return node

    def clone(self) -> Graph:
        """Returns a graph with copies of all nodes, without attributes."""
        twin = Graph(self._program)
        twin._nodes, twin._made, copies = {}, self._made, {}
        for number, node in self._nodes.items():
            desc = node._desc if node._desc is None else self._copied(node._desc, twin._program)
            copies[node] = twin._nodes[number] = Node(number, node._kind, node._name, desc)
        for node, copy in copies.items():
            copy.inputs = [copies[one] for one in node.inputs if one in copies]
            copy.outputs = [copies[one] for one in node.outputs if one in copies]
        return twin

    def _copied(self, desc: OpDesc | VarDesc, program: ProgramDesc) -> OpDesc | VarDesc:
        """Returns a desc for a copy of the program: the same part of it, or a copy of what is not in the program."""
        if desc._program is not self._program:
            program = desc._program.copy()
        return type(desc)(program, *desc._at)

    # Attributes, which may be any objects.
    def has(self, name: str) -> bool:
        """Whether it has an attribute."""
        return name in self._attrs

    def set(self, name: str, value: Any) -> None:
        """Sets an attribute."""
        self._attrs[name] = value

    set_not_owned = set

    def erase(self, name: str) -> None:
        """Removes an attribute."""
        self._attrs.pop(name, None)

    def get(self, name: str) -> Any:
        """Returns the value of an attribute.

        Raises:
            ValueError: the attribute does not exist.
        """
        if name not in self._attrs:
            raise ValueError(f"the graph has no attribute {name}")
        return self._attrs[name]

    get_bool = get_int = get_float = get_double = get_string = get_marked_nodes = get

    # Nodes.
    def nodes(self) -> Set[Node]:
        """Returns all nodes as a set."""
        return set(self._nodes.values())

    def create_var_node(self, desc: VarDesc) -> Node:
        """Creates a node for a VarDesc."""
        if not isinstance(desc, VarDesc):
            raise TypeError(f"create_var_node takes a VarDesc, not {desc!r}")
        return self._add(Node.Type.Variable, desc.name(), desc)

    def create_op_node(self, desc: OpDesc) -> Node:
        """Creates a node for an OpDesc."""
        if not isinstance(desc, OpDesc):
            raise TypeError(f"create_op_node takes an OpDesc, not {desc!r}")
        return self._add(Node.Type.Operation, desc.type(), desc)

    def create_control_dep_var(self) -> Node:
        """Creates a node for a variable that only orders ops."""
        return self._add(Node.Type.Variable, generate_control_dev_var_name())

    def create_empty_node(self, name: str, kind: Node.Type) -> Node:
        """Creates a node without a desc."""
        return self._add(Node.Type(kind), name)

    def release_nodes(self) -> Set[Node]:
        """Removes all nodes and returns them as a set."""
        nodes, self._nodes = self.nodes(), {}
        return nodes

    def remove_node(self, node: Node) -> None:
        """Removes and returns one node."""
        del self._nodes[node.id()]

    def retrieve_node(self, number: int) -> Node:
        """Returns the node with a number.

        Raises:
            ValueError: the node does not exist.
        """
        if number not in self._nodes:
            raise ValueError(f"the graph has no node {number}")
        return self._nodes[number]
