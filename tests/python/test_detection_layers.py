"""Detection layers agree with NumPy, and a detector learns."""

import numpy as np
import pytest

RANDOM = np.random.RandomState(5)


def boxes_of(count, side=20.0):
    begin = RANDOM.uniform(0, side, (count, 2))
    return np.concatenate([begin, begin + RANDOM.uniform(side / 10, side / 2, (count, 2))], 1).astype("float32")


def run(fluid, layer, lengths=(), **feeds):
    """The layer's results; `lengths` gives the sequences of the feeds that have some."""
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        lengths, given, feed = dict(lengths), {}, {}
        for name, value in feeds.items():
            shape = [None] + list(value.shape[1:]) if name in lengths else value.shape
            given[name] = fluid.data(name, shape, str(value.dtype), lod_level=1 if name in lengths else 0)
            feed[name] = fluid.create_lod_tensor(value, [lengths[name]], fluid.CPUPlace()) if name in lengths else value
        out = layer(fluid.layers, **given)
        outs = list(out) if isinstance(out, (list, tuple)) else [out]
        exe = fluid.Executor()
        exe.run(fluid.default_startup_program())
        got = exe.run(feed=feed, fetch_list=outs, return_numpy=False)
        for var, value in zip(outs, got):
            shape = np.array(value).shape
            assert shape == (1, 1) or all(had in (-1, has) for had, has in zip(var.shape, shape))
    return [(np.array(value), value.recursive_sequence_lengths()) for value in got]


def agree(got, expected):
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)


def overlap(a, b, more=0.0):
    width = min(a[2], b[2]) - max(a[0], b[0]) + more
    height = min(a[3], b[3]) - max(a[1], b[1]) + more
    common = max(width, 0) * max(height, 0)
    return common / (sum((x[2] - x[0] + more) * (x[3] - x[1] + more) for x in (a, b)) - common)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


FEATURE, PHOTO = np.zeros((1, 8, 2, 3), "float32"), np.zeros((1, 3, 16, 30), "float32")


def test_prior_boxes_lie_around_the_cells(fluid):
    (got, _), (variances, _) = run(
        fluid,
        lambda L, a, b: L.prior_box(a, b, [4.0], [9.0], [2.0], flip=True, variance=[0.1, 0.2, 0.3, 0.4]),
        a=FEATURE,
        b=PHOTO,
    )
    root, expected = np.sqrt(2), np.zeros((2, 3, 4, 4))
    for y, x in np.ndindex(2, 3):
        for i, (wide, high) in enumerate([(4, 4), (4 * root, 4 / root), (4 / root, 4 * root), (6, 6)]):
            place = np.array([(x + 0.5) * 10, (y + 0.5) * 8] * 2)
            expected[y, x, i] = (place + np.array([-wide, -high, wide, high]) / 2) / np.array([30, 16, 30, 16])
    agree(got, expected)
    agree(variances, np.broadcast_to(np.array([0.1, 0.2, 0.3, 0.4]), expected.shape))


def test_density_priors_and_anchors_equal_numpy(fluid):
    (got, _), _ = run(fluid, lambda L, a, b: L.density_prior_box(a, b, [2], [4.0], [1.0]), a=FEATURE, b=PHOTO)
    for y, x, i, j in np.ndindex(2, 3, 2, 2):  # the mean step is 9, two of 4 along it
        centre = np.array([(x + 0.5) * 10 - 4.5 + 2 + 4 * j, (y + 0.5) * 8 - 4.5 + 2 + 4 * i] * 2)
        place = (centre + np.array([-2, -2, 2, 2])) / np.array([30, 16, 30, 16])
        agree(got[y, x, 2 * i + j], np.r_[np.maximum(place[:2], 0), np.minimum(place[2:], 1)])
    (got, _), _ = run(fluid, lambda L, c: L.anchor_generator(c, [32.0], [0.5, 1.0], stride=[16.0, 16.0]), c=FEATURE)
    for (y, x), (i, (wide, high)) in ((at, one) for at in np.ndindex(2, 3) for one in enumerate([(23, 12), (16, 16)])):
        half = np.array([2 * wide - 1, 2 * high - 1]) / 2
        agree(got[y, x, i], np.r_[[x * 16 + 7.5, y * 16 + 7.5] - half, [x * 16 + 7.5, y * 16 + 7.5] + half])


