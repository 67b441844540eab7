"""Decoders of a StateCell compared with NumPy: teacher forcing over sentences of different length, and beam search."""

import numpy as np
import pytest

WORDS, WIDTH, HIDDEN = 9, 3, 4
START, END = 0, 1
LENGTHS = [2, 5, 3]


def softmax(x):
    x = np.exp(x - x.max(-1, keepdims=True))
    return x / x.sum(-1, keepdims=True)


class Network:
    """A tanh recurrence on embedded words, which may read a constant input too, in fluid and, with the same weights, in
    NumPy. Parameters have the names that they get by default."""

    def __init__(self, fluid, with_constant=False):
        self.fluid = fluid
        self.with_constant = with_constant
        self.encoded = fluid.data("encoded", [None, HIDDEN])

    def cell(self):
        decoder = self.fluid.contrib.decoder
        inputs = {"word": None, "constant": None} if self.with_constant else {"word": None}
        cell = decoder.StateCell(
            inputs=inputs, out_state="h", states={"h": decoder.InitState(init=self.encoded, need_reorder=True)}
        )

        @cell.state_updater
        def update(cell):
            parts = [cell.get_state("h"), cell.get_input("word")]
            if self.with_constant:
                parts.append(cell.get_input("constant"))
            cell.set_state("h", self.fluid.layers.fc(parts, HIDDEN, act="tanh"))

        return cell

    def constants(self):
        return {"constant": self.encoded} if self.with_constant else {}

    def training(self):
        """The probabilities of all words at each step of the given sentences."""
        words = self.fluid.data("words", [None, 1], "int64", lod_level=1)
        embedded = self.fluid.layers.embedding(words, [WORDS, WIDTH])
        decoder = self.fluid.contrib.decoder.TrainingDecoder(self.cell())
        with decoder.block():
            inputs = {"word": decoder.step_input(embedded)}
            for name, value in self.constants().items():
                inputs[name] = decoder.static_input(value)
            decoder.state_cell.compute_state(inputs=inputs)
            out = self.fluid.layers.fc(decoder.state_cell.get_state("h"), WORDS, act="softmax")
            decoder.state_cell.update_states()
            decoder.output(out)
        return decoder()

    def search(self, beam, max_len):
        first = self.fluid.data("first", [None, 1], "int64", lod_level=2)
        score = self.fluid.data("score", [None, 1], lod_level=2)
        decoder = self.fluid.contrib.decoder.BeamSearchDecoder(
            self.cell(),
            first,
            score,
            WORDS,
            WIDTH,
            input_var_dict=self.constants(),
            topk_size=WORDS,
            max_len=max_len,
            beam_size=beam,
            end_id=END,
        )
        decoder.decode()
        return decoder()

    def start(self, seed=4):
        """An Executor; draws the weights, and keeps them in the order in which they were made."""
        exe = self.fluid.Executor(self.fluid.CPUPlace())
        exe.run(self.fluid.default_startup_program())
        random = np.random.RandomState(seed)
        self.weights = []
        for parameter in self.fluid.default_main_program().all_parameters():
            value = random.uniform(-2, 2, parameter.shape).astype("float32")
            self.fluid.global_scope().find_var(parameter.name).get_tensor().set(value, self.fluid.CPUPlace())
            self.weights.append(value)
        return exe

    def step(self, word, state, constant):
        """The next state, and the probabilities of all words."""
        words, *cell, bias, out, out_bias = self.weights
        parts = [state, words[word], constant]
        state = np.tanh(sum(x @ w for x, w in zip(parts, cell)) + bias)
        return state, softmax(state @ out + out_bias)

    def beams(self, state, beam, max_len):
        """[(words, score)] of one sentence, best first."""
        constant, live = state, [([START], 1.0, state)]
        for _ in range(max_len):
            grown = []
            for words, score, state in live:
                if words[-1] == END and len(words) > 1:
                    grown.append((words, score, state, True))
                    continue
                state, p = self.step(words[-1], state, constant)
                grown += [(words + [w], score + np.log(p[w]), state, False) for w in range(WORDS)]
            grown.sort(key=lambda each: -each[1])
            live = [(words, score, state) for words, score, state, _ in grown[:beam]]
            if all(words[-1] == END for words, _, _ in live):
                break
        return [(words, score) for words, score, _ in live]


