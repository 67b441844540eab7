"""The parts of Fluid's fluid.contrib that Penstock provides."""

from penstock.fluid._not_built import getattr_of
from penstock.fluid.contrib import (decoder, extend_optimizer, layers, memory_usage_calc, mixed_precision, model_stat,
                                    op_frequence, quantize, reader, slim, utils)
from penstock.fluid.contrib.extend_optimizer import *
from penstock.fluid.contrib.layers import *
from penstock.fluid.contrib.memory_usage_calc import *
from penstock.fluid.contrib.model_stat import *
from penstock.fluid.contrib.op_frequence import *
from penstock.fluid.contrib.quantize import QuantizeTranspiler
from penstock.fluid.contrib.reader import *

__all__ = (['QuantizeTranspiler', 'layers', 'mixed_precision'] + extend_optimizer.__all__ + layers.__all__ +
           memory_usage_calc.__all__ + model_stat.__all__ + op_frequence.__all__ + reader.__all__)

__getattr__ = getattr_of(__name__)
