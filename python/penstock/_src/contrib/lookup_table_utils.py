"""Tables with is_distributed=True outside the job that trained them: programs that look up in the saved rows, and
pservers that begin from them."""

from __future__ import annotations

import os
import re
import warnings
from typing import TYPE_CHECKING

import numpy

from penstock._src.base.call_site import stack_level
from penstock._src.base.doc_texts import with_texts
from penstock._src.base.errors import not_built, program_error
from penstock._src.executor.remote_tables import look_up_at_hand
from penstock._src.executor.scopes import global_scope
from penstock._src.io import var_files, var_records
from penstock._src.io.inference_model import append_fetch_ops, prepend_feed_ops
from penstock._src.io.pserver_held import MODEL_KINDS
from penstock._src.io.pserver_values import load_folder, load_shard
from penstock._src.io.table_files import TABLES_FOLDER, read_rows
from penstock._src.ir import unique_name
from penstock._src.ir.program import Program
from penstock._src.ir.types import VarType

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from penstock._src.executor.executor import Executor
    from penstock._src.ir.block import Block
    from penstock._src.ir.operator import Operator
    from penstock._src.ir.typing import Attrs, SlotArgs
    from penstock._src.ir.variable import Variable


_TABLE = {
    "transpiled_table": """Example:
    ids = fluid.data('ids', [None, 1], 'int64')
    rows = fluid.layers.embedding(ids, [1000, 8], is_sparse=True, is_distributed=True, param_attr='table')
    fluid.optimizer.SGD(0.1).minimize(fluid.layers.mean(rows))
    t = fluid.DistributeTranspiler()
    t.transpile(0, pservers='10.0.0.1:6174,10.0.0.2:6174', trainers=2)"""
}


@with_texts(_TABLE)
def convert_dist_to_sparse_program(program: Program) -> Program:
    """Replaces a trainer's requests for rows of tables by lookups in tables at hand: selected rows for the table with
    is_distributed=True, in which a row that was never trained counts as zeros, and tensors for others.

    The program keeps its gradients and its exchange with pservers; get_inference_model returns the part that computes
    some variables, and load_persistables_for_inference reads the rows.

    Args:
        program (Program): the program of DistributeTranspiler.get_trainer_program(); it is changed.

    Returns:
        Program: the program. One without requests is unchanged, with a warning.

    Raises:
        NotImplementedError: the program has several tables with is_distributed=True.
        ValueError: the program is not a trainer's, or looks up ids of several unknown extents.

    {transpiled_table}
        program = fluid.contrib.utils.convert_dist_to_sparse_program(t.get_trainer_program())
        assert program.global_block().ops[0].type == 'lookup_sparse_table'
    """
    block = program.global_block()
    kinds = [op.type for op in block.ops]
    if "prefetch" not in kinds and "distributed_lookup_table" not in kinds:
        warnings.warn(
            "convert_dist_to_sparse_program: the program requests no rows from pservers", stacklevel=stack_level()
        )
        return program
    look_up_at_hand(program)
    if "prefetch" in kinds:
        table = _table_of(program)
        padding = next(
            (
                op._int_attr("padding_idx")
                for op in block.ops
                if op.type in ("lookup_table_grad", "lookup_table_v2_grad") and op.input("W") == [table]
            ),
            -1,
        )
        declared = block.var(table)
        shape, dtype = list(declared.shape), declared.dtype
        block._remove_var(table)
        block.create_var(name=table, shape=shape, dtype=dtype, type=VarType.SELECTED_ROWS, persistable=True)
        for request in [op for op in block.ops if op.type == "prefetch"]:
            _look_up(block, request, table, padding)
    return program


def _table_of(program: Program) -> Any:
    tables = getattr(program, "_distributed_lookup_tables", [])
    if not tables:
        raise program_error(
            "E-table-program",
            "convert_dist_to_sparse_program takes what DistributeTranspiler.get_trainer_program() "
            "returns, before it is cloned or saved",
        )
    if len(tables) > 1:
        raise not_built(
            "convert_dist_to_sparse_program: the program has several tables with is_distributed=True: "
            f"{', '.join(tables)}"
        )
    return tables[0]


