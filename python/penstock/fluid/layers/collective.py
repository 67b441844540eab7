"""Layers that exchange tensors between the ranks of a ring, as Fluid's collective transpilers and fleets use them."""

# Written by tools/dev/gen_names.py.
from penstock._src.layers.collective import (
    _allreduce as _allreduce, _broadcast as _broadcast, _c_allgather as _c_allgather, _c_allreduce as _c_allreduce,
    _c_broadcast as _c_broadcast, _c_reducescatter as _c_reducescatter, _c_sync_calc_stream as _c_sync_calc_stream,
    _c_sync_comm_stream as _c_sync_comm_stream,
)
from penstock._src.layers.helper import LayerHelper as LayerHelper
from penstock._src.names import facade
from penstock.fluid import unique_name as unique_name

__all__ = ['LayerHelper']

facade.make(__name__, elsewhere=('LayerHelper', 'unique_name'))
