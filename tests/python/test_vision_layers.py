"""Layers on images, volumes and regions agree with NumPy."""

import itertools

import numpy as np
import pytest
from test_layers import run_once

RANDOM = np.random.RandomState(7)
IMAGE = RANDOM.uniform(-1, 1, (2, 4, 5, 6)).astype("float32")
VOLUME = RANDOM.uniform(-1, 1, (2, 2, 4, 5, 3)).astype("float32")
# Two regions of the first image, one of the second.
REGIONS = np.array([[0.3, 0.6, 3.2, 4.4], [1.4, 0.2, 4.3, 2.7], [-0.7, 1.3, 2.6, 5.8]], "float32")
OF_IMAGE = (0, 0, 1)


def run(fluid, layer, **feeds):
    """The layer's first result for data of these values, and its declared shape."""
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        given = {name: fluid.data(name, value.shape, str(value.dtype)) for name, value in feeds.items()}
        out = layer(fluid.layers, **given)
        got = run_once(fluid, feeds, [out])[0]
    assert len(out.shape) == got.ndim and all(had in (-1, has) for had, has in zip(out.shape, got.shape))
    return got


def agree(got, expected):
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)


def cubic(t):
    """The weights of the pixels at -1, 0, 1 and 2 of a place t behind pixel 0."""
    d = np.abs(np.array([t + 1, t, 1 - t, 2 - t]))
    near, far = 1.25 * d**3 - 2.25 * d**2 + 1, -0.75 * (d**3 - 5 * d**2 + 8 * d - 4)
    return np.where(d <= 1, near, far)


def matrix(method, size, out, corners, mode):
    """The matrix that resizes `size` elements to `out`."""
    made = np.zeros((out, size))
    ratio = 0 if out == 1 else (size - 1) / (out - 1) if corners else size / out
    for i in range(out):
        place, halved = ratio * i, ratio * (i + 0.5) - 0.5
        if method == "NEAREST":
            made[i, min(int(place + 0.5 if corners else place), size - 1)] = 1
        elif method == "BICUBIC":
            place = place if corners else halved
            for j, weight in enumerate(cubic(place - np.floor(place))):
                made[i, np.clip(int(np.floor(place)) - 1 + j, 0, size - 1)] += weight
        else:
            place = max(halved, 0) if mode == 0 and not corners else place
            made[i, int(place)] += 1 - (place - int(place))
            made[i, min(int(place) + 1, size - 1)] += place - int(place)
    return made


@pytest.mark.parametrize("method", ["BILINEAR", "NEAREST", "BICUBIC"])
@pytest.mark.parametrize("corners, mode", [(True, 1), (False, 0), (False, 1)])
def test_interpolation_weights_neighbours_along_each_axis(fluid, method, corners, mode):
    high, wide = matrix(method, 5, 9, corners, mode), matrix(method, 6, 4, corners, mode)
    got = run(
        fluid, lambda L, x: L.interpolate(x, [9, 4], resample=method, align_corners=corners, align_mode=mode), x=IMAGE
    )
    agree(got, np.einsum("ih,jw,nchw->ncij", high, wide, IMAGE))


def interpolated(fluid, x, out, **attrs):
    """The op's result for a tensor with an element type that layers reject."""
    scope, place = fluid.core.Scope(), fluid.CPUPlace()
    scope.var("x").get_tensor().set(x, place)
    method = attrs["interp_method"]
    op = fluid.op.Operator(method + "_interp", X="x", Out="out", out_h=out[0], out_w=out[1], **attrs)
    op.run(scope, place)
    return np.array(scope.find_var("out").get_tensor())


@pytest.mark.parametrize("method", ["bilinear", "nearest"])
def test_bytes_are_interpolated_as_floats_and_truncated(fluid, method):
    x = RANDOM.randint(0, 256, (2, 3, 5, 6)).astype("uint8")
    x[0, 0] = 255
    high, wide = matrix(method.upper(), 5, 9, True, 1), matrix(method.upper(), 6, 4, True, 1)
    got = interpolated(fluid, x, (9, 4), interp_method=method)
    expected = np.einsum("ih,jw,nchw->ncij", high, wide, x.astype("float64"))
    assert got.dtype == np.uint8 and (got[0, 0] >= 254).all()
    assert (got.astype("float64") - expected < 1e-3).all() and (expected - got < 1 + 1e-3).all()