@pytest.mark.parametrize("normalized", [True, False])
def test_box_coder_round_trips(fluid, normalized):
    more, prior, target, var = 0.0 if normalized else 1.0, boxes_of(3), boxes_of(4), [0.1, 0.1, 0.2, 0.2]
    ((coded, _),) = run(fluid, lambda L, p, t: L.box_coder(p, var, t, box_normalized=normalized), p=prior, t=target)
    for i, j in np.ndindex(4, 3):
        t, p = target[i], prior[j]
        extent, own = p[2:] - p[:2] + more, t[2:] - t[:2] + more
        distance = ((t[:2] + t[2:]) / 2 - (p[:2] + extent / 2)) / extent
        agree(coded[i, j], np.r_[distance, np.log(own / extent)] / var)
    ((back, _),) = run(
        fluid, lambda L, q, c: L.box_coder(q, var, c, "decode_center_size", normalized), q=prior, c=coded
    )
    assert np.abs(back - target[:, None]).max() < (1e-3 if normalized else 0.51)  # half a pixel off


def test_iou_box_clip_and_polygon_transform_equal_numpy(fluid):
    x, y = boxes_of(3), boxes_of(4)
    ((got, _),) = run(fluid, lambda L, a, b: L.iou_similarity(a, b, False), a=x, b=y)
    agree(got, [[overlap(p, q, 1.0) for q in y] for p in x])
    wide = boxes_of(3, 60.0) - 5
    info = np.array([[30, 25, 1], [40, 50, 2]], "float32")
    ((got, lengths),) = run(fluid, lambda L, c, i: L.box_clip(c, i), {"c": [2, 1]}, c=wide, i=info)
    limits = np.array([[24, 29], [24, 29], [24, 19]])
    agree(got, np.clip(wide, 0, np.tile(limits, 2)))
    assert lengths == [[2, 1]]
    corners = RANDOM.uniform(0, 1, (1, 2, 2, 3)).astype("float32")
    ((got, _),) = run(fluid, lambda L, d: L.polygon_box_transform(d), d=corners)
    rows, columns = np.mgrid[:2, :3] * 4
    agree(got, np.stack([columns, rows])[None] - corners)


def suppressed(boxes, scores, threshold, most, more):
    """The places of the boxes of one class that are kept, best first."""
    kept = []
    for i in [i for i in np.argsort(-scores, kind="stable") if scores[i] > threshold][:8]:
        if all(overlap(boxes[i], boxes[j], more) <= most for j in kept):
            kept.append(i)
    return kept


def test_suppression_keeps_the_best_boxes_of_each_class(fluid):
    boxes, scores = np.stack([boxes_of(12), boxes_of(12)]), RANDOM.uniform(0, 1, (2, 3, 12)).astype("float32")
    ((got, lengths),) = run(fluid, lambda L, b, s: L.multiclass_nms(b, s, 0.2, 8, 7, 0.3, False), b=boxes, s=scores)
    rows = []
    for image in range(2):
        found = [(label, i) for label in (1, 2) for i in suppressed(boxes[image], scores[image, label], 0.2, 0.3, 1.0)]
        best = sorted(found, key=lambda one: -scores[image][one])[:7]
        assert lengths[0][image] == len(best)
        rows += [np.r_[one[0], scores[image][one], boxes[image, one[1]]] for one in found if one in best]
    agree(got, rows)
    ((got, lengths),) = run(fluid, lambda L, c, t: L.multiclass_nms(c, t, 2.0, 8, 7), c=boxes, t=scores)
    assert got.tolist() == [[-1.0]] and lengths == [[1]]


def test_polygons_overlap_by_their_common_area(fluid):
    square = np.array([0, 0, 4, 0, 4, 4, 0, 4], "float32")
    diamond = np.array([2, -1, 5, 2, 2, 5, -1, 2], "float32")  # 18, of which 14 with the square
    scores = np.array([[[0.9, 0.8]]], "float32")
    for most, count in ((0.69, 1), (0.71, 2)):  # 14 / (16 + 18 - 14) = 0.7
        ((got, _),) = run(
            fluid,
            lambda L, b, s: L.multiclass_nms(b, s, 0.1, -1, -1, most, background_label=-1),
            b=np.stack([square, diamond])[None],
            s=scores,
        )
        assert got.shape == (count, 10)