def _look_up(block: Block, request: Operator, table: str, padding: int) -> None:
    """Replaces split_ids, prefetch and merge_ids."""
    split = next(op for op in block.ops if op.type == "split_ids" and op.output("Out") == request.input("X"))
    merge = next(op for op in block.ops if op.type == "merge_ids" and op.input("X") == request.output("Out"))
    pairs, position = list(zip(merge.input("Ids"), merge.output("Out"))), split.idx
    for op in (merge, request, split):
        block._remove_op(op.idx)
    for ids, out in pairs:
        position = _look_up_one(block, position, block.var(ids), block.var(out), table, padding)


def _look_up_one(block: Block, position: int, ids: Variable, out: Variable, table: str, padding: int) -> int:
    """Inserts the lookup, and what gives its result the shape and the sequences of `out`; returns the next position."""

    def insert(kind: str, inputs: SlotArgs, outputs: SlotArgs, attrs: Attrs) -> None:
        nonlocal position
        block._insert_op(position, kind, inputs, outputs, attrs)
        position += 1

    def temporary() -> Variable:
        return block.create_var(name=unique_name.generate(out.name + ".rows"), dtype=out.dtype)

    shape = list(out.shape)
    if shape[1:].count(-1):
        raise program_error(
            "E-table-ids",
            f"convert_dist_to_sparse_program: only the first extent of {ids.name} may be unknown, but its shape is "
            f"{list(ids.shape)}",
        )
    formed, has_sequences = len(shape) != 2, out.lod_level > 0
    found = temporary() if formed or has_sequences else out
    insert("lookup_sparse_table", {"Ids": ids, "W": table}, {"Out": found}, {"padding_idx": padding, "is_test": True})
    if formed:
        made = temporary() if has_sequences else out
        insert("reshape2", {"X": found}, {"Out": made, "XShape": temporary()}, {"shape": shape})
        found = made
    if has_sequences:
        insert("lod_reset", {"X": found, "Y": ids}, {"Out": out}, {})
    return position


def get_inference_model(
    main_program: Program, feeded_var_names: Sequence[str], target_vars: Sequence[Variable]
) -> Program:
    """Returns the part of a program that computes some variables from some feeds, without training, and with feed and
    fetch ops.

    Args:
        main_program (Program): the program, such as one of convert_dist_to_sparse_program; it does not change.
        feeded_var_names (list[str]): what is fed.
        target_vars (list[Variable]): what is fetched.

    Returns:
        Program: a new one.

    Example:
        x = fluid.data('x', [None, 4])
        y = fluid.layers.fc(x, 2, bias_attr=False)
        fluid.optimizer.SGD(0.1).minimize(fluid.layers.mean(y))
        get = fluid.contrib.utils.lookup_table_utils.get_inference_model
        program = get(fluid.default_main_program(), ['x'], [y])
        assert [op.type for op in program.global_block().ops] == ['feed', 'mul', 'fetch']
    """
    program = main_program.clone()
    block = program.global_block()
    for op in [op for op in block.ops if op.type in ("feed", "fetch")]:
        block._remove_op(op.idx)
    program = program._prune(list(target_vars), feeded_var_names)._inference_optimize()
    prepend_feed_ops(program, feeded_var_names)
    append_fetch_ops(program, [target.name for target in target_vars])
    return program


