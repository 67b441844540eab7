"""penstock.transpile: makes the programs of all roles from one program. Changes none of its arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock import _penstock
from penstock._src.transpile import ps_dispatcher
from penstock._src.transpile.addresses import addresses_of
from penstock._src.transpile.config import (
    BN_SYNCS,
    CLIPS,
    MOST_ELEMENTS,
    ON_UNEVEN,
    check_choice,
    check_count,
    check_flag,
    check_number,
    dense_exchange,
    ids_of_trainers,
    set_policies,
)
from penstock._src.transpile.role_set import role_set, role_sets

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from penstock._src.ir.program import Program


def transpile(
    main: Program | Sequence[Program],
    startup: Program | Sequence[Program],
    pservers: Sequence[str] | str,
    trainers: Sequence[str] | int | str = 1,
    trainer_ids: Sequence[int] | None = None,
    sync: bool = True,
    slice_params: bool = True,
    min_block_size: int = 8192,
    placement: str | type[Any] = "RoundRobin",
    slicing: str = "fluid",
    big_array_bound: int = 1000000,
    compat: str | None = None,
    runtime_split_send_recv: bool = False,
    half_async: bool = False,
    completely_not_async: bool = False,
    dc_asgd: bool = False,
    dc_asgd_lambda: float = 1.0,
    staleness: int | None = None,
    backup_trainers: int = 0,
    compression: str = "none",
    exchange: Mapping[str, str] | str | None = None,
    rings: int = 1,
    exchange_gbit: float = 10.0,
    exchange_message_us: float = 20.0,
    on_uneven: str = "",
    clip: str = "local",
    bn_sync: str = "none",
    chunk_bytes: int = 1 << 20,
) -> Any:  # a RoleSet, or a list of them if `main` is a list
    """Rewrites the programs of one machine into those of trainers and parameter servers, without changing the
    originals.

    Args:
        main (Program | list[Program]): the main program, after minimize; or several that train in one job, in turns
            and in one order on every trainer, such as a GAN's two. Each parameter is updated by one of them.
        startup (Program | list[Program]): its startup program; for several: the one that all share, or one for each.
        pservers (str | list[str]): addresses, comma-separated or in a list.
        trainers (int | str | list[str]): number of trainers, or their addresses, which `exchange` and `on_uneven`
            need.
        trainer_ids (list[int] | None): the trainers whose programs are made; None: all.
        sync (bool): True: pservers wait for all trainers' gradients of a step; False: each gradient is applied when it
            arrives.
        slice_params (bool): cut large parameters into slices.
        min_block_size (int): the minimum number of elements of a slice.
        placement (str | type): assigns slices to pservers: 'RoundRobin', 'HashName', 'SizeBalanced', or a subclass of
            penstock.fluid.transpiler.PSDispatcher.
        slicing (str): how parameters are cut: 'fluid'; 'even': the slices' row counts differ by at most one; 'mxnet':
            parameters of `big_array_bound` elements or more are cut over all pservers, and placement has no effect.
        big_array_bound (int): elements, for slicing='mxnet'.
        compat (str | None): 'fluid-1.8': role programs as Fluid 1.8.5 makes them, defects included; defects that the
            check finds are then ProgramWarnings instead of errors.
        runtime_split_send_recv (bool): async: the trainer's communicator splits, merges and sends gradients.
        half_async (bool): with runtime_split_send_recv: a trainer waits for its own gradients to arrive.
        completely_not_async (bool): with runtime_split_send_recv: sync; pservers wait for all trainers.
        dc_asgd (bool): async: correct gradients for their staleness (DC-ASGD).
        dc_asgd_lambda (float): factor of that correction.
        staleness (int | None): async: the maximum number of steps by which a trainer may be ahead of the slowest.
        backup_trainers (int): sync: the number of trainers that a step does not wait for.
        compression (str): how trainers compress gradients, for example 'two_bit 0.5 from 65536, fc_0.w_0: none'; see
            DistributeTranspilerConfig.
        exchange (dict | str | None): {'dense': 'allreduce', 'sparse': 'pserver'} or 'auto': how gradients of dense
            parameters are summed; see DistributeTranspilerConfig. `trainers` must then be addresses.
        rings (int): with `exchange`: the number of rings of trainers, which are used in turn.
        exchange_gbit (float): for 'auto': the bandwidth of a link in each direction, in Gbit/s.
        exchange_message_us (float): for 'auto': the fixed cost of a message, in microseconds.
        on_uneven (str): sync, also with an `exchange`: 'join', 'pad' or 'error' if trainers' batches may differ in size
            and number; Executor.batches then yields them, and `trainers` must be addresses. '': batches do not differ.
        clip (str): 'local': each trainer clips its gradients before it sends them; 'global': pservers clip the mean.
        bn_sync (str): running statistics of batch_norm: 'none': each trainer keeps its own; 'average': they are
            averaged over the trainers.
        chunk_bytes (int): the maximum size of a chunk of a slice; a chunk has at least one row. A chunk is the unit
            that pservers merge, update and send: smaller chunks overlap more, larger ones need fewer messages.

    Returns:
        RoleSet | list[RoleSet]: the role programs and the plan; for several programs, a RoleSet for each. A process
            then runs the startup programs of all, in this order, and a pserver its main programs as one list.

    Raises:
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
    config.dense = dense_exchange(exchange)
    config.exchange_gbit = check_number("exchange_gbit", exchange_gbit)
    config.exchange_message_us = check_number("exchange_message_us", exchange_message_us)
    config.rings = check_count("rings", rings)
    config.on_uneven = check_choice("on_uneven", on_uneven, ON_UNEVEN, "E-plan-on-uneven")
    config.clip = check_choice("clip", clip, CLIPS, "E-plan-clip")
    config.bn_sync = check_choice("bn_sync", bn_sync, BN_SYNCS, "E-plan-bn-sync")
    if (config.dense != "pserver" or on_uneven) and not isinstance(trainers, int):
        config.trainer_addresses = addresses_of(trainers, "trainers")
        trainers = len(config.trainer_addresses)
    config.trainers = check_count("trainers", trainers)
    config.trainer_ids = ids_of_trainers(config.trainers, trainer_ids)
    config.sync_mode_argument = check_flag("sync", sync)
    config.slice_params = check_flag("slice_params", slice_params)
    config.min_block_size = check_count("min_block_size", min_block_size, most=MOST_ELEMENTS)
    config.allow_small_blocks = True
    config.slicing = slicing
    config.big_array_bound = check_count("big_array_bound", big_array_bound, most=MOST_ELEMENTS)
    config.chunk_bytes = check_count("chunk_bytes", chunk_bytes, most=MOST_ELEMENTS)
    ps_dispatcher.choose(placement, config)
    config.runtime_split_send_recv = check_flag("runtime_split_send_recv", runtime_split_send_recv)
    config.half_async = check_flag("half_async", half_async)
    config.completely_not_async = check_flag("completely_not_async", completely_not_async)
    config.dc_asgd = check_flag("dc_asgd", dc_asgd)
    config.dc_asgd_lambda = check_number("dc_asgd_lambda", dc_asgd_lambda)
    set_policies(staleness, backup_trainers, compression, config)
    if compat is not None:
        config.dialect = compat
    if not isinstance(main, (list, tuple)):
        return role_set(main, startup, config)
    startups = list(startup) if isinstance(startup, (list, tuple)) else [startup] * len(main)
    if not main or len(startups) != len(main):
        raise ValueError(
            f"transpile takes a startup program for all main programs, or one for each, not {len(startups)} for "
            f"{len(main)}"
        )
    return role_sets(main, startups, config)