def test_locality_aware_nms_averages_neighbours(fluid):
    boxes = np.array([[[0, 0, 10, 10], [0, 0, 10, 12], [30, 30, 40, 40]]], "float32")
    scores = np.array([[[0.6, 0.3, 0.5]]], "float32")
    ((got, _),) = run(fluid, lambda L, b, s: L.locality_aware_nms(b, s, 0.1, -1, -1, 0.5), b=boxes, s=scores)
    agree(got, [[0, 0.9, 0, 0, 10, (10 * 0.6 + 12 * 0.3) / 0.9], [0, 0.5, 30, 30, 40, 40]])


def test_matrix_nms_decays_scores_by_overlap(fluid):
    boxes = np.array([[[0, 0, 10, 10], [0, 0, 10, 5], [30, 30, 40, 40]]], "float32")
    scores = np.array([[[0.8, 0.6, 0.5]]], "float32")
    (got, _), (index, _) = run(
        fluid,
        lambda L, b, s: L.matrix_nms(b, s, 0.1, 0.2, -1, -1, background_label=-1, return_index=True),
        b=boxes,
        s=scores,
    )
    agree(got[:, 1], [0.8, 0.5, 0.3])  # the second overlaps the first by half
    assert index.ravel().tolist() == [0, 2, 1]


def test_bipartite_match_and_target_assign_equal_numpy(fluid):
    distances = np.array([[0.1, 0.9, 0.6, 0.0], [0.8, 0.95, 0.3, 0.2], [0.4, 0.0, 0.7, 0.45]], "float32")
    (rows, _), (of_match, _) = run(
        fluid, lambda L, d: L.bipartite_match(d, "per_prediction", 0.42), {"d": [2, 1]}, d=distances
    )
    assert rows.tolist() == [[1, 1, 0, -1], [-1, -1, 0, 0]]
    agree(of_match, [[0.8, 0.95, 0.6, 0], [0, 0, 0.7, 0.45]])
    objects = np.arange(6, dtype="float32").reshape(3, 1, 2)
    negative = np.array([[3], [0]], "int32")
    (target, _), (weight, _) = run(
        fluid,
        lambda L, x, m, n: L.target_assign(x, m, n, mismatch_value=9),
        {"x": [2, 1], "n": [1, 1]},
        x=objects,
        m=rows,
        n=negative,
    )
    agree(target, [[[2, 3], [2, 3], [0, 1], [9, 9]], [[9, 9], [9, 9], [4, 5], [4, 5]]])
    assert weight[..., 0].tolist() == [[1, 1, 1, 1], [1, 0, 1, 1]]


def test_yolo_box_decodes_boxes(fluid):
    x = RANDOM.uniform(-2, 2, (1, 14, 2, 2)).astype("float32")
    (boxes, _), (scores, _) = run(
        fluid, lambda L, a, s: L.yolo_box(a, s, [10, 13, 16, 30], 2, 0.5, 32), a=x, s=np.array([[60, 80]], "int32")
    )
    for anchor, (wide, high) in enumerate([(10, 13), (16, 30)]):
        for row, column in np.ndindex(2, 2):
            t, at = x[0, anchor * 7 : anchor * 7 + 7, row, column], anchor * 4 + row * 2 + column
            sure = sigmoid(t[4])
            centre = np.array([(column + sigmoid(t[0])) * 40, (row + sigmoid(t[1])) * 30])
            half = np.exp(t[2:4]) * np.array([wide * 80, high * 60]) / 64 / 2
            place = np.r_[np.maximum(centre - half, 0), np.minimum(centre + half, [79, 59])]
            agree(boxes[0, at], place * (sure >= 0.5))
            agree(scores[0, at], sure * sigmoid(t[5:]) * (sure >= 0.5))


