"""Sequence layers: values of layers for which the corpus has no recorded call, and trainings whose sequence lengths
change in each step."""

import numpy as np
import pytest


def lod_tensor(fluid, rows, lengths):
    return fluid.create_lod_tensor(np.array(rows), [lengths], fluid.CPUPlace())


def tokens(fluid, *sequences):
    return lod_tensor(
        fluid,
        np.array([[one] for sequence in sequences for one in sequence], "int64").reshape(-1, 1),
        [len(sequence) for sequence in sequences],
    )


def run(fluid, feed, fetch, return_numpy=False):
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    return exe.run(feed=feed, fetch_list=fetch, return_numpy=return_numpy)


def values(tensor):
    return np.array(tensor).ravel().tolist()


def test_sequence_slice_enumerate_reverse_and_edit_distance_work(fluid):
    x, y = fluid.data("x", [None, 1], "int64", 1), fluid.data("y", [None, 1], "int64", 1)
    offset, length = fluid.data("offset", [None, 1], "int64"), fluid.data("length", [None, 1], "int64")
    layers = fluid.layers
    fetch = [
        layers.sequence_slice(x, offset, length),
        layers.sequence_enumerate(x, 2, pad_value=7),
        layers.sequence_reverse(x),
        layers.edit_distance(x, y, normalized=False)[0],
        layers.edit_distance(x, y, normalized=True, ignored_tokens=[2])[0],
    ]
    part, windows, turned, distance, ignoring = run(
        fluid,
        {
            "x": tokens(fluid, [1, 2, 3], [4]),
            "y": tokens(fluid, [1, 3], [5, 6]),
            "offset": np.array([[1], [0]]),
            "length": np.array([[2], [0]]),
        },
        fetch,
    )
    assert values(part) == [2, 3] and part.recursive_sequence_lengths() == [[2, 0]]
    assert np.array(windows).tolist() == [[1, 2], [2, 3], [3, 7], [4, 7]]
    assert values(turned) == [3, 2, 1, 4]
    assert values(distance) == [1, 2]
    assert values(ignoring) == [0, 1]


def test_sequences_are_padded_masked_and_unpadded(fluid):
    x = fluid.data("x", [None, 2], "float32", 1)
    padded, length = fluid.layers.sequence_pad(x, fluid.layers.fill_constant([1], "float32", 9))
    mask = fluid.layers.sequence_mask(length, dtype="float32")
    again = fluid.layers.sequence_unpad(padded, length)
    rows = np.arange(6, dtype="float32").reshape(3, 2)
    out = run(fluid, {"x": lod_tensor(fluid, rows, [1, 2])}, [padded, length, mask, again])
    assert np.array(out[0]).tolist() == [[[0, 1], [9, 9]], [[2, 3], [4, 5]]]
    assert values(out[1]) == [1, 2]
    assert np.array(out[2]).tolist() == [[1, 0], [1, 1]]
    assert np.array(out[3]).tolist() == rows.tolist() and out[3].recursive_sequence_lengths() == [[1, 2]]


def test_fill_constant_batch_size_like_counts_sequences(fluid):
    x = fluid.data("x", [None, 1], "int64", 1)
    layers = fluid.layers
    starts = layers.fill_constant_batch_size_like(x, [-1, 2], "float32", 0.5)
    turned = layers.fill_constant_batch_size_like(x, [2, -1], "int64", 3, output_dim_idx=1)
    twice = layers.scale(starts, 2.0)
    for sequences in ([1, 2, 3], [4]), ([1], [2, 3], [], [4]):
        made = run(fluid, {"x": tokens(fluid, *sequences)}, [starts, turned, twice], return_numpy=True)
        assert [array.shape for array in made] == [(len(sequences), 2), (2, len(sequences)), (len(sequences), 2)]
        assert (made[0] == 0.5).all() and (made[1] == 3).all() and (made[2] == 1).all()


def test_lod_levels_are_set_and_appended(fluid):
    x = fluid.data("x", [None, 1], "int64", 1)
    reset = fluid.layers.lod_reset(x, target_lod=[0, 1, 3])
    feed = {"x": tokens(fluid, [1, 2, 3])}
    deeper = fluid.layers.lod_append(reset, [0, 2, 2, 3])
    assert deeper.lod_level == 2
    out, deep = run(fluid, feed, [reset, deeper])
    assert out.recursive_sequence_lengths() == [[1, 2]]
    assert deep.recursive_sequence_lengths() == [[1, 2], [2, 0, 1]]
    with pytest.raises(ValueError, match="give y or target_lod"):
        fluid.layers.lod_reset(x)


