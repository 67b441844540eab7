"""Finds the table of a program that is_distributed=True of layers.embedding puts on the parameter servers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock._src.base.doc_texts import with_texts
from penstock._src.base.errors import error_with_id

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock._src.ir.operator import Operator
    from penstock._src.ir.program import Program
    from penstock._src.ir.variable import Variable


_LOOKUPS = ("lookup_table", "lookup_table_v2")


def find_distributed_lookup_table(program: Program) -> str | None:
    """Finds the distributed table of a program, before the transpiler rewrites it.

    Args:
        program (Program): the program; the ops of block 0 are searched.

    Returns:
        str | None: the name of the table, or None.

    Raises:
        RuntimeError: there are two such tables, or one is also looked up without is_distributed.

    Example:
        ids = fluid.data('ids', [None, 1], 'int64')
        fluid.layers.embedding(ids, [1000, 8], is_sparse=True, is_distributed=True, param_attr='table')
        find = fluid.distribute_lookup_table.find_distributed_lookup_table
        assert find(fluid.default_main_program()) == 'table'
    """
    lookups = [op for op in program.global_block().ops if op.type in _LOOKUPS]
    tables = list(dict.fromkeys(op.input("W")[0] for op in lookups if op.attr("is_distributed")))
    if len(tables) > 1:
        raise error_with_id(
            RuntimeError, "E-table-lookups", f"a program has one distributed table, but these are: {', '.join(tables)}"
        )
    for op in lookups:
        if op.input("W")[0] in tables and not op.attr("is_distributed"):
            raise error_with_id(
                RuntimeError,
                "E-table-lookups",
                f"the distributed table {tables[0]} is also looked up without is_distributed",
            )
    return tables[0] if tables else None


_LOOKUPS_OF = {
    "finds": """Args:
    program (Program): the program; the ops of block 0 are searched.
    table_name (str): the table.

Returns:
    list[Variable]: the variables."""
}


@with_texts(_LOOKUPS_OF)
def find_distributed_lookup_table_inputs(program: Program, table_name: str) -> list[Variable]:
    """Finds the variables with the ids that are looked up in a table.

    {finds}

    Example:
        ids = fluid.data('ids', [None, 1], 'int64')
        fluid.layers.embedding(ids, [1000, 8], is_distributed=True, param_attr='table')
        find = fluid.distribute_lookup_table.find_distributed_lookup_table_inputs
        assert find(fluid.default_main_program(), 'table') == [ids]
    """
    return _variables(program, table_name, lambda op: op.input("Ids"))


@with_texts(_LOOKUPS_OF)
def find_distributed_lookup_table_outputs(program: Program, table_name: str) -> list[Variable]:
    """Finds the variables that receive the rows of a table.

    {finds}

    Example:
        ids = fluid.data('ids', [None, 1], 'int64')
        rows = fluid.layers.embedding(ids, [1000, 8], is_distributed=True, param_attr='table')
        found, = fluid.distribute_lookup_table.find_distributed_lookup_table_outputs(rows.block.program, 'table')
        assert found is rows
    """
    return _variables(program, table_name, lambda op: op.output("Out"))


def _variables(program: Program, table: str, names_of: Callable[[Operator], list[str]]) -> list[Variable]:
    block = program.global_block()
    return [
        block.var(name)
        for op in block.ops
        if op.type in _LOOKUPS and op.input("W")[0] == table
        for name in names_of(op)
    ]
