"""Graphs as text in Graphviz's language: fluid.debugger.draw_block_graphviz draws programs, this module any graph."""

# Written by tools/dev/gen_names.py.
from penstock._src.ir.graphviz import (
    Edge as Edge, Graph as Graph, GraphPreviewGenerator as GraphPreviewGenerator, Node as Node, Rank as Rank,
    crepr as crepr, shutil as shutil, subprocess as subprocess, webbrowser as webbrowser,
)
from penstock._src.names import facade

__all__ = ['Edge', 'Graph', 'GraphPreviewGenerator', 'Node', 'Rank', 'crepr']

facade.make(__name__)
