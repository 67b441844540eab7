"""The layers: each draws a name and adds its ops, in Fluid's order, to the default main program."""

from penstock.fluid.layers import io, loss, math_op_patch, metric_op, nn, ops, tensor
from penstock.fluid.layers.io import data
from penstock.fluid.layers.loss import *
from penstock.fluid.layers.metric_op import *
from penstock.fluid.layers.nn import *
from penstock.fluid.layers.ops import *
from penstock.fluid.layers.tensor import *

__all__ = ['data'] + loss.__all__ + metric_op.__all__ + nn.__all__ + ops.__all__ + tensor.__all__

math_op_patch.patch_variable()
