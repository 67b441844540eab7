"""Graphs as text in Graphviz's language: fluid.debugger.draw_block_graphviz draws programs, this module any graph."""

from __future__ import annotations

import collections
import json
import os
import pathlib
import shutil
import subprocess
import webbrowser
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any


from penstock._src.base.errors import error_with_id


def crepr(v: object) -> str:
    """Returns a value as Graphviz's language writes it.

    Args:
        v (object): the value.

    Returns:
        str: a str in quotes; others as they print.

    Example:
        assert fluid.graphviz.crepr('a "b"') == '"a \\\\"b\\\\""' and fluid.graphviz.crepr(2) == '2'
    """
    return json.dumps(v, ensure_ascii=False) if isinstance(v, str) else str(v)


def _attributes(attrs: dict[str, str]) -> str:
    return ", ".join(f"{key}={crepr(value)}" for key, value in attrs.items())


class Rank:
    """Nodes at one height: `nodes`.

    Args:
        kind (str): 'same', 'min', 'max', 'source' or 'sink'.
        name (str): its name.
        priority (int): groups are written in this order.

    Example:
        graph = fluid.graphviz.Graph('two')
        rank = graph.rank_groups[graph.rank_group('same', 0)]
        for label in 'ab':
            rank.nodes.append(graph.node(label, 'letter'))
        assert str(rank) == '{rank=same; letter_0, letter_1}'
    """

    def __init__(self, kind: str, name: str, priority: int) -> None:
        self.kind, self.name, self.priority = kind, name, priority
        self.nodes: list[Node] = []

    def __str__(self) -> str:
        return f"{{rank={self.kind}; {', '.join(node.name for node in self.nodes)}}}" if self.nodes else ""


class Node:
    """A node. Graph.node() makes one with a name of its own.

    Args:
        label (str): its text; one in <angle brackets> is Graphviz's HTML.
        prefix (str): its name.
        description (str): for readers of the object.
        **attrs (str): Graphviz's attributes.

    Example:
        node = fluid.graphviz.Node('relu', 'op_0', shape='box')
        assert str(node) == 'op_0 [label="relu", shape="box"];'
    """

    def __init__(self, label: str, prefix: str, description: str = "", **attrs: Any) -> None:
        self.label, self.name, self.description, self.attrs = label, prefix, description, attrs

    def __str__(self) -> str:
        html = self.label.startswith("<") and self.label.endswith(">")
        label = "label=" + (self.label if html else crepr(self.label))
        return f"{self.name} [{', '.join(filter(None, (label, _attributes(self.attrs))))}];"


class Edge:
    """An arrow between two nodes.

    Args:
        source (Node): where it starts.
        target (Node): where it ends.
        **attrs (str): Graphviz's attributes.

    Example:
        x, y = fluid.graphviz.Node('x', 'x'), fluid.graphviz.Node('y', 'y')
        assert str(fluid.graphviz.Edge(x, y, color='red')) == 'x -> y [color="red"];'
    """

    def __init__(self, source: Node, target: Node, **attrs: Any) -> None:
        self.source, self.target, self.attrs = source, target, attrs

    def __str__(self) -> str:
        look = f" [{_attributes(self.attrs)}]" if self.attrs else ""
        return f"{self.source.name} -> {self.target.name}{look};"


