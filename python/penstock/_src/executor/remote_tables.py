"""Tables of a distributed job that are on the pservers; trainers only request single rows."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, NamedTuple

import numpy

from penstock._penstock import Scope
from penstock._src.base.errors import program_error
from penstock._src.ir.program import Program
from penstock._src.ir.types import VarType

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock._penstock import RuntimeVariable
    from penstock._src.executor.executor import Executor
    from penstock._src.ir.block import Block
    from penstock._src.ir.descs import AttrValue
    from penstock._src.ir.operator import Operator
    from penstock._src.ir.variable import Variable


_LOOKUP = "distributed_lookup_table"
_LOCAL = ("lookup_table", "lookup_table_v2")
_SAMPLER = "nce"  # chooses rows itself, and requests them itself if it knows where they are
_TABLE_SLOT = {"lookup_table": "W", "lookup_table_v2": "W", _LOOKUP: "W", _SAMPLER: "Weight"}

_known: dict[str, Slices | Shards] = {}  # by table, from the trainer programs of this process
# {program: (content id, tables, the program that requests rows)}
_asking: weakref.WeakKeyDictionary[Program, tuple[int | None, tuple[str, ...], Program | None]] = (
    weakref.WeakKeyDictionary()
)


class Lookup(NamedTuple):
    """Rows to request: those of the variable `table` with the numbers `ids`, which come into `out`."""

    block: Block
    at: int  # where the ops are inserted
    kind: str  # the op that the program has, or would have, for a table at hand
    table: Variable
    ids: Variable | list[str]
    out: Variable | list[str]


class Slices:
    """The places of a table that pservers hold in slices of consecutive rows."""

    def __init__(self, request: Operator) -> None:
        places = "epmap" if request.type == _SAMPLER else "endpoints"
        self._names, self._heights = request.attr("table_names"), request.attr("height_sections")
        self._endpoints, self._trainer_id = request.attr(places), request.attr("trainer_id")

    def look_up(self, lookup: Lookup, padding: int) -> None:
        """Inserts the op that requests the rows."""
        attrs = dict(dtype=int(lookup.table.dtype), lookup_table_version=lookup.kind, padding_idx=padding)
        lookup.block._insert_op(
            lookup.at,
            _LOOKUP,
            {"Ids": lookup.ids, "W": lookup.table},
            {"Outputs": lookup.out},
            {**self._where("endpoints"), **attrs},
        )

    def show(self, sampler: Operator) -> None:
        """Sets the places in an op that requests rows itself."""
        for name, value in self._where("epmap").items():
            sampler._set_attr(name, value)
        sampler._set_attr("remote_prefetch", True)

    def _where(self, places: str) -> dict[str, AttrValue]:
        return {
            "table_names": self._names,
            "height_sections": self._heights,
            places: self._endpoints,
            "trainer_id": self._trainer_id,
        }


class Shards:
    """The requests to which pservers answer with rows of a table that they shard by id."""

    def __init__(self, table: str, trainer_id: int, pservers: Sequence[tuple[str, Program]]) -> None:
        """pservers: (address, main program) of each."""
        self._table, self._trainer_id = table, trainer_id
        self._endpoints = [address for address, _ in pservers]
        answers = [
            [
                op
                for block in program.blocks
                for op in block.ops
                if op.type == "lookup_sparse_table" and op.input("W") == [table]
            ]
            for _, program in pservers
        ]
        # [(the id whose row is all zeros, the name of the request on each pserver)]
        self._requests = [
            (ops[0]._int_attr("padding_idx"), [op.input("Ids")[0] for op in ops]) for ops in zip(*answers)
        ]

    def look_up(self, lookup: Lookup, padding: int) -> None:
        """Inserts the ops that request the rows."""
        names = next((names for zeros, names in self._requests if zeros == padding), None)
        if names is None:
            raise program_error(
                "E-table-padding",
                f"table {self._table} is looked up with padding_idx {padding}, but the program that trains it looks "
                f"it up with {', '.join(str(zeros) for zeros, _ in self._requests)}",
            )
        self._request(lookup, names)

    def look_up_all(self, lookup: Lookup) -> None:
        """As look_up(), for ids of which none stands for padding. A row that the program takes for padding in all of
        its lookups is never trained, and comes as zeros."""
        self._request(lookup, min(self._requests)[1])

    def show(self, sampler: Operator) -> None:
        raise program_error(
            "E-table-sampler",
            f"table {self._table} is sharded by id, so {sampler.type} cannot request its rows; only a table that is "
            "range-sliced can be sampled on pservers",
        )

    def _request(self, lookup: Lookup, names: list[str]) -> None:
        program, table = lookup.block.program, lookup.table
        rows = [name + ".rows" for name in names]
        for name, answer in zip(names, rows):
            for each, width, dtype in ((name, 1, VarType.INT64), (answer, table.shape[-1], table.dtype)):
                if not program.global_block().has_var(each):
                    program.global_block().create_var(name=each, shape=[-1, width], dtype=dtype)
        merge = {} if lookup.kind == _LOCAL[0] else {"lookup_table_version": lookup.kind}
        where = {"epmap": self._endpoints, "trainer_id": self._trainer_id}
        block, index = lookup.block, lookup.at
        block._insert_op(index, "split_ids", {"Ids": lookup.ids}, {"Out": names}, {})
        block._insert_op(index + 1, "prefetch", {"X": names}, {"Out": rows}, where)
        block._insert_op(
            index + 2, "merge_ids", {"Ids": lookup.ids, "Rows": names, "X": rows}, {"Out": lookup.out}, merge
        )

    def padding_of(self, asked: str) -> int | None:
        """Returns the padding_idx of the request with that name on a pserver; None if there is no such request."""
        return next((zeros for zeros, names in self._requests if asked in names), None)


def _requested(program: Program) -> dict[str, Slices]:
    """Returns {name of a table: Slices} of a trainer's program."""
    return {
        op.input(_TABLE_SLOT[op.type])[0]: Slices(op)
        for block in program.blocks
        for op in block.ops
        if op.type == _LOOKUP or (op.type == _SAMPLER and _has_places(op))
    }


