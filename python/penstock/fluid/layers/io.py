"""layers.data: a variable that the caller feeds."""

from penstock.fluid._not_built import getattr_of
from penstock.fluid.core import VarType
from penstock.fluid.layer_helper import LayerHelper

__all__ = ['data']


def data(name, shape, append_batch_size=True, dtype='float32', lod_level=0, type=VarType.LOD_TENSOR,
         stop_gradient=True):
    """Puts the unknown batch extent in front of the shape, unless some extent is unknown already."""
    shape = [-1 if extent is None else extent for extent in shape]
    if append_batch_size and all(extent >= 0 for extent in shape):
        shape = [-1] + shape
    return LayerHelper('data', name=name).create_global_variable(name=name, shape=shape, dtype=dtype, type=type,
                                                                 stop_gradient=stop_gradient, lod_level=lod_level,
                                                                 is_data=True)


__getattr__ = getattr_of(__name__)