def test_flattening_rows_drops_the_lod(fluid):
    x = fluid.data("x", [None, 2, 4], lod_level=1)
    flat = [fluid.layers.flatten(x, axis) for axis in (0, 1, 2, 3)]
    assert [(out.shape, out.lod_level) for out in flat] == [((1, -1), 0), ((-1, 8), 1), ((-1, 4), 0), ((-1, 1), 0)]
    got = run(fluid, {"x": lod_tensor(fluid, np.ones((3, 2, 4), "float32"), [1, 2])}, flat)
    assert [out.recursive_sequence_lengths() for out in got] == [[], [[1, 2]], [], []]


def test_a_lod_level_must_match_the_level_above(fluid):
    x = fluid.data("x", [None, 1], "int64", 1)
    appended = fluid.layers.lod_append(x, [0, 1, 3])
    with pytest.raises(ValueError, match="level 0 of its sequences ends at 3; it must end at 2"):
        run(fluid, {"x": tokens(fluid, [1, 2, 3])}, [appended])


def test_a_dynamic_rnn_runs_over_the_sentences_of_paragraphs(fluid):
    layers = fluid.layers
    x = fluid.data("x", [None, 1], lod_level=2)
    x.stop_gradient = False
    rnn = layers.DynamicRNN()
    with rnn.block():
        sentence = rnn.step_input(x)
        before = rnn.memory(shape=[1], value=10.0)
        total = layers.sequence_pool(sentence, "sum") + before
        rnn.update_memory(before, total)
        rnn.output(total)
    out = rnn()
    (grad,) = fluid.gradients(layers.reduce_sum(layers.square(out)), x)
    words = np.arange(1, 7, dtype="float32").reshape(6, 1)
    lengths = [[1, 2], [3, 1, 2]]
    feed = {"x": fluid.create_lod_tensor(words, lengths, fluid.CPUPlace())}
    got, grad = run(fluid, feed, [out, grad])
    assert values(got) == [16, 14, 25] and got.recursive_sequence_lengths() == [[1, 2]]
    assert values(grad) == [32, 32, 32, 28 + 50, 50, 50] and grad.recursive_sequence_lengths() == lengths


def test_ctc_greedy_decoder_aligns_labels(fluid):
    x = fluid.data("x", [None, 3], "float32", 1)
    rows = np.eye(3, dtype="float32")[[0, 1, 1, 0, 2, 2, 0]]
    (out,) = run(fluid, {"x": lod_tensor(fluid, rows, [4, 3])}, [fluid.layers.ctc_greedy_decoder(x, blank=0)])
    assert values(out) == [1, 2] and out.recursive_sequence_lengths() == [[1, 1]]


def test_crf_decoding_finds_the_best_path(fluid):
    x = fluid.data("x", [None, 2], "float32", 1)
    weights = np.array([[0, 0], [0, 0], [1, 0], [0, 1]], "float32")  # it is better to stay
    fluid.layers.create_parameter(
        [4, 2],
        "float32",
        attr=fluid.ParamAttr(name="chain", initializer=fluid.initializer.NumpyArrayInitializer(weights)),
    )
    path = fluid.layers.crf_decoding(x, fluid.ParamAttr(name="chain"))
    rows = np.array([[1, 0], [0, 0.5], [1, 0], [0, 1]], "float32")
    (out,) = run(fluid, {"x": lod_tensor(fluid, rows, [3, 1])}, [path])
    assert values(out) == [0, 0, 0, 1]
    with pytest.raises(ValueError, match="the program has no parameter other"):
        fluid.layers.crf_decoding(x, fluid.ParamAttr(name="other"))


def test_im2sequence_makes_a_sequence_of_windows(fluid):
    x = fluid.data("x", [None, 1, 3, 3])
    image = np.arange(9, dtype="float32").reshape(1, 1, 3, 3)
    (out,) = run(fluid, {"x": image}, [fluid.layers.im2sequence(x, filter_size=2)])
    assert np.array(out).tolist() == [[0, 1, 3, 4], [1, 2, 4, 5], [3, 4, 6, 7], [4, 5, 7, 8]]
    assert out.recursive_sequence_lengths() == [[4]]