def _has_places(sampler: Operator) -> bool:
    return bool(sampler.has_attr("table_names") and sampler.attr("table_names") and sampler.attr("epmap"))


def remote_lookups(program: Program, scope: Scope | None = None) -> dict[str, Slices | Shards]:
    """Returns {name: Slices or Shards} of the tables of a program whose rows are on pservers.

    These are the tables of which the program requests rows and, for any program of a trainer's process, those that the
    scope holds without rows.
    """
    return {**_known_in(program, scope), **_requested(program)}


def _known_in(program: Program, scope: Scope | None) -> dict[str, Slices | Shards]:
    if not _known or scope is None:
        return {}
    names = {name for block in program.blocks for name in block.vars if name in _known}
    return {name: _known[name] for name in names if _is_elsewhere(name, scope)}


def _is_elsewhere(table: str, scope: Scope) -> bool:
    held = scope.find_var(table)
    return held is not None and held._has_no_rows()


def note_tables(
    program: Program, tables: Sequence[str] = (), trainer_id: int = 0, pservers: Sequence[tuple[str, Program]] = ()
) -> None:
    """Records where pservers hold the tables of a trainer's program, for other programs of this process.

    Args:
        program (Program): the trainer's program.
        tables (list[str]): its tables that are sharded by id.
        trainer_id (int): the trainer.
        pservers (list): (address, main program) of each pserver.
    """
    _known.update(_requested(program))
    for table in tables:
        _known[table] = Shards(table, trainer_id, pservers)
    _asking.clear()


def asking_program(program: Program, scope: Scope) -> Program:
    """Returns the program, or, if it looks up rows in tables that this trainer does not have, a program that requests
    the rows from the pservers.

    Programs that were cloned before transpile(), or built after it, need this.
    """
    if not _known:
        return program
    content, tables, asking = _asking.get(program, (None, (), None))
    if content != program.desc.content_id:
        content, tables, asking = program.desc.content_id, _tables_looked_up(program), None
        _asking[program] = content, tables, asking
    if not tables or not all(_is_elsewhere(table, scope) for table in tables):
        return program
    if asking is None:
        asking = _ask(program, tables)
        _asking[program] = content, tables, asking
    return asking


def asks(program: Program | None, scope: Scope) -> bool:
    """Returns whether the program looks up rows in tables that this trainer does not have."""
    return bool(_known) and program is not None and asking_program(program, scope) is not program


def _tables_looked_up(program: Program) -> tuple[str, ...]:
    """Returns the trainer's tables in which a program without updates looks up rows."""
    ops = [op for block in program.blocks for op in block.ops]
    if any(op.type == kind + "_grad" for op in ops for kind in _LOCAL + (_SAMPLER,)):
        return ()
    read = (_table_read_by(op) for op in ops)
    return tuple(dict.fromkeys(table for table in read if table is not None and table in _known))


def _table_read_by(op: Operator) -> str | None:
    """Returns the table in which an op looks rows up by itself; None for other ops."""
    if op.type in _LOCAL or (op.type == _SAMPLER and not _has_places(op)):
        return op.input(_TABLE_SLOT[op.type])[0]
    return None


