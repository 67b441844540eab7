"""Layers that exchange tensors between the ranks of a ring, as Fluid's collective transpilers and fleets use them."""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.layers.collective import _allreduce as _allreduce, _broadcast as _broadcast
    from penstock._src.layers.collective import _c_allgather as _c_allgather, _c_allreduce as _c_allreduce
    from penstock._src.layers.collective import _c_broadcast as _c_broadcast, _c_reducescatter as _c_reducescatter
    from penstock._src.layers.collective import _c_sync_calc_stream as _c_sync_calc_stream
    from penstock._src.layers.collective import _c_sync_comm_stream as _c_sync_comm_stream
    from penstock._src.layers.helper import LayerHelper
    from penstock.fluid import unique_name as unique_name

__all__ = ['LayerHelper']

facade.make(__name__)
