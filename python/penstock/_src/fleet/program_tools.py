"""Checks of saved programs: Fluid's fleet.utils.utils, which compares what was trained with what was saved."""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
from typing import TYPE_CHECKING

from penstock._penstock import ProgramDesc
from penstock._src.base.file_writing import save_file
from penstock._src.data.py_reader import data
from penstock._src.debug import debugger
from penstock._src.executor import executor
from penstock._src.io.var_records import is_persistable
from penstock._src.ir.framework import program_guard
from penstock._src.ir.program import Program
from penstock._src.ir.types import CPUPlace, VarDesc

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from penstock._src.ir.block import Block
    from penstock._src.ir.typing import Array
    from penstock._src.ir.variable import Variable


logger = logging.getLogger("penstock.fluid.incubate.fleet.utils.utils")
persistable_vars_out_fn, all_vars_out_fn, ops_out_fn = "vars_persistable.log", "vars_all.log", "ops.log"
feed_fetch_type_list = [VarDesc.VarType.FEED_MINIBATCH, VarDesc.VarType.FETCH_LIST]


def load_program(model_filename: str, is_text: bool = False) -> Program:
    """Reads a program from a file.

    Args:
        model_filename (str): the file.
        is_text (bool): it holds the text that save_program writes.

    Returns:
        Program: the program.

    Example:
        from penstock.fluid.incubate.fleet.utils import utils
        fluid.layers.fc(fluid.data('x', [None, 4]), 1)
        utils.save_program(fluid.default_main_program(), 'main.txt', is_text=True)
        assert utils.load_program('main.txt', is_text=True).global_block().has_var('x')
    """
    return load_program_text(model_filename) if is_text else load_program_binary(model_filename)


def load_program_binary(model_filename: str) -> Program:
    """Reads a program from a file of bytes.

    Args:
        model_filename (str): the file.

    Returns:
        Program: the program.
    """
    with open(model_filename, "rb") as file:
        return Program.parse_from_string(file.read())


def load_program_text(model_filename: str) -> Program:
    """Reads a program from a file of text.

    Args:
        model_filename (str): the file.

    Returns:
        Program: the program.
    """
    with open(model_filename, encoding="utf-8", errors="surrogateescape") as file:
        return Program._of(ProgramDesc.parse_text(file.read()))


def save_program(program: Program, model_filename: str = "__model__", is_text: bool = False) -> None:
    """Writes a program to a file.

    Args:
        program (Program): the program.
        model_filename (str): the file.
        is_text (bool): write Penstock's text form, as `penstock convert` does; otherwise Fluid's bytes.

    Example:
        from penstock.fluid.incubate.fleet.utils import utils
        utils.save_program(fluid.default_main_program(), 'main')
    """
    if is_text:
        save_file(model_filename, program.desc.to_text().encode(errors="surrogateescape"))
    else:
        save_file(model_filename, program.desc.serialize_to_string())


def program_type_trans(prog_dir: str, prog_fn: str, is_text: bool) -> str:
    """Writes a program in the other form, beside the first file.

    Args:
        prog_dir (str): the folder.
        prog_fn (str): the file's name.
        is_text (bool): the file holds text.

    Returns:
        str: the new file's name: with .bin for bytes, .pbtxt for text.

    Example:
        from penstock.fluid.incubate.fleet.utils import utils
        utils.save_program(fluid.default_main_program(), 'main')
        assert utils.program_type_trans('.', 'main', is_text=False) == 'main.pbtxt'
    """
    made = prog_fn + (".bin" if is_text else ".pbtxt")
    save_program(load_program(os.path.join(prog_dir, prog_fn), is_text), os.path.join(prog_dir, made), not is_text)
    return made


def check_pruned_program_vars(train_prog: Program, pruned_prog: Program) -> bool:
    """Compares the persistable variables of a pruned program with those of the program it comes from.

    Args:
        train_prog (Program): the program it comes from.
        pruned_prog (Program): the pruned program.

    Returns:
        bool: whether all that both have agree in shape and type; differences and missing variables are logged.

    Example:
        from penstock.fluid.incubate.fleet.utils import utils
        main = fluid.default_main_program()
        assert utils.check_pruned_program_vars(main, main.clone())
    """
    agree = True
    for var in pruned_prog.list_vars():
        if not is_persistable(var) or var.type in feed_fetch_type_list:
            continue
        if not train_prog.global_block().has_var(var.name):
            logger.error("the training program has no variable %s", var.name)
            continue
        trained = train_prog.global_block().var(var.name)
        if (var.shape, var.dtype) != (trained.shape, trained.dtype):
            logger.error(
                "variable %s has shape %s and type %s in the pruned program, but %s and %s in the other one",
                var.name,
                var.shape,
                var.dtype,
                trained.shape,
                trained.dtype,
            )
            agree = False
    return agree


