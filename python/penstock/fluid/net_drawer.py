"""Draws a main program as a graph for Graphviz."""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.debug.debugger import draw_block_graphviz as draw_block_graphviz
    from penstock._src.debug.net_drawer import draw_graph

__all__ = ['draw_graph']

facade.make(__name__)
