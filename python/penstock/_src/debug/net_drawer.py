"""Draws a main program as a graph for Graphviz."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock._src.debug.debugger import draw_block_graphviz

if TYPE_CHECKING:
    from typing import Any

    from penstock._src.ir.program import Program


def draw_graph(startup_program: Program, main_program: Program, **kwargs: Any) -> None:
    """Writes the graph of a main program's first block in Graphviz's language.

    Args:
        startup_program (Program): ignored; accepted for compatibility with Fluid.
        main_program (Program): the program.
        **kwargs (str): `filename`, the file, by default 'graph.dot'; other arguments have no effect.

    Example:
        import os, tempfile
        fluid.layers.relu(fluid.data('x', [2]))
        path = os.path.join(tempfile.mkdtemp(), 'graph.dot')
        fluid.net_drawer.draw_graph(fluid.default_startup_program(), fluid.default_main_program(), filename=path)
        assert os.path.exists(path)
    """
    draw_block_graphviz(main_program.global_block(), path=kwargs.get("filename", "graph.dot"))
