"""Losses and metrics of labelled sequences, compared with an enumeration of all paths or alignments."""

import itertools

import numpy as np
import penstock
import pytest

LENGTHS = [3, 0, 4, 1]


def run(fluid, fetch, feed, **parameters):
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    for name, value in parameters.items():
        fluid.global_scope().find_var(name).get_tensor().set(value, fluid.CPUPlace())
    return [np.array(one) for one in exe.run(feed=feed, fetch_list=fetch, return_numpy=False)]


def in_sequences(fluid, padded, lengths):
    """The rows of padded values, without the padding."""
    rows = np.concatenate([padded[i, :length] for i, length in enumerate(lengths)])
    return fluid.create_lod_tensor(rows.reshape(len(rows), -1), [lengths], fluid.CPUPlace())


def fed(fluid, padded, lengths, as_rows):
    """(name, Variable, value) of a batch in either form."""
    dtype = str(padded.dtype)
    if not as_rows:
        return fluid.data(f"padded_{padded.ndim}", [None] * (padded.ndim - 1) + [padded.shape[-1]], dtype), padded
    width = padded.shape[-1] if padded.ndim > 2 else 1
    return fluid.data(f"rows_{padded.ndim}", [None, width], dtype, lod_level=1), in_sequences(fluid, padded, lengths)


def crf_costs(scores, tags, lengths, weights):
    """The cost of each sequence and its derivatives by central differences of these, path by path."""

    def cost(x, path):
        def score(y):
            inner = sum(x[i, t] for i, t in enumerate(y)) + sum(weights[2 + a, b] for a, b in zip(y, y[1:]))
            return weights[0, y[0]] + inner + weights[1, y[-1]]

        if not len(path):
            return 0.0
        every = [score(y) for y in itertools.product(range(x.shape[1]), repeat=len(x))]
        return np.logaddexp.reduce(every) - score(list(path))

    return [cost(scores[i, :n].astype("float64"), tags[i, :n]) for i, n in enumerate(lengths)]


@pytest.mark.parametrize("as_rows", [True, False])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_crf_cost_sums_over_all_paths(fluid, as_rows, dtype):
    random = np.random.RandomState(1)
    scores = random.uniform(-2, 2, (4, 4, 3)).astype(dtype)
    tags = random.randint(0, 3, (4, 4)).astype("int64")
    weights = random.uniform(-1, 1, (5, 3)).astype(dtype)
    x, of_x = fed(fluid, scores, LENGTHS, as_rows)
    y, of_y = fed(fluid, tags, LENGTHS, as_rows)
    x.stop_gradient = False
    feed = {x.name: of_x, y.name: of_y}
    length = None
    if not as_rows:
        length = fluid.data("length", [None, 1], "int64")
        feed["length"] = np.array(LENGTHS, "int64").reshape(-1, 1)
    cost = fluid.layers.linear_chain_crf(x, y, fluid.ParamAttr(name="w"), length)
    w = fluid.default_main_program().global_block().var("w")
    grads = fluid.gradients(fluid.layers.reduce_sum(cost), [x, w])
    got, by_x, by_w = run(fluid, [cost] + grads, feed, w=weights)
    np.testing.assert_allclose(got.ravel(), crf_costs(scores, tags, LENGTHS, weights), rtol=2e-5)

    def differences(values, total):
        slopes, step = np.zeros_like(values, "float64"), 1e-5
        for at in np.ndindex(*values.shape):
            up, down = values.astype("float64"), values.astype("float64")
            up[at] += step
            down[at] -= step
            slopes[at] = (total(up) - total(down)) / (2 * step)
        return slopes

    right = differences(scores, lambda values: sum(crf_costs(values, tags, LENGTHS, weights)))
    if as_rows:
        right = np.array(in_sequences(fluid, right, LENGTHS))
    np.testing.assert_allclose(by_x, right, atol=2e-5)
    np.testing.assert_allclose(
        by_w, differences(weights, lambda w: sum(crf_costs(scores, tags, LENGTHS, w))), atol=5e-5
    )


