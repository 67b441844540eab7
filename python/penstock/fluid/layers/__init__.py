"""The layers: each generates a name and adds its ops, in Fluid's order, to the default main program."""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.data.py_reader import create_py_reader_by_data, data, double_buffer, load, py_reader, read_file
    from penstock._src.layers.beam_search_decoder import BeamSearchDecoder
    from penstock._src.layers.beam_search_ops import beam_search, beam_search_decode
    from penstock._src.layers.decode_helpers import DecodeHelper, GreedyEmbeddingHelper, SampleEmbeddingHelper
    from penstock._src.layers.decode_helpers import TrainingHelper
    from penstock._src.layers.decoders import BasicDecoder, Decoder, dynamic_decode
    from penstock._src.layers.distributions import Categorical, Normal, Uniform
    from penstock._src.layers.metric import accuracy, auc
    from penstock._src.layers.multivariate_normal import MultivariateNormalDiag
    from penstock._src.layers.recurrent import dynamic_gru, dynamic_lstm, dynamic_lstmp, lstm
    from penstock._src.layers.recurrent_steps import gru_unit, lstm_unit
    from penstock._src.layers.rnn_cells import GRUCell, LSTMCell, RNNCell
    from penstock.fluid.layers import collective as collective, control_flow as control_flow, detection as detection
    from penstock.fluid.layers import device as device, distributions as distributions, io as io
    from penstock.fluid.layers import layer_function_generator as layer_function_generator
    from penstock.fluid.layers import learning_rate_scheduler as learning_rate_scheduler, loss as loss
    from penstock.fluid.layers import math_op_patch as math_op_patch, metric_op as metric_op, nn as nn, ops as ops
    from penstock.fluid.layers import sequence_lod as sequence_lod, tensor as tensor, utils as utils
    from penstock.fluid.layers.rnn import rnn
    from penstock.fluid.layers.control_flow import *
    from penstock.fluid.layers.detection import *
    from penstock.fluid.layers.learning_rate_scheduler import *
    from penstock.fluid.layers.loss import *
    from penstock.fluid.layers.nn import *
    from penstock.fluid.layers.ops import *
    from penstock.fluid.layers.sequence_lod import *
    from penstock.fluid.layers.tensor import *

