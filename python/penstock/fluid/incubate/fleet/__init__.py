"""Fleet: one script for all roles of a job.

    from penstock.fluid.incubate.fleet.base import role_maker
    from penstock.fluid.incubate.fleet.parameter_server.distribute_transpiler import fleet

    fleet.init(role_maker.PaddleCloudRoleMaker())
    fleet.distributed_optimizer(fluid.optimizer.SGD(0.01), strategy).minimize(loss)
    if fleet.is_server():
        fleet.init_server()
        fleet.run_server()
    else:
        fleet.init_worker()
        exe.run(fleet.startup_program)
        ...                                   # steps of fleet.main_program
        fleet.stop_worker()

Submodules are imported by their names: base.role_maker, parameter_server.distribute_transpiler, collective, utils.
"""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock.fluid.incubate.fleet import base as base, utils as utils

__all__ = []

facade.make(__name__)
