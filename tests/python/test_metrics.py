"""Metrics accumulate over batches; initial values that are computed in Python."""

import numpy as np
import pytest

PREDS = np.array([[0.1], [0.7], [0.8], [0.9], [0.2], [0.2], [0.3], [0.5], [0.8], [0.6]])
LABELS = np.array([[0], [1], [1], [1], [1], [0], [0], [0], [0], [0]])


def test_precision_and_recall_accumulate_and_reset(fluid):
    both = fluid.metrics.CompositeMetric()
    both.add_metric(fluid.metrics.Precision())
    both.add_metric(fluid.metrics.Recall())
    for part in (slice(0, 4), slice(4, 10)):
        both.update(PREDS[part], LABELS[part])
    assert both.eval() == [3 / 5, 3 / 4]
    both.reset()
    assert both.eval() == [0.0, 0.0]
    with pytest.raises(ValueError, match="3 predictions, but 4 labels"):
        both.update(PREDS[:3], LABELS[:4])
    with pytest.raises(ValueError, match="add_metric takes a metric, not"):
        both.add_metric(len)


def test_accuracy_weights_batches(fluid):
    accuracy = fluid.metrics.Accuracy()
    with pytest.raises(ValueError, match="no batch has been added"):
        accuracy.eval()
    accuracy.update(np.array([0.5], "float32"), 2)
    accuracy.update(0.8, weight=6)
    np.testing.assert_allclose(accuracy.eval(), (0.5 * 2 + 0.8 * 6) / 8)
    assert accuracy.get_config()["states"]["weight"] == 8 and str(accuracy) == "Accuracy"
    with pytest.raises(ValueError, match="negative"):
        accuracy.update(0.5, -1)
    with pytest.raises(ValueError, match="value must be a number"):
        accuracy.update("0.5", 1)
    accuracy.reset()
    with pytest.raises(ValueError, match="no batch has been added"):
        accuracy.eval()


def test_chunk_and_edit_distance_metrics_accumulate(fluid):
    chunks = fluid.metrics.ChunkEvaluator("chunks")
    assert chunks.eval() == (0.0, 0.0, 0.0)
    chunks.update(10, 9, 6)
    chunks.update(np.array([5]), np.array([3]), np.array([2]))
    precision, recall, f1 = chunks.eval()
    np.testing.assert_allclose([precision, recall, f1], [8 / 15, 8 / 12, 2 * (8 / 15) * (8 / 12) / (8 / 15 + 8 / 12)])
    distance = fluid.metrics.EditDistance("distance")
    with pytest.raises(ValueError, match="no batch has been added"):
        distance.eval()
    distance.update(np.array([[1.0], [0.0], [3.0]]), 3)
    distance.update(np.array([[0.0]]), 1)
    assert distance.eval() == (1.0, 0.5)


def test_auc_is_the_probability_of_correct_ranking(fluid):
    random = np.random.RandomState(0)
    auc = fluid.metrics.Auc("auc")
    assert auc.eval() == 0.0
    scores, labels = random.rand(400), random.rand(400) < 0.3
    scores[labels] = scores[labels] ** 0.5
    for part in (slice(0, 150), slice(150, 400)):
        auc.update(np.stack([1 - scores[part], scores[part]], 1), labels[part, None].astype("int64"))
    bins = np.floor(scores * 4095)
    above = bins[labels][:, None] - bins[~labels][None, :]
    np.testing.assert_allclose(auc.eval(), np.mean((above > 0) + 0.5 * (above == 0)), rtol=1e-12)
    auc.reset()
    assert auc.eval() == 0.0
    with pytest.raises(ValueError, match="probabilities"):
        auc.update(np.array([[0.0, 1.5]]), np.array([[1]]))


def test_precision_recall_auc_averages_precision_at_positives(fluid):
    auc = fluid.metrics.Auc("auc", curve="PR")
    assert auc.eval() == 0.0
    scores, labels = np.array([0.9, 0.8, 0.7, 0.2]), np.array([[0], [1], [1], [0]])
    auc.update(np.stack([1 - scores, scores], 1), labels)
    np.testing.assert_allclose(auc.eval(), (1 / 2 + 2 / 3) / 2)
    with pytest.raises(ValueError, match="must be 'ROC' or 'PR'"):
        fluid.metrics.Auc("auc", curve="AP")


def test_weighted_average_is_elementwise(fluid):
    average = fluid.average.WeightedAverage()
    with pytest.raises(ValueError, match="nothing has been added"):
        average.eval()
    average.add(np.array([1.0, 2.0]), 1)
    average.add(np.array([3.0, 6.0]), 3)
    np.testing.assert_allclose(average.eval(), [2.5, 5.0])
    average.reset()
    average.add(4.0, weight=0)
    with pytest.raises(ValueError, match="add up to 0"):
        average.eval()


def test_the_bilinear_initializer_upsamples_linearly(fluid):
    attr = fluid.ParamAttr(name="up", initializer=fluid.initializer.Bilinear())
    fluid.layers.create_parameter([1, 1, 4, 4], "float32", attr=attr)
    fluid.Executor().run(fluid.default_startup_program())
    along = np.array([0.25, 0.75, 0.75, 0.25])
    np.testing.assert_allclose(np.array(fluid.global_scope().find_var("up").get_tensor())[0, 0], np.outer(along, along))
    with pytest.raises(ValueError, match="fills"):
        fluid.layers.create_parameter(
            [1, 1, 4, 3], "float32", attr=fluid.ParamAttr(initializer=fluid.initializer.Bilinear())
        )


def test_the_auc_layer_and_metric_agree_on_precision_recall(fluid):
    scores, labels = fluid.data("scores", [None, 2], "float32"), fluid.data("labels", [None, 1], "int64")
    area, _, _ = fluid.layers.auc(scores, labels, curve="PR")
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    random = np.random.RandomState(1)
    positive = random.rand(50).astype("float32")
    feed = {"scores": np.stack([1 - positive, positive], 1), "labels": (random.rand(50, 1) < 0.4).astype("int64")}
    metric = fluid.metrics.Auc("auc", curve="PR")
    metric.update(feed["scores"], feed["labels"])
    np.testing.assert_allclose(exe.run(feed=feed, fetch_list=[area])[0], [metric.eval()], rtol=1e-12)
