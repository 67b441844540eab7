"""Parameters of asynchronous jobs: pservers may hold newer values than a trainer's own copies."""

from __future__ import annotations

import warnings
import weakref
from typing import TYPE_CHECKING, NamedTuple

from penstock import _penstock
from penstock._penstock import Scope
from penstock._src.base.call_site import stack_level
from penstock._src.ir.program import Program

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock._penstock import RuntimeVariable, _Pieces
    from penstock._src.executor.executor import Executor


class _Job(NamedTuple):
    params: dict[str, _Pieces]
    trainer_id: int
    repeats: bool  # an answer of a pserver repeats what this trainer has read last
    local: bool  # the trainer updates its copies itself


class _Effects(NamedTuple):
    """What a program does to variables."""

    job: _Job | None  # of a trainer's program
    received: frozenset[str]
    written: frozenset[str]  # not by receiving


_NONE = _Effects(None, frozenset(), frozenset())

# {program: (content id, its effects)}
_effects: weakref.WeakKeyDictionary[Program, tuple[int | None, _Effects]] = weakref.WeakKeyDictionary()
# {scope: {name of a variable that is a copy of a pserver's: _Job}}
_copies: weakref.WeakKeyDictionary[Scope, dict[str, _Job]] = weakref.WeakKeyDictionary()


def note_run(program: Program, scope: Scope) -> None:
    """Records which variables of the scope are copies of the pservers' parameters after a run of the program."""
    effects = _effects_of(program)
    if effects is _NONE:
        return
    copies = _copies.setdefault(scope, {})
    if effects.job is not None:
        copies.update(dict.fromkeys(effects.job.params, effects.job))
        return
    for name in effects.written:
        copies.pop(name, None)


def note_move(programs: Sequence[Program]) -> None:
    """Records that other pservers hold what these programs receive."""
    jobs = [job for job in (_effects_of(program).job for program in programs) if job is not None]
    for copies in _copies.values():
        copies.update({name: job for job in jobs for name in job.params if name in copies})


def _effects_of(program: Program) -> _Effects:
    content, effects = _effects.get(program, (None, _NONE))
    # Before the first trainer's program there are no copies that another program could overwrite.
    if content != program.desc.content_id or (effects is _NONE and _copies):
        content, effects = program.desc.content_id, _examined(program)
        _effects[program] = content, effects
    return effects


def _examined(program: Program) -> _Effects:
    found = _penstock.remote_params(_penstock.wiring_of(program.desc))
    if found is not None:
        params, trainer_id, repeats = found
        local = not any(op.type == "recv" for op in program.global_block().ops)
        return _Effects(_Job(params, trainer_id, repeats, local), frozenset(params), frozenset())
    if not _copies:
        return _NONE
    received: set[str] = set()
    written: set[str] = set()
    for block in program.blocks:
        for op in block.ops:
            (received if op.type == "recv" else written).update(op.output_arg_names)
    return _Effects(None, frozenset(received), frozenset(written - received))


def current_values(executor: Executor, scope: Scope, names: Sequence[str]) -> dict[str, RuntimeVariable]:
    """Asks the pservers for their current values of the parameters among `names` whose copies may be old.

    A trainer that only receives its parameters gets them as its own copies; in geo-SGD the values are apart, because
    the copies contain what the trainer has not sent yet. A copy that a program or the user has overwritten since the
    last step, such as an average, stays.

    Args:
        executor (Executor): runs the requests.
        scope (Scope): contains the copies.
        names (list[str]): variables of the scope.

    Returns:
        dict: {name: variable}, for the names whose current value is not in the scope.
    """
    copies = _copies.get(scope, {})

    def copy_of(name: str) -> RuntimeVariable | None:
        held = scope.find_var(name) if name in copies else None
        return held if held is not None and held.is_initialized() and not held._is_changed() else None

    asked: dict[int, tuple[_Job, list[tuple[str, RuntimeVariable]]]] = {}
    for name in names:
        copy = copy_of(name)
        if copy is not None:
            asked.setdefault(id(copies[name]), (copies[name], []))[1].append((name, copy))
    values: dict[str, RuntimeVariable] = {}
    for job, variables in asked.values():
        # If copies that a trainer updates itself were overwritten, their changes are not training.
        if not job.local or None not in map(copy_of, job.params):
            values.update(_asked(executor, job, variables, scope))
    return values


def _asked(
    executor: Executor, job: _Job, variables: list[tuple[str, RuntimeVariable]], scope: Scope
) -> dict[str, RuntimeVariable]:
    if not _penstock.rpc_is_open():
        _warn("this trainer has completed")
        return {}
    if job.repeats and _penstock.process_wire() == "fluid":
        _warn("on Fluid's wire, pservers with delay compensation answer what this trainer has read last")
        return {}
    try:
        _penstock.flush_communicator()
        asking = _asking_program(job, variables)
        if job.repeats:
            servers = sorted({server for pieces in job.params.values() for server, _, _ in pieces})
            executor._executor.end_step(asking.desc, servers, job.trainer_id)
        there = Scope() if job.local else scope
        executor._executor.run(asking.desc, there, [], [])
    except _penstock.PeerError as error:
        _warn(str(error).splitlines()[0])
        return {}
    return {name: there.var(name) for name, _ in variables} if job.local else {}


def _warn(why: str) -> None:
    warnings.warn(
        f"the saved parameters are this trainer's copies from its last step; the pservers may have newer values: {why}",
        stacklevel=stack_level(),
    )


def _asking_program(job: _Job, variables: list[tuple[str, RuntimeVariable]]) -> Program:
    """Returns a program that receives the variables."""
    program = Program()
    block = program.global_block()
    joins = []
    for name, held in variables:
        tensor = held.get_tensor()
        shape, dtype = list(tensor.shape()), tensor._dtype()
        whole = block.create_var(name=name, shape=shape, dtype=dtype, persistable=True)
        pieces = job.params[name]
        outs = (
            [whole]
            if len(pieces) == 1
            else [block.create_var(name=there, shape=[rows] + shape[1:], dtype=dtype) for _, there, rows in pieces]
        )
        recv = block.append_op(
            "recv",
            outputs={"Out": outs},
            attrs={
                "epmap": [server for server, _, _ in pieces],
                "varnames": [there for _, there, _ in pieces],
                "trainer_id": job.trainer_id,
            },
        )
        if job.local:
            recv._remove_attr("trainer_id")  # no op of the step tells it; the process knows it from its startup
        if len(outs) > 1:
            joins.append((outs, whole))
    for outs, whole in joins:
        block.append_op("concat", inputs={"X": outs}, outputs={"Out": whole}, attrs={"axis": 0})
    return program
