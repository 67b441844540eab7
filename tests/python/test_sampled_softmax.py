"""A softmax over the true class and a few sampled ones."""

import numpy as np
import pytest

CLASSES = 20


def run(fluid, fetch, feed):
    return [np.array(one) for one in fluid.Executor(fluid.CPUPlace()).run(feed=feed, fetch_list=fetch)]


def build(fluid, **arguments):
    logits, label = fluid.data("logits", [None, CLASSES]), fluid.data("label", [None, 1], "int64")
    logits.stop_gradient = False
    loss = fluid.layers.sampled_softmax_with_cross_entropy(logits, label, **arguments)
    op = next(op for op in fluid.default_main_program().global_block().ops if op.type == "sample_logits")
    outs = [op.output(slot)[0] for slot in ("Samples", "Probabilities")]
    return [loss] + outs + fluid.gradients(fluid.layers.reduce_sum(loss), [logits])


def feed_of():
    random = np.random.RandomState(5)
    return {"logits": random.randn(4, CLASSES).astype("float32"), "label": np.array([[0], [3], [19], [3]], "int64")}


@pytest.mark.parametrize("removes", [True, False])
def test_the_cost_equals_a_softmax_over_the_samples(fluid, removes):
    feed = feed_of()
    loss, samples, probabilities, slopes = run(
        fluid, build(fluid, num_samples=6, seed=7, remove_accidental_hits=removes), feed
    )
    assert (samples[:, :1] == feed["label"]).all() and (samples[:, 1:] == samples[0, 1:]).all()
    assert len(set(samples[0, 1:])) == 6
    rows = np.arange(4)[:, None]
    corrected = feed["logits"][rows, samples] - np.log(probabilities)
    if removes:
        corrected[:, 1:][samples[:, 1:] == feed["label"]] = -np.inf
    shares = np.exp(corrected - corrected.max(1, keepdims=True))
    shares /= shares.sum(1, keepdims=True)
    np.testing.assert_allclose(loss.ravel(), -np.log(shares[:, 0]), rtol=1e-5)
    expected = np.zeros_like(feed["logits"])
    shares[:, 0] -= 1
    np.add.at(expected, (np.broadcast_to(rows, samples.shape), samples), shares)
    np.testing.assert_allclose(slopes, expected, atol=1e-6)


def test_probabilities_match_the_sampled_frequencies(fluid):
    """One class is drawn with probability q, so the mean over many seeds of its count is q; log-uniform falls."""
    feed, counts = feed_of(), np.zeros(CLASSES)
    fetched = build(fluid, num_samples=1, seed=0)
    exe = fluid.Executor(fluid.CPUPlace())
    prepared = [exe.run(feed=feed, fetch_list=fetched[1:3]) for _ in range(3000)]
    for samples, _ in prepared:
        counts[samples[0, 1]] += 1
    q = np.log((np.arange(CLASSES) + 2) / (np.arange(CLASSES) + 1)) / np.log(CLASSES + 1)
    samples, probabilities = prepared[0]
    np.testing.assert_allclose(probabilities, q[samples], rtol=1e-5)
    assert abs(counts / 3000 - q).max() < 0.04


def test_samples_may_be_given(fluid):
    feed = feed_of()
    feed["samples"] = np.concatenate([feed["label"], np.tile([[1, 2]], (4, 1))], 1).astype("int64")
    feed["probabilities"] = np.full((4, 3), 0.5, "float32")
    samples, probabilities = fluid.data("samples", [None, 3], "int64"), fluid.data("probabilities", [None, 3])
    loss = run(
        fluid,
        build(
            fluid,
            num_samples=2,
            use_customized_samples=True,
            customized_samples=samples,
            customized_probabilities=probabilities,
        )[:1],
        feed,
    )[0]
    chosen = feed["logits"][np.arange(4)[:, None], feed["samples"]]
    np.testing.assert_allclose(loss.ravel(), np.logaddexp.reduce(chosen, 1) - chosen[:, 0], rtol=1e-5)


def test_sampling_all_classes_takes_each_once(fluid):
    samples = run(fluid, build(fluid, num_samples=CLASSES, seed=1)[1:2], feed_of())[0]
    assert sorted(samples[0, 1:]) == list(range(CLASSES))
