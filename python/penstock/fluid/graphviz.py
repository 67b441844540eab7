"""Graphs as text in Graphviz's language: fluid.debugger.draw_block_graphviz draws programs, this module any graph."""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.ir.graphviz import Edge as Edge, Graph as Graph
    from penstock._src.ir.graphviz import GraphPreviewGenerator as GraphPreviewGenerator, Node as Node, Rank as Rank
    from penstock._src.ir.graphviz import crepr as crepr, shutil as shutil, subprocess as subprocess
    from penstock._src.ir.graphviz import webbrowser as webbrowser

__all__ = ['Edge', 'Graph', 'GraphPreviewGenerator', 'Node', 'Rank', 'crepr']

facade.make(__name__)
