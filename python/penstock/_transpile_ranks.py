"""penstock.transpile_ranks: the programs of a job without pservers. Nothing that is given is changed."""

from penstock import _penstock
from penstock._role_set import role_set


def transpile_ranks(main, startup, trainers, exchange='grad_allreduce', rings=1, node_ranks=0, k_steps=1,
                    trainer_ids=None, compat=None):
    """The role programs of `main` and `startup` (Programs, left as they are), for equal ranks.

    trainers     the address of each, a list or comma-separated
    exchange     what programs add up: 'grad_allreduce', 'local_sgd' (parameters, after every k_steps steps), or
                 'single_process_multi_thread' (gradients of the devices of one process); 'nccl2': ranks only find each
                 other, and who runs the program adds up
    rings        communicators that are used in turn
    node_ranks   nccl2: ranks of one machine, which add up among themselves first; 0: all are alike
    trainer_ids  whose programs are made; all by default
    compat       'fluid-1.8': role programs as Fluid 1.8.5 makes them, defects included
    """
    from penstock.fluid.transpiler.config import check_count, ids_of_trainers
    from penstock.fluid.transpiler.distribute_transpiler import addresses_of
    config = _penstock.TranspileConfig()
    config.trainer_addresses = addresses_of(trainers, 'trainers')
    config.trainers = len(config.trainer_addresses)
    config.trainer_ids = ids_of_trainers(config.trainers, trainer_ids)
    config.kind = 'nccl2' if exchange == 'nccl2' else 'collective'
    if exchange != 'nccl2':
        config.collective_mode = exchange
    config.rings = check_count('rings', rings)
    config.hierarchical = node_ranks != 0
    config.node_ranks = check_count('node_ranks', node_ranks, 0)
    config.local_sgd_k_steps = check_count('k_steps', k_steps, 1)
    if compat is not None:
        config.dialect = compat
    return role_set(main, startup, config)
