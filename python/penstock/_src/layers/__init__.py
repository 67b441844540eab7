"""The layers: each generates a name and adds its ops, in Fluid's order, to the default main program.

The package offers those of all its modules, for code that uses many of them; a layer imports the others from their
modules."""

from penstock._src.layers.activation import *
from penstock._src.layers.arithmetic import *
from penstock._src.layers.beam_search_decoder import *
from penstock._src.layers.beam_search_ops import *
from penstock._src.layers.comparison import *
from penstock._src.layers.control_flow import *
from penstock._src.layers.conv import *
from penstock._src.layers.conv_3d import *
from penstock._src.layers.creation import *
from penstock._src.layers.decode_helpers import *
from penstock._src.layers.decoders import *
from penstock._src.layers.detection_boxes import *
from penstock._src.layers.detection_priors import *
from penstock._src.layers.detection_results import *
from penstock._src.layers.detection_targets import *
from penstock._src.layers.distributions import *
from penstock._src.layers.dynamic_rnn import *
from penstock._src.layers.feature_pyramid import *
from penstock._src.layers.if_else import *
from penstock._src.layers.indexing import *
from penstock._src.layers.learning_rate_scheduler import *
from penstock._src.layers.linalg import *
from penstock._src.layers.loops import *
from penstock._src.layers.loss import *
from penstock._src.layers.manipulation import *
from penstock._src.layers.math import *
from penstock._src.layers.metric import *
from penstock._src.layers.nn import *
from penstock._src.layers.normalization import *
from penstock._src.layers.norms import *
from penstock._src.layers.py_function import *
from penstock._src.layers.random import *
from penstock._src.layers.ranking_loss import *
from penstock._src.layers.rcnn_targets import *
from penstock._src.layers.recommendation import *
from penstock._src.layers.recurrent import *
from penstock._src.layers.reshaping import *
from penstock._src.layers.resize import *
from penstock._src.layers.rnn_cells import *
from penstock._src.layers.roi import *
from penstock._src.layers.sampled_softmax import *
from penstock._src.layers.search import *
from penstock._src.layers.sequence import *
from penstock._src.layers.sequence_labeling import *
from penstock._src.layers.sequence_padding import *
from penstock._src.layers.similarity import *
from penstock._src.layers.slicing import *
from penstock._src.layers.static_rnn import *
from penstock._src.layers.tensor import *
from penstock._src.layers.tensor_array import *
from penstock._src.layers.unary import *
from penstock._src.layers.vision import *
