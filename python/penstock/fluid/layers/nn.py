"""Layers with parameters, and the functions commonly used between them."""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.ir.variable import Variable as Variable
    from penstock._src.layers.activation import brelu, elu, hard_sigmoid, hard_swish, leaky_relu, maxout, mish, prelu
    from penstock._src.layers.activation import relu6, selu, soft_relu, stanh, swish
    from penstock._src.layers.arithmetic import clip, clip_by_norm, elementwise_add, elementwise_div
    from penstock._src.layers.arithmetic import elementwise_floordiv, elementwise_max, elementwise_min
    from penstock._src.layers.arithmetic import elementwise_mod, elementwise_mul, elementwise_pow, elementwise_sub
    from penstock._src.layers.arithmetic import logical_and, logical_not, logical_or, logical_xor, mean, pow
    from penstock._src.layers.arithmetic import reduce_all, reduce_any, reduce_max, reduce_mean, reduce_min
    from penstock._src.layers.arithmetic import reduce_prod, reduce_sum, scale
    from penstock._src.layers.beam_search_ops import gather_tree
    from penstock._src.layers.conv import conv2d, conv2d_transpose, conv3d, conv3d_transpose, deformable_conv
    from penstock._src.layers.creation import rank, size
    from penstock._src.layers.helper import LayerHelper as LayerHelper
    from penstock._src.layers.indexing import gather_nd, hash, index_sample, index_select, multiplex, nonzero
    from penstock._src.layers.indexing import scatter, scatter_nd, scatter_nd_add, shard_index, unique
    from penstock._src.layers.indexing import unique_with_counts, where
    from penstock._src.layers.linalg import addmm, bmm, cross, diag_embed, dist, dot
    from penstock._src.layers.loss import label_smooth, log_loss, one_hot, smooth_l1
    from penstock._src.layers.manipulation import crop, crop_tensor, expand_as, flip, meshgrid, pad_constant_like
    from penstock._src.layers.manipulation import roll, t, unstack
    from penstock._src.layers.math import addcmul, allclose, clamp, elementwise_equal, log1p, log_softmax, logsumexp
    from penstock._src.layers.nn import autoincreased_step_counter, cos_sim, dropout, embedding, fc
    from penstock._src.layers.nn import get_tensor_from_selected_rows, matmul, merge_selected_rows, mul, softmax, topk
    from penstock._src.layers.normalization import batch_norm, group_norm, inplace_abn, instance_norm, layer_norm
    from penstock._src.layers.norms import l2_normalize, lrn, spectral_norm
    from penstock._src.layers.pool import adaptive_pool2d, adaptive_pool3d, pool2d, pool3d
    from penstock._src.layers.py_function import py_func
    from penstock._src.layers.random import gaussian_random, gaussian_random_batch_size_like, randint, randn
    from penstock._src.layers.random import random_crop, randperm, sampling_id, uniform_random
    from penstock._src.layers.random import uniform_random_batch_size_like
    from penstock._src.layers.ranking_loss import dice_loss, mean_iou
    from penstock._src.layers.recommendation import continuous_value_model, data_norm, filter_by_instag
    from penstock._src.layers.reshaping import flatten, reshape, split, squeeze, transpose, unsqueeze
    from penstock._src.layers.resize import image_resize, image_resize_short, interpolate, resize_bilinear
    from penstock._src.layers.resize import resize_nearest, resize_trilinear
    from penstock._src.layers.roi import deformable_roi_pooling, prroi_pool, psroi_pool, roi_align, roi_pool
    from penstock._src.layers.sequence import row_conv
    from penstock._src.layers.sequence_labeling import chunk_eval, crf_decoding, ctc_greedy_decoder, linear_chain_crf
    from penstock._src.layers.sequence_padding import im2sequence, lod_append, lod_reset
    from penstock._src.layers.similarity import add_position_encoding, bilinear_tensor_product, fsp_matrix
    from penstock._src.layers.similarity import similarity_focus
    from penstock._src.layers.slicing import expand, gather, pad, pad2d, shape, slice, stack, strided_slice
    from penstock._src.layers.tensor import sum
    from penstock._src.layers.unary import log, relu, sign
    from penstock._src.layers.vision import affine_channel, affine_grid, grid_sampler, pixel_shuffle, shuffle_channel
    from penstock._src.layers.vision import space_to_depth, temporal_shift, unfold
    from penstock._src.parameters.initializer import Constant as Constant

