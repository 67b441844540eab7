"""penstock.transpile_ranks: makes the programs of a job without pservers. Changes none of its arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock import _penstock
from penstock._src.transpile.addresses import addresses_of
from penstock._src.transpile.config import ON_UNEVEN, check_choice, check_count, check_flag, ids_of_trainers
from penstock._src.transpile.role_set import role_set

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock._src.ir.program import Program
    from penstock._src.transpile.role_set import RoleSet


def transpile_ranks(
    main: Program,
    startup: Program,
    trainers: Sequence[str] | str,
    exchange: str = "grad_allreduce",
    rings: int = 1,
    node_ranks: int = 0,
    k_steps: int = 1,
    trainer_ids: Sequence[int] | None = None,
    compat: str | None = None,
    adaptive: bool = False,
    on_uneven: str = "",
) -> RoleSet:
    """Rewrites the programs of one machine into those of ranks without pservers, without changing the originals.

    Args:
        main (Program): the main program, after minimize.
        startup (Program): its startup program.
        trainers (str | list[str]): the address of each rank, comma-separated or in a list.
        exchange (str): what the programs exchange: 'grad_allreduce': gradients; 'local_sgd': parameters, after every
            `k_steps` steps; 'single_process_multi_thread': gradients of the devices of one process; 'nccl2': nothing,
            because the executor sums the gradients.
        rings (int): the number of rings, which are used in turn.
        node_ranks (int): nccl2: the number of ranks of one machine, which first sum gradients among themselves; 0: no
            groups.
        k_steps (int): local_sgd: steps between two exchanges.
        trainer_ids (list[int] | None): the ranks whose programs are made; None: all.
        adaptive (bool): local_sgd: the interval starts at `k_steps` and then follows the loss and the learning rate.
        on_uneven (str): 'join', 'pad' or 'error' if the ranks' batches may differ in size and number; Executor.batches
            then yields them. '': batches do not differ.
        compat (str | None): 'fluid-1.8': role programs as Fluid 1.8.5 makes them, defects included.

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
    config.rings = check_count("rings", rings)
    config.hierarchical = node_ranks != 0
    config.node_ranks = check_count("node_ranks", node_ranks, 0)
    config.local_sgd_k_steps = check_count("k_steps", k_steps, 1)
    config.local_sgd_adaptive = check_flag("adaptive", adaptive)
    config.on_uneven = check_choice("on_uneven", on_uneven, ON_UNEVEN, "E-plan-on-uneven")
    if compat is not None:
        config.dialect = compat
    return role_set(main, startup, config)