def test_yolov3_loss_equals_numpy(fluid):
    x = RANDOM.uniform(-1, 1, (1, 14, 2, 2)).astype("float32")
    box, label = np.array([[[0.3, 0.6, 0.3, 0.25], [0.2, 0.2, 0, 0]]], "float32"), np.array([[1, 0]], "int32")

    def entropy(t, aim):
        return -aim * np.log(sigmoid(t)) - (1 - aim) * np.log(1 - sigmoid(t))

    ((got, _),) = run(
        fluid, lambda L, a, b, c: L.yolov3_loss(a, b, c, [16, 16, 60, 60], [0, 1], 2, 0.99, 32), a=x, b=box, c=label
    )
    t = x[0, :7, 1, 0]  # the first anchor, of 16 / 64, is the nearest; the cell is (0, 1)
    weight = 2 - 0.3 * 0.25
    places = entropy(t[0], 0.6) + entropy(t[1], 0.2)
    extents = abs(t[2] - np.log(0.3 * 64 / 16)) + abs(t[3] - np.log(0.25 * 64 / 16))
    expected = (places + extents) * weight + entropy(t[5], 1 / 40) + entropy(t[6], 1 - 1 / 40) + entropy(t[4], 1)
    for anchor, row, column in np.ndindex(2, 2, 2):
        if (anchor, row, column) != (0, 1, 0):
            expected += entropy(x[0, anchor * 7 + 4, row, column], 0)
    agree(got, [expected])


def test_sigmoid_focal_loss_equals_numpy(fluid):
    x, label = RANDOM.uniform(-3, 3, (4, 2)).astype("float32"), np.array([[0], [2], [-1], [1]], "int32")
    ((got, _),) = run(
        fluid, lambda L, a, b, c: L.sigmoid_focal_loss(a, b, c, 1.5, 0.3), a=x, b=label, c=np.array([2], "int32")
    )
    p = sigmoid(x)
    right = label == np.arange(1, 3)
    expected = np.where(right, -0.3 * (1 - p) ** 1.5 * np.log(p), -0.7 * p**1.5 * np.log(1 - p)) / 2
    agree(got, expected * (label != -1))


def test_proposals_are_the_best_moved_anchors(fluid):
    anchors = np.tile(boxes_of(2, 30.0).reshape(1, 1, 2, 4), (2, 3, 1, 1)) + 5 * np.arange(3).reshape(1, 3, 1, 1)
    feeds = {
        "s": RANDOM.uniform(0, 1, (1, 2, 2, 3)),
        "d": RANDOM.uniform(-0.5, 0.5, (1, 8, 2, 3)),
        "i": np.array([[40.0, 50.0, 1.0]]),
        "a": anchors,
        "v": np.full((2, 3, 2, 4), 0.5),
    }
    (rois, lengths), (scores, _) = run(
        fluid,
        lambda L, s, d, i, a, v: L.generate_proposals(s, d, i, a, v, 10, 4, 0.6, 3.0),
        **{name: value.astype("float32") for name, value in feeds.items()},
    )
    flat = feeds["s"][0].transpose(1, 2, 0).ravel()
    moved = feeds["d"][0].reshape(2, 4, 2, 3).transpose(2, 3, 0, 1).reshape(12, 4) * 0.5
    extent = (anchors[..., 2:] - anchors[..., :2] + 1).reshape(12, 2)
    centre = anchors.reshape(12, 4)[:, :2] + extent / 2 + moved[:, :2] * extent
    half = np.exp(moved[:, 2:]) * extent / 2
    boxes = np.clip(np.c_[centre - half, centre + half - 1], 0, [49, 39, 49, 39])
    large = [i for i in np.argsort(-flat)[:10] if (boxes[i, 2:] - boxes[i, :2] + 1 >= 3).all()]
    kept = []
    for i in large:
        if all(overlap(boxes[i], boxes[j], 1.0) <= 0.6 for j in kept):
            kept.append(i)
    agree(rois, boxes[kept[:4]])
    agree(scores.ravel(), flat[kept[:4]])
    assert lengths == [[len(kept[:4])]]


