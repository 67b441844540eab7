"""Prints programs as text, and draws them as graphs for Graphviz."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from penstock._src.base.file_writing import save_file
from penstock._src.ir.program_text import op_to_code, variable_to_code

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock._penstock import ProgramDesc
    from penstock._src.ir.block import Block
    from penstock._src.ir.program import Program


def pprint_program_codes(program_desc: Program | ProgramDesc) -> str:
    """Prints a program.

    Args:
        program_desc (Program | ProgramDesc): the program.

    Returns:
        str: the printed text.

    Example:
        fluid.layers.relu(fluid.data('x', [2]))
        assert 'relu(X=x)' in fluid.debugger.pprint_program_codes(fluid.default_main_program())
    """
    blocks = getattr(program_desc, "blocks", None)
    text = str(program_desc) if blocks is None else "\n".join(_text_of(block, True) for block in blocks)
    print(text)
    return text


def pprint_block_codes(block_desc: Block, show_backward: bool = False) -> str:
    """Prints a block.

    Args:
        block_desc (Block): the block.
        show_backward (bool): whether to print the backward pass too.

    Returns:
        str: the printed text.

    Example:
        fluid.layers.relu(fluid.data('x', [2]))
        assert 'relu' in fluid.debugger.pprint_block_codes(fluid.default_main_program().global_block())
    """
    text = _text_of(block_desc, show_backward)
    print(text)
    return text


def _text_of(block: Block, show_backward: bool) -> str:
    ops = [op for op in block.ops if show_backward or not op.type.endswith("_grad")]
    lines = [variable_to_code(var) for var in block.vars.values()] + [op_to_code(op) for op in ops]
    return "\n".join([f"block {block.idx} {{"] + ["  " + line for line in lines] + ["}"])


def draw_block_graphviz(block: Block, highlights: Sequence[str] | None = None, path: str = "./temp.dot") -> None:
    """Writes a block as a graph in Graphviz's language: ops as boxes, variables as ovals, parameters filled.

    Args:
        block (Block): the block.
        highlights (list[str] | None): regular expressions; nodes whose labels match one from the start are red.
        path (str): the file, which `dot -Tpng` draws.

    Example:
        import os, tempfile
        fluid.layers.relu(fluid.data('x', [2]))
        path = os.path.join(tempfile.mkdtemp(), 'relu.dot')
        fluid.debugger.draw_block_graphviz(fluid.default_main_program().global_block(), path=path)
        assert '"x" -> "op_0"' in open(path).read()

    Reference:
        Gansner, Koutsofios, North: "Drawing graphs with dot", 2015.
    """

    def node(name: str, label: str, shape: str, filled: bool = False) -> str:
        marked = any(re.match(pattern, label) for pattern in highlights or ())
        look = {"label": label, "shape": shape}
        if marked:
            look["color"] = "red"
        if filled:
            look["style"] = "filled"
        return f"  {json.dumps(name)} [{', '.join(f'{key}={json.dumps(look[key])}' for key in look)}];"

    names = dict.fromkeys(name for op in block.ops for name in op.input_arg_names + op.output_arg_names)
    lines = []
    for name in names:
        var = block._find_var_recursive(name)
        lines.append(node(name, name, "oval", var is not None and var.persistable))
    for number, op in enumerate(block.ops):
        lines.append(node(f"op_{number}", op.type, "box"))
        lines += [f'  {json.dumps(name)} -> "op_{number}";' for name in op.input_arg_names]
        lines += [f'  "op_{number}" -> {json.dumps(name)};' for name in op.output_arg_names]
    save_file(path, "\n".join(["digraph G {"] + lines + ["}", ""]).encode())
