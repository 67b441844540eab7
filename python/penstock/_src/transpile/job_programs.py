"""Several programs that train in one job, in turns, on one set of pservers: a GAN's discriminator and generator.

Transpilers know each other by the startup program that their programs share, or by `beside`. Each program has a plan
of its own. The role programs of all are made again whenever one joins, because a program leaves to the others what
they update: neither does it initialize their parameters, nor does it share them among the trainers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock import _penstock
from penstock._src.base.errors import program_error
from penstock._src.ir.program import Program
from penstock._src.transpile.role_set import warn_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from penstock._penstock import ProgramDesc, TranspileConfig, _RoleSet
    from penstock._src.transpile.distribute_transpiler import DistributeTranspiler


def updated_by(roles: _RoleSet) -> set[str]:
    """Returns the names of the parameters, tables included, that the pservers of a plan update."""
    return {param[0] for param in roles.params}.union(roles.tables)


def others_of(
    transpiler: DistributeTranspiler,
    program: Program,
    startup: Program,
    source_startup: ProgramDesc,
    roles: _RoleSet,
    config: TranspileConfig,
    beside: DistributeTranspiler | Sequence[DistributeTranspiler] | None,
) -> list[DistributeTranspiler]:
    """Returns the transpilers of the other programs of the job, in the order of their calls of transpile().

    Args:
        transpiler (DistributeTranspiler): the one that transpiles now.
        program (Program): its main program.
        startup (Program): its startup program.
        source_startup: what it was before it was transpiled.
        roles: what C++ has made of them alone.
        config: the native settings.
        beside (DistributeTranspiler | list | None): the transpilers that the user names.

    Raises:
        TypeError: `beside` is something else.
        penstock.ProgramError: `startup` was changed after it was transpiled for one of them.
        penstock.StateError: one of `beside` has not transpiled.
    """
    if beside is not None:
        named: list[Any] = list(beside) if isinstance(beside, (list, tuple)) else [beside]
        for one in named:
            if not hasattr(one, "_together"):
                raise TypeError(f"beside takes DistributeTranspilers, not {type(one).__name__}")
            one._made()
        found = [each for one in named for each in one._together]
    else:
        found = [
            each
            for one in startup.__dict__.get("_transpilers", ())
            for each in one._together
            if _works_with(one, transpiler, roles, config)
        ]
    found = list(dict.fromkeys(found))
    found = [one for one in found if one is not transpiler and one.origin_program is not program]
    if found and any(op.type == "recv" for op in Program._of(source_startup).global_block().ops):
        raise program_error(
            "E-plan-programs",
            "plan: the startup program was changed after it had been transpiled for "
            "another program of the job; build all programs, with their minimize(), before the first "
            "transpile()",
        )
    return found


def _works_with(
    one: DistributeTranspiler, transpiler: DistributeTranspiler, roles: _RoleSet, config: TranspileConfig
) -> bool:
    """Whether two programs with one startup program are meant for one job, not for alternatives of one job."""
    return (
        bool(config.pservers)
        and one._kind == transpiler._kind
        and one.trainer_id == config.trainer_ids[0]
        and one.pserver_endpoints == config.pservers
        and not updated_by(one._made()).intersection(updated_by(roles))
    )


def made_together(members: Sequence[tuple[ProgramDesc, ProgramDesc, TranspileConfig]]) -> list[_RoleSet]:
    """Returns the roles of each member, a (main, startup, config) of programs before they were transpiled."""
    mains, startups, configs = zip(*members)
    sets = _penstock.transpile_together(list(mains), list(startups), list(configs))
    for roles in sets:
        warn_of(roles)
    return sets


def make_mean(program: Program, desc: ProgramDesc, source: ProgramDesc) -> None:
    """Replaces the contents of the program by `desc`, and keeps `source`, the original."""
    if program.desc.content_id != desc.content_id:
        program._rebind(desc)
    program._transpile_source = (source, program.desc.content_id)


def source_of(program: Program) -> ProgramDesc:
    """Returns the program from which a transpile starts: the original if an earlier transpile made the program and it
    was not changed since; with what was added to a startup program since, such as the initial values of another
    program of the job."""
    source: ProgramDesc | None
    source, content_id = program.__dict__.get("_transpile_source", (None, None))
    if source is not None and content_id == program.desc.content_id:
        return source
    made = program.__dict__.get("_transpilers")
    added = None
    if source is not None and made and made[0].pserver_endpoints:
        added = _penstock.with_added(source, made[0]._trainer_startup, program.desc)
    return added or program.desc.copy()


def share_startups(members: Sequence[DistributeTranspiler]) -> None:
    """Replaces the contents of the members' startup programs by the trainer's. A startup program of several members
    starts with the first of them; Executor.run runs what the others receive after it.

    Args:
        members (list[DistributeTranspiler]): all that work in the job.
    """
    groups: dict[Program, list[DistributeTranspiler]] = {}
    for one in members:
        groups.setdefault(one.startup_program, []).append(one)
    for startup, group in groups.items():
        make_mean(startup, group[0]._trainer_startup, group[0]._sources[1])
        startup._then = [Program._of(one._trainer_startup) for one in group[1:]]
        startup._transpilers = group
