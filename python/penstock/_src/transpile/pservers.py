"""penstock.transpile: makes the programs of all roles from one program. Changes none of its arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING, overload

from penstock import _penstock
from penstock._src.ir.program import Program
from penstock._src.transpile import ps_dispatcher
from penstock._src.transpile.addresses import addresses_of
from penstock._src.transpile.config import check_count, dense_exchange, ids_of_trainers
from penstock._src.transpile.role_set import role_set, role_sets
from penstock._src.transpile.settings import give, in_signature

if TYPE_CHECKING:
    from collections.abc import Sequence

    from typing_extensions import Unpack

    from penstock._src.transpile.role_set import RoleSet
    from penstock._src.transpile.setting_types import Arguments


@overload
def transpile(
    main: Program,
    startup: Program,
    pservers: Sequence[str] | str,
    trainers: Sequence[str] | int | str = 1,
    trainer_ids: Sequence[int] | None = None,
    *,
    compat: str | None = None,
    **given: Unpack[Arguments],
) -> RoleSet: ...
@overload
def transpile(
    main: Sequence[Program],
    startup: Program | Sequence[Program],
    pservers: Sequence[str] | str,
    trainers: Sequence[str] | int | str = 1,
    trainer_ids: Sequence[int] | None = None,
    *,
    compat: str | None = None,
    **given: Unpack[Arguments],
) -> list[RoleSet]: ...
@in_signature("argument")
def transpile(
    main: Program | Sequence[Program],
    startup: Program | Sequence[Program],
    pservers: Sequence[str] | str,
    trainers: Sequence[str] | int | str = 1,
    trainer_ids: Sequence[int] | None = None,
    *,
    compat: str | None = None,
    **given: Unpack[Arguments],
) -> RoleSet | list[RoleSet]:
    """Rewrites the programs of one machine into those of trainers and parameter servers, without changing the
    originals.

    The arguments up to `compat` say what the job is. The others are settings, given by keyword, in groups: how
    parameters are cut and placed, when pservers update (the mode), policies that extend a mode, and the rings of
    trainers that exchange among themselves.

    Args:
        main (Program | list[Program]): the main program, after minimize; or several that train in one job, in turns
            and in one order on every trainer, such as a GAN's two. Each parameter is updated by one of them.
        startup (Program | list[Program]): its startup program; for several: the one that all share, or one for each.
        pservers (str | list[str]): addresses, comma-separated or in a list.
        trainers (int | str | list[str]): number of trainers, or their addresses, which `exchange` and `on_uneven`
            need.
        trainer_ids (list[int] | None): the trainers whose programs are made; None: all.
        compat (str | None): 'fluid-1.8': role programs as Fluid 1.8.5 makes them, defects included; defects that the
            check finds are then ProgramWarnings instead of errors.
        <settings: argument>

    Returns:
        RoleSet | list[RoleSet]: the role programs and the plan; for several programs, a RoleSet for each. A process
            then runs the startup programs of all, in this order, and a pserver its main programs as one list.

    Raises:
        TypeError: `main` is a Program, and `startup` is not.
        ValueError: `main` is an empty list, or `startup` has another length.
        penstock.ProgramError: the programs or the arguments are wrong or contradict each other.

    Example:
        loss = fluid.layers.mean(fluid.layers.fc(fluid.data('x', [None, 4]), 1))
        fluid.optimizer.SGD(0.01).minimize(loss)
        roles = penstock.transpile(fluid.default_main_program(), fluid.default_startup_program(),
                                   pservers='10.0.0.1:6174,10.0.0.2:6174', trainers=2)
        print(roles.plan)
    """
    config = _penstock.TranspileConfig()
    config.pservers = addresses_of(pservers)
    ps_dispatcher.choose(given.pop("placement"), config)
    config.dense = dense_exchange(given.pop("exchange"))
    config.allow_small_blocks = True
    give(config, "argument", given)
    if (config.dense != "pserver" or config.on_uneven) and not isinstance(trainers, int):
        config.trainer_addresses = addresses_of(trainers, "trainers")
        trainers = len(config.trainer_addresses)
    config.trainers = check_count("trainers", trainers)
    config.trainer_ids = ids_of_trainers(config.trainers, trainer_ids)
    if compat is not None:
        config.dialect = compat
    if isinstance(main, Program):
        if not isinstance(startup, Program):
            raise TypeError(f"transpile: startup must be a Program, as main is, not {type(startup).__name__}")
        return role_set(main, startup, config)
    mains = list(main)
    startups = [startup] * len(mains) if isinstance(startup, Program) else list(startup)
    if not mains or len(startups) != len(mains):
        raise ValueError(
            f"transpile takes a startup program for all main programs, or one for each, not {len(startups)} for "
            f"{len(mains)}"
        )
    return role_sets(mains, startups, config)
