"""Fluid's classes for jobs of equal ranks: each makes the given programs those of one rank.

    GradAllReduce(nrings=2).transpile(startup, main, rank=0, endpoints='10.0.0.1:6170,10.0.0.2:6170',
                                      current_endpoint='10.0.0.1:6170', wait_port=True)

DistributeTranspiler with config.mode = 'collective' is the same.
"""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.transpile.collective import Collective as Collective, GradAllReduce, LocalSGD
    from penstock._src.transpile.collective import SingleProcessMultiThread

__all__ = ['GradAllReduce', 'LocalSGD', 'SingleProcessMultiThread']

facade.make(__name__)
