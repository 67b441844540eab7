"""The API by task: which page of the reference documents a layer or a module.

A test fails for a layer in no task, and for a task that lists an unknown name.
"""

# (page, title, what the page is for, names of penstock.fluid.layers)
LAYERS = [
    (
        "data",
        "Input",
        "Variables that are fed, and readers that feed them.",
        "data py_reader create_py_reader_by_data double_buffer read_file load",
    ),
    (
        "parameters",
        "Parameters and state",
        "Variables that a program keeps between its runs.",
        "create_parameter create_global_var create_tensor autoincreased_step_counter increment",
    ),
    (
        "dense",
        "Dense layers",
        "Layers with parameters, and products of matrices.",
        "fc embedding mul matmul bmm addmm dot cross dist kron bilinear_tensor_product fsp_matrix cos_sim "
        "similarity_focus add_position_encoding trace",
    ),
    (
        "activations",
        "Activations",
        "Nonlinear functions of each element.",
        "relu relu6 brelu leaky_relu prelu elu selu gelu sigmoid logsigmoid hard_sigmoid tanh tanh_shrink stanh "
        "hard_shrink softshrink softplus softsign soft_relu swish hard_swish mish thresholded_relu maxout softmax "
        "log_softmax",
    ),
    (
        "arithmetic",
        "Arithmetic",
        "Functions of each element, and of pairs of elements.",
        "elementwise_add elementwise_sub elementwise_mul elementwise_div elementwise_max "
        "elementwise_min elementwise_pow "
        "elementwise_mod elementwise_floordiv addcmul scale pow clip clamp clip_by_norm sum sums abs "
        "acos asin atan ceil "
        "cos cumsum erf exp floor log log1p reciprocal round rsqrt sign sin sqrt square",
    ),
    (
        "reductions",
        "Reductions and comparisons",
        "Sums and extremes over dimensions, order, comparison and logic.",
        "mean reduce_sum reduce_mean reduce_max reduce_min reduce_prod reduce_all reduce_any "
        "logsumexp argmax argmin "
        "argsort topk equal not_equal less_than less_equal greater_than greater_equal elementwise_equal allclose "
        "logical_and logical_or logical_xor logical_not isfinite has_inf has_nan is_empty",
    ),
    (
        "shapes",
        "Shapes and slices",
        "Reshaping, joining, cutting and padding tensors.",
        "reshape squeeze unsqueeze flatten transpose t concat split stack unstack slice "
        "strided_slice expand expand_as "
        "pad pad2d pad_constant_like crop crop_tensor flip reverse roll meshgrid shape rank size cast assign",
    ),
    (
        "selection",
        "Selection by index",
        "Gathering and scattering rows and elements.",
        "gather gather_nd scatter scatter_nd scatter_nd_add index_select index_sample where nonzero "
        "multiplex unique "
        "unique_with_counts one_hot hash shard_index get_tensor_from_selected_rows merge_selected_rows",
    ),
    (
        "filling",
        "Constants and random numbers",
        "Tensors that are filled by a rule or by a random generator.",
        "fill_constant fill_constant_batch_size_like zeros zeros_like ones ones_like full full_like "
        "arange range linspace "
        "eye diag diag_embed tril triu uniform_random uniform_random_batch_size_like gaussian_random "
        "gaussian_random_batch_size_like randint randn randperm random_crop sampling_id dropout",
    ),
    (
        "convolution",
        "Convolution and pooling",
        "Layers for images and volumes.",
        "conv2d conv2d_transpose conv3d conv3d_transpose deformable_conv pool2d pool3d "
        "adaptive_pool2d adaptive_pool3d "
        "row_conv",
    ),
    (
        "images",
        "Images",
        "Resizing, rearranging and sampling images.",
        "image_resize image_resize_short interpolate resize_bilinear resize_nearest resize_trilinear "
        "affine_channel "
        "affine_grid grid_sampler pixel_shuffle shuffle_channel space_to_depth temporal_shift unfold im2sequence",
    ),
    (
        "normalization",
        "Normalization",
        "Batch, layer, group and instance normalization.",
        "batch_norm inplace_abn layer_norm group_norm instance_norm l2_normalize lrn spectral_norm data_norm",
    ),
    (
        "losses",
        "Losses and metrics",
        "What training minimizes, and what it reports.",
        "cross_entropy softmax_with_cross_entropy sigmoid_cross_entropy_with_logits "
        "square_error_cost mse_loss smooth_l1 "
        "huber_loss log_loss kldiv_loss dice_loss bpr_loss center_loss npair_loss rank_loss margin_rank_loss "
        "teacher_student_sigmoid_loss label_smooth hsigmoid nce sampled_softmax_with_cross_entropy "
        "accuracy auc mean_iou",
    ),
    (
        "rates",
        "Learning-rate schedules",
        "Learning rates that follow the number of the step.",
        "cosine_decay exponential_decay inverse_time_decay linear_lr_warmup natural_exp_decay "
        "noam_decay piecewise_decay "
        "polynomial_decay",
    ),
    (
        "clicks",
        "Click-through models",
        "Layers for features of advertisements and their tags.",
        "continuous_value_model filter_by_instag",
    ),
    (
        "sequences",
        "Sequences",
        "Tensors with levels of detail (LoD): sequences of different lengths in one batch.",
        "sequence_concat sequence_conv sequence_enumerate sequence_expand sequence_expand_as sequence_first_step "
        "sequence_last_step sequence_mask sequence_pad sequence_pool sequence_reshape "
        "sequence_reverse sequence_scatter "
        "sequence_slice sequence_softmax sequence_unpad lod_reset lod_append reorder_lod_tensor_by_rank",
    ),
    (
        "labels",
        "Sequence labels",
        "Conditional random fields, CTC, chunks and edit distance.",
        "linear_chain_crf crf_decoding chunk_eval warpctc ctc_greedy_decoder edit_distance",
    ),
    (
        "recurrent",
        "Recurrent networks",
        "Cells and recurrent layers.",
        "RNNCell GRUCell LSTMCell rnn StaticRNN DynamicRNN dynamic_gru dynamic_lstm dynamic_lstmp "
        "gru_unit lstm lstm_unit",
    ),
    (
        "decoding",
        "Decoding",
        "Beam search, decoders and sampling.",
        "Decoder BasicDecoder BeamSearchDecoder dynamic_decode DecodeHelper TrainingHelper GreedyEmbeddingHelper "
        "SampleEmbeddingHelper beam_search beam_search_decode gather_tree",
    ),
    (
        "control_flow",
        "Control flow",
        "Conditions, loops, tensor arrays and Python functions.",
        "While while_loop cond case switch_case Switch IfElse Print py_func create_array array_read array_write "
        "array_length tensor_array_to_tensor",
    ),
    (
        "boxes",
        "Detection: boxes",
        "Prior boxes, box arithmetic and regions of interest.",
        "anchor_generator density_prior_box multi_box_head prior_box box_clip box_coder box_decoder_and_assign "
        "iou_similarity polygon_box_transform yolo_box deformable_roi_pooling prroi_pool psroi_pool roi_align "
        "roi_perspective_transform roi_pool",
    ),
    (
        "detection",
        "Detection: targets and results",
        "What a detector trains on, and what it returns.",
        "bipartite_match generate_mask_labels generate_proposal_labels retinanet_target_assign rpn_target_assign "
        "sigmoid_focal_loss ssd_loss target_assign yolov3_loss collect_fpn_proposals detection_output "
        "distribute_fpn_proposals generate_proposals locality_aware_nms matrix_nms multiclass_nms "
        "retinanet_detection_output",
    ),
    (
        "distributions",
        "Distributions",
        "Probability distributions with entropy, divergence and samples.",
        "Categorical MultivariateNormalDiag Normal Uniform",
    ),
]