def test_a_crf_learns_tags_that_crf_decoding_finds(fluid):
    fluid.default_main_program().random_seed = fluid.default_startup_program().random_seed = 3
    words = fluid.data("words", [None, 1], "int64", lod_level=1)
    tags = fluid.data("tags", [None, 1], "int64", lod_level=1)
    scores = fluid.layers.embedding(words, [8, 4])
    cost = fluid.layers.mean(fluid.layers.linear_chain_crf(scores, tags, fluid.ParamAttr(name="crfw")))
    agrees = fluid.layers.crf_decoding(scores, fluid.ParamAttr(name="crfw"), tags)
    fluid.optimizer.SGD(0.5).minimize(cost)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    ids = np.arange(8, dtype="int64").reshape(-1, 1)
    feed = {
        "words": fluid.create_lod_tensor(ids, [[5, 3]], fluid.CPUPlace()),
        "tags": fluid.create_lod_tensor(ids % 4, [[5, 3]], fluid.CPUPlace()),
    }
    costs = []
    for _ in range(40):
        value, right = exe.run(feed=feed, fetch_list=[cost, agrees], return_numpy=False)
        costs.append(np.array(value).item())
    assert costs[-1] < costs[0] / 5 and np.array(right).all()


def ctc_costs(logits, labels, blank):
    """-log of the sum over all alignments of a label."""

    def said(way):
        return [c for i, c in enumerate(way) if c != blank and (i == 0 or way[i - 1] != c)]

    costs = []
    for x, label in zip(logits, labels):
        log_p = x - np.logaddexp.reduce(x, axis=1, keepdims=True)
        ways = [
            sum(log_p[t, c] for t, c in enumerate(way))
            for way in itertools.product(range(x.shape[1]), repeat=len(x))
            if said(way) == list(label)
        ]
        costs.append(-np.logaddexp.reduce(ways) if ways else 0.0)
    return costs


@pytest.mark.parametrize("as_rows", [True, False])
@pytest.mark.parametrize("blank", [0, 2])
@pytest.mark.parametrize("norm_by_times", [True, False])
def test_the_ctc_cost_sums_over_all_alignments(fluid, as_rows, blank, norm_by_times):
    steps, say = [5, 4, 3, 2], [[1, 3], [3, 3], [], [1, 1]]  # the last has too few steps
    logits = np.random.RandomState(2).uniform(-2, 2, (4, 5, 4)).astype("float32")
    labels = np.zeros((4, 2), "int32")
    for i, label in enumerate(say):
        labels[i, : len(label)] = label
    lengths = [len(label) for label in say]
    if as_rows:
        x, of_x = fed(fluid, logits, steps, True)
        y, of_y = fed(fluid, labels, lengths, True)
        feed, more = {x.name: of_x, y.name: of_y}, {}
    else:
        x, y = fluid.data("x", [None, None, 4]), fluid.data("y", [None, None], "int32")
        more = {name: fluid.data(name, [None], "int64") for name in ("input_length", "label_length")}
        feed = {
            "x": logits.transpose(1, 0, 2),
            "y": labels,
            "input_length": np.array(steps, "int64"),
            "label_length": np.array(lengths, "int64"),
        }
    x.stop_gradient = False
    cost = fluid.layers.warpctc(x, y, blank, norm_by_times, **more)
    weighted = fluid.layers.reduce_sum(cost * fluid.layers.assign(np.array([[1], [2], [3], [4]], "float32")))
    got, slopes = run(fluid, [cost] + fluid.gradients(weighted, [x]), feed)

    def costs(values):
        return np.array(ctc_costs([values[i, :n] for i, n in enumerate(steps)], say, blank))

    np.testing.assert_allclose(got.ravel(), costs(logits.astype("float64")), rtol=1e-5)
    right, values, step = np.zeros(logits.shape), logits.astype("float64"), 1e-5
    for i, t, c in np.ndindex(*logits.shape):
        values[i, t, c] += step
        up = costs(values)[i]
        values[i, t, c] -= 2 * step
        right[i, t, c] = (i + 1) * (up - costs(values)[i]) / (2 * step) / (steps[i] if norm_by_times else 1)
        values[i, t, c] += step
    right = np.array(in_sequences(fluid, right, steps)) if as_rows else right.transpose(1, 0, 2)
    np.testing.assert_allclose(slopes, right, atol=3e-5)