ENCODED = np.random.RandomState(8).uniform(-1, 1, (len(LENGTHS), HIDDEN)).astype("float32")


@pytest.mark.parametrize("with_constant", [False, True])
def test_training_reads_the_given_words(fluid, with_constant):
    network = Network(fluid, with_constant)
    out = network.training()
    exe = network.start()
    words = np.random.RandomState(3).randint(0, WORDS, (sum(LENGTHS), 1))
    feed = {"encoded": ENCODED, "words": fluid.create_lod_tensor(words, [LENGTHS], fluid.CPUPlace())}
    (got,) = exe.run(feed=feed, fetch_list=[out], return_numpy=False)
    assert got.recursive_sequence_lengths() == [LENGTHS]
    expected, row = [], 0
    for sentence, length in enumerate(LENGTHS):
        state = ENCODED[sentence]
        for word in words[row : row + length, 0]:
            state, p = network.step(word, state, ENCODED[sentence])
            expected.append(p)
        row += length
    np.testing.assert_allclose(np.array(got), expected, rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("with_constant", [False, True])
@pytest.mark.parametrize("beam", [1, 2, 3])
def test_beam_search_equals_numpy(fluid, beam, with_constant, max_len=6):
    network = Network(fluid, with_constant)
    ids, scores = network.search(beam, max_len)
    exe = network.start()
    ones = [[1] * len(LENGTHS)] * 2
    feed = {
        "encoded": ENCODED,
        "first": fluid.create_lod_tensor(np.full((len(LENGTHS), 1), START, "int64"), ones, fluid.CPUPlace()),
        "score": fluid.create_lod_tensor(np.ones((len(LENGTHS), 1), "float32"), ones, fluid.CPUPlace()),
    }
    ids, scores = exe.run(feed=feed, fetch_list=[ids, scores], return_numpy=False)
    sentences = np.split(np.array(ids).ravel(), ids.lod()[1][1:-1])
    last = [part[-1] for part in np.split(np.array(scores).ravel(), scores.lod()[1][1:-1])]
    expected = [network.beams(state, beam, max_len) for state in ENCODED]
    assert ids.recursive_sequence_lengths()[0] == [len(of) for of in expected]
    flat = [each for of in expected for each in of]
    assert [list(words) for words in sentences] == [words for words, _ in flat]
    np.testing.assert_allclose(last, [score for _, score in flat], rtol=1e-4)


def test_both_decoders_use_the_same_parameter_names(fluid):
    names = []
    for build in (Network.training, lambda network: network.search(2, 5)):
        program = fluid.Program()
        with fluid.program_guard(program, fluid.Program()), fluid.unique_name.guard():
            build(Network(fluid))
        names.append([(p.name, p.shape) for p in program.all_parameters()])
    assert names[0] == names[1]


def test_a_network_with_a_training_decoder_learns(fluid):
    out = Network(fluid).training()
    label = fluid.data("label", [None, 1], "int64", lod_level=1)
    loss = fluid.layers.mean(fluid.layers.cross_entropy(out, label))
    fluid.optimizer.Adam(0.05).minimize(loss)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    words = np.random.RandomState(3).randint(0, WORDS, (sum(LENGTHS), 1))
    feed = {
        "encoded": ENCODED,
        "words": fluid.create_lod_tensor(words, [LENGTHS], fluid.CPUPlace()),
        "label": fluid.create_lod_tensor((words + 1) % WORDS, [LENGTHS], fluid.CPUPlace()),
    }
    losses = [float(exe.run(feed=feed, fetch_list=[loss])[0][0]) for _ in range(60)]
    assert losses[-1] < losses[0] / 4


def test_a_constant_initial_state(fluid):
    state = fluid.contrib.decoder.InitState(init_boot=fluid.data("boot", [None, 3]), shape=[-1, 2], value=0.5)
    (got,) = fluid.Executor().run(feed={"boot": np.zeros((4, 3), "float32")}, fetch_list=[state.value])
    assert not state.need_reorder
    np.testing.assert_array_equal(got, np.full((4, 2), 0.5))


def test_a_state_set_without_being_read_reaches_the_next_step(fluid):
    cell = cell_of(fluid)
    words = fluid.data("words", [None, HIDDEN], lod_level=1)
    decoder = fluid.contrib.decoder.TrainingDecoder(cell)
    with decoder.block():
        word = decoder.step_input(words)
        cell.set_state("h", word)
        cell.update_states()
        decoder.output(decoder.state_cell.get_state("h"))
    given = np.random.RandomState(1).rand(sum(LENGTHS), HIDDEN).astype("float32")
    feed = {"encoded": ENCODED, "words": fluid.create_lod_tensor(given, [LENGTHS], fluid.CPUPlace())}
    (got,) = fluid.Executor().run(feed=feed, fetch_list=[decoder()], return_numpy=False)
    np.testing.assert_array_equal(np.array(got), given)


def cell_of(fluid, **given):
    decoder = fluid.contrib.decoder
    state = decoder.InitState(init=fluid.data("encoded", [None, HIDDEN]))
    return decoder.StateCell(**{"inputs": {"word": None}, "states": {"h": state}, "out_state": "h", **given})


@pytest.mark.parametrize(
    "use, why",
    [
        (lambda fluid: fluid.contrib.decoder.InitState(), "give init, or init_boot"),
        (lambda fluid: cell_of(fluid, states={"h": 3}), "state h must be an InitState, not int"),
        (lambda fluid: cell_of(fluid, out_state="c"), "out_state 'c' must be one of h"),
        (lambda fluid: cell_of(fluid).get_state("c"), "no state 'c'; the states are h"),
        (lambda fluid: cell_of(fluid).set_state("c", None), "no state 'c'"),
        (lambda fluid: cell_of(fluid).get_input("word"), "no value for input 'word'"),
        (lambda fluid: cell_of(fluid).compute_state({"x": None}), "no input 'x'; the inputs are word"),
        (lambda fluid: cell_of(fluid).compute_state({}), "decorate a function with state_updater"),
        (lambda fluid: cell_of(fluid).update_states(), "update_states is for the block of a decoder"),
    ],
)
def test_invalid_cells_are_refused(fluid, use, why):
    with pytest.raises(ValueError, match=why):
        use(fluid)


def test_invalid_uses_of_decoders_are_refused(fluid):
    decoders, cell = fluid.contrib.decoder, cell_of(fluid)
    first = fluid.data("first", [None, 1], "int64", lod_level=2)
    score = fluid.data("score", [None, 1], lod_level=2)
    search = decoders.BeamSearchDecoder(cell, first, score, WORDS, WIDTH, input_var_dict={"other": score})
    with pytest.raises(ValueError, match="BeamSearchDecoder uses it until its block ends"):
        decoders.TrainingDecoder(cell)
    with pytest.raises(ValueError, match="input_var_dict names 'other'; the inputs of the cell are word"):
        search.decode()
    with pytest.raises(ValueError, match="returns its outputs after its block has ended"):
        search()
    with pytest.raises(ValueError, match="BeamSearchDecoder.read_array is for the decoder's block"):
        search.read_array(first)
    with search.block():
        with pytest.raises(ValueError, match="either words or scores"):
            search.read_array(first, is_ids=True, is_scores=True)
        with pytest.raises(TypeError, match="read_array takes Variables, not int"):
            search.read_array(3)
        with pytest.raises(ValueError, match="score is not a result of read_array"):
            search.update_array(score, score)
    with pytest.raises(ValueError, match="has only one block"), search.block():
        pass
