"""Decoders compared with NumPy step by step: teacher forcing, greedy, beam search, sampling."""

import numpy as np
import pytest

WORDS, WIDTH, HIDDEN, BATCH = 7, 3, 4, 3
START, END = 0, 1


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softmax(x):
    x = np.exp(x - x.max(-1, keepdims=True))
    return x / x.sum(-1, keepdims=True)


class Network:
    """A GRU on embedded words, and scores of all words, in fluid and, with the same weights, in NumPy."""

    def __init__(self, fluid):
        self.fluid = fluid
        self.cell = fluid.layers.GRUCell(HIDDEN, fluid.ParamAttr(name="w"), fluid.ParamAttr(name="b"))

    def embed(self, ids):
        return self.fluid.embedding(ids, [WORDS, WIDTH], param_attr=self.fluid.ParamAttr(name="words"))

    def scores(self, out):
        return self.fluid.layers.fc(
            out,
            WORDS,
            num_flatten_dims=len(out.shape) - 1,
            bias_attr=False,
            param_attr=self.fluid.ParamAttr(name="scores"),
        )

    def start(self, seed=4):
        """An Executor; draws and keeps the weights."""
        exe = self.fluid.Executor(self.fluid.CPUPlace())
        exe.run(self.fluid.default_startup_program())
        random, self.value = np.random.RandomState(seed), {}
        shapes = {
            "w_gate": (WIDTH + HIDDEN, 2 * HIDDEN),
            "w_candidate": (WIDTH + HIDDEN, HIDDEN),
            "b_gate": (2 * HIDDEN,),
            "b_candidate": (HIDDEN,),
            "words": (WORDS, WIDTH),
            "scores": (HIDDEN, WORDS),
        }
        for name, shape in shapes.items():
            self.value[name] = random.uniform(-2, 2, shape).astype("float32")
            var = self.fluid.global_scope().find_var(name)
            if var is not None:
                var.get_tensor().set(self.value[name], self.fluid.CPUPlace())
        return exe

    def step(self, x, h):
        value = self.value
        r, u = np.split(sigmoid(np.concatenate([x, h], 1) @ value["w_gate"] + value["b_gate"]), 2, 1)
        c = np.tanh(np.concatenate([x, r * h], 1) @ value["w_candidate"] + value["b_candidate"])
        return u * h + (1 - u) * c


H0 = np.random.RandomState(8).randn(BATCH, HIDDEN).astype("float32")


