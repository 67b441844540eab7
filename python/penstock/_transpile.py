"""penstock.transpile: one program in, the programs of all roles out. Nothing that is given is changed."""

import collections

from penstock import _penstock

Role = collections.namedtuple('Role', 'main startup')
Role.__doc__ = 'The two Programs of one process.'

RoleSet = collections.namedtuple('RoleSet', 'plan trainers pservers')
RoleSet.__doc__ = '''What transpile() returns.

plan       who holds what, as text
trainers   {trainer id: Role}
pservers   {address: Role}
'''


def transpile(main, startup, pservers, trainers=1, trainer_ids=None, sync=True, slice_params=True, min_block_size=8192,
              placement='RoundRobin', compat=None):
    """The role programs of `main` and `startup` (Programs, left as they are).

    pservers        addresses, a list or comma-separated
    trainer_ids     whose programs are made; all by default
    min_block_size  elements; a slice of a parameter is not made smaller
    compat          'fluid-1.8': role programs as Fluid 1.8.5 makes them, defects included
    """
    from penstock.fluid.framework import Program
    if isinstance(pservers, str):
        pservers = pservers.split(',')
    config = _penstock.TranspileConfig()
    config.pservers = [address.strip() for address in pservers]
    config.trainers = trainers
    config.trainer_ids = list(range(trainers)) if trainer_ids is None else list(trainer_ids)
    config.sync_mode_argument = sync
    config.slice_params = slice_params
    config.min_block_size = min_block_size
    config.allow_small_blocks = True
    config.placement = placement
    if compat is not None:
        config.dialect = compat
    roles = _penstock.transpile(main.desc, startup.desc, config)
    return RoleSet(roles.plan, {
        trainer_id: Role(Program._of(role_main), Program._of(role_startup))
        for trainer_id, role_main, role_startup in roles.trainers
    }, {
        address: Role(Program._of(role_main), Program._of(role_startup))
        for address, role_main, role_startup in roles.pservers
    })
