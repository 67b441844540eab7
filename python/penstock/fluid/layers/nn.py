"""Layers with parameters, and the functions commonly used between them."""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.ir.variable import Variable as Variable
    from penstock._src.layers.activation import brelu as brelu, elu as elu, hard_sigmoid as hard_sigmoid
    from penstock._src.layers.activation import hard_swish as hard_swish, leaky_relu as leaky_relu, maxout as maxout
    from penstock._src.layers.activation import mish as mish, prelu as prelu, relu6 as relu6, selu as selu
    from penstock._src.layers.activation import soft_relu as soft_relu, stanh as stanh, swish as swish
    from penstock._src.layers.arithmetic import clip as clip, clip_by_norm as clip_by_norm
    from penstock._src.layers.arithmetic import elementwise_add as elementwise_add
    from penstock._src.layers.arithmetic import elementwise_div as elementwise_div
    from penstock._src.layers.arithmetic import elementwise_floordiv as elementwise_floordiv
    from penstock._src.layers.arithmetic import elementwise_max as elementwise_max
    from penstock._src.layers.arithmetic import elementwise_min as elementwise_min
    from penstock._src.layers.arithmetic import elementwise_mod as elementwise_mod
    from penstock._src.layers.arithmetic import elementwise_mul as elementwise_mul
    from penstock._src.layers.arithmetic import elementwise_pow as elementwise_pow
    from penstock._src.layers.arithmetic import elementwise_sub as elementwise_sub, logical_and as logical_and
    from penstock._src.layers.arithmetic import logical_not as logical_not, logical_or as logical_or
    from penstock._src.layers.arithmetic import logical_xor as logical_xor, mean as mean, pow as pow
    from penstock._src.layers.arithmetic import reduce_all as reduce_all, reduce_any as reduce_any
    from penstock._src.layers.arithmetic import reduce_max as reduce_max, reduce_mean as reduce_mean
    from penstock._src.layers.arithmetic import reduce_min as reduce_min, reduce_prod as reduce_prod
    from penstock._src.layers.arithmetic import reduce_sum as reduce_sum, scale as scale
    from penstock._src.layers.beam_search_ops import gather_tree as gather_tree
    from penstock._src.layers.conv import conv2d as conv2d, conv2d_transpose as conv2d_transpose, conv3d as conv3d
    from penstock._src.layers.conv import conv3d_transpose as conv3d_transpose, deformable_conv as deformable_conv
    from penstock._src.layers.creation import rank as rank, size as size
    from penstock._src.layers.helper import LayerHelper as LayerHelper
    from penstock._src.layers.indexing import gather_nd as gather_nd, hash as hash, index_sample as index_sample
    from penstock._src.layers.indexing import index_select as index_select, multiplex as multiplex
    from penstock._src.layers.indexing import nonzero as nonzero, scatter as scatter, scatter_nd as scatter_nd
    from penstock._src.layers.indexing import scatter_nd_add as scatter_nd_add, shard_index as shard_index
    from penstock._src.layers.indexing import unique as unique, unique_with_counts as unique_with_counts
    from penstock._src.layers.indexing import where as where
    from penstock._src.layers.linalg import addmm as addmm, bmm as bmm, cross as cross, diag_embed as diag_embed
    from penstock._src.layers.linalg import dist as dist, dot as dot
    from penstock._src.layers.loss import label_smooth as label_smooth, log_loss as log_loss, one_hot as one_hot
    from penstock._src.layers.loss import smooth_l1 as smooth_l1
    from penstock._src.layers.manipulation import crop as crop, crop_tensor as crop_tensor, expand_as as expand_as
    from penstock._src.layers.manipulation import flip as flip, meshgrid as meshgrid
    from penstock._src.layers.manipulation import pad_constant_like as pad_constant_like, roll as roll, t as t
    from penstock._src.layers.manipulation import unstack as unstack
    from penstock._src.layers.math import addcmul as addcmul, allclose as allclose, clamp as clamp
    from penstock._src.layers.math import elementwise_equal as elementwise_equal, log1p as log1p
    from penstock._src.layers.math import log_softmax as log_softmax, logsumexp as logsumexp
    from penstock._src.layers.nn import autoincreased_step_counter as autoincreased_step_counter, cos_sim as cos_sim
    from penstock._src.layers.nn import dropout as dropout, embedding as embedding, fc as fc
    from penstock._src.layers.nn import get_tensor_from_selected_rows as get_tensor_from_selected_rows
    from penstock._src.layers.nn import matmul as matmul, merge_selected_rows as merge_selected_rows, mul as mul
    from penstock._src.layers.nn import softmax as softmax, topk as topk
    from penstock._src.layers.normalization import batch_norm as batch_norm, group_norm as group_norm
    from penstock._src.layers.normalization import inplace_abn as inplace_abn, instance_norm as instance_norm
    from penstock._src.layers.normalization import layer_norm as layer_norm
    from penstock._src.layers.norms import l2_normalize as l2_normalize, lrn as lrn, spectral_norm as spectral_norm
    from penstock._src.layers.pool import adaptive_pool2d as adaptive_pool2d, adaptive_pool3d as adaptive_pool3d
    from penstock._src.layers.pool import pool2d as pool2d, pool3d as pool3d
    from penstock._src.layers.py_function import py_func as py_func
    from penstock._src.layers.random import gaussian_random as gaussian_random
    from penstock._src.layers.random import gaussian_random_batch_size_like as gaussian_random_batch_size_like
    from penstock._src.layers.random import randint as randint, randn as randn, random_crop as random_crop
    from penstock._src.layers.random import randperm as randperm, sampling_id as sampling_id
    from penstock._src.layers.random import uniform_random as uniform_random
    from penstock._src.layers.random import uniform_random_batch_size_like as uniform_random_batch_size_like
    from penstock._src.layers.ranking_loss import dice_loss as dice_loss, mean_iou as mean_iou
    from penstock._src.layers.recommendation import continuous_value_model as continuous_value_model
    from penstock._src.layers.recommendation import data_norm as data_norm, filter_by_instag as filter_by_instag
    from penstock._src.layers.reshaping import flatten as flatten, reshape as reshape, split as split
    from penstock._src.layers.reshaping import squeeze as squeeze, transpose as transpose, unsqueeze as unsqueeze
    from penstock._src.layers.resize import image_resize as image_resize, image_resize_short as image_resize_short
    from penstock._src.layers.resize import interpolate as interpolate, resize_bilinear as resize_bilinear
    from penstock._src.layers.resize import resize_nearest as resize_nearest, resize_trilinear as resize_trilinear
    from penstock._src.layers.roi import deformable_roi_pooling as deformable_roi_pooling, prroi_pool as prroi_pool
    from penstock._src.layers.roi import psroi_pool as psroi_pool, roi_align as roi_align, roi_pool as roi_pool
    from penstock._src.layers.sequence import row_conv as row_conv
    from penstock._src.layers.sequence_labeling import chunk_eval as chunk_eval, crf_decoding as crf_decoding
    from penstock._src.layers.sequence_labeling import ctc_greedy_decoder as ctc_greedy_decoder
    from penstock._src.layers.sequence_labeling import linear_chain_crf as linear_chain_crf
    from penstock._src.layers.sequence_padding import im2sequence as im2sequence, lod_append as lod_append
    from penstock._src.layers.sequence_padding import lod_reset as lod_reset
    from penstock._src.layers.similarity import add_position_encoding as add_position_encoding
    from penstock._src.layers.similarity import bilinear_tensor_product as bilinear_tensor_product
    from penstock._src.layers.similarity import fsp_matrix as fsp_matrix, similarity_focus as similarity_focus
    from penstock._src.layers.slicing import expand as expand, gather as gather, pad as pad, pad2d as pad2d
    from penstock._src.layers.slicing import shape as shape, slice as slice, stack as stack
    from penstock._src.layers.slicing import strided_slice as strided_slice
    from penstock._src.layers.tensor import sum as sum
    from penstock._src.layers.unary import log as log, relu as relu, sign as sign
    from penstock._src.layers.vision import affine_channel as affine_channel, affine_grid as affine_grid
    from penstock._src.layers.vision import grid_sampler as grid_sampler, pixel_shuffle as pixel_shuffle
    from penstock._src.layers.vision import shuffle_channel as shuffle_channel, space_to_depth as space_to_depth
    from penstock._src.layers.vision import temporal_shift as temporal_shift, unfold as unfold
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