def test_regions_are_spread_over_levels_and_collected(fluid):
    rois = boxes_of(6, 300.0)
    level = np.clip(np.floor(np.log2(np.sqrt(np.prod(rois[:, 2:] - rois[:, :2] + 1, 1)) / 100 + 1e-6) + 4), 3, 5)

    def layer(L, r):
        levels, restore = L.distribute_fpn_proposals(r, 3, 5, 4, 100)
        return levels + [restore]

    *levels, (restore, _) = run(fluid, layer, {"r": [4, 2]}, r=rois)
    for i, (got, lengths) in enumerate(levels):
        agree(got, rois[level == 3 + i])
        assert lengths == [[int((level[:4] == 3 + i).sum()), int((level[4:] == 3 + i).sum())]]
    agree(np.concatenate([got for got, _ in levels])[restore.ravel()], rois)
    scores = RANDOM.uniform(0, 1, (2, 6, 1)).astype("float32")
    ((got, lengths),) = run(
        fluid,
        lambda L, a, b, s, t: L.collect_fpn_proposals([a, b], [s, t], 2, 3, 7),
        {"a": [4, 2], "b": [3, 3], "s": [4, 2], "t": [3, 3]},
        a=rois,
        b=rois + 1,
        s=scores[0],
        t=scores[1],
    )
    order, image = np.argsort(-scores.ravel())[:7], np.array([0, 0, 0, 0, 1, 1, 0, 0, 0, 1, 1, 1])
    order = [i for n in (0, 1) for i in order if image[i] == n]
    agree(got, np.concatenate([rois, rois + 1])[order])
    assert lengths == [[int((image[order] == n).sum()) for n in (0, 1)]]


def test_box_decoder_and_assign_takes_the_best_class(fluid):
    prior, target = boxes_of(3), RANDOM.uniform(-1, 1, (3, 12)).astype("float32")
    score = RANDOM.uniform(0, 1, (3, 3)).astype("float32")
    var = np.array([0.1, 0.1, 0.2, 0.2], "float32")
    (boxes, _), (best, _) = run(
        fluid, lambda L, p, v, t, s: L.box_decoder_and_assign(p, v, t, s, 0.05), p=prior, v=var, t=target, s=score
    )
    for i, c in np.ndindex(3, 3):
        t, extent = target[i, 4 * c : 4 * c + 4] * var, prior[i, 2:] - prior[i, :2] + 1
        centre, half = prior[i, :2] + extent / 2 + t[:2] * extent, np.exp(np.minimum(t[2:], 0.05)) * extent / 2
        agree(boxes[i, 4 * c : 4 * c + 4], np.r_[centre - half, centre + half - 1])
    agree(best, boxes.reshape(3, 3, 4)[np.arange(3), score[:, 1:].argmax(1) + 1])


ANCHORS = np.array([[0, 0, 9, 9], [0, 0, 9, 19], [30, 30, 49, 49], [5, 0, 14, 9], [-5, 0, 9, 9]], "float32")
TRUTH = np.array([[0, 0, 9, 9], [20, 20, 25, 25]], "float32")  # the second is a crowd
CROWD, INFO = np.array([[0], [1]], "int32"), np.array([[50, 50, 1]], "float32")
WITH_TRUTH = {"g": [2], "c": [2]}


def test_rpn_target_assign_selects_targets(fluid):
    found, logits = (
        RANDOM.uniform(-1, 1, (1, 5, 4)).astype("float32"),
        RANDOM.uniform(-1, 1, (1, 5, 1)).astype("float32"),
    )
    results = run(
        fluid,
        lambda L, f, s, a, g, c, i: L.rpn_target_assign(f, s, a, a, g, c, i, 4, 0.0, 0.5, 0.5, 0.4, use_random=False),
        WITH_TRUTH,
        f=found,
        s=logits,
        a=ANCHORS,
        g=TRUTH,
        c=CROWD,
        i=INFO,
    )
    scores, places, labels, targets, weights = [value for value, _ in results]
    # Overlaps: 1, 0.5, 0, 1/3; the last anchor is outside.
    agree(scores, logits[0, [0, 1, 2, 3]])
    agree(places, found[0, :2])
    assert labels.ravel().tolist() == [1, 1, 0, 0] and (weights == 1).all()
    agree(targets, [[0, 0, 0, 0], [0, -0.25, 0, np.log(0.5)]])


