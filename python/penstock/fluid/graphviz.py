"""Graphs as text in Graphviz's language: fluid.debugger.draw_block_graphviz draws programs, this module any graph."""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.ir.graphviz import Edge, Graph, GraphPreviewGenerator, Node, Rank, crepr, shutil as shutil
    from penstock._src.ir.graphviz import subprocess as subprocess, webbrowser as webbrowser

__all__ = ['Edge', 'Graph', 'GraphPreviewGenerator', 'Node', 'Rank', 'crepr']

facade.make(__name__)
