"""The layers: each generates a name and adds its ops, in Fluid's order, to the default main program."""

import inspect

from penstock.fluid._not_built import getattr_of
from penstock.fluid.layers import (activation, arithmetic, beam_search_decoder, beams, collective, control_flow, conv,
                                   decode_helpers, decoders, detection, device, distributions, draws, filling, io,
                                   layer_function_generator, learning_rate_scheduler, loss, many_classes,
                                   math_functions, math_op_patch, matrices, metric_op, nn, norm, ops, pairings, parts,
                                   ranking, recommend, recurrent, regions, resize, rnn, rnn_cells, selection, sequence,
                                   sequence_labels, sequence_lod, shaping, tensor, user_function, utils, vision,
                                   volumes)
from penstock.fluid.layers.activation import *
from penstock.fluid.layers.arithmetic import *
from penstock.fluid.layers.beam_search_decoder import *
from penstock.fluid.layers.beams import *
from penstock.fluid.layers.control_flow import *
from penstock.fluid.layers.conv import *
from penstock.fluid.layers.decode_helpers import *
from penstock.fluid.layers.decoders import *
from penstock.fluid.layers.detection import *
from penstock.fluid.layers.distributions import *
from penstock.fluid.layers.draws import *
from penstock.fluid.layers.filling import *
from penstock.fluid.layers.io import *
from penstock.fluid.layers.learning_rate_scheduler import *
from penstock.fluid.layers.loss import *
from penstock.fluid.layers.many_classes import *
from penstock.fluid.layers.math_functions import *
from penstock.fluid.layers.matrices import *
from penstock.fluid.layers.metric_op import *
from penstock.fluid.layers.nn import *
from penstock.fluid.layers.norm import *
from penstock.fluid.layers.ops import *
from penstock.fluid.layers.pairings import *
from penstock.fluid.layers.parts import *
from penstock.fluid.layers.ranking import *
from penstock.fluid.layers.recommend import *
from penstock.fluid.layers.recurrent import *
from penstock.fluid.layers.regions import *
from penstock.fluid.layers.resize import *
from penstock.fluid.layers.rnn_cells import *
from penstock.fluid.layers.selection import *
from penstock.fluid.layers.sequence import *
from penstock.fluid.layers.sequence_labels import *
from penstock.fluid.layers.shaping import *
from penstock.fluid.layers.tensor import *
from penstock.fluid.layers.user_function import *
from penstock.fluid.layers.vision import *
from penstock.fluid.layers.volumes import *

__all__ = (activation.__all__ + arithmetic.__all__ + beam_search_decoder.__all__ + beams.__all__ +
           control_flow.__all__ + conv.__all__ + decode_helpers.__all__ + decoders.__all__ + detection.__all__ +
           distributions.__all__ + draws.__all__ + filling.__all__ + io.__all__ + learning_rate_scheduler.__all__ +
           loss.__all__ + many_classes.__all__ + math_functions.__all__ + matrices.__all__ + metric_op.__all__ +
           nn.__all__ + norm.__all__ + ops.__all__ + pairings.__all__ + parts.__all__ + ranking.__all__ +
           recommend.__all__ + recurrent.__all__ + regions.__all__ + resize.__all__ + rnn_cells.__all__ +
           selection.__all__ + sequence.__all__ + sequence_labels.__all__ + shaping.__all__ + tensor.__all__ +
           user_function.__all__ + vision.__all__ + volumes.__all__)

math_op_patch.patch_variable()

for _module in [one for one in vars().values() if inspect.ismodule(one) and one.__name__.startswith(__name__ + '.')]:
    if '__getattr__' not in vars(_module):
        _module.__getattr__ = getattr_of(_module.__name__)

__getattr__ = getattr_of(__name__)