__all__ = [
    'adaptive_pool2d', 'adaptive_pool3d', 'add_position_encoding', 'addcmul', 'addmm', 'affine_channel',
    'affine_grid', 'allclose', 'autoincreased_step_counter', 'batch_norm', 'bilinear_tensor_product', 'bmm', 'brelu',
    'chunk_eval', 'clamp', 'clip', 'clip_by_norm', 'continuous_value_model', 'conv2d', 'conv2d_transpose', 'conv3d',
    'conv3d_transpose', 'cos_sim', 'crf_decoding', 'crop', 'crop_tensor', 'cross', 'ctc_greedy_decoder', 'data_norm',
    'deformable_conv', 'deformable_roi_pooling', 'diag_embed', 'dice_loss', 'dist', 'dot', 'dropout',
    'elementwise_add', 'elementwise_div', 'elementwise_equal', 'elementwise_floordiv', 'elementwise_max',
    'elementwise_min', 'elementwise_mod', 'elementwise_mul', 'elementwise_pow', 'elementwise_sub', 'elu', 'embedding',
    'expand', 'expand_as', 'fc', 'filter_by_instag', 'flatten', 'flip', 'fsp_matrix', 'gather', 'gather_nd',
    'gather_tree', 'gaussian_random', 'gaussian_random_batch_size_like', 'get_tensor_from_selected_rows',
    'grid_sampler', 'group_norm', 'hard_sigmoid', 'hard_swish', 'hash', 'im2sequence', 'image_resize',
    'image_resize_short', 'index_sample', 'index_select', 'inplace_abn', 'instance_norm', 'interpolate',
    'l2_normalize', 'label_smooth', 'layer_norm', 'leaky_relu', 'linear_chain_crf', 'lod_append', 'lod_reset', 'log',
    'log1p', 'log_loss', 'log_softmax', 'logical_and', 'logical_not', 'logical_or', 'logical_xor', 'logsumexp', 'lrn',
    'matmul', 'maxout', 'mean', 'mean_iou', 'merge_selected_rows', 'meshgrid', 'mish', 'mul', 'multiplex', 'nonzero',
    'one_hot', 'pad', 'pad2d', 'pad_constant_like', 'pixel_shuffle', 'pool2d', 'pool3d', 'pow', 'prelu', 'prroi_pool',
    'psroi_pool', 'py_func', 'randint', 'randn', 'random_crop', 'randperm', 'rank', 'reduce_all', 'reduce_any',
    'reduce_max', 'reduce_mean', 'reduce_min', 'reduce_prod', 'reduce_sum', 'relu', 'relu6', 'reshape',
    'resize_bilinear', 'resize_nearest', 'resize_trilinear', 'roi_align', 'roi_pool', 'roll', 'row_conv',
    'sampling_id', 'scale', 'scatter', 'scatter_nd', 'scatter_nd_add', 'selu', 'shape', 'shard_index',
    'shuffle_channel', 'sign', 'similarity_focus', 'size', 'slice', 'smooth_l1', 'soft_relu', 'softmax',
    'space_to_depth', 'spectral_norm', 'split', 'squeeze', 'stack', 'stanh', 'strided_slice', 'sum', 'swish', 't',
    'temporal_shift', 'topk', 'transpose', 'unfold', 'uniform_random', 'uniform_random_batch_size_like', 'unique',
    'unique_with_counts', 'unsqueeze', 'unstack', 'where',
]

facade.make(__name__)
