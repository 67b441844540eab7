"""GeoSgdTranspiler: trainers update their own parameters and exchange the changes through pservers.

    t = fluid.transpiler.GeoSgdTranspiler(config)
    t.transpile(trainer_id, pservers='10.0.0.1:6174,10.0.0.2:6174', trainers=2)

transpile() replaces the contents of both programs by the trainer's.
"""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.transpile.distribute_transpiler import DistributeTranspiler as DistributeTranspiler
    from penstock._src.transpile.geo_sgd_transpiler import GeoSgdTranspiler

__all__ = ['GeoSgdTranspiler']

facade.make(__name__)