def load_persistables_for_inference(
    dirname: str, executor: Executor, program: Program | None, lookup_table_var_name: str
) -> Program:
    """Reads what a trainer and the pservers saved by fluid.io.save_persistables, for a program that runs without
    pservers.

    Args:
        dirname (str): the folder. Its folder `__lookup_table__` has a file with rows from each pserver.
        executor (Executor): accepted for Fluid's scripts.
        program (Program | None): what convert_dist_to_sparse_program returned, or a part of it; None: the one in the
            file `__model__` of the folder.
        lookup_table_var_name (str): the table.

    Returns:
        Program: the program.

    Raises:
        TypeError: `program` is not a Program.
        ValueError: there is no such folder, or no file with rows of the table.

    Example:
        x = fluid.data('x', [None, 4])
        y = fluid.layers.fc(x, 2)
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(fluid.default_startup_program())
        fluid.io.save_persistables(exe, 'model')
        try:
            fluid.contrib.utils.load_persistables_for_inference('model', exe, fluid.default_main_program(), 'table')
        except ValueError as error:
            assert 'no file with rows of table' in str(error)
    """
    if not os.path.isdir(dirname):
        raise program_error("E-load-folder", f"load_persistables_for_inference: there is no folder {dirname}")
    if program is None:
        program = Program.parse_from_string(var_records.read_file(os.path.join(dirname, "__model__")))
    if not isinstance(program, Program):
        raise TypeError(f"load_persistables_for_inference takes a Program, not {program!r}")
    parts = [read_rows(path) for path in _files_with_rows(dirname, lookup_table_var_name)]
    var_files.load_vars(
        executor,
        dirname,
        program,
        None,
        lambda var: var_records.is_persistable(var) and var.name != lookup_table_var_name,
    )
    selected = [part.get_selected_rows() for part in parts]
    held = global_scope().var(lookup_table_var_name).get_selected_rows()
    held.set_rows([row for part in selected for row in part.rows()])
    held.set_height(max(part.height() for part in selected))
    held.get_tensor().set(numpy.concatenate([numpy.array(part.get_tensor()) for part in selected]))
    return program


def _files_with_rows(dirname: str, table: str) -> list[str]:
    """Returns the file of each pserver, in their order."""
    folder = os.path.join(dirname, TABLES_FOLDER)
    numbers = [
        re.fullmatch(re.escape(table) + r"_(\d+)", name)
        for name in (os.listdir(folder) if os.path.isdir(folder) else ())
    ]
    found = sorted(int(match[1]) for match in numbers if match)
    if not found:
        raise program_error(
            "E-load-missing", f"load_persistables_for_inference: {folder} has no file with rows of table {table}"
        )
    return [var_records.file_of(folder, f"{table}_{number}") for number in found]


@with_texts(_TABLE)
def load_persistables_for_increment(
    dirname: str, executor: Executor, program: Program, lookup_table_var: str, lookup_table_var_path: str
) -> None:
    """Makes a pserver begin from parameters and rows that a job saved. Call it after the pserver's startup program.
    Rows that the file lacks get initial values when they are first asked for.

    Args:
        dirname (str): the folder in which a trainer saved the parameters, by fluid.io.save_persistables.
        executor (Executor): accepted for Fluid's scripts.
        program (Program): the pserver's, of DistributeTranspiler.get_pserver_program().
        lookup_table_var (str): the table with is_distributed=True.
        lookup_table_var_path (str): the file with this pserver's rows of it.

    Raises:
        TypeError: `program` is not a Program.
        ValueError: a folder or file is missing, a file has another shape, or the program is not a pserver's.

    {transpiled_table}
        main, startup = t.get_pserver_programs('10.0.0.2:6174')
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(startup)
        try:
            fluid.contrib.utils.load_persistables_for_increment('saved', exe, main, 'table',
                                                                'saved/__lookup_table__/table_1')
        except ValueError as error:
            assert 'there is no folder saved' in str(error)
    """
    if not isinstance(program, Program):
        raise TypeError(f"load_persistables_for_increment takes a Program, not {program!r}")
    overview, endpoint = (getattr(program, name, None) for name in ("_parameters_on_pservers", "_ps_endpoint"))
    if overview is None or endpoint is None:
        raise program_error(
            "E-table-program",
            "load_persistables_for_increment takes what DistributeTranspiler.get_pserver_program() "
            "returns, before it is cloned or saved",
        )
    if not os.path.isdir(dirname):
        raise program_error("E-load-folder", f"load_persistables_for_increment: there is no folder {dirname}")
    if not os.path.isfile(lookup_table_var_path):
        raise program_error(
            "E-load-folder", f"load_persistables_for_increment: there is no file {lookup_table_var_path}"
        )
    load_folder(program, dirname, MODEL_KINDS, strictly=False)
    load_shard(program, lookup_table_var, lookup_table_var_path, MODEL_KINDS)
