"""The layers: each generates a name and adds its ops, in Fluid's order, to the default main program."""

# Written by tools/dev/gen_names.py.
from penstock._src.data.py_reader import (
    create_py_reader_by_data as create_py_reader_by_data, data as data, double_buffer as double_buffer, load as load,
    py_reader as py_reader, read_file as read_file,
)
from penstock._src.layers.activation import (
    brelu as brelu, elu as elu, hard_sigmoid as hard_sigmoid, hard_swish as hard_swish, leaky_relu as leaky_relu,
    maxout as maxout, mish as mish, prelu as prelu, relu6 as relu6, selu as selu, soft_relu as soft_relu,
    stanh as stanh, swish as swish,
)
from penstock._src.layers.arithmetic import (
    clip as clip, clip_by_norm as clip_by_norm, elementwise_add as elementwise_add,
    elementwise_div as elementwise_div, elementwise_floordiv as elementwise_floordiv,
    elementwise_max as elementwise_max, elementwise_min as elementwise_min, elementwise_mod as elementwise_mod,
    elementwise_mul as elementwise_mul, elementwise_pow as elementwise_pow, elementwise_sub as elementwise_sub,
    logical_and as logical_and, logical_not as logical_not, logical_or as logical_or, logical_xor as logical_xor,
    mean as mean, pow as pow, reduce_all as reduce_all, reduce_any as reduce_any, reduce_max as reduce_max,
    reduce_mean as reduce_mean, reduce_min as reduce_min, reduce_prod as reduce_prod, reduce_sum as reduce_sum,
    scale as scale,
)
from penstock._src.layers.beam_search_decoder import BeamSearchDecoder as BeamSearchDecoder
from penstock._src.layers.beam_search_ops import (
    beam_search as beam_search, beam_search_decode as beam_search_decode, gather_tree as gather_tree,
)
from penstock._src.layers.comparison import (
    equal as equal, greater_equal as greater_equal, greater_than as greater_than, increment as increment,
    is_empty as is_empty, less_equal as less_equal, less_than as less_than, not_equal as not_equal,
)
from penstock._src.layers.control_flow import (
    Print as Print, Switch as Switch, case as case, cond as cond, switch_case as switch_case,
)
from penstock._src.layers.conv import (
    conv2d as conv2d, conv2d_transpose as conv2d_transpose, conv3d as conv3d, conv3d_transpose as conv3d_transpose,
    deformable_conv as deformable_conv,
)
from penstock._src.layers.creation import (
    arange as arange, create_global_var as create_global_var, create_parameter as create_parameter,
    create_tensor as create_tensor, fill_constant_batch_size_like as fill_constant_batch_size_like, full as full,
    full_like as full_like, linspace as linspace, ones_like as ones_like, rank as rank, size as size,
    zeros_like as zeros_like,
)
from penstock._src.layers.decode_helpers import (
    DecodeHelper as DecodeHelper, GreedyEmbeddingHelper as GreedyEmbeddingHelper,
    SampleEmbeddingHelper as SampleEmbeddingHelper, TrainingHelper as TrainingHelper,
)
from penstock._src.layers.decoders import (
    BasicDecoder as BasicDecoder, Decoder as Decoder, dynamic_decode as dynamic_decode,
)
from penstock._src.layers.detection_boxes import (
    box_clip as box_clip, box_coder as box_coder, box_decoder_and_assign as box_decoder_and_assign,
    iou_similarity as iou_similarity, polygon_box_transform as polygon_box_transform, yolo_box as yolo_box,
)
from penstock._src.layers.detection_nms import (
    locality_aware_nms as locality_aware_nms, matrix_nms as matrix_nms, multiclass_nms as multiclass_nms,
)
from penstock._src.layers.detection_priors import (
    anchor_generator as anchor_generator, density_prior_box as density_prior_box, multi_box_head as multi_box_head,
    prior_box as prior_box,
)
from penstock._src.layers.detection_results import (
    detection_output as detection_output, generate_proposals as generate_proposals,
    retinanet_detection_output as retinanet_detection_output,
)
from penstock._src.layers.detection_targets import (
    bipartite_match as bipartite_match, sigmoid_focal_loss as sigmoid_focal_loss, ssd_loss as ssd_loss,
    target_assign as target_assign, yolov3_loss as yolov3_loss,
)
from penstock._src.layers.distributions import Categorical as Categorical, Normal as Normal, Uniform as Uniform
from penstock._src.layers.dynamic_rnn import DynamicRNN as DynamicRNN
from penstock._src.layers.feature_pyramid import (
    collect_fpn_proposals as collect_fpn_proposals, distribute_fpn_proposals as distribute_fpn_proposals,
)
from penstock._src.layers.if_else import IfElse as IfElse
from penstock._src.layers.indexing import (
    gather_nd as gather_nd, hash as hash, index_sample as index_sample, index_select as index_select,
    multiplex as multiplex, nonzero as nonzero, scatter as scatter, scatter_nd as scatter_nd,
    scatter_nd_add as scatter_nd_add, shard_index as shard_index, unique as unique,
    unique_with_counts as unique_with_counts, where as where,
)
from penstock._src.layers.learning_rate_scheduler import (
    cosine_decay as cosine_decay, exponential_decay as exponential_decay, inverse_time_decay as inverse_time_decay,
    linear_lr_warmup as linear_lr_warmup, natural_exp_decay as natural_exp_decay, noam_decay as noam_decay,
    piecewise_decay as piecewise_decay, polynomial_decay as polynomial_decay,
)
from penstock._src.layers.linalg import (
    addmm as addmm, bmm as bmm, cross as cross, diag as diag, diag_embed as diag_embed, dist as dist, dot as dot,
    eye as eye, kron as kron, trace as trace, tril as tril, triu as triu,
)
from penstock._src.layers.loops import While as While, while_loop as while_loop
from penstock._src.layers.loss import (
    cross_entropy as cross_entropy, huber_loss as huber_loss, kldiv_loss as kldiv_loss, label_smooth as label_smooth,
    log_loss as log_loss, margin_rank_loss as margin_rank_loss, one_hot as one_hot, rank_loss as rank_loss,
    sigmoid_cross_entropy_with_logits as sigmoid_cross_entropy_with_logits, smooth_l1 as smooth_l1,
    softmax_with_cross_entropy as softmax_with_cross_entropy, square_error_cost as square_error_cost,
)
from penstock._src.layers.manipulation import (
    crop as crop, crop_tensor as crop_tensor, expand_as as expand_as, flip as flip, meshgrid as meshgrid,
    pad_constant_like as pad_constant_like, roll as roll, t as t, unstack as unstack,
)
from penstock._src.layers.math import (
    addcmul as addcmul, allclose as allclose, clamp as clamp, elementwise_equal as elementwise_equal, log1p as log1p,
    log_softmax as log_softmax, logsumexp as logsumexp,
)
from penstock._src.layers.metric import accuracy as accuracy, auc as auc
from penstock._src.layers.multivariate_normal import MultivariateNormalDiag as MultivariateNormalDiag
from penstock._src.layers.nn import (
    autoincreased_step_counter as autoincreased_step_counter, cos_sim as cos_sim, dropout as dropout,
    embedding as embedding, fc as fc, get_tensor_from_selected_rows as get_tensor_from_selected_rows,
    matmul as matmul, merge_selected_rows as merge_selected_rows, mul as mul, softmax as softmax, topk as topk,
)
from penstock._src.layers.normalization import (
    batch_norm as batch_norm, group_norm as group_norm, inplace_abn as inplace_abn, instance_norm as instance_norm,
    layer_norm as layer_norm,
)
from penstock._src.layers.norms import l2_normalize as l2_normalize, lrn as lrn, spectral_norm as spectral_norm
from penstock._src.layers.pool import (
    adaptive_pool2d as adaptive_pool2d, adaptive_pool3d as adaptive_pool3d, pool2d as pool2d, pool3d as pool3d,
)
from penstock._src.layers.py_function import py_func as py_func
from penstock._src.layers.random import (
    gaussian_random as gaussian_random, gaussian_random_batch_size_like as gaussian_random_batch_size_like,
    randint as randint, randn as randn, random_crop as random_crop, randperm as randperm, sampling_id as sampling_id,
    uniform_random as uniform_random, uniform_random_batch_size_like as uniform_random_batch_size_like,
)
from penstock._src.layers.ranking_loss import (
    bpr_loss as bpr_loss, center_loss as center_loss, dice_loss as dice_loss, mean_iou as mean_iou,
    mse_loss as mse_loss, npair_loss as npair_loss, teacher_student_sigmoid_loss as teacher_student_sigmoid_loss,
)
from penstock._src.layers.rcnn_targets import (
    generate_mask_labels as generate_mask_labels, generate_proposal_labels as generate_proposal_labels,
    retinanet_target_assign as retinanet_target_assign, rpn_target_assign as rpn_target_assign,
)
from penstock._src.layers.recommendation import (
    continuous_value_model as continuous_value_model, data_norm as data_norm, filter_by_instag as filter_by_instag,
)
from penstock._src.layers.recurrent import (
    dynamic_gru as dynamic_gru, dynamic_lstm as dynamic_lstm, dynamic_lstmp as dynamic_lstmp, gru_unit as gru_unit,
    lstm as lstm, lstm_unit as lstm_unit,
)
from penstock._src.layers.reshaping import (
    flatten as flatten, reshape as reshape, split as split, squeeze as squeeze, transpose as transpose,
    unsqueeze as unsqueeze,
)
from penstock._src.layers.resize import (
    image_resize as image_resize, image_resize_short as image_resize_short, interpolate as interpolate,
    resize_bilinear as resize_bilinear, resize_nearest as resize_nearest, resize_trilinear as resize_trilinear,
)
from penstock._src.layers.rnn_cells import GRUCell as GRUCell, LSTMCell as LSTMCell, RNNCell as RNNCell
from penstock._src.layers.roi import (
    deformable_roi_pooling as deformable_roi_pooling, prroi_pool as prroi_pool, psroi_pool as psroi_pool,
    roi_align as roi_align, roi_perspective_transform as roi_perspective_transform, roi_pool as roi_pool,
)
from penstock._src.layers.sampled_softmax import (
    hsigmoid as hsigmoid, nce as nce, sampled_softmax_with_cross_entropy as sampled_softmax_with_cross_entropy,
)
from penstock._src.layers.search import (
    argmax as argmax, argmin as argmin, argsort as argsort, has_inf as has_inf, has_nan as has_nan,
    isfinite as isfinite,
)
from penstock._src.layers.sequence import (
    row_conv as row_conv, sequence_concat as sequence_concat, sequence_conv as sequence_conv,
    sequence_enumerate as sequence_enumerate, sequence_expand as sequence_expand,
    sequence_expand_as as sequence_expand_as, sequence_first_step as sequence_first_step,
    sequence_last_step as sequence_last_step, sequence_pool as sequence_pool, sequence_reshape as sequence_reshape,
    sequence_reverse as sequence_reverse, sequence_scatter as sequence_scatter, sequence_slice as sequence_slice,
    sequence_softmax as sequence_softmax,
)
from penstock._src.layers.sequence_labeling import (
    chunk_eval as chunk_eval, crf_decoding as crf_decoding, ctc_greedy_decoder as ctc_greedy_decoder,
    edit_distance as edit_distance, linear_chain_crf as linear_chain_crf, warpctc as warpctc,
)
from penstock._src.layers.sequence_padding import (
    im2sequence as im2sequence, lod_append as lod_append, lod_reset as lod_reset, sequence_mask as sequence_mask,
    sequence_pad as sequence_pad, sequence_unpad as sequence_unpad,
)
from penstock._src.layers.similarity import (
    add_position_encoding as add_position_encoding, bilinear_tensor_product as bilinear_tensor_product,
    fsp_matrix as fsp_matrix, similarity_focus as similarity_focus,
)
from penstock._src.layers.slicing import (
    expand as expand, gather as gather, pad as pad, pad2d as pad2d, reverse as reverse, shape as shape,
    slice as slice, stack as stack, strided_slice as strided_slice,
)
from penstock._src.layers.static_rnn import StaticRNN as StaticRNN
from penstock._src.layers.tensor import (
    assign as assign, cast as cast, concat as concat, fill_constant as fill_constant, ones as ones, range as range,
    sum as sum, sums as sums, zeros as zeros,
)
from penstock._src.layers.tensor_array import (
    array_length as array_length, array_read as array_read, array_write as array_write, create_array as create_array,
    reorder_lod_tensor_by_rank as reorder_lod_tensor_by_rank, tensor_array_to_tensor as tensor_array_to_tensor,
)
from penstock._src.layers.unary import (
    abs as abs, acos as acos, asin as asin, atan as atan, ceil as ceil, cos as cos, cumsum as cumsum, erf as erf,
    exp as exp, floor as floor, gelu as gelu, hard_shrink as hard_shrink, log as log, logsigmoid as logsigmoid,
    reciprocal as reciprocal, relu as relu, round as round, rsqrt as rsqrt, sigmoid as sigmoid, sign as sign,
    sin as sin, softplus as softplus, softshrink as softshrink, softsign as softsign, sqrt as sqrt, square as square,
    tanh as tanh, tanh_shrink as tanh_shrink, thresholded_relu as thresholded_relu,
)
from penstock._src.layers.vision import (
    affine_channel as affine_channel, affine_grid as affine_grid, grid_sampler as grid_sampler,
    pixel_shuffle as pixel_shuffle, shuffle_channel as shuffle_channel, space_to_depth as space_to_depth,
    temporal_shift as temporal_shift, unfold as unfold,
)
from penstock._src.names import facade
from penstock.fluid.layers import (
    collective as collective, control_flow as control_flow, detection as detection, device as device,
    distributions as distributions, io as io, layer_function_generator as layer_function_generator,
    learning_rate_scheduler as learning_rate_scheduler, loss as loss, math_op_patch as math_op_patch,
    metric_op as metric_op, nn as nn, ops as ops, sequence_lod as sequence_lod, tensor as tensor, utils as utils,
)
from penstock.fluid.layers.rnn import rnn as rnn

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

facade.make(__name__, elsewhere=__all__)