def test_interpolation_of_doubles_uses_double_weights(fluid):
    x = RANDOM.uniform(-1, 1, (2, 3, 9, 9))
    high = matrix("BICUBIC", 9, 17, True, 1)  # the places are whole halves, so that only weights can be rounded
    got = interpolated(fluid, x, (17, 17), interp_method="bicubic")
    np.testing.assert_allclose(got, np.einsum("ih,jw,nchw->ncij", high, high, x), rtol=0, atol=1e-14)


def test_trilinear_interpolation_equals_numpy(fluid):
    parts = [matrix("TRILINEAR", size, out, False, 0) for size, out in ((4, 6), (5, 3), (3, 7))]
    got = run(fluid, lambda L, x: L.resize_trilinear(x, [6, 3, 7], align_corners=False, align_mode=0), x=VOLUME)
    agree(got, np.einsum("id,jh,kw,ncdhw->ncijk", *parts, VOLUME))


@pytest.mark.parametrize(
    "size",
    [
        lambda L, x, s: L.resize_nearest(x, L.cast(s, "int32")),
        lambda L, x, s: L.resize_nearest(x, [L.cast(L.slice(s, [0], [0], [1]), "int32"), 4]),
        lambda L, x, s: L.resize_nearest(x, scale=L.slice(s, [0], [0], [1]) / 5.0),
        lambda L, x, s: L.resize_nearest(x, [3, 3], actual_shape=L.cast(s, "int32")),
    ],
)
@pytest.mark.filterwarnings("ignore:actual_shape")
def test_the_size_of_an_interpolation_may_come_from_variables(fluid, size):
    sizes = np.array([10.0, 4.0], "float32")
    got = run(fluid, size, x=IMAGE, s=sizes)
    wide = 12 if got.shape[3] == 12 else 4  # a scale of 2
    parts = matrix("NEAREST", 5, 10, True, 1), matrix("NEAREST", 6, wide, True, 1)
    agree(got, np.einsum("ih,jw,nchw->ncij", *parts, IMAGE))


def test_nhwc_and_resize_short_are_supported(fluid):
    last = IMAGE.transpose(0, 2, 3, 1).copy()
    got = run(fluid, lambda L, x: L.resize_bilinear(x, [3, 8], data_format="NHWC"), x=last)
    parts = matrix("BILINEAR", 5, 3, True, 1), matrix("BILINEAR", 6, 8, True, 1)
    agree(got, np.einsum("ih,jw,nchw->nijc", *parts, IMAGE))
    assert run(fluid, lambda L, y: L.image_resize_short(y, 10), y=IMAGE).shape == (2, 4, 10, 12)