def _ask(program: Program, tables: tuple[str, ...]) -> Program:
    asking = program.clone()
    for block in asking.blocks:
        for index, op in reversed(list(enumerate(block.ops))):
            table = _table_read_by(op)
            if table is None or table not in tables:
                continue
            remote = _known[table]
            if op.type == _SAMPLER:
                remote.show(op)
                continue
            kind, ids, out, padding = op.type, op.input("Ids"), op.output("Out"), op._int_attr("padding_idx")
            block._remove_op(index)
            remote.look_up(Lookup(block, index, kind, block._var_recursive(table), ids, out), padding)
    return asking


def whole_table(executor: Executor, var: Variable, remote: Slices | Shards) -> RuntimeVariable:
    """Fetches the whole table `var` from the pservers, in its state after this trainer's last step. `remote`: Slices
    or Shards."""
    asking = Program()
    block = asking.global_block()
    table = block.create_var(name=var.name, shape=var.shape, dtype=var.dtype, type=var.type, persistable=True)
    ids = block.create_var(name="ids", shape=[var.shape[0]], dtype="int64", is_data=True)
    rows = block.create_var(name="rows", shape=var.shape, dtype=var.dtype, persistable=True)
    block.append_op("fake_init", outputs={"Out": table}, attrs={"shape": list(var.shape), "dtype": int(var.dtype)})
    lookup = Lookup(block, 1, _LOCAL[1], table, ids, rows)
    if isinstance(remote, Shards):
        remote.look_up_all(lookup)
    else:
        remote.look_up(lookup, -1)
    scope = Scope()
    executor.run(asking, feed={"ids": numpy.arange(var.shape[0], dtype="int64")}, scope=scope)
    return scope.var("rows")


def look_up_at_hand(program: Program, by_id: bool = False) -> None:
    """Replaces each request for rows of a table by a lookup in the table itself, for programs that run without
    pservers. With by_id, replaces also requests for rows of tables that pservers shard by id, if this process trains
    them.
    """
    for block in program.blocks:
        for index, op in reversed(list(enumerate(block.ops))):
            if op.type == _LOOKUP:
                kind, padding, table = (
                    str(op.attr("lookup_table_version")),
                    op._int_attr("padding_idx"),
                    op.input("W")[0],
                )
                pairs = list(zip(op.input("Ids"), op.output("Outputs")))
            elif by_id and op.type == "merge_ids" and (asked := _table_asked(op.input("Rows")[0])) is not None:
                kind, (table, padding) = "", asked
                pairs = list(zip(op.input("Ids"), op.output("Out")))
            else:
                if op.type == _SAMPLER:
                    _forget_places(op)
                continue
            block._remove_op(index)
            for ids, rows in reversed(pairs):
                block._insert_op(
                    index,
                    kind or _kind_of(block, ids, rows),
                    {"Ids": ids, "W": table},
                    {"Out": rows},
                    {"padding_idx": padding},
                )
        if by_id:
            _remove_requests(block)


def _table_asked(asked: str) -> tuple[str, int] | None:
    """Returns (table, padding_idx) of a request for rows of a table sharded by id."""
    for table, remote in _known.items():
        padding = remote.padding_of(asked) if isinstance(remote, Shards) else None
        if padding is not None:
            return table, padding
    return None


def _kind_of(block: Block, ids: str, rows: str) -> str:
    """Returns the lookup op that gives `rows` for `ids`, by their ranks."""
    ranks = [len(block._var_recursive(name).shape) for name in (ids, rows)]
    return _LOCAL[1] if ranks[1] == ranks[0] + 1 else _LOCAL[0]


def _remove_requests(block: Block) -> None:
    """Removes the requests for rows of tables sharded by id whose answers no op reads any more."""
    read = {name for op in block.ops for name in op.input_arg_names if op.type != "prefetch"}
    gone = set()
    for op in block.ops:
        if op.type == "prefetch" and _table_asked(op.input("X")[0]) and not read.intersection(op.output("Out")):
            gone.update(op.input("X") + op.output("Out"))
    unread = [
        index
        for index, op in enumerate(block.ops)
        if op.type in ("split_ids", "prefetch") and gone.issuperset(op.output("Out"))
    ]
    for index in reversed(unread):
        block._remove_op(index)
    for name in gone:
        if block.has_var(name):
            block._remove_var(name)


def _forget_places(sampler: Operator) -> None:
    for name in ("table_names", "epmap", "height_sections"):
        if sampler.has_attr(name):
            sampler._set_attr(name, [])
    sampler._set_attr("remote_prefetch", False)