# (page, title, what the page is for, modules whose names begin like one of these)
MODULES = [
    ("native", "Transpile and check", "Penstock's own call, and its errors.", ["penstock"]),
    (
        "programs",
        "Programs and execution",
        "Programs, variables, gradients and the executor.",
        [
            "penstock.fluid",
            "penstock.fluid.framework",
            "penstock.fluid.executor",
            "penstock.fluid.compiler",
            "penstock.fluid.parallel_executor",
            "penstock.fluid.backward",
            "penstock.fluid.core",
            "penstock.fluid.op",
            "penstock.fluid.unique_name",
            "penstock.fluid.param_attr",
            "penstock.fluid.lod_tensor",
            "penstock.fluid.default_scope_funcs",
            "penstock.fluid.layer_helper",
            "penstock.fluid.layer_helper_base",
            "penstock.fluid.proto.framework_pb2",
        ],
    ),
    (
        "training",
        "Training",
        "Optimizers, initial values, regularization, clipping, networks and metrics.",
        [
            "penstock.fluid.optimizer",
            "penstock.fluid.initializer",
            "penstock.fluid.regularizer",
            "penstock.fluid.clip",
            "penstock.fluid.nets",
            "penstock.fluid.metrics",
            "penstock.fluid.evaluator",
            "penstock.fluid.average",
            "penstock.fluid.profiler",
        ],
    ),
    (
        "files",
        "Data and files",
        "Readers, datasets, saved models and parameters.",
        [
            "penstock.fluid.io",
            "penstock.fluid.reader",
            "penstock.fluid.dataset",
            "penstock.fluid.data_feeder",
            "penstock.fluid.data",
            "penstock.fluid.input",
            "penstock.fluid.data_feed_desc",
            "penstock.fluid.incubate.data_generator",
        ],
    ),
    (
        "distribution",
        "Distribution",
        "The transpiler, its modes, the communicator and devices.",
        [
            "penstock.fluid.transpiler",
            "penstock.fluid.communicator",
            "penstock.fluid.distribute_lookup_table",
            "penstock.fluid.trainer_desc",
            "penstock.fluid.trainer_factory",
            "penstock.fluid.device_worker",
        ],
    ),
    ("fleet", "Fleet", "Roles, strategies and jobs in Fleet's words.", ["penstock.fluid.incubate.fleet"]),
    ("hvd", "Horovod's interface", "Ranks that train together by all-reduce.", ["penstock.hvd"]),
    ("kv", "The key-value store", "Arrays by key, with MXNet's interface.", ["penstock.kv"]),
    ("torch", "PyTorch", "Models of PyTorch on several workers.", ["penstock.torch"]),
    ("contrib", "Contributed", "What Fluid keeps in `fluid.contrib`.", ["penstock.fluid.contrib"]),
    ("tools", "Tools", "Plots, compatibility, and what Fluid's scripts import besides.", [""]),
]


def page_of_module(name):
    """The page of the reference that lists a module: the one that names it, or else its longest prefix."""
    best, page = -1, None
    for slug, _, _, prefixes in MODULES:
        for prefix in prefixes:
            inside = (
                prefix == ""
                or name == prefix
                or (name.startswith(prefix + ".") and prefix not in ("penstock", "penstock.fluid"))
            )
            if inside and len(prefix) > best:
                best, page = len(prefix), slug
    return page