def test_pixel_rearrangements_equal_numpy(fluid):
    x = IMAGE[:, :, :4].copy()
    agree(
        run(fluid, lambda L, a: L.pixel_shuffle(a, 2), a=x),
        x.reshape(2, 1, 2, 2, 4, 6).transpose(0, 1, 4, 2, 5, 3).reshape(2, 1, 8, 12),
    )
    agree(run(fluid, lambda L, b: L.shuffle_channel(b, 2), b=x), x[:, [0, 2, 1, 3]])
    seen = np.zeros((2, 1, 8, 12))  # the memory of the result, as larger images
    for k in range(4):
        seen[:, 0, k // 2 :: 2, k % 2 :: 2] = x[:, k]
    agree(run(fluid, lambda L, c: L.space_to_depth(c, 2), c=x), seen.reshape(2, 16, 2, 3))
    frames = np.zeros((2, 3, 4, 2, 2), "float32")
    videos = RANDOM.uniform(-1, 1, frames.shape).astype("float32")
    frames[:, 1:, :1], frames[:, :-1, 1:2], frames[:, :, 2:] = videos[:, :-1, :1], videos[:, 1:, 1:2], videos[:, :, 2:]
    got = run(fluid, lambda L, d: L.temporal_shift(d, 3, 0.25), d=videos.reshape(6, 4, 2, 2))
    agree(got, frames.reshape(6, 4, 2, 2))


def test_unfold_returns_windows_as_columns(fluid):
    got = run(fluid, lambda L, x: L.unfold(x, [2, 3], [2, 1], [1, 0, 0, 1], [1, 2]), x=IMAGE)
    padded = np.pad(IMAGE, ((0, 0), (0, 0), (1, 0), (0, 1)))
    windows = [padded[:, :, y : y + 2, x : x + 5 : 2].reshape(2, -1) for y in (0, 2, 4) for x in (0, 1, 2)]
    agree(got, np.stack(windows, 2))


def bilinear(plane, y, x):
    """The plane at a place between pixels; 0 outside."""
    top, left, total = int(np.floor(y)), int(np.floor(x)), 0.0
    for i, j in itertools.product((top, top + 1), (left, left + 1)):
        if 0 <= i < plane.shape[0] and 0 <= j < plane.shape[1]:
            total += plane[i, j] * (1 - abs(y - i)) * (1 - abs(x - j))
    return total


def test_affine_and_grid_sampling_equal_numpy(fluid):
    theta = np.array([[[0.8, 0.3, 0.1], [-0.2, 1.1, 0.05]], [[1, 0, 0], [0, 1, 0]]], "float32")
    grid = run(fluid, lambda L, t: L.affine_grid(t, [2, 4, 3, 4]), t=theta)
    y, x = np.meshgrid(np.linspace(-1, 1, 3), np.linspace(-1, 1, 4), indexing="ij")
    agree(grid, np.einsum("nij,hwj->nhwi", theta, np.stack([x, y, np.ones_like(x)], -1)))
    got = run(fluid, lambda L, i, g: L.grid_sampler(i, g), i=IMAGE, g=grid)
    for n, c, h, w in np.ndindex(got.shape):
        place = (grid[n, h, w, 1] + 1) / 2 * 4, (grid[n, h, w, 0] + 1) / 2 * 5
        assert abs(got[n, c, h, w] - bilinear(IMAGE[n, c], *place)) < 1e-4


def test_group_instance_and_spectral_norm_equal_numpy(fluid):
    constant = fluid.initializer.Constant
    scaled = {
        "param_attr": fluid.ParamAttr(initializer=constant(0.7)),
        "bias_attr": fluid.ParamAttr(initializer=constant(0.1)),
    }

    def normal(x, axes):
        return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + 1e-5)

    groups = normal(IMAGE.reshape(2, 2, 2, 5, 6), (2, 3, 4)).reshape(IMAGE.shape)
    agree(run(fluid, lambda L, a: L.group_norm(a, 2, **scaled), a=IMAGE), groups * 0.7 + 0.1)
    agree(
        run(fluid, lambda L, b: L.group_norm(b, 2, data_layout="NHWC"), b=IMAGE.transpose(0, 2, 3, 1).copy()),
        groups.transpose(0, 2, 3, 1),
    )
    agree(run(fluid, lambda L, c: L.instance_norm(c, **scaled), c=IMAGE), normal(IMAGE, (2, 3)) * 0.7 + 0.1)
    weight = RANDOM.uniform(-1, 1, (3, 4, 2)).astype("float32")
    got = run(fluid, lambda L, d: L.spectral_norm(d, 1, power_iters=60), d=weight)
    agree(got, weight / np.linalg.svd(weight.transpose(1, 0, 2).reshape(4, 6))[1][0])
    x, scale, bias = IMAGE[:, :3].copy(), np.array([1, 2, 3], "float32"), np.array([4, 5, 6], "float32")
    got = run(fluid, lambda L, e, s, t: L.affine_channel(e, s, t), e=x, s=scale, t=bias)
    agree(got, x * scale.reshape(1, 3, 1, 1) + bias.reshape(1, 3, 1, 1))


