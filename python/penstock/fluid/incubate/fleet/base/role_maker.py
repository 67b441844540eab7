"""Role makers, which determine the role of this process in the job and the addresses of the other processes."""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.fleet.mpi_roles import MPIRoleMaker as MPIRoleMaker
    from penstock._src.fleet.mpi_roles import MPISymetricRoleMaker as MPISymetricRoleMaker
    from penstock._src.fleet.role_maker import GeneralRoleMaker as GeneralRoleMaker
    from penstock._src.fleet.role_maker import PaddleCloudRoleMaker as PaddleCloudRoleMaker
    from penstock._src.fleet.role_maker import UserDefinedCollectiveRoleMaker as UserDefinedCollectiveRoleMaker
    from penstock._src.fleet.role_maker import UserDefinedRoleMaker as UserDefinedRoleMaker
    from penstock._src.fleet.roles import Role as Role, RoleMakerBase as RoleMakerBase

__all__ = [
    'GeneralRoleMaker', 'MPIRoleMaker', 'MPISymetricRoleMaker', 'PaddleCloudRoleMaker', 'Role', 'RoleMakerBase',
    'UserDefinedCollectiveRoleMaker', 'UserDefinedRoleMaker',
]

facade.make(__name__)