def test_retinanet_and_second_stage_targets_are_selected(fluid):
    found, logits = (
        RANDOM.uniform(-1, 1, (1, 5, 4)).astype("float32"),
        RANDOM.uniform(-1, 1, (1, 5, 2)).astype("float32"),
    )
    results = run(
        fluid,
        lambda L, f, s, a, g, n, c, i: L.retinanet_target_assign(f, s, a, a, g, n, c, i, 2, 0.5, 0.4),
        dict(WITH_TRUTH, n=[2]),
        f=found,
        s=logits,
        a=ANCHORS,
        g=TRUTH,
        n=np.array([[2], [1]], "int32"),
        c=CROWD,
        i=INFO,
    )
    assert results[2][0].ravel().tolist() == [2, 2, 2, 0, 0] and results[5][0].tolist() == [[4]]
    agree(results[0][0], logits[0, [0, 1, 4, 2, 3]])
    results = run(
        fluid,
        lambda L, r, n, c, g, i: L.generate_proposal_labels(
            r, n, c, g, i, 4, 0.5, 0.5, 0.5, 0.0, class_nums=3, use_random=False
        ),
        dict(WITH_TRUTH, r=[5], n=[2]),
        r=ANCHORS,
        n=np.array([[2], [1]], "int32"),
        c=CROWD,
        g=TRUTH,
        i=INFO,
    )
    rois, labels, targets, inside, outside = [value for value, _ in results]
    agree(rois, np.concatenate([TRUTH[:1], ANCHORS[[0, 2, 3]]]))  # the true box is a region, too
    assert labels.ravel().tolist() == [2, 2, 0, 0] and results[0][1] == [[4]]
    assert inside.tolist() == outside.tolist() == [[0.0] * 8 + [1.0] * 4] * 2 + [[0.0] * 12] * 2
    agree(targets, np.zeros((4, 12)))


def test_cascade_regions_start_with_unscaled_ground_truth(fluid):
    rois = np.concatenate([TRUTH, ANCHORS * 2])
    (got, lengths), (labels, _) = run(
        fluid,
        lambda L, r, n, c, g, i: L.generate_proposal_labels(
            r, n, c, g, i, 4, 0.5, 0.5, 0.5, 0.0, class_nums=3, is_cascade_rcnn=True
        ),
        dict(WITH_TRUTH, r=[7], n=[2]),
        r=rois,
        n=np.array([[2], [1]], "int32"),
        c=CROWD,
        g=TRUTH,
        i=np.array([[50, 50, 2]], "float32"),
    )[:2]
    objects, others = [0, 2, 3, 6], [4, 5]  # the second true box is a crowd
    expected = np.concatenate([TRUTH * 2, ANCHORS * 2])[objects + others]
    agree(got, expected)
    assert labels.ravel().tolist() == [2, 2, 2, 2, 0, 0] and lengths == [[6]]


def test_a_ground_truth_box_has_zero_offsets(fluid):
    truth = np.array([[63.0, 61.305515, 63.0, 61.672512], [2.3795931, 49.364536, 49.35264, 50.55793]], "float32")
    targets = run(
        fluid,
        lambda L, r, n, c, g, i: L.generate_proposal_labels(
            r, n, c, g, i, 4, 0.5, 0.5, 0.5, 0.0, class_nums=3, is_cascade_rcnn=True
        ),
        dict(WITH_TRUTH, r=[2], n=[2]),
        r=truth,
        n=np.array([[2], [1]], "int32"),
        c=np.zeros((2, 1), "int32"),
        g=truth,
        i=np.array([[64, 64, 0.8]], "float32"),
    )[2][0]
    assert targets.shape == (2, 12) and not targets.any()


def test_retinanet_detection_output_merges_levels(fluid):
    anchors = np.array([[0, 0, 9, 9], [20, 20, 29, 29], [1, 0, 10, 9]], "float32")
    scores = np.array([[[0.1, 0.9], [0.4, 0.6], [0.2, 0.8]]], "float32")
    moved = np.zeros((1, 3, 4), "float32")
    moved[0, 1] = 0.5, 0, 0, np.log(2)
    ((got, lengths),) = run(
        fluid,
        lambda L, d, s, a, i: L.retinanet_detection_output([d, d], [s, s * 0.1], [a, a], i, 0.3),
        d=moved,
        s=scores,
        a=anchors,
        i=np.array([[100, 200, 2]], "float32"),
    )
    # The last level has no threshold; only its third box of class 1 overlaps no better one.
    far = [12.5, 7.5, 17, 17]
    agree(got, [[2, 0.9, 0, 0, 4.5, 4.5], [2, 0.6] + far, [1, 0.4] + far, [1, 0.02, 0.5, 0, 5, 4.5]])
    assert lengths == [[4]]


