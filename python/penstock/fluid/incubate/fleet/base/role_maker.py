"""Role makers, which determine the role of this process in the job and the addresses of the other processes."""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.fleet.mpi_roles import MPIRoleMaker, MPISymetricRoleMaker
    from penstock._src.fleet.role_maker import GeneralRoleMaker, PaddleCloudRoleMaker, UserDefinedCollectiveRoleMaker
    from penstock._src.fleet.role_maker import UserDefinedRoleMaker
    from penstock._src.fleet.roles import Role, RoleMakerBase

__all__ = [
    'GeneralRoleMaker', 'MPIRoleMaker', 'MPISymetricRoleMaker', 'PaddleCloudRoleMaker', 'Role', 'RoleMakerBase',
    'UserDefinedCollectiveRoleMaker', 'UserDefinedRoleMaker',
]

facade.make(__name__)
