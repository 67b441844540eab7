"""Scripts in the style of public ones that translate and retrieve: dynamic RNNs with a beam search of layers, cells
with dynamic_decode, titles ranked by their similarity to a query. They run alone, and with pservers and trainers."""

import pytest
from fleet_jobs import start_compat
from translation_script import HEAD, TAIL

# The chapter of the book as of the releases 0.14 to 1.6: argv[1] is the encoder.
BOOK_BODY = (
    HEAD
    + """
    def embed(word, name):
        return layers.embedding(input=word, size=[WORDS, WIDTH], is_sparse=True, dtype='float32',
                                param_attr=fluid.ParamAttr(name=name))

    def encoder(kind):
        words = layers.data(name='src_word_id', shape=[1], dtype='int64', lod_level=1)
        emb = embed(words, 'vemb')
        if kind == 'lstm':
            states, _ = layers.dynamic_lstm(input=layers.fc(input=emb, size=WIDTH * 4, act='tanh'), size=WIDTH * 4)
        else:
            states = layers.dynamic_gru(input=layers.fc(input=emb, size=WIDTH * 3), size=WIDTH)
        return layers.sequence_last_step(input=states)

    def step(word, state):
        return layers.fc(input=[state, word], size=WIDTH, act='tanh', bias_attr=fluid.ParamAttr(name='state_b'),
                         param_attr=[fluid.ParamAttr(name='state_u'), fluid.ParamAttr(name='state_w')])

    def scores(state):
        return layers.fc(input=state, size=WORDS, act='softmax', param_attr=fluid.ParamAttr(name='out_w'),
                         bias_attr=fluid.ParamAttr(name='out_b'))

    def train_decoder(context):
        words = layers.data(name='target_language_word', shape=[1], dtype='int64', lod_level=1)
        emb = embed(words, 'vemb_target')
        rnn = layers.DynamicRNN()
        with rnn.block():
            current_word = rnn.step_input(emb)
            pre_state = rnn.memory(init=context, need_reorder=True)
            current_state = step(current_word, pre_state)
            rnn.update_memory(pre_state, current_state)
            rnn.output(scores(current_state))
        return rnn()

    def decode(context):
        length = layers.fill_constant(shape=[1], dtype='int64', value=MAX_LENGTH)
        counter = layers.zeros(shape=[1], dtype='int64', force_cpu=True)
        init_ids = layers.data(name='init_ids', shape=[1], dtype='int64', lod_level=2)
        init_scores = layers.data(name='init_scores', shape=[1], dtype='float32', lod_level=2)
        state_array, ids_array, scores_array = [layers.create_array(kind) for kind in ('float32', 'int64', 'float32')]
        layers.array_write(context, array=state_array, i=counter)
        layers.array_write(init_ids, array=ids_array, i=counter)
        layers.array_write(init_scores, array=scores_array, i=counter)
        cond = layers.less_than(x=counter, y=length)
        while_op = layers.While(cond=cond)
        with while_op.block():
            pre_ids, pre_state, pre_score = [layers.array_read(array=array, i=counter)
                                             for array in (ids_array, state_array, scores_array)]
            expanded = layers.sequence_expand(pre_state, pre_score)
            state = step(embed(pre_ids, 'vemb_target'), expanded)
            top, indices = layers.topk(scores(layers.lod_reset(x=state, y=pre_score)), k=BEAM)
            total = layers.elementwise_add(x=layers.log(top), y=layers.reshape(pre_score, shape=[-1]), axis=0)
            ids, kept = layers.beam_search(pre_ids, pre_score, indices, total, BEAM, end_id=END, level=0)
            layers.increment(x=counter, value=1, in_place=True)
            layers.array_write(state, array=state_array, i=counter)
            layers.array_write(ids, array=ids_array, i=counter)
            layers.array_write(kept, array=scores_array, i=counter)
            length_cond = layers.less_than(x=counter, y=length)
            finish_cond = layers.logical_not(layers.is_empty(x=ids))
            layers.logical_and(x=length_cond, y=finish_cond, out=cond)
        return layers.beam_search_decode(ids=ids_array, scores=scores_array, beam_size=BEAM, end_id=END)

    def translate(kind, folder):
        place = fluid.CPUPlace()
        exe, program = fluid.Executor(place), fluid.Program()
        with fluid.scope_guard(fluid.core.Scope()):
            with fluid.program_guard(program, fluid.Program()), fluid.unique_name.guard():
                ids, found_scores = decode(encoder(kind))
            fluid.io.load_params(exe, folder, main_program=program)
            words = [words for words, _, _ in sentences(9, 16)]
            ones = [1] * len(words)
            feed = {
                'src_word_id': fluid.create_lod_tensor(np.concatenate(words).reshape(-1, 1).astype('int64'),
                                                       [[len(each) for each in words]], place),
                'init_ids': fluid.create_lod_tensor(np.full((len(words), 1), START, 'int64'), [ones, ones], place),
                'init_scores': fluid.create_lod_tensor(np.ones((len(words), 1), 'float32'), [ones, ones], place)}
            found, values = exe.run(program, feed=feed, fetch_list=[ids, found_scores], return_numpy=False)
        sources, parts = found.lod()
        assert len(sources) == len(words) + 1 and values.lod() == found.lod()
        tokens = np.array(found).reshape(-1).tolist()
        best = [tokens[parts[first] + 1:parts[first + 1]] for first in sources[:-1]]
        check(best, [each[0] for each in words])

    def train(kind, optimizer):
        with fluid.unique_name.guard():
            predicted = train_decoder(encoder(kind))
            label = layers.data(name='target_language_next_word', shape=[1], dtype='int64', lod_level=1)
            loss = layers.mean(layers.cross_entropy(input=predicted, label=label))
            optimizer().minimize(loss)
        main = distribute(fluid.default_startup_program())
        place = fluid.CPUPlace()
        exe = fluid.Executor(place)
        exe.run(fluid.default_startup_program())
        feeder = fluid.DataFeeder([main.global_block().var(name) for name in (
            'src_word_id', 'target_language_word', 'target_language_next_word')], place)
        reader = paddle.batch(paddle.reader.shuffle(lambda: sentences(trainer_id, 320), buf_size=100), batch_size=16)
        losses = []
        for epoch in range(3):
            for batch_id, data in enumerate(reader()):
                value = exe.run(main, feed=feeder.feed(data), fetch_list=[loss])[0]
                losses.append(np.array(value)[0])
                if batch_id % 10 == 0:
                    print('pass_id=%d batch=%d avg_cost=%f' % (epoch, batch_id, losses[-1]))
        if trainer_id == 0:
            fluid.io.save_persistables(exe, 'saved', main_program=main)
            translate(kind, 'saved')
        exe.close()
        return losses

    def lstm():
        return train('lstm', lambda: fluid.optimizer.Adagrad(learning_rate=0.1, regularization=(
            fluid.regularizer.L2DecayRegularizer(regularization_coeff=1e-5))))

    def gru():
        return train('gru', lambda: fluid.optimizer.AdamOptimizer(learning_rate=0.02))
"""
)
BOOK = BOOK_BODY + TAIL
# The same with the decoders of fluid.contrib, which the models of the releases 0.14 to 1.4 use.
STATE_CELL = (
    BOOK_BODY
    + """
    from paddle.fluid.contrib.decoder.beam_search_decoder import (BeamSearchDecoder, InitState, StateCell,
                                                                  TrainingDecoder)

    def cell_of(context):
        cell = StateCell(inputs={'word': None}, states={'state': InitState(init=context, need_reorder=True)},
                         out_state='state')

        @cell.state_updater
        def updater(cell):
            cell.set_state('state', step(cell.get_input('word'), cell.get_state('state')))

        return cell

    def train_decoder(context):
        words = layers.data(name='target_language_word', shape=[1], dtype='int64', lod_level=1)
        emb = layers.embedding(input=words, size=[WORDS, WIDTH], is_sparse=True)
        decoder = TrainingDecoder(cell_of(context))
        with decoder.block():
            decoder.state_cell.compute_state(inputs={'word': decoder.step_input(emb)})
            out = layers.fc(input=decoder.state_cell.get_state('state'), size=WORDS, act='softmax')
            decoder.state_cell.update_states()
            decoder.output(out)
        return decoder()

    def decode(context):
        decoder = BeamSearchDecoder(
            cell_of(context), layers.data(name='init_ids', shape=[1], dtype='int64', lod_level=2),
            layers.data(name='init_scores', shape=[1], dtype='float32', lod_level=2), target_dict_dim=WORDS,
            word_dim=WIDTH, topk_size=BEAM, max_len=MAX_LENGTH, beam_size=BEAM, end_id=END)
        decoder.decode()
        return decoder()

    def state_cell():
        return gru()
"""
    + TAIL
)
# The chapter as of 1.8: argv[1] is the cell.
CELLS = (
    HEAD
    + '''
    class Attending(layers.RNNCell):
        """A cell over the word and what the state attends to."""

        def __init__(self, kind):
            self.cell = kind(WIDTH, name='decoder')

        @property
        def state_shape(self):
            return self.cell.state_shape

        def call(self, inputs, states, encoder_output, padding_mask):
            hidden = states[0] if isinstance(states, (list, tuple)) else states
            query = layers.unsqueeze(layers.fc(hidden, WIDTH, bias_attr=False, param_attr='query_w'), [1])
            weights = layers.elementwise_add(layers.matmul(query, encoder_output, transpose_y=True),
                                             layers.unsqueeze(padding_mask, [1]))
            context = layers.squeeze(layers.matmul(layers.softmax(weights), encoder_output), [1])
            return self.cell(layers.concat([inputs, context], axis=1), states)

    def encoder(kind, words, length):
        emb = fluid.embedding(words, size=[WORDS, WIDTH], param_attr=fluid.ParamAttr(name='src_emb'))
        ahead, last = layers.rnn(kind(WIDTH, name='ahead'), emb, sequence_length=length)
        back, _ = layers.rnn(kind(WIDTH, name='back'), emb, sequence_length=length, is_reverse=True)
        output = layers.fc(layers.concat([ahead, back], axis=2), WIDTH, num_flatten_dims=2, param_attr='joined_w',
                           bias_attr=False)
        mask = layers.sequence_mask(length, maxlen=layers.shape(words)[1], dtype='float32')
        return output, last, layers.scale(mask, scale=1e9, bias=-1.0, bias_after_scale=False)

    def embed(words):
        return fluid.embedding(words, size=[WORDS, WIDTH], param_attr=fluid.ParamAttr(name='trg_emb'))

    def logits(output):
        return layers.fc(output, WORDS, num_flatten_dims=len(output.shape) - 1, param_attr='out_w', bias_attr=False)

    def inputs(names):
        return [fluid.data(name, [None] if name.endswith('length') else [None, None], 'int64') for name in names]

    def padded(rows):
        width = max(len(row) for row in rows)
        return np.array([row + [END] * (width - len(row)) for row in rows], 'int64')

    def arrays(samples):
        source, target, label = zip(*samples)
        lengths = [np.array([len(row) for row in rows], 'int64') for rows in (source, target)]
        return padded(source), lengths[0], padded(target), lengths[1], padded(label)

    def train(kind):
        train_prog, infer_prog, startup = fluid.Program(), fluid.Program(), fluid.Program()
        startup.random_seed = 5
        with fluid.program_guard(train_prog, startup), fluid.unique_name.guard():
            feeds = src, src_length, trg, trg_length, label = inputs(
                ['src', 'src_sequence_length', 'trg', 'trg_sequence_length', 'label'])
            loader = fluid.io.DataLoader.from_generator(feed_list=feeds, capacity=4, iterable=True)
            output, last, mask = encoder(kind, src, src_length)
            outputs, _ = layers.rnn(cell=Attending(kind), inputs=embed(trg), initial_states=last, encoder_output=output,
                                    padding_mask=mask, sequence_length=None)
            cost = layers.softmax_with_cross_entropy(logits=logits(outputs), label=layers.unsqueeze(label, [2]))
            real = layers.sequence_mask(trg_length, maxlen=layers.shape(trg)[1], dtype='float32')
            loss = layers.reduce_sum(layers.reduce_mean(layers.squeeze(cost, [2]) * real, dim=[0]))
            fluid.optimizer.Adam(learning_rate=0.02, grad_clip=fluid.clip.GradientClipByGlobalNorm(
                clip_norm=5.0)).minimize(loss)
            main = distribute(startup)
        with fluid.program_guard(infer_prog, fluid.Program()), fluid.unique_name.guard():
            src, src_length = inputs(['src', 'src_sequence_length'])
            output, last, mask = encoder(kind, src, src_length)
            tile = layers.BeamSearchDecoder.tile_beam_merge_with_batch
            decoder = layers.BeamSearchDecoder(Attending(kind), start_token=START, end_token=END, beam_size=BEAM,
                                               embedding_fn=embed, output_fn=logits)
            found, _ = layers.dynamic_decode(decoder, inits=last, max_step_num=MAX_LENGTH,
                                             padding_mask=tile(mask, BEAM), encoder_output=tile(output, BEAM))
        place = fluid.CPUPlace()
        loader.set_batch_generator(lambda: (arrays(data) for data in paddle.batch(
            lambda: sentences(trainer_id, 320), batch_size=16)()), places=place)
        exe = fluid.Executor(place)
        exe.run(startup)
        losses = []
        for epoch in range(3):
            for data in loader():
                losses.append(exe.run(main, feed=data, fetch_list=[loss])[0][0])
        source, length = arrays(sentences(9, 16))[:2]
        tokens = exe.run(infer_prog, feed={'src': source, 'src_sequence_length': length}, fetch_list=[found])[0]
        assert tokens.shape[0] == 16 and tokens.shape[2] == BEAM
        check(tokens[:, :, 0].tolist(), source[:, 0].tolist())
        exe.close()
        return losses

    def gru_cell():
        return train(layers.GRUCell)

    def lstm_cell():
        return train(layers.LSTMCell)
'''
    + TAIL
)
RETRIEVAL = (
    HEAD
    + '''
    TITLES, MARGIN = 18, 0.4

    def tower(words, name):
        emb = layers.embedding(input=words, size=[WORDS, WIDTH], is_sparse=True, padding_idx=END,
                               param_attr=fluid.ParamAttr(name='emb_' + name, learning_rate=1.0))
        projected = layers.fc(input=emb, size=WIDTH * 3, param_attr=fluid.ParamAttr(name='fc_w_' + name),
                              bias_attr=fluid.ParamAttr(name='fc_b_' + name))
        gru = layers.dynamic_gru(input=projected, size=WIDTH, param_attr=fluid.ParamAttr(name='gru_w_' + name),
                                 bias_attr=fluid.ParamAttr(name='gru_b_' + name))
        last = layers.sequence_last_step(layers.tanh(gru))
        return layers.fc(input=last, size=WIDTH, act='tanh', param_attr=fluid.ParamAttr(name='hid_w_' + name),
                         bias_attr=fluid.ParamAttr(name='hid_b_' + name))

    def words(name):
        return layers.data(name=name, shape=[1], dtype='int64', lod_level=1)

    def retrieval_model():
        feeds = query, right, wrong = [words(name) for name in ('query', 'pos_title', 'neg_title')]
        seen = tower(query, 'query')
        good, bad = layers.cos_sim(seen, tower(right, 'title')), layers.cos_sim(seen, tower(wrong, 'title'))
        margin = layers.fill_constant_batch_size_like(input=good, shape=[-1, 1], value=MARGIN, dtype='float32')
        zero = layers.fill_constant(shape=[1], value=0.0, dtype='float32')
        loss = layers.mean(layers.elementwise_max(layers.elementwise_sub(margin, good) + bad, zero))
        correct = layers.reduce_sum(layers.cast(layers.less_than(bad, good), dtype='float32'))
        return feeds, loss, correct

    def samples(seed):
        random = np.random.RandomState(seed)
        for source, _, answer in sentences(seed, 640):
            other = 2 + (answer[0] - 2 + int(random.randint(1, TITLES))) % TITLES
            yield source, answer[:-1], [other] * int(random.randint(2, 5))

    def recall(exe, place):
        """How often the right title is among the three that resemble a query most."""
        program = fluid.Program()
        with fluid.program_guard(program, fluid.Program()):
            query, titles = words('query'), words('titles')
            label = layers.data(name='label', shape=[1], dtype='int64')
            similar = layers.cos_sim(X=tower(titles, 'title'), Y=tower(query, 'query'))
            found = layers.accuracy(input=layers.transpose(similar, perm=[1, 0]), label=label, k=3)
        all_titles = fluid.create_lod_tensor([[title] * 3 for title in range(2, WORDS)], [[3] * TITLES], place)
        got = [exe.run(program, feed={'query': fluid.create_lod_tensor([source], [[len(source)]], place),
                                      'titles': all_titles, 'label': np.array([[answer[0] - 2]])},
                       fetch_list=[found])[0][0] for source, _, answer in sentences(9, 30)]
        return np.mean(got)

    def train(optimizer):
        feeds, loss, correct = retrieval_model()
        optimizer.minimize(loss)
        main, place = distribute(fluid.default_startup_program()), fluid.CPUPlace()
        exe = fluid.Executor(place)
        exe.run(fluid.default_startup_program())
        feeder, losses = fluid.DataFeeder(feed_list=feeds, place=place), []
        for epoch in range(3):
            total, right = 0, 0.0
            for data in paddle.batch(lambda: samples(trainer_id), batch_size=32)():
                value, count = exe.run(main, feed=feeder.feed(data), fetch_list=[loss, correct])
                losses.append(value[0])
                total, right = total + len(data), right + count[0]
            print('epoch: %d, acc: %.3f' % (epoch, right / total))
        found = recall(exe, place)
        print('recall@3: %.3f' % found)
        assert found > 0.7, found
        exe.close()
        return losses

    def sgd():
        return train(fluid.optimizer.SGD(learning_rate=fluid.layers.exponential_decay(2.0, 100, 0.9)))

    def adam():
        return train(fluid.optimizer.Adam(learning_rate=0.01))
'''
    + TAIL
)
SCRIPTS = {
    "lstm": BOOK,
    "gru": BOOK,
    "state_cell": STATE_CELL,
    "gru_cell": CELLS,
    "lstm_cell": CELLS,
    "sgd": RETRIEVAL,
    "adam": RETRIEVAL,
}
QUICK = ("gru", "adam")
FAMILIES = [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in SCRIPTS]


@pytest.mark.parametrize("family", FAMILIES)
def test_the_script_trains_alone(tmp_path, family):
    said, _ = start_compat(tmp_path, SCRIPTS[family], family)
    assert "from " in said


@pytest.mark.parametrize("family", FAMILIES)
def test_the_script_trains_with_pservers(tmp_path, family):
    _, logs = start_compat(tmp_path, SCRIPTS[family], family, servers=2, workers=2)
    assert all("from " in logs[name] for name in ("workerlog.0", "workerlog.1"))


@pytest.mark.slow
@pytest.mark.parametrize("family", ["lstm", "sgd"])
def test_the_script_trains_with_one_pserver_and_one_trainer(tmp_path, family):
    _, logs = start_compat(tmp_path, SCRIPTS[family], family, servers=1, workers=1)
    assert sorted(logs) == ["serverlog.0", "workerlog.0"] and "from " in logs["workerlog.0"]