def test_im2sequence_supports_images_of_different_sizes(fluid):
    x, sizes = fluid.data("x", [None, 1, 3, 3]), fluid.data("sizes", [None, 2])
    rows = fluid.layers.im2sequence(x, filter_size=2, input_image_size=sizes, out_stride=2)
    images = np.arange(18, dtype="float32").reshape(2, 1, 3, 3)
    (out,) = run(fluid, {"x": images, "sizes": np.array([[4, 6], [6, 4]], "float32")}, [rows])  # 2 x 3 and 3 x 2
    assert np.array(out).tolist() == [[0, 1, 3, 4], [1, 2, 4, 5], [9, 10, 12, 13], [12, 13, 15, 16]]
    assert out.recursive_sequence_lengths() == [[2, 2]]


def model(fluid, recurrent):
    ids = fluid.data("ids", [None, 1], "int64", 1)
    label = fluid.data("label", [None, 1], "int64")
    words = fluid.layers.embedding(ids, [10, 8])
    features = recurrent(words)
    prediction = fluid.layers.fc(features, 2, act="softmax")
    return fluid.layers.mean(fluid.layers.cross_entropy(prediction, label))


def pooled(layer):
    return lambda fluid, words: fluid.layers.sequence_pool(layer(fluid, words), "max")


def single_steps(fluid, words):
    first = fluid.layers.sequence_first_step(words)
    last = fluid.layers.sequence_last_step(words)
    state = fluid.layers.lstm_unit(first, last, last)
    return fluid.layers.gru_unit(fluid.layers.fc(first, 24), state[0], 24)[0] + state[1]


NETS = {
    "lstm": pooled(lambda fluid, words: fluid.layers.dynamic_lstm(fluid.layers.fc(words, 16), 16)[0]),
    "lstm cell": pooled(lambda fluid, words: fluid.layers.dynamic_lstm(fluid.layers.fc(words, 16), 16)[1]),
    "lstmp": pooled(lambda fluid, words: fluid.layers.dynamic_lstmp(fluid.layers.fc(words, 16), 16, 3)[0]),
    "gru": pooled(lambda fluid, words: fluid.layers.dynamic_gru(fluid.layers.fc(words, 12), 4, is_reverse=True)),
    "conv": lambda fluid, words: fluid.nets.sequence_conv_pool(words, 6, 3, act="tanh"),
    "row_conv": pooled(lambda fluid, words: fluid.layers.row_conv(words, 2)),
    "single steps": single_steps,
    "softmax": pooled(lambda fluid, words: words * fluid.layers.sequence_softmax(fluid.layers.fc(words, 1))),
    "reversed": pooled(
        lambda fluid, words: fluid.layers.sequence_concat([words, fluid.layers.sequence_reverse(words)])
    ),
    "expanded": pooled(
        lambda fluid, words: words + fluid.layers.sequence_expand(fluid.layers.sequence_pool(words, "average"), words)
    ),
}


# The label is whether the token 3 occurs: every one of these can learn that.
@pytest.mark.parametrize("net", NETS)
def test_a_sequence_network_trains(fluid, net):
    loss = model(fluid, lambda words: NETS[net](fluid, words))
    fluid.default_startup_program().random_seed = 5
    fluid.optimizer.Adam(0.05).minimize(loss)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    random = np.random.RandomState(1)
    losses = []
    for _ in range(40):
        sequences = [random.randint(1, 6, random.randint(1, 6)).tolist() for _ in range(16)]
        label = np.array([[int(3 in sequence)] for sequence in sequences])
        feed = {"ids": tokens(fluid, *sequences), "label": label}
        losses.append(exe.run(feed=feed, fetch_list=[loss])[0].item())
    assert np.mean(losses[-5:]) < 0.8 * np.mean(losses[:5]), losses


# With the same initial values the gradients are those of central differences, also through the cell alone.
def test_the_gradient_of_the_cell_output_is_used(fluid):
    x = fluid.data("x", [None, 8], "float32", 1)
    x.stop_gradient = False
    _, cell = fluid.layers.dynamic_lstm(x, 8)
    loss = fluid.layers.reduce_sum(cell)
    fluid.backward.append_backward(loss)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    rows = np.random.RandomState(0).uniform(-1, 1, (3, 8)).astype("float32")

    def at(rows, fetch):
        feed = {"x": lod_tensor(fluid, rows, [1, 2])}
        return np.array(exe.run(feed=feed, fetch_list=[fetch], return_numpy=False)[0])

    given = at(rows, "x@GRAD")
    for i, j in ((0, 0), (1, 3), (2, 7)):
        step = np.zeros_like(rows)
        step[i, j] = 1e-2
        numeric = (at(rows + step, loss) - at(rows - step, loss)).item() / 2e-2
        np.testing.assert_allclose(given[i, j], numeric, rtol=1e-2, atol=1e-3)