def test_mask_labels_rasterize_polygons_over_regions(fluid):
    points = np.array([[0, 0], [5, 0], [5, 10], [0, 10], [20, 20], [30, 20], [30, 30]], "float32")
    feeds = {
        "i": np.array([[50, 50, 1]], "float32"),
        "c": np.array([[2], [1]], "int32"),
        "w": np.zeros((2, 1), "int32"),
        "r": np.array([[0, 0, 10, 10], [40, 40, 44, 44], [20, 20, 30, 30]], "float32"),
        "n": np.array([[2], [0], [1]], "int32"),
    }
    lengths = {"c": [2], "w": [2], "r": [3], "n": [3]}
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        data = {
            name: fluid.data(name, [None] + list(value.shape[1:]), str(value.dtype), lod_level=int(name in lengths))
            for name, value in feeds.items()
        }
        data["p"] = fluid.data("p", [None, 2], lod_level=3)
        feed = {
            name: fluid.create_lod_tensor(value, [lengths[name]], fluid.CPUPlace()) if name in lengths else value
            for name, value in feeds.items()
        }
        feed["p"] = fluid.create_lod_tensor(points, [[2], [1, 1], [4, 3]], fluid.CPUPlace())
        made = fluid.layers.generate_mask_labels(*(data[name] for name in "icwprn"), num_classes=3, resolution=10)
        exe = fluid.Executor()
        rois, places, masks = [np.array(one) for one in exe.run(feed=feed, fetch_list=list(made), return_numpy=False)]
    agree(rois, feeds["r"][[0, 2]])
    assert places.ravel().tolist() == [0, 2]
    masks = masks.reshape(2, 3, 10, 10)
    assert (masks[0, 2] == (np.arange(10) < 5)).all()
    assert (masks[1, 1] == (np.arange(10)[:, None] < np.arange(10))).all()  # x > y
    assert (masks[0, :2] == -1).all() and (masks[1, [0, 2]] == -1).all()


def test_an_ssd_head_trains(fluid):
    fluid.default_startup_program().random_seed = 1
    layers = fluid.layers
    image = fluid.data("image", [1, 3, 16, 16])
    box, label = fluid.data("box", [None, 4], lod_level=1), fluid.data("label", [None, 1], "int32", lod_level=1)
    maps = [layers.pool2d(image, 4, "avg", 4), layers.pool2d(image, 8, "avg", 8)]
    places, scores, prior, var = layers.multi_box_head(
        maps, image, 16, 2, [[1.0], [1.0]], min_sizes=[4.0, 8.0], max_sizes=[6.0, 12.0]
    )
    loss = layers.reduce_sum(layers.ssd_loss(places, scores, box, label, prior, var))
    test = fluid.default_main_program().clone(for_test=True)
    with fluid.program_guard(test):
        found = layers.detection_output(places, scores, prior, var, keep_top_k=1)
    fluid.optimizer.Adam(0.1).minimize(loss)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    truth = np.array([[0.5, 0.25, 0.8, 0.6]], "float32")
    pixels = np.zeros((1, 3, 16, 16), "float32")
    pixels[:, :, 4:10, 8:13] = 1
    feed = {
        "image": pixels,
        "box": fluid.create_lod_tensor(truth, [[1]], fluid.CPUPlace()),
        "label": fluid.create_lod_tensor(np.array([[1]], "int32"), [[1]], fluid.CPUPlace()),
    }
    losses = [exe.run(feed=feed, fetch_list=[loss])[0].item() for _ in range(60)]
    assert losses[-1] < losses[0] / 10
    got = np.array(exe.run(test, feed=feed, fetch_list=[found], return_numpy=False)[0])
    assert got[0, 0] == 1 and overlap(got[0, 2:], truth[0]) > 0.8