@pytest.mark.parametrize("act", [None, "leaky_relu", "elu"])
@pytest.mark.parametrize("layout, frozen", [("NCHW", False), ("NHWC", True)])
def test_inplace_abn_overwrites_its_input(fluid, act, layout, frozen):
    """Results and gradients equal those of batch_norm and the activation, which keep their inputs."""
    results = []
    for in_place in (False, True):
        with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.unique_name.guard():
            L = fluid.layers
            x = fluid.data("x", [2, 4, 5, 6])
            x.stop_gradient = False
            scaled = L.scale(x, 2.0)
            common = dict(
                param_attr=fluid.ParamAttr("w", fluid.initializer.Constant(0.7)),
                data_layout=layout,
                bias_attr=fluid.ParamAttr("b", fluid.initializer.Constant(0.2)),
                moving_mean_name="mean",
                moving_variance_name="variance",
                use_global_stats=frozen,
            )
            if in_place:
                y = L.inplace_abn(scaled, act=act, act_alpha=0.3, **common)
                assert y is scaled
            else:
                y = L.batch_norm(scaled, **common)
                y = {None: lambda y, _: y, "elu": L.elu, "leaky_relu": L.leaky_relu}[act](y, 0.3)
            fluid.backward.append_backward(L.reduce_sum(L.sigmoid(y)))
            results.append(run_once(fluid, {"x": IMAGE}, ["x@GRAD", "w@GRAD", "b@GRAD", "mean", "variance"]))
    for expected, got in zip(*results):
        agree(got, expected)
    for wrong in (dict(act="relu"), dict(data_layout="CHWN")):
        with pytest.raises(ValueError, match="inplace_abn"):
            fluid.layers.inplace_abn(fluid.data("z", [2, 3]), **wrong)


def windows_of(x, ksize, strides, pads, fill):
    """The windows of volumes: [N, C, D, H, W, kd, kh, kw]."""
    x = np.pad(x, ((0, 0), (0, 0)) + tuple((p, p) for p in pads), constant_values=fill)
    view = np.lib.stride_tricks.sliding_window_view(x, ksize, (2, 3, 4))
    return view[:, :, :: strides[0], :: strides[1], :: strides[2]]


def test_pool3d_and_conv3d_equal_numpy(fluid):
    weight = RANDOM.uniform(-1, 1, (3, 2, 2, 3, 2)).astype("float32")
    attr = fluid.ParamAttr(initializer=fluid.initializer.NumpyArrayInitializer(weight))
    got = run(
        fluid, lambda L, x: L.conv3d(x, 3, [2, 3, 2], [2, 1, 1], [1, 0, 1], param_attr=attr, bias_attr=False), x=VOLUME
    )
    agree(got, np.einsum("ncdhwijk,ocijk->nodhw", windows_of(VOLUME, (2, 3, 2), (2, 1, 1), (1, 0, 1), 0), weight))
    got = run(fluid, lambda L, a: L.pool3d(a, [2, 3, 2], "max", [2, 1, 2], [1, 0, 0]), a=VOLUME)
    agree(got, windows_of(VOLUME, (2, 3, 2), (2, 1, 2), (1, 0, 0), -np.inf).max((-3, -2, -1)))
    last = VOLUME.transpose(0, 2, 3, 4, 1).copy()
    got = run(fluid, lambda L, b: L.pool3d(b, 2, "avg", 2, 1, exclusive=False, data_format="NDHWC"), b=last)
    agree(got, windows_of(VOLUME, (2, 2, 2), (2, 2, 2), (1, 1, 1), 0).mean((-3, -2, -1)).transpose(0, 2, 3, 4, 1))
    back = fluid.ParamAttr(initializer=fluid.initializer.NumpyArrayInitializer(weight.transpose(1, 0, 2, 3, 4).copy()))
    got = run(
        fluid,
        lambda L, c: L.conv3d_transpose(
            c, 3, filter_size=[2, 3, 2], stride=[2, 1, 1], param_attr=back, bias_attr=False
        ),
        c=VOLUME,
    )
    expected = np.zeros((2, 3, 8, 7, 4))
    for d, h, w in np.ndindex(4, 5, 3):
        expected[:, :, 2 * d : 2 * d + 2, h : h + 3, w : w + 2] += np.einsum(
            "nc,ocijk->noijk", VOLUME[:, :, d, h, w], weight
        )
    agree(got, expected)