__all__ = [
    'BasicDecoder', 'BeamSearchDecoder', 'Categorical', 'DecodeHelper', 'Decoder', 'DynamicRNN', 'GRUCell',
    'GreedyEmbeddingHelper', 'IfElse', 'LSTMCell', 'MultivariateNormalDiag', 'Normal', 'Print', 'RNNCell',
    'SampleEmbeddingHelper', 'StaticRNN', 'Switch', 'TrainingHelper', 'Uniform', 'While', 'abs', 'accuracy', 'acos',
    'adaptive_pool2d', 'adaptive_pool3d', 'add_position_encoding', 'addcmul', 'addmm', 'affine_channel',
    'affine_grid', 'allclose', 'anchor_generator', 'arange', 'argmax', 'argmin', 'argsort', 'array_length',
    'array_read', 'array_write', 'asin', 'assign', 'atan', 'auc', 'autoincreased_step_counter', 'batch_norm',
    'beam_search', 'beam_search_decode', 'bilinear_tensor_product', 'bipartite_match', 'bmm', 'box_clip', 'box_coder',
    'box_decoder_and_assign', 'bpr_loss', 'brelu', 'case', 'cast', 'ceil', 'center_loss', 'chunk_eval', 'clamp',
    'clip', 'clip_by_norm', 'collect_fpn_proposals', 'concat', 'cond', 'continuous_value_model', 'conv2d',
    'conv2d_transpose', 'conv3d', 'conv3d_transpose', 'cos', 'cos_sim', 'cosine_decay', 'create_array',
    'create_global_var', 'create_parameter', 'create_py_reader_by_data', 'create_tensor', 'crf_decoding', 'crop',
    'crop_tensor', 'cross', 'cross_entropy', 'ctc_greedy_decoder', 'cumsum', 'data', 'data_norm', 'deformable_conv',
    'deformable_roi_pooling', 'density_prior_box', 'detection_output', 'diag', 'diag_embed', 'dice_loss', 'dist',
    'distribute_fpn_proposals', 'dot', 'double_buffer', 'dropout', 'dynamic_decode', 'dynamic_gru', 'dynamic_lstm',
    'dynamic_lstmp', 'edit_distance', 'elementwise_add', 'elementwise_div', 'elementwise_equal',
    'elementwise_floordiv', 'elementwise_max', 'elementwise_min', 'elementwise_mod', 'elementwise_mul',
    'elementwise_pow', 'elementwise_sub', 'elu', 'embedding', 'equal', 'erf', 'exp', 'expand', 'expand_as',
    'exponential_decay', 'eye', 'fc', 'fill_constant', 'fill_constant_batch_size_like', 'filter_by_instag', 'flatten',
    'flip', 'floor', 'fsp_matrix', 'full', 'full_like', 'gather', 'gather_nd', 'gather_tree', 'gaussian_random',
    'gaussian_random_batch_size_like', 'gelu', 'generate_mask_labels', 'generate_proposal_labels',
    'generate_proposals', 'get_tensor_from_selected_rows', 'greater_equal', 'greater_than', 'grid_sampler',
    'group_norm', 'gru_unit', 'hard_shrink', 'hard_sigmoid', 'hard_swish', 'has_inf', 'has_nan', 'hash', 'hsigmoid',
    'huber_loss', 'im2sequence', 'image_resize', 'image_resize_short', 'increment', 'index_sample', 'index_select',
    'inplace_abn', 'instance_norm', 'interpolate', 'inverse_time_decay', 'iou_similarity', 'is_empty', 'isfinite',
    'kldiv_loss', 'kron', 'l2_normalize', 'label_smooth', 'layer_norm', 'leaky_relu', 'less_equal', 'less_than',
    'linear_chain_crf', 'linear_lr_warmup', 'linspace', 'load', 'locality_aware_nms', 'lod_append', 'lod_reset',
    'log', 'log1p', 'log_loss', 'log_softmax', 'logical_and', 'logical_not', 'logical_or', 'logical_xor',
    'logsigmoid', 'logsumexp', 'lrn', 'lstm', 'lstm_unit', 'margin_rank_loss', 'matmul', 'matrix_nms', 'maxout',
    'mean', 'mean_iou', 'merge_selected_rows', 'meshgrid', 'mish', 'mse_loss', 'mul', 'multi_box_head',
    'multiclass_nms', 'multiplex', 'natural_exp_decay', 'nce', 'noam_decay', 'nonzero', 'not_equal', 'npair_loss',
    'one_hot', 'ones', 'ones_like', 'pad', 'pad2d', 'pad_constant_like', 'piecewise_decay', 'pixel_shuffle',
    'polygon_box_transform', 'polynomial_decay', 'pool2d', 'pool3d', 'pow', 'prelu', 'prior_box', 'prroi_pool',
    'psroi_pool', 'py_func', 'py_reader', 'randint', 'randn', 'random_crop', 'randperm', 'range', 'rank', 'rank_loss',
    'read_file', 'reciprocal', 'reduce_all', 'reduce_any', 'reduce_max', 'reduce_mean', 'reduce_min', 'reduce_prod',
    'reduce_sum', 'relu', 'relu6', 'reorder_lod_tensor_by_rank', 'reshape', 'resize_bilinear', 'resize_nearest',
    'resize_trilinear', 'retinanet_detection_output', 'retinanet_target_assign', 'reverse', 'rnn', 'roi_align',
    'roi_perspective_transform', 'roi_pool', 'roll', 'round', 'row_conv', 'rpn_target_assign', 'rsqrt',
    'sampled_softmax_with_cross_entropy', 'sampling_id', 'scale', 'scatter', 'scatter_nd', 'scatter_nd_add', 'selu',
    'sequence_concat', 'sequence_conv', 'sequence_enumerate', 'sequence_expand', 'sequence_expand_as',
    'sequence_first_step', 'sequence_last_step', 'sequence_mask', 'sequence_pad', 'sequence_pool', 'sequence_reshape',
    'sequence_reverse', 'sequence_scatter', 'sequence_slice', 'sequence_softmax', 'sequence_unpad', 'shape',
    'shard_index', 'shuffle_channel', 'sigmoid', 'sigmoid_cross_entropy_with_logits', 'sigmoid_focal_loss', 'sign',
    'similarity_focus', 'sin', 'size', 'slice', 'smooth_l1', 'soft_relu', 'softmax', 'softmax_with_cross_entropy',
    'softplus', 'softshrink', 'softsign', 'space_to_depth', 'spectral_norm', 'split', 'sqrt', 'square',
    'square_error_cost', 'squeeze', 'ssd_loss', 'stack', 'stanh', 'strided_slice', 'sum', 'sums', 'swish',
    'switch_case', 't', 'tanh', 'tanh_shrink', 'target_assign', 'teacher_student_sigmoid_loss', 'temporal_shift',
    'tensor_array_to_tensor', 'thresholded_relu', 'topk', 'trace', 'transpose', 'tril', 'triu', 'unfold',
    'uniform_random', 'uniform_random_batch_size_like', 'unique', 'unique_with_counts', 'unsqueeze', 'unstack',
    'warpctc', 'where', 'while_loop', 'yolo_box', 'yolov3_loss', 'zeros', 'zeros_like',
]

facade.make(__name__)