def test_detection_map_accumulates_over_batches(fluid):
    found = fluid.data("found", [None, 6], lod_level=1)
    label, box = fluid.data("label", [None, 1], lod_level=1), fluid.data("box", [None, 4], lod_level=1)
    metric = fluid.metrics.DetectionMAP(found, label, box, class_num=3)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())

    def batch(rows, labels, boxes):
        feed = {
            "found": np.array(rows, "float32"),
            "label": np.array(labels, "float32"),
            "box": np.array(boxes, "float32"),
        }
        feed = {name: fluid.create_lod_tensor(value, [[len(value)]], fluid.CPUPlace()) for name, value in feed.items()}
        return [value.item() for value in exe.run(feed=feed, fetch_list=list(metric.get_map_var()))]

    near, far = [0.1, 0.1, 0.5, 0.5], [0.6, 0.6, 0.9, 0.9]
    # Class 1: a wrong box before the right one; class 2: found.
    agree(batch([[1, 0.9] + far, [1, 0.8] + near, [2, 0.7] + far], [[1], [2]], [near, far]), [0.75, 0.75])
    # Class 1 is right once more, with the best score of all: precisions 1 and 2/3 at recalls 1/2 and 1.
    agree(batch([[1, 0.95] + near], [[1]], [near]), [1, (5 / 6 + 1) / 2])
    metric.reset(exe)
    agree(batch([[1, 0.95] + near], [[1]], [near]), [1, 1])


@pytest.mark.parametrize("lengths, says", [([0, 1, 0], None), ([0, 1], None), ([0, 1, 0, 0], "has 4 sequences")])
def test_detection_map_state_may_lack_classes(fluid, lengths, says):
    scope, place = fluid.Scope(), fluid.CPUPlace()

    def put(name, value, lengths=None):
        tensor = scope.var(name).get_tensor()
        tensor.set(np.array(value), place)
        if lengths:
            tensor.set_recursive_sequence_lengths([lengths])

    near = [0.1, 0.1, 0.5, 0.5]
    put("found", np.array([[2, 0.9] + near], "float32"), [1])
    put("truth", np.array([[2] + near], "float32"), [1])
    put("has", np.ones(1, "int32"))
    put("count", np.array([[0], [2], [0]], "int32"))
    put("right", np.array([[0.8, 1]], "float32"), lengths)
    put("wrong", np.array([[0.8, 0]], "float32"), lengths)
    made = ("AccumPosCount", "AccumTruePos", "AccumFalsePos", "MAP")
    for name in made:
        scope.var(name).get_tensor()
    op = fluid.op.Operator(
        "detection_map",
        DetectRes="found",
        Label="truth",
        HasState="has",
        PosCount="count",
        TruePos="right",
        FalsePos="wrong",
        class_num=3,
        ap_type="integral",
        **{name: name for name in made},
    )
    if says:
        with pytest.raises(ValueError, match=says):
            op.run(scope, place)
        return
    op.run(scope, place)
    count, right, _, mean = (np.array(scope.find_var(name).get_tensor()) for name in made)
    assert count.tolist() == [[0], [2], [1]] and mean.item() == 0.75  # class 1: recall 1/2 at precision 1
    agree(right, [[0.8, 1], [0.9, 1]])


@pytest.mark.parametrize(
    "make, error",
    [
        (lambda L, x: L.prior_box(x, x, [4.0], steps=[1.0]), "steps must be a list of two numbers"),
        (lambda L, x: L.density_prior_box(x, x, [1], [4.0, 8.0], [1.0]), "must have the same length"),
        (lambda L, x: L.density_prior_box(x, x), "give densities and fixed_sizes"),
        (lambda L, x: L.box_coder(x, 0.1, x), "prior_box_var must be a Variable or a list"),
        (lambda L, x: L.locality_aware_nms(x, x, 0.1, 1, 1), "takes one class"),
        (lambda L, x: L.ssd_loss(x, x, x, x, x, mining_type="hard_example"), "mining_type must be max_negative"),
        (
            lambda L, x: L.multi_box_head([x], x, 16, 2, [[1.0]], min_sizes=[4.0, 2.0], max_sizes=[8.0]),
            "min_sizes must have as many",
        ),
        (lambda L, x: L.yolo_box(x, x, 3, 2, 0.1, 32), "yolo_box: anchors must be a list, not 3"),
        (lambda L, x: L.iou_similarity(x, x), r"shape of X \(\[2, 8, 4, 4\]\) must be \[boxes, 4\]"),
    ],
)
def test_wrong_arguments_are_reported(fluid, make, error):
    with pytest.raises((ValueError, TypeError), match=error):
        make(fluid.layers, fluid.data("x", [2, 8, 4, 4]))