def chunks_of(labels, scheme, types):
    """{(first, last, type)}: places where a chunk opens or closes by the tags' letters, looked at in pairs."""
    letters = {"IOB": "BI", "IOE": "IE", "IOBES": "BIES", "plain": "I"}[scheme]
    places = [
        ("O", None) if label == types * len(letters) else (letters[label % len(letters)], label // len(letters))
        for label in labels
    ]
    places = [("O", None)] + places + [("O", None)]
    found, first = set(), None
    for i in range(1, len(places)):
        (before, of_before), (now, of_now) = places[i - 1], places[i]
        cut = before in "ES" or now in "BS" or of_before != of_now
        if first is not None and cut:
            found.add((first, i - 2, of_before))
            first = None
        if first is None and now != "O":
            first = i - 1
    return found


@pytest.mark.parametrize("as_rows", [True, False])
@pytest.mark.parametrize("excluded", [None, [1]])
@pytest.mark.parametrize("scheme, tags", [("IOB", 2), ("IOE", 2), ("IOBES", 4), ("plain", 1)])
def test_chunk_eval_counts_chunks(fluid, as_rows, excluded, scheme, tags):
    random, lengths = np.random.RandomState(4), [9, 0, 12, 1]
    right = random.randint(0, 3 * tags + 1, (4, 12)).astype("int64")
    found = np.where(random.rand(4, 12) < 0.8, right, random.randint(0, 3 * tags + 1, (4, 12))).astype("int64")
    if as_rows:
        x, y = (fluid.data(name, [None, 1], "int64", lod_level=1) for name in "xy")
        feed = {"x": in_sequences(fluid, found, lengths), "y": in_sequences(fluid, right, lengths)}
    else:
        x, y = (fluid.data(name, [None, 12], "int64") for name in "xy")
        feed = {"x": found, "y": right, "n": np.array(lengths, "int64")}
    length = None if as_rows else fluid.data("n", [None], "int64")
    got = run(fluid, list(fluid.layers.chunk_eval(x, y, scheme, 3, excluded, length)), feed)
    counts = np.zeros(3, int)
    for i, n in enumerate(lengths):
        a, b = (
            {chunk for chunk in chunks_of(labels[i, :n], scheme, 3) if chunk[2] not in (excluded or ())}
            for labels in (found, right)
        )
        counts += len(a), len(b), len(a & b)
    assert [one.item() for one in got[3:]] == list(counts) and counts.min() > 0
    precision, recall = counts[2] / counts[0], counts[2] / counts[1]
    np.testing.assert_allclose(
        [one.item() for one in got[:3]], [precision, recall, 2 * precision * recall / (precision + recall)], rtol=1e-6
    )


def test_labels_out_of_range_are_reported(fluid):
    x, y = (fluid.data(name, [None, 1], "int64", lod_level=1) for name in "xy")
    outputs = fluid.layers.chunk_eval(x, y, "IOB", 2)
    good = fluid.create_lod_tensor(np.array([[0], [4]], "int64"), [[2]], fluid.CPUPlace())
    bad = fluid.create_lod_tensor(np.array([[0], [5]], "int64"), [[2]], fluid.CPUPlace())
    with pytest.raises(penstock.ProgramError, match=r"chunk_eval: Label has label 5; it must be in \[0, 4\]"):
        run(fluid, list(outputs), {"x": good, "y": bad})