def test_adaptive_pooling_has_the_given_size(fluid):
    def bounds(size, count):
        return [(i * size // count, -(-(i + 1) * size // count)) for i in range(count)]

    out, where = fluid.layers.adaptive_pool2d(fluid.data("x", IMAGE.shape), [2, 4], require_index=True)
    got, at = run_once(fluid, {"x": IMAGE}, [out, where])
    mean = run(fluid, lambda L, v: L.adaptive_pool3d(v, 2, "avg"), v=VOLUME)
    for (i, (top, bottom)), (j, (left, right)) in itertools.product(enumerate(bounds(5, 2)), enumerate(bounds(6, 4))):
        agree(got[:, :, i, j], IMAGE[:, :, top:bottom, left:right].max((2, 3)))
    np.testing.assert_array_equal(
        np.take_along_axis(IMAGE.reshape(2, 4, 30), at.reshape(2, 4, 8), 2), got.reshape(2, 4, 8)
    )
    for place in np.ndindex(2, 2, 2):
        parts = [bounds(size, 2)[i] for size, i in zip((4, 5, 3), place)]
        part = VOLUME[(slice(None), slice(None)) + tuple(slice(*one) for one in parts)]
        agree(mean[(slice(None), slice(None)) + place], part.mean((2, 3, 4)))


def run_regions(fluid, layer, image=IMAGE):
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        x, rois = fluid.data("x", image.shape), fluid.data("rois", [None, 4], lod_level=1)
        feed = {"x": image, "rois": fluid.create_lod_tensor(REGIONS, [[2, 1]], fluid.CPUPlace())}
        return run_once(fluid, feed, [layer(fluid.layers, x, rois)])[0]


def test_roi_align_takes_the_mean_of_points(fluid):
    got = run_regions(fluid, lambda L, x, rois: L.roi_align(x, rois, 2, 3, 0.75, sampling_ratio=2))
    for r, c, i, j in np.ndindex(got.shape):
        left, top, right, bottom = REGIONS[r] * 0.75
        wide, high, total = max(right - left, 1) / 3, max(bottom - top, 1) / 2, 0.0
        for a, b in itertools.product((0.25, 0.75), repeat=2):
            y, x = top + (i + a) * high, left + (j + b) * wide
            if y >= -1 and x >= -1 and y <= 5 and x <= 6:
                total += bilinear(IMAGE[OF_IMAGE[r], c], np.clip(y, 0, 4), np.clip(x, 0, 5)) / 4
        assert abs(got[r, c, i, j] - total) < 1e-4


def test_roi_pooling_takes_maxima_and_means(fluid):
    most = run_regions(fluid, lambda L, x, rois: L.roi_pool(x, rois, 2, 2))
    mean = run_regions(fluid, lambda L, x, rois: L.psroi_pool(x, rois, 1, 1.0, 2, 2))
    for r, i, j in np.ndindex(3, 2, 2):
        image, (left, top, right, bottom) = IMAGE[OF_IMAGE[r]], np.round(REGIONS[r])
        for one, begin_x, begin_y in ((most, left, top), (mean, left, top)):
            high, wide = (bottom - top + 1) / 2, (right - left + 1) / 2
            rows = np.clip([np.floor(begin_y + i * high), np.ceil(begin_y + (i + 1) * high)], 0, 5).astype(int)
            columns = np.clip([np.floor(begin_x + j * wide), np.ceil(begin_x + (j + 1) * wide)], 0, 6).astype(int)
            part = image[:, rows[0] : rows[1], columns[0] : columns[1]]
            if one is most:
                agree(one[r, :, i, j], part.max((1, 2)))
            else:
                agree(one[r, 0, i, j], part[2 * i + j].mean())


def test_prroi_pool_integrates_bilinear_interpolation(fluid):
    got = run_regions(fluid, lambda L, x, rois: L.prroi_pool(x, rois, 1.0, 1, 2))
    steps = (np.arange(60) + 0.5) / 60
    for r, j in np.ndindex(3, 2):
        left, top, right, bottom = REGIONS[r]
        ys, xs = top + steps * (bottom - top), left + (j + steps) * (right - left) / 2
        high = np.maximum(1 - np.abs(ys[:, None] - np.arange(5)), 0).mean(0)
        wide = np.maximum(1 - np.abs(xs[:, None] - np.arange(6)), 0).mean(0)
        np.testing.assert_allclose(got[r, :, 0, j], np.einsum("h,w,chw->c", high, wide, IMAGE[OF_IMAGE[r]]), atol=2e-3)


def test_deformable_convolution_uses_its_offsets(fluid):
    offset = RANDOM.uniform(-1.5, 1.5, (2, 16, 4, 5)).astype("float32")
    mask = RANDOM.uniform(0, 1, (2, 8, 4, 5)).astype("float32")
    weight = RANDOM.uniform(-1, 1, (2, 4, 2, 2)).astype("float32")
    attr = fluid.ParamAttr(initializer=fluid.initializer.NumpyArrayInitializer(weight))
    got = run(
        fluid,
        lambda L, x, o, m: L.deformable_conv(x, o, m, 2, 2, deformable_groups=2, param_attr=attr, bias_attr=False),
        x=IMAGE,
        o=offset,
        m=mask,
    )
    expected = np.zeros_like(got)
    for n, c, i, j, y, x in np.ndindex(2, 4, 2, 2, 4, 5):
        t = c // 2 * 4 + i * 2 + j
        place = y + i + offset[n, 2 * t, y, x], x + j + offset[n, 2 * t + 1, y, x]
        expected[n, :, y, x] += weight[:, c, i, j] * mask[n, t, y, x] * bilinear(IMAGE[n, c], *place)
    agree(got, expected)


def test_deformable_pooling_uses_its_offsets(fluid):
    trans = RANDOM.uniform(-0.5, 0.5, (3, 2, 1, 2)).astype("float32")

    def layer(L, x, rois):
        shifts = L.assign(trans)
        return L.deformable_roi_pooling(
            x, rois, shifts, pooled_height=1, pooled_width=2, sample_per_part=2, trans_std=0.2
        )

    got = run_regions(fluid, layer)
    for r, j in np.ndindex(3, 2):
        left, top, right, bottom = np.round(REGIONS[r]) + np.array([0, 0, 1, 1]) - 0.5
        wide, high, points = (right - left) / 2, bottom - top, []
        for a, b in itertools.product((0, 0.5), repeat=2):
            x = left + (j + b) * wide + trans[r, 0, 0, j] * 0.2 * (right - left)
            y = top + a * high + trans[r, 1, 0, j] * 0.2 * high
            if -0.5 <= x <= 5.5 and -0.5 <= y <= 4.5:
                points.append([bilinear(plane, np.clip(y, 0, 4), np.clip(x, 0, 5)) for plane in IMAGE[OF_IMAGE[r]]])
        agree(got[r, :, 0, j], np.mean(points, 0) if points else np.zeros(4))


@pytest.mark.parametrize(
    "make, error",
    [
        (lambda L, x: L.interpolate(x, [4, 4], resample="LANCZOS"), "resample must be one of"),
        (lambda L, x: L.image_resize(x, [4, 4], resample="BICUBIC"), "resample must be one of"),
        (lambda L, x: L.interpolate(x), "one of out_shape and scale must be given"),
        (lambda L, x: L.interpolate(x, [4]), "out_shape must have 2 sizes"),
        (lambda L, x: L.interpolate(x, [4, 0]), "greater than 0"),
        (lambda L, x: L.interpolate(x, scale=-1.0), "greater than zero"),
        (lambda L, x: L.resize_trilinear(x, [4, 4, 4]), "TRILINEAR takes an input of 5 axes"),
        (lambda L, x: L.interpolate(x, [4, 4], data_format="NCDHW"), "data_format must be NCHW or NHWC"),
        (lambda L, x: L.group_norm(x, 2, data_layout="CHWN"), "data_layout must be NCHW or NHWC"),
        (lambda L, x: L.group_norm(x, 9), r"groups \(9\) must be at most the number of channels of X \(4\)"),
        (lambda L, x: L.conv3d(x, 2, 3), "volumes of 5 axes"),
        (lambda L, x: L.adaptive_pool2d(x, 2, "avg", True), "require_index"),
        (lambda L, x: L.pixel_shuffle(x, 3), r"channels of X \(4\) must be divisible"),
        (lambda L, x: L.unfold(x, [3, 3, 3]), "kernel_sizes takes one number or two"),
        (lambda L, x: L.affine_grid(x, 4), "out_shape must be a list"),
    ],
)
def test_wrong_arguments_are_reported(fluid, make, error):
    with pytest.raises(ValueError, match=error):
        make(fluid.layers, fluid.data("x", [2, 4, 5, 6]))