@pytest.mark.parametrize("time_major", [True, False])
@pytest.mark.parametrize("is_test", [True, False])
@pytest.mark.parametrize("impute", [True, False])
def test_training_helper_reads_sequences_to_their_ends(fluid, time_major, is_test, impute):
    net, lengths = Network(fluid), [3, 5, 2]
    x = fluid.data("x", [None, None, WIDTH])
    helper = fluid.layers.TrainingHelper(x, fluid.data("length", [None], "int64"), time_major)
    decoder = fluid.layers.BasicDecoder(net.cell, helper, net.scores)
    h = fluid.data("h", [None, HIDDEN])
    outputs, last, made_lengths = fluid.layers.dynamic_decode(
        decoder, h, output_time_major=time_major, impute_finished=impute, is_test=is_test, return_length=True
    )
    exe = net.start()
    values = np.random.RandomState(1).randn(BATCH, 5, WIDTH).astype("float32")
    got = exe.run(
        feed={"x": values.transpose(1, 0, 2) if time_major else values, "h": H0, "length": np.array(lengths, "int64")},
        fetch_list=[outputs.cell_outputs, outputs.sample_ids, last, made_lengths],
    )
    state, scores = H0, []
    for t in range(5):
        new = net.step(values[:, t], state)
        scores.append(new @ net.value["scores"])
        over = (t >= np.array(lengths))[:, None]
        state = np.where(over, state, new) if impute else new
    scores = np.stack(scores, 0 if time_major else 1)
    np.testing.assert_array_equal(got[3], lengths)
    if impute:  # otherwise results after an end depend on the feeds there, as here
        scores_of_ends = [scores[:n, i] if time_major else scores[i, :n] for i, n in enumerate(lengths)]
        found = [got[0][:n, i] if time_major else got[0][i, :n] for i, n in enumerate(lengths)]
        for one, right in zip(found, scores_of_ends):
            np.testing.assert_allclose(one, right, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(got[2], state, rtol=1e-4, atol=1e-5)
    else:
        np.testing.assert_allclose(got[0], scores, rtol=1e-4, atol=1e-5)
        np.testing.assert_array_equal(got[1], scores.argmax(-1))


def test_a_decoder_trains(fluid):
    fluid.default_startup_program().random_seed = 3
    net = Network(fluid)
    ids = fluid.data("ids", [None, 4], "int64")
    helper = fluid.layers.TrainingHelper(net.embed(ids), fluid.data("length", [None], "int32"))
    decoder = fluid.layers.BasicDecoder(net.cell, helper, net.scores)
    outputs, _ = fluid.layers.dynamic_decode(decoder, fluid.data("h", [None, HIDDEN]))
    loss = fluid.layers.mean(
        fluid.layers.softmax_with_cross_entropy(outputs.cell_outputs, fluid.layers.unsqueeze(ids, [2]))
    )
    fluid.optimizer.Adam(0.1).minimize(loss)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    feed = {
        "ids": np.array([[1, 2, 3, 4], [5, 6, 1, 2], [3, 3, 2, 1]]),
        "length": np.array([4, 4, 4], "int32"),
        "h": H0,
    }
    losses = [exe.run(feed=feed, fetch_list=[loss])[0].item() for _ in range(80)]
    assert losses[-1] < losses[0] / 5


def greedy(net, steps):
    token, state, said, over = np.full(BATCH, START), H0, [], np.zeros(BATCH, bool)
    for _ in range(steps):
        state = net.step(net.value["words"][token], state)
        token = (state @ net.value["scores"]).argmax(-1)
        said.append(token)
        over |= token == END
        if over.all():
            break
    return np.stack(said, 1)


@pytest.mark.parametrize("kind", ["greedy", "cold"])
@pytest.mark.parametrize("is_test", [True, False])
def test_greedy_helper_feeds_the_best_token(fluid, kind, is_test):
    net = Network(fluid)
    tokens = fluid.data("tokens", [None], "int64")
    if kind == "greedy":
        helper = fluid.layers.GreedyEmbeddingHelper(net.embed, tokens, END)
    else:  # at such a low temperature that no other token is drawn
        helper = fluid.layers.SampleEmbeddingHelper(net.embed, tokens, END, softmax_temperature=1e-4, seed=5)
    decoder = fluid.layers.BasicDecoder(net.cell, helper, net.scores)
    outputs, _ = fluid.layers.dynamic_decode(decoder, fluid.data("h", [None, HIDDEN]), max_step_num=5, is_test=is_test)
    exe = net.start()
    (said,) = exe.run(feed={"tokens": np.full(BATCH, START), "h": H0}, fetch_list=[outputs.sample_ids])
    np.testing.assert_array_equal(said, greedy(net, 6))


def test_sampling_helper_draws_tokens_by_probability(fluid):
    net = Network(fluid)
    helper = fluid.layers.SampleEmbeddingHelper(net.embed, fluid.data("tokens", [None], "int64"), END)
    token = helper.sample(None, fluid.data("scores_in", [None, WORDS]), None)
    exe = fluid.Executor(fluid.CPUPlace())
    scores = np.tile(np.linspace(-1, 1, WORDS, dtype="float32"), (4000, 1))
    (drawn,) = exe.run(feed={"scores_in": scores}, fetch_list=[token])
    shares = np.bincount(drawn.ravel(), minlength=WORDS) / 4000
    assert drawn.dtype == "int64" and abs(shares - softmax(scores[0])).max() < 0.05


def beam_search(net, beam, steps):
    """The best sentences of each source, by a reference beam search: [steps, sources, beam]."""
    made = []
    for source in range(BATCH):
        branches = [([START], 0.0 if k == 0 else -1e9, H0[source : source + 1], False) for k in range(beam)]
        for _ in range(steps):
            every = []
            for said, score, state, over in branches:
                new = net.step(net.value["words"][said[-1:]], state)
                log_p = np.log(softmax(new @ net.value["scores"]))[0]
                if over:
                    log_p = np.where(np.arange(WORDS) == END, 0, -1e9)
                every += [(said + [word], score + log_p[word], new, over or word == END) for word in range(WORDS)]
            branches = sorted(every, key=lambda one: -one[1])[:beam]
        made.append([said[1:] for said, _, _, _ in branches])
    return np.array(made).transpose(2, 0, 1)


@pytest.mark.parametrize("is_test", [True, False])
@pytest.mark.parametrize("beam", [1, 3])
def test_a_beam_keeps_the_best_branches(fluid, is_test, beam):
    net = Network(fluid)
    decoder = fluid.layers.BeamSearchDecoder(net.cell, START, END, beam, net.embed, net.scores)
    sentences, states = fluid.layers.dynamic_decode(
        decoder, fluid.data("h", [None, HIDDEN]), max_step_num=3, is_test=is_test, output_time_major=True
    )
    exe = net.start()
    got, lengths = exe.run(feed={"h": H0}, fetch_list=[sentences, states.lengths])
    right = beam_search(net, beam, len(got))
    np.testing.assert_array_equal(got, right)
    ends = (right == END).cumsum(0) - (right == END)  # ends before a step
    np.testing.assert_array_equal(lengths, (ends == 0).sum(0))


def test_rows_are_repeated_for_each_branch(fluid):
    x = fluid.data("x", [None, 2, 3])
    tiled = fluid.layers.BeamSearchDecoder.tile_beam_merge_with_batch(x, 3)
    values = np.arange(24, dtype="float32").reshape(4, 2, 3)
    (got,) = fluid.Executor(fluid.CPUPlace()).run(feed={"x": values}, fetch_list=[tiled])
    np.testing.assert_array_equal(got, values.repeat(3, 0))


def test_an_abstract_decoder_is_refused(fluid):
    decoder = fluid.layers.Decoder()
    with pytest.raises(NotImplementedError, match="Decoder does not define initialize"):
        fluid.layers.dynamic_decode(decoder)
    with pytest.raises(NotImplementedError, match="Decoder does not define step"):
        decoder.step(None, None, None)
