"""penstock.transpile_ranks: makes the programs of a job without pservers. Changes none of its arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock import _penstock
from penstock._src.transpile.addresses import addresses_of
from penstock._src.transpile.config import ids_of_trainers
from penstock._src.transpile.role_set import role_set
from penstock._src.transpile.settings import give, in_signature

if TYPE_CHECKING:
    from collections.abc import Sequence

    from typing_extensions import Unpack

    from penstock._src.ir.program import Program
    from penstock._src.transpile.role_set import RoleSet
    from penstock._src.transpile.setting_types import RankArguments


@in_signature("rank_argument")
def transpile_ranks(
    main: Program,
    startup: Program,
    trainers: Sequence[str] | str,
    exchange: str = "grad_allreduce",
    *,
    trainer_ids: Sequence[int] | None = None,
    compat: str | None = None,
    **given: Unpack[RankArguments],
) -> RoleSet:
    """Rewrites the programs of one machine into those of ranks without pservers, without changing the originals.

    Args:
        main (Program): the main program, after minimize.
        startup (Program): its startup program.
        trainers (str | list[str]): the address of each rank, comma-separated or in a list.
        exchange (str): what the programs exchange: 'grad_allreduce': gradients; 'local_sgd': parameters, after every
            `k_steps` steps; 'single_process_multi_thread': gradients of the devices of one process; 'nccl2': nothing,
            because the executor sums the gradients.
        trainer_ids (list[int] | None): the ranks whose programs are made; None: all.
        compat (str | None): 'fluid-1.8': role programs as Fluid 1.8.5 makes them, defects included.
        <settings: rank_argument>

    Returns:
        RoleSet: the role programs and the plan.

    Raises:
        penstock.ProgramError: the programs or the arguments are wrong or contradict each other.

    Example:
        loss = fluid.layers.mean(fluid.layers.fc(fluid.data('x', [None, 4]), 1))
        fluid.optimizer.SGD(0.01).minimize(loss)
        roles = penstock.transpile_ranks(fluid.default_main_program(), fluid.default_startup_program(),
                                         trainers='10.0.0.1:6170,10.0.0.2:6170')
    """
    config = _penstock.TranspileConfig()
    config.trainer_addresses = addresses_of(trainers, "trainers")
    config.trainers = len(config.trainer_addresses)
    config.trainer_ids = ids_of_trainers(config.trainers, trainer_ids)
    config.kind = "nccl2" if exchange == "nccl2" else "collective"
    if exchange != "nccl2":
        config.collective_mode = exchange
    config.hierarchical = given["node_ranks"] != 0
    give(config, "rank_argument", given)
    if compat is not None:
        config.dialect = compat
    return role_set(main, startup, config)
