"""What Fluid 1.8 has and is not built yet, so that asking for it says so; a test holds the lists to be exact.

    __getattr__ = getattr_of(__name__)    # at the end of a module
"""

import difflib
import sys


def list_of(module):
    """The list of NAMES that the module 'penstock.fluid.layers.io' goes by."""
    name = module.partition('.')[2]
    return 'fluid.layers' if name.startswith('fluid.layers.') else name


LAYERS = 'penstock.fluid.layers'


def getattr_of(module):
    """What Python calls for an attribute that the module lacks.

    Fluid's scripts reach a layer by the module that defines it there, such as fluid.layers.nn.reduce_sum, so a module
    of layers answers with every layer, whichever module defines it here.
    """

    def missing(name):
        if module.startswith(LAYERS + '.') and not name.startswith('__'):
            layers = vars(sys.modules[LAYERS])
            if name in layers:
                return layers[name]
        message = '%s has no %s' % (module, name)
        if not name.startswith('_'):
            listed = NAMES.get(list_of(module), ())
            if name in listed:
                message = '%s.%s is part of Fluid 1.8, but not built yet' % (module, name)
            else:
                there = [known for known in vars(sys.modules[module]) if not known.startswith('_')]
                near = difflib.get_close_matches(name, there + list(listed))
                message += '; did you mean %s?' % ', '.join(near) if near else ''
        raise AttributeError(message)

    return missing


def _names(lists):
    return {module: frozenset(text.split()) for module, text in lists.items()}


# One name a line where many are added at a time.
NAMES = _names({
    'fluid': '''
        ComplexVariable LoDTensorArray one_hot
    ''',
    'fluid.evaluator': '''
        DetectionMAP
    ''',
    'fluid.framework': '''
        ComplexVariable
    ''',
    'fluid.input': '''
        one_hot
    ''',
    'fluid.layers': '''
        BasicDecoder
        BeamSearchDecoder
        Categorical
        DecodeHelper
        Decoder
        GreedyEmbeddingHelper
        MultivariateNormalDiag
        Normal
        SampleEmbeddingHelper
        TrainingHelper
        Uniform
        acos
        adaptive_pool2d
        adaptive_pool3d
        add_position_encoding
        addcmul
        addmm
        affine_channel
        affine_grid
        allclose
        anchor_generator
        arange
        asin
        bilinear_tensor_product
        bipartite_match
        bmm
        box_clip
        box_coder
        box_decoder_and_assign
        bpr_loss
        brelu
        center_loss
        clamp
        collect_fpn_proposals
        continuous_value_model
        conv3d
        conv3d_transpose
        crop
        crop_tensor
        cross
        data_norm
        deformable_conv
        deformable_roi_pooling
        density_prior_box
        detection_output
        diag
        diag_embed
        dice_loss
        dist
        distribute_fpn_proposals
        dot
        dynamic_decode
        elementwise_equal
        erf
        expand_as
        eye
        filter_by_instag
        flip
        fsp_matrix
        full
        full_like
        gather_nd
        gaussian_random_batch_size_like
        generate_mask_labels
        generate_proposal_labels
        generate_proposals
        grid_sampler
        group_norm
        hard_shrink
        hash
        image_resize
        image_resize_short
        index_sample
        index_select
        inplace_abn
        instance_norm
        interpolate
        iou_similarity
        kron
        linspace
        locality_aware_nms
        log1p
        log_softmax
        logsumexp
        matrix_nms
        mean_iou
        meshgrid
        mish
        mse_loss
        multi_box_head
        multiclass_nms
        multiplex
        nonzero
        npair_loss
        ones_like
        pad_constant_like
        pixel_shuffle
        polygon_box_transform
        pool3d
        prior_box
        prroi_pool
        psroi_pool
        randint
        randn
        random_crop
        randperm
        rank
        reduce_all
        reduce_any
        resize_bilinear
        resize_nearest
        resize_trilinear
        retinanet_detection_output
        retinanet_target_assign
        roi_align
        roi_perspective_transform
        roi_pool
        roll
        rpn_target_assign
        sampling_id
        scatter
        scatter_nd
        scatter_nd_add
        selu
        shard_index
        shuffle_channel
        sigmoid_focal_loss
        similarity_focus
        size
        soft_relu
        softshrink
        space_to_depth
        spectral_norm
        ssd_loss
        t
        target_assign
        teacher_student_sigmoid_loss
        temporal_shift
        thresholded_relu
        trace
        tril
        triu
        unfold
        uniform_random_batch_size_like
        unique
        unique_with_counts
        unstack
        where
        yolo_box
        yolov3_loss
        zeros_like
    ''',
    'fluid.metrics': '''
        DetectionMAP
    ''',
    'fluid.optimizer': '''
        RecomputeOptimizer
    ''',
})
