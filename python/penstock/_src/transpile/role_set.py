"""Role programs from C++, which have passed the check. Findings that are not errors become Python warnings."""

# Annotations are evaluated here, because help() shows those of a NamedTuple as they are then.
import warnings
from collections.abc import Sequence
from typing import NamedTuple

from penstock import _penstock
from penstock._penstock import ProgramDesc, TranspileConfig, _RoleSet
from penstock._src.base.call_site import stack_level
from penstock._src.ir.program import Program


class Role(NamedTuple):
    """The two Programs of one process.

    Args:
        main (Program): what the process runs in each step.
        startup (Program): what it runs once, before the first step.

    Example:
        role = penstock.Role(fluid.Program(), fluid.Program())
        assert role.main is not role.startup
    """

    main: Program
    startup: Program


class RoleSet(NamedTuple):
    """What transpile() and transpile_ranks() return.

    Args:
        plan (str): the placement plan as text: which process holds what.
        trainers (dict): {trainer id: Role}.
        pservers (dict): {address: Role}; empty without pservers.

    Example:
        loss = fluid.layers.mean(fluid.layers.fc(fluid.data('x', [None, 4]), 1))
        fluid.optimizer.SGD(0.01).minimize(loss)
        roles = penstock.transpile(fluid.default_main_program(), fluid.default_startup_program(), 'a:1,b:1', trainers=2)
        assert sorted(roles.trainers) == [0, 1] and sorted(roles.pservers) == ['a:1', 'b:1']
    """

    plan: str
    trainers: dict[int, Role]
    pservers: dict[str, Role]


class ProgramWarning(UserWarning):
    """A finding of the check of role programs that is not an error: they run, but perhaps not as intended.

    With compat='fluid-1.8' it may also mean that they do not run, as Fluid's programs do not.
    """


def native_roles(main: ProgramDesc, startup: ProgramDesc, config: TranspileConfig) -> _RoleSet:
    """Returns the roles that C++ makes from two programs, after a warning for each finding."""
    roles = _penstock.transpile(main, startup, config)
    warn_of(roles)
    return roles


def warn_of(roles: _RoleSet) -> None:
    """Warns of each finding that is not an error."""
    for finding in roles.warnings:
        warnings.warn(finding, ProgramWarning, stacklevel=stack_level())


def role_set(main: Program, startup: Program, config: TranspileConfig) -> RoleSet:
    """Returns the RoleSet of two Programs, which are not changed."""
    return _role_set_of(native_roles(main.desc, startup.desc, config))


def role_sets(mains: Sequence[Program], startups: Sequence[Program], config: TranspileConfig) -> list[RoleSet]:
    """Returns a RoleSet for each program of one job, in the order of the programs, which are not changed."""
    made = _penstock.transpile_together(
        [main.desc for main in mains], [startup.desc for startup in startups], [config] * len(mains)
    )
    for roles in made:
        warn_of(roles)
    return [_role_set_of(roles) for roles in made]


def _role_set_of(roles: _RoleSet) -> RoleSet:
    def role(main: ProgramDesc, startup: ProgramDesc) -> Role:
        return Role(Program._of(main), Program._of(startup))

    return RoleSet(
        roles.plan,
        {trainer_id: role(main, startup) for trainer_id, main, startup in roles.trainers},
        {address: role(main, startup) for address, main, startup in roles.pservers},
    )
