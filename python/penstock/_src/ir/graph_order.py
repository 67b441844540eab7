"""The order of the ops of a core.Graph, and the program that it stands for."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

from penstock._src.base.errors import program_error
from penstock._src.ir.descs import OpDesc

if TYPE_CHECKING:
    from collections.abc import Iterable

    from penstock._penstock import ProgramDesc
    from penstock._src.ir.descs import BlockDesc
    from penstock._src.ir.graph import Graph, Node
    from penstock._src.ir.var_desc import VarDesc


def build_adjacency_list(graph: Graph) -> dict[Node, set[Node]]:
    """Returns {op: the ops that make what it reads}, nodes of a Graph."""
    ops = sorted((node for node in graph.nodes() if node.is_op()), key=lambda node: node.id())
    return {op: {maker for var in op.inputs for maker in var.inputs} for op in ops}


def topology_sort(graph: Graph) -> list[Node]:
    """Returns the ops of a Graph so that each comes after those that make what it reads; else in their own order.

    Raises:
        ValueError: the graph has a circle.
    """
    ops, before = _sorted(graph)
    if len(ops) < len(before):
        raise program_error("E-program-cycle", "the graph has a circle")
    return ops


def has_circle(graph: Graph) -> bool:
    """Tells whether ops of a Graph wait for each other."""
    ops, before = _sorted(graph)
    return len(ops) < len(before)


def _sorted(graph: Graph) -> tuple[list[Node], dict[Node, set[Node]]]:
    before = build_adjacency_list(graph)
    behind: dict[Node, list[Node]] = {op: [] for op in before}
    open_: dict[Node, int] = {}
    for op, makers in before.items():
        open_[op] = len(makers)
        for maker in makers:
            behind[maker].append(op)
    ready = [(op.id(), op) for op in before if not open_[op]]
    done = []
    while ready:
        _, op = heapq.heappop(ready)
        done.append(op)
        for later in behind[op]:
            open_[later] -= 1
            if not open_[later]:
                heapq.heappush(ready, (later.id(), later))
    return done, before


def graph_num(graph: Graph) -> int:
    """Counts the parts of a Graph between whose ops nothing is exchanged."""
    before = build_adjacency_list(graph)
    near: dict[Node, set[Node]] = {op: set() for op in before}
    for op, makers in before.items():
        for maker in makers:
            near[op].add(maker)
            near[maker].add(op)
    left, count = set(near), 0
    while left:
        count += 1
        reached = [left.pop()]
        while reached:
            new = near[reached.pop()] & left
            left -= new
            reached += new
    return count


def graph_safe_remove_nodes(graph: Graph, nodes: Iterable[Node]) -> None:
    """Removes nodes of a Graph, and the edges from and to them."""
    for node in nodes:
        for one in node.inputs:
            one.remove_output(node)
        for one in node.outputs:
            one.remove_input(node)
        graph.remove_node(node)


def program_of(graph: Graph) -> ProgramDesc:
    """Returns the ProgramDesc of a Graph: the nodes as block 0, and the other blocks of its program."""
    program = graph._program.copy()
    block = program.block(0)
    block._remove_op(0, block.op_size())
    inner = {
        name
        for index in range(1, program.num_blocks())
        for op in _ops(program.block(index))
        for name in op.input_arg_names() + op.output_arg_names()
    }
    descs: dict[str, VarDesc] = {}
    for node in sorted(graph.nodes(), key=lambda node: node.id()):
        declared = node.var()
        if declared is not None:
            descs[node.name()] = declared
    for var in block.all_vars():
        if var.name() not in descs and var.name() not in inner:
            block._remove_var(var.name())
    for name, desc in descs.items():
        if desc._program is not graph._program:
            _declare(block.var(name), desc)
    for node in topology_sort(graph):
        op = node.op()
        if op is not None:
            block.append_op().copy_from(op)
    return program


def _ops(block: BlockDesc) -> list[OpDesc]:
    return [block.op(index) for index in range(block.op_size())]


def _declare(var: VarDesc, like: VarDesc) -> None:
    var.set_type(like.type())
    var.set_dtype(like.dtype())
    var.set_shape(like.shape())
    var.set_lod_level(like.lod_level())
    var.set_persistable(like.persistable())
