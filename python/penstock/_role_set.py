"""Role programs from C++. They come proved; what the proof found that is no error becomes a Python warning."""

import collections
import warnings

from penstock import _penstock
from penstock._call_site import stack_level

Role = collections.namedtuple('Role', 'main startup')
Role.__doc__ = 'The two Programs of one process.'

RoleSet = collections.namedtuple('RoleSet', 'plan trainers pservers')
RoleSet.__doc__ = '''What transpile() returns.

plan       who holds what, as text
trainers   {trainer id: Role}
pservers   {address: Role}
'''


class ProgramWarning(UserWarning):
    """A finding of the proof about role programs that run, but perhaps not as meant.

    With compat='fluid-1.8' it may also be that they do not run, as Fluid's do not.
    """


def native_roles(main, startup, config):
    """What C++ makes of two programs' values, after a warning for each of its findings."""
    roles = _penstock.transpile(main, startup, config)
    for finding in roles.warnings:
        warnings.warn(finding, ProgramWarning, stacklevel=stack_level())
    return roles


def role_set(main, startup, config):
    """The RoleSet of two Programs, which stay as they are."""
    from penstock.fluid.framework import Program  # `import penstock` does not load the whole front end
    roles = native_roles(main.desc, startup.desc, config)

    def role(made):
        return Role(*(Program._of(desc) for desc in made))

    return RoleSet(roles.plan, {trainer_id: role(made) for trainer_id, *made in roles.trainers},
                   {address: role(made) for address, *made in roles.pservers})