def graphviz(block: Block, output_dir: str = "", filename: str = "debug") -> None:
    """Draws a block: a .dot file, and a .pdf if Graphviz is installed.

    Args:
        block (Block): the block.
        output_dir (str): the folder.
        filename (str): the files' name, without an ending.

    Example:
        from penstock.fluid.incubate.fleet.utils import utils
        utils.graphviz(fluid.default_main_program().global_block())
    """
    dot, pdf = (os.path.join(output_dir, filename + end) for end in (".dot", ".pdf"))
    debugger.draw_block_graphviz(block, path=dot)
    if shutil.which("dot"):
        subprocess.run(["dot", "-Tpdf", dot, "-o", pdf], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def append_save_op(block: Block, var: Variable, path: str) -> None:
    """Appends an op that saves a variable.

    Args:
        block (Block): the block.
        var (Variable): the variable.
        path (str): the file.
    """
    block.append_op(type="save", inputs={"X": [var]}, outputs={}, attrs={"file_path": path})


def append_load_op(block: Block, var: Variable, path: str) -> None:
    """Appends an op that loads a variable.

    Args:
        block (Block): the block.
        var (Variable): the variable.
        path (str): the file.
    """
    block.append_op(type="load", inputs={}, outputs={"Out": [var]}, attrs={"file_path": path})


def save_var(np_array: Array, var_name: str, shape_list: Sequence[int], dtype: str, save_path: str) -> None:
    """Saves an array as Fluid's ops save a variable.

    Args:
        np_array (numpy.ndarray): the value.
        var_name (str): the name of the variable.
        shape_list (list[int]): its shape, without the batch.
        dtype (str): its element type.
        save_path (str): the file.
    """
    program = Program()
    with program_guard(program):
        append_save_op(program.global_block(), data(var_name, shape=shape_list, dtype=dtype), save_path)
        executor.Executor(CPUPlace()).run(program, feed={var_name: np_array}, fetch_list=[])


def load_var(var_name: str, shape_list: Sequence[int], dtype: str, save_path: str) -> list[Array]:
    """Loads an array that Fluid's ops have saved.

    Args:
        var_name (str): the name of the variable.
        shape_list (list[int]): its shape, without the batch.
        dtype (str): its element type.
        save_path (str): the file.

    Returns:
        list[numpy.ndarray]: the value.
    """
    program = Program()
    with program_guard(program):
        var = data(var_name, shape=shape_list, dtype=dtype)
        append_load_op(program.global_block(), var, save_path)
        return executor.Executor(CPUPlace()).run(program, feed={}, fetch_list=[var])


def parse_program(program: Program, output_dir: str) -> None:
    """Writes lists of a program's variables and ops into a folder.

    Args:
        program (Program): the program.
        output_dir (str): the folder; gets vars_persistable.log, vars_all.log and ops.log.

    Example:
        from penstock.fluid.incubate.fleet.utils import utils
        fluid.layers.fc(fluid.data('x', [None, 4]), 1)
        utils.parse_program(fluid.default_main_program(), '.')
    """
    variables = list(program.list_vars())
    persistable = [_facts_of(var) for var in variables if is_persistable(var)]
    ops = [
        {"type": op.type, "input_arg_names": str(op.input_arg_names), "output_arg_names": str(op.output_arg_names)}
        for op in program.global_block().ops
    ]
    for name, title, rows in (
        (persistable_vars_out_fn, "persistable vars", persistable),
        (all_vars_out_fn, "all vars", [_facts_of(var) for var in variables]),
        (ops_out_fn, "ops", ops),
    ):
        save_file(os.path.join(output_dir, name), "".join(f"{row}\n" for row in [f"{title}:", *rows]).encode())


def _facts_of(var: Variable) -> dict[Any, Any]:
    if var.type in feed_fetch_type_list:
        return {"name": var.name, "type": str(var.type)}
    return {
        "name": var.name,
        "shape": str(var.shape),
        "lod_level": var.lod_level,
        "dtype": str(var.dtype),
        "type": str(var.type),
    }