class Graph:
    """A directed graph: `nodes`, `edges` and `rank_groups`. Its text depends only on the order in which they are added.

    Args:
        title (str): its title.
        **attrs (str): Graphviz's attributes.

    Example:
        graph = fluid.graphviz.Graph('network', rankdir='TB')
        graph.edge(graph.node('x', 'arg'), graph.node('relu', 'op', shape='box'))
        assert 'arg_0 -> op_0;' in graph.code()
    """

    def __init__(self, title: str, **attrs: Any) -> None:
        self.title, self.attrs = title, attrs
        self.nodes: list[Node] = []
        self.edges: list[Edge] = []
        self.rank_groups: dict[str, Rank] = {}
        self._made: collections.Counter[str] = collections.Counter()

    def code(self) -> str:
        """Returns the graph in Graphviz's language.

        Returns:
            str: a digraph.
        """
        return str(self)

    def rank_group(self, kind: str, priority: int) -> str:
        """Adds a group of nodes at one height.

        Args:
            kind (str): 'same', 'min', 'max', 'source' or 'sink'.
            priority (int): groups are written in this order.

        Returns:
            str: its name, for the argument `rank` of node().
        """
        name = f"rankgroup-{len(self.rank_groups)}"
        self.rank_groups[name] = Rank(kind, name, priority)
        return name

    def node(self, label: str, prefix: str, description: str = "", **attrs: Any) -> Node:
        """Adds a node.

        Args:
            label (str): its text.
            prefix (str): its name before a number.
            description (str): for readers of the object.
            **attrs (str): Graphviz's attributes, and `rank`, the name of a group.

        Returns:
            Node: the node.

        Raises:
            ValueError: there is no such group.
        """
        rank = attrs.pop("rank", None)
        if rank is not None and rank not in self.rank_groups:
            raise ValueError(f"the graph has no rank group {rank}")
        node = Node(label, f"{prefix}_{self._made[prefix]}", description, **attrs)
        self._made[prefix] += 1
        self.nodes.append(node)
        if rank is not None:
            self.rank_groups[rank].nodes.append(node)
        return node

    def edge(self, source: Node, target: Node, **attrs: Any) -> Edge:
        """Adds an arrow.

        Args:
            source (Node): where it starts.
            target (Node): where it ends.
            **attrs (str): Graphviz's attributes.

        Returns:
            Edge: the arrow.
        """
        self.edges.append(Edge(source, target, **attrs))
        return self.edges[-1]

    def compile(self, dot_path: str) -> str:
        """Writes the graph to a file, and draws it beside it if the command `dot` is installed.

        Args:
            dot_path (str): the file, such as 'network.dot'.

        Returns:
            str: the path of the drawing, a PDF; without `dot` it does not exist.

        Raises:
            subprocess.CalledProcessError: `dot` cannot draw it.
        """
        pathlib.Path(dot_path).write_text(str(self), encoding="utf-8")
        drawing = os.path.splitext(dot_path)[0] + ".pdf"
        if shutil.which("dot"):
            subprocess.run(["dot", "-Tpdf", dot_path, "-o", drawing], check=True)
        return drawing

    def show(self, dot_path: str) -> None:
        """Writes and draws the graph, and opens the drawing.

        Args:
            dot_path (str): the file, such as 'network.dot'.

        Raises:
            RuntimeError: the command `dot` is not installed.
        """
        drawing = self.compile(dot_path)
        if not os.path.exists(drawing):
            raise error_with_id(
                RuntimeError,
                "E-graphviz-missing",
                f"{dot_path} is written, but Graphviz, whose command dot draws it, is not installed",
            )
        webbrowser.open(pathlib.Path(drawing).absolute().as_uri())

    def __str__(self) -> str:
        ranks = sorted(self.rank_groups.values(), key=lambda rank: rank.priority)
        own = dict({"label": self.title}, **self.attrs)
        lines = [f"  {key}={crepr(value)};" for key, value in own.items()]
        lines += [f"  {part}" for part in [*ranks, *self.nodes, *self.edges] if str(part)]
        return "\n".join(["digraph G {"] + lines + ["}", ""])


class GraphPreviewGenerator:
    """Draws a network: ops as boxes, parameters as rounded boxes, other values as ovals. `graph` is its Graph.

    Args:
        title (str): its title.

    Example:
        import os, tempfile
        preview = fluid.graphviz.GraphPreviewGenerator('network')
        mul = preview.add_op('mul', highlight=True)
        preview.add_edge(preview.add_param('w', 'float32[4, 2]'), mul)
        preview.add_edge(preview.add_arg('x'), mul)
        path = os.path.join(tempfile.mkdtemp(), 'network.dot')
        preview(path)
        assert 'param_0 -> op_0' in open(path).read()
    """

    def __init__(self, title: str) -> None:
        self.graph = Graph(title, layout="dot", rankdir="TB")

    def __call__(self, path: str = "temp.dot", show: bool = False) -> None:
        """Writes the graph to a file and draws it; see Graph.compile and Graph.show.

        Args:
            path (str): the file.
            show (bool): open the drawing.
        """
        if show:
            self.graph.show(path)
        else:
            self.graph.compile(path)

    def add_param(self, name: str, data_type: object, highlight: bool = False) -> Node:
        """Adds a parameter.

        Args:
            name (str): its name.
            data_type (object): its type, as it prints.
            highlight (bool): draw it in orange.

        Returns:
            Node: its node.
        """
        return self.graph.node(
            f"{name}\n{data_type}",
            "param",
            name,
            shape="box",
            style="rounded,filled",
            fillcolor=_colour(highlight, "lightblue"),
        )

    def add_op(self, opType: str, **kwargs: Any) -> Node:
        """Adds an op.

        Args:
            opType (str): its type.
            **kwargs (object): `highlight`: draw it in orange; others are Graphviz's attributes.

        Returns:
            Node: its node.
        """
        highlight = kwargs.pop("highlight", False)
        look = dict({"shape": "box", "style": "filled", "fillcolor": _colour(highlight, "lightgrey")}, **kwargs)
        return self.graph.node(opType, "op", opType, **look)

    def add_arg(self, name: str, highlight: bool = False) -> Node:
        """Adds a value that an op reads or writes.

        Args:
            name (str): its name.
            highlight (bool): draw it in orange.

        Returns:
            Node: its node.
        """
        return self.graph.node(name, "arg", name, shape="oval", style="filled", fillcolor=_colour(highlight, "white"))

    def add_edge(self, source: Node, target: Node, **kwargs: Any) -> Edge:
        """Adds an arrow.

        Args:
            source (Node): where it starts.
            target (Node): where it ends.
            **kwargs (object): `highlight`: draw it in orange; others are Graphviz's attributes.

        Returns:
            Edge: the arrow.
        """
        return self.graph.edge(source, target, color=_colour(kwargs.pop("highlight", False), "black"), **kwargs)


def _colour(highlight: bool, plain: str) -> str:
    return "orange" if highlight else plain
