"""What the variables of a pserver's program hold: slices of parameters, states of their updates, counters of steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from penstock._src.ir.types import VarType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from penstock._src.ir.block import Block
    from penstock._src.ir.operator import Operator
    from penstock._src.ir.program import Program
    from penstock._src.transpile.vars_distributed import VarDistributed


class Held(NamedTuple):
    """What a pserver's variable holds: `shape` elements of the variable `whole`, after `offset`."""

    name: str
    whole: str
    whole_shape: tuple[int, ...] | None  # None: it holds all of it
    offset: int | None
    shape: tuple[int, ...]
    # 'parameter'; 'state' of an update or a schedule; 'table state' of the update of a table sharded by id; 'counter',
    # one trainer's part of the steps that the counter `whole` has finished; 'constant', which the program only reads.
    kind: str


ALL_KINDS = ("parameter", "state", "table state", "counter", "constant")
MODEL_KINDS = ALL_KINDS[:-1]  # what training changes
OPTIONAL_KINDS = ("constant", "table state")


def is_pserver(program: Program) -> bool:
    """Returns whether it is what DistributeTranspiler.get_pserver_program() returns."""
    return getattr(program, "_parameters_on_pservers", None) is not None and any(
        op.type == "listen_and_serv" for op in program.global_block().ops
    )


def programs_in(program: Program, has_value: Callable[[str], bool]) -> list[Program]:
    """Returns a pserver's program and those that are served with it, programs of the same job, if any of their
    parameters has a value there: each program may be saved apart.

    Args:
        program (Program): a pserver's program.
        has_value (callable): takes the name of a whole variable.
    """
    return [program] + [
        one
        for one in program._served_with
        if any(
            map(has_value, [*one._sharded_tables, *(held.whole for held in held_by(one) if held.kind == "parameter")])
        )
    ]


def held_by(program: Program) -> list[Held]:
    """Returns the Held of each variable that a pserver's program keeps between steps, without tables sharded by id."""
    overview, endpoint = program._parameters_on_pservers, program._ps_endpoint
    slices = {one.slice.name: one for one in overview.get_distributed_vars_by_ep(endpoint)}
    found = {
        name: Held(name, one.origin.name, one.origin.shape, one.offset, one.slice.shape, "parameter")
        for name, one in slices.items()
    }
    serve = serve_of(program)
    arriving = set(serve.input_arg_names)
    first_updates: dict[tuple[str, str], list[tuple[str, int, str]]] = {}
    counters = counters_of(program, serve)
    for block in program.blocks[1:]:
        wholes, params = _names_of_first_slice(block, slices, first_updates)
        by_id = any(name in program._sharded_tables for op in block.ops for name in op.output_arg_names)
        for name, kind in _kept(program, block, arriving):
            if name in found:
                continue
            if name in counters:
                found[name] = Held(name, counters[name], None, None, (1,), "counter")
                continue
            if kind == "state" and by_id:
                kind = "table state"
            shape = tuple(program.global_block().var(name).shape)
            one = params[0] if params and params[0].is_slice and shape == params[0].slice.shape else None
            whole_shape, offset = (None, None) if one is None else (one.origin.shape, one.offset)
            found[name] = Held(name, wholes.get(name, name), whole_shape, offset, shape, kind)
    return list(found.values())


def counters_of(program: Program, serve: Operator) -> dict[str, str]:
    """Returns {counter of a trainer's steps: the counter of one machine} of a schedule that counts all trainers'."""
    number = serve._int_attr("lr_decay_block_id") if serve.has_attr("lr_decay_block_id") else -1
    if number < 1:
        return {}
    return {
        name: op.output_arg_names[0]
        for op in program.blocks[number].ops
        if op.type == "sum" and step_of(program._source_main, op.output_arg_names[0]) is not None
        for name in op.input_arg_names
    }


def step_of(main: Program, name: str) -> float | None:
    """Returns what a program of one machine adds to a counter in each step; None if it is no counter."""
    for op in main.global_block().ops:
        if op.input_arg_names == [name] == op.output_arg_names:
            steps = (op.attr(attr) for attr in ("step", "bias") if op.has_attr(attr))
            return next((step for step in steps if isinstance(step, (int, float))), None)
    return None


def _kept(program: Program, block: Block, arriving: set[str]) -> Iterator[tuple[str, str]]:
    """Yields (name, kind) of the persistable variables whose value before the block matters."""
    written = set()
    for op in block.ops:
        for name in op.input_arg_names:
            if name in arriving or name in written or not program.global_block().has_var(name):
                continue
            var = program.global_block().var(name)
            if var.persistable and var.type == VarType.LOD_TENSOR:
                yield name, "state" if name in op.output_arg_names else "constant"
        written.update(op.output_arg_names)


def _names_of_first_slice(
    block: Block, slices: dict[str, VarDistributed], first_updates: dict[tuple[str, str], list[tuple[str, int, str]]]
) -> tuple[dict[str, str], list[VarDistributed]]:
    """Returns ({state: name of the whole variable}, slices updated by the block).

    A second slice of a parameter on one pserver has state with names of its own: the argument at the same place in the
    first slice's update has the name of the whole.
    """
    wholes, params = {}, []
    for op in block.ops:
        updated = [slices[name] for name in op.output_arg_names if name in slices]
        if not updated or updated[0].slice.name not in op.input_arg_names:
            continue
        params.append(updated[0])
        arguments = [(slot, at, name) for slot in op.input_names for at, name in enumerate(op.input(slot))]
        first = first_updates.setdefault((updated[0].origin.name, op.type), arguments)
        wholes.update({own[2]: other[2] for own, other in zip(arguments, first) if own[:2] == other[:2]})
    return wholes, params


def serve_of(program: Program) -> Operator:
    return next(op for op in program.global_block().ops if op.type == "listen_and_serv")
