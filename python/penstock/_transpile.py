"""penstock.transpile: one program in, the programs of all roles out. Nothing that is given is changed."""

from penstock import _penstock
from penstock._role_set import role_set


def transpile(main, startup, pservers, trainers=1, trainer_ids=None, sync=True, slice_params=True, min_block_size=8192,
              placement='RoundRobin', slicing='fluid', big_array_bound=1000000, compat=None,
              runtime_split_send_recv=False, half_async=False, completely_not_async=False, dc_asgd=False,
              dc_asgd_lambda=1.0, staleness=None, backup_trainers=0, compression='none', exchange=None, rings=1,
              exchange_gbit=10.0, exchange_message_us=20.0):
    """The role programs of `main` and `startup` (Programs, left as they are).

    pservers        addresses, a list or comma-separated
    trainer_ids     whose programs are made; all by default
    min_block_size  elements; a slice of a parameter is not made smaller
    placement       who gets which slice: 'RoundRobin', 'HashName', 'SizeBalanced', or a subclass of
                    penstock.fluid.transpiler.PSDispatcher
    slicing         how parameters are cut: 'fluid'; 'even', with rows that differ by one at most; 'mxnet', which gives
                    each pserver a part of what has big_array_bound elements or more and needs no placement
    sync            pservers wait for all trainers; without it each gradient is applied as it arrives
    compat          'fluid-1.8': role programs as Fluid 1.8.5 makes them, defects included; each that the proof of
                    the set finds is a ProgramWarning, where it otherwise is an error

    Of the asynchronous modes:

    runtime_split_send_recv  gradients go to the trainer's communicator, which cuts, merges and sends them
    half_async               with it: the threads of a trainer meet once a step
    completely_not_async     with it: pservers wait for all trainers all the same
    dc_asgd                  gradients are corrected for their age, dc_asgd_lambda times

    What Fluid has not; penstock.fluid.DistributeTranspilerConfig says what each promises:

    staleness        async: steps that a trainer may be ahead of the slowest
    backup_trainers  sync: trainers that a step does not wait for
    compression      of gradients on their way to pservers, as 'two_bit 0.5 from 65536, fc_0.w_0: none'
    exchange         sync: {'dense': 'allreduce', 'sparse': 'pserver'}, dense parameters over `rings` rings of trainers,
                     whose addresses `trainers` then are; or 'auto', for each dense parameter the faster way by the
                     cost model, on a network of exchange_gbit and exchange_message_us
    """
    from penstock.fluid.transpiler import distribute_transpiler, ps_dispatcher
    from penstock.fluid.transpiler.config import (MOST_ELEMENTS, check_count, check_flag, check_number,
                                                  dense_exchange, ids_of_trainers, set_policies)
    config = _penstock.TranspileConfig()
    config.pservers = distribute_transpiler.addresses_of(pservers)
    config.dense = dense_exchange(exchange)
    config.exchange_gbit = check_number('exchange_gbit', exchange_gbit)
    config.exchange_message_us = check_number('exchange_message_us', exchange_message_us)
    config.rings = check_count('rings', rings)
    if config.dense != 'pserver' and not isinstance(trainers, int):
        config.trainer_addresses = distribute_transpiler.addresses_of(trainers, 'trainers')
        trainers = len(config.trainer_addresses)
    config.trainers = check_count('trainers', trainers)
    config.trainer_ids = ids_of_trainers(config.trainers, trainer_ids)
    config.sync_mode_argument = check_flag('sync', sync)
    config.slice_params = check_flag('slice_params', slice_params)
    config.min_block_size = check_count('min_block_size', min_block_size, most=MOST_ELEMENTS)
    config.allow_small_blocks = True
    config.slicing = slicing
    config.big_array_bound = check_count('big_array_bound', big_array_bound, most=MOST_ELEMENTS)
    ps_dispatcher.choose(placement, config)
    config.runtime_split_send_recv = check_flag('runtime_split_send_recv', runtime_split_send_recv)
    config.half_async = check_flag('half_async', half_async)
    config.completely_not_async = check_flag('completely_not_async', completely_not_async)
    config.dc_asgd = check_flag('dc_asgd', dc_asgd)
    config.dc_asgd_lambda = check_number('dc_asgd_lambda', dc_asgd_lambda)
    set_policies(staleness, backup_trainers, compression, config)
    if compat is not None:
        config.dialect = compat
    return role_set(main, startup, config)
