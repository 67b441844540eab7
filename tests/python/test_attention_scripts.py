"""Scripts in the style of public ones with recurrent decoders: attention in a dynamic RNN, decoding helpers, a language
model of a static RNN. They run alone, and with pservers and trainers."""

import pytest
from fleet_jobs import start_compat
from translation_script import HEAD, TAIL

SCRIPT = (
    HEAD
    + """
    def epochs(exe, main, loss, feeds, count=3):
        losses = []
        for epoch in range(count):
            for feed in feeds():
                losses.append(np.mean(exe.run(main, feed=feed, fetch_list=[loss])[0]))
            print('epoch %d loss %f' % (epoch, losses[-1]))
        return losses

    def start():
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(fluid.default_startup_program())
        return exe

    # The benchmark of machine translation: two LSTMs read the source, each step of the decoder attends to them.
    def attention():
        def words(name):
            return layers.data(name=name, shape=[1], dtype='int64', lod_level=1)

        def lstm(emb, is_reverse=False):
            projected = layers.fc(input=emb, size=WIDTH * 4, act=None, bias_attr=False)
            return layers.dynamic_lstm(input=projected, size=WIDTH * 4, use_peepholes=False, is_reverse=is_reverse)[0]

        def attend(vector, projected, state):
            state_proj = layers.fc(input=state, size=WIDTH, bias_attr=False)
            expanded = layers.sequence_expand(x=state_proj, y=projected)
            weights = layers.fc(input=layers.concat([projected, expanded], axis=1), size=1, act='tanh', bias_attr=False)
            weights = layers.reshape(x=layers.sequence_softmax(input=weights), shape=[-1])
            scaled = layers.elementwise_mul(x=vector, y=weights, axis=0)
            return layers.sequence_pool(input=scaled, pool_type='sum')

        source, target, label = [words(name) for name in ('source_sequence', 'target_sequence', 'label_sequence')]
        emb = layers.embedding(input=source, size=[WORDS, WIDTH], dtype='float32')
        back = lstm(emb, is_reverse=True)
        vector = layers.concat(input=[lstm(emb), back], axis=1)
        projected = layers.fc(input=vector, size=WIDTH, bias_attr=False)
        boot = layers.fc(input=layers.sequence_pool(input=back, pool_type='first'), size=WIDTH, bias_attr=False,
                         act='tanh')
        cell_init = layers.fill_constant_batch_size_like(input=boot, value=0.0, shape=[-1, WIDTH], dtype='float32')
        cell_init.stop_gradient = False
        rnn = layers.DynamicRNN()
        target_emb = layers.embedding(input=target, size=[WORDS, WIDTH], dtype='float32')
        with rnn.block():
            word = rnn.step_input(target_emb)
            seen, seen_proj = rnn.static_input(vector), rnn.static_input(projected)
            hidden_mem, cell_mem = rnn.memory(init=boot, need_reorder=True), rnn.memory(init=cell_init)
            context = attend(seen, seen_proj, hidden_mem)
            hidden, cell = layers.lstm_unit(layers.concat([word, context], axis=1), hidden_mem, cell_mem)
            rnn.update_memory(hidden_mem, hidden)
            rnn.update_memory(cell_mem, cell)
            rnn.output(layers.fc(input=hidden, size=WORDS, bias_attr=True, act='softmax'))
        prediction = rnn()
        loss = layers.mean(x=layers.cross_entropy(input=prediction, label=label))
        accuracy = layers.accuracy(input=prediction, label=label)
        test_prog = fluid.default_main_program().clone(for_test=True)
        fluid.optimizer.Adam(learning_rate=0.01, regularization=fluid.regularizer.L2Decay(1e-6)).minimize(loss)
        main = distribute(fluid.default_startup_program())
        exe, feeder = start(), fluid.DataFeeder(feed_list=[source, target, label], place=fluid.CPUPlace())

        def feeds(seed=trainer_id, count=320):
            return (feeder.feed(data) for data in paddle.batch(lambda: sentences(seed, count), batch_size=16)())
        losses = epochs(exe, main, loss, feeds)
        right = np.mean([exe.run(test_prog, feed=feed, fetch_list=[accuracy])[0] for feed in feeds(9, 64)])
        print('right %.3f' % right)
        assert right > 0.9
        exe.close()
        return losses

    # The decoders of 1.8: words of the target in training, the best word of the step before afterwards.
    def helpers():
        def padded(rows):
            return np.array([row + [END] * (MAX_LENGTH - len(row)) for row in rows], 'int64')

        def decoder(helper):
            cell = layers.GRUCell(hidden_size=WIDTH, name='decoder_cell')
            return layers.BasicDecoder(cell, helper, output_fn=lambda x: layers.fc(
                x, size=WORDS, num_flatten_dims=len(x.shape) - 1, param_attr='output_w', bias_attr=False))

        def embed(word):
            return fluid.embedding(word, size=[WORDS, WIDTH], param_attr=fluid.ParamAttr(name='target_emb'))

        def encode(source):
            emb = fluid.embedding(source, size=[WORDS, WIDTH], param_attr=fluid.ParamAttr(name='source_emb'))
            return layers.rnn(layers.GRUCell(hidden_size=WIDTH, name='encoder_cell'), emb)[1]

        with fluid.unique_name.guard():
            source, target, label = [fluid.data(name, [None, MAX_LENGTH], 'int64') for name in ('src', 'trg', 'label')]
            length = fluid.data('length', [None], 'int64')
            helper = layers.TrainingHelper(embed(target), length)
            outputs, _ = layers.dynamic_decode(decoder(helper), inits=encode(source))
            steps = layers.shape(outputs.cell_outputs)[1]
            right = layers.slice(label, axes=[1], starts=[0], ends=[steps])
            cost = layers.softmax_with_cross_entropy(outputs.cell_outputs, layers.unsqueeze(right, [2]))
            mask = layers.sequence_mask(length, maxlen=steps, dtype='float32')
            loss = layers.reduce_mean(layers.elementwise_mul(layers.squeeze(cost, [2]), mask))
            fluid.clip.set_gradient_clip(fluid.clip.GradientClipByGlobalNorm(5.0))
            fluid.optimizer.AdamOptimizer(0.02).minimize(loss)
        main = distribute(fluid.default_startup_program())
        infer_prog = fluid.Program()
        with fluid.program_guard(infer_prog, fluid.Program()), fluid.unique_name.guard():
            source = fluid.data('src', [None, MAX_LENGTH], 'int64')
            last = encode(source)
            starts = layers.fill_constant_batch_size_like(last, shape=[-1], value=START, dtype='int64')
            found, _ = layers.dynamic_decode(decoder(layers.GreedyEmbeddingHelper(embed, starts, END)), inits=last,
                                             max_step_num=MAX_LENGTH)
        exe = start()

        def feeds(seed=trainer_id, count=320):
            for data in paddle.batch(lambda: sentences(seed, count), batch_size=16)():
                rows, targets, labels = zip(*data)
                yield {'src': padded(rows), 'trg': padded(targets), 'label': padded(labels),
                       'length': np.array([len(each) for each in targets], 'int64')}
        losses = epochs(exe, main, loss, feeds)
        source = next(feeds(9, 16))['src']
        check(exe.run(infer_prog, feed={'src': source}, fetch_list=[found.sample_ids])[0].tolist(),
              source[:, 0].tolist())
        exe.close()
        return losses

    # A language model of a static RNN that goes on from the states at the end of the batch before.
    def language():
        steps, rows, depth = 5, 8, 2
        x = layers.data(name='x', shape=[rows, steps, 1], dtype='int64', append_batch_size=False)
        y = layers.data(name='y', shape=[rows * steps, 1], dtype='int64', append_batch_size=False)
        states = [layers.data(name=name, shape=[depth, rows, WIDTH], dtype='float32', append_batch_size=False)
                  for name in ('init_hidden', 'init_cell')]
        emb = layers.embedding(input=x, size=[WORDS, WIDTH], is_sparse=False, param_attr=fluid.ParamAttr(
            name='embedding_para', initializer=fluid.initializer.UniformInitializer(low=-0.1, high=0.1)))
        emb = layers.dropout(layers.transpose(layers.reshape(emb, shape=[-1, steps, WIDTH]), perm=[1, 0, 2]), 0.05,
                             dropout_implementation='upscale_in_train')
        starts = [[layers.reshape(layers.slice(state, axes=[0], starts=[k], ends=[k + 1]), shape=[-1, WIDTH])
                   for state in states] for k in range(depth)]
        rnn = layers.StaticRNN()
        with rnn.step():
            input = rnn.step_input(emb)
            for k in range(depth):
                weight = layers.create_parameter([WIDTH * 2, WIDTH * 4], dtype='float32', name='fc_weight_%d' % k)
                bias = layers.create_parameter([WIDTH * 4], dtype='float32', name='fc_bias_%d' % k, is_bias=True)
                hidden, cell = [rnn.memory(init=state) for state in starts[k]]
                gates = layers.elementwise_add(layers.matmul(x=layers.concat([input, hidden], 1), y=weight), bias)
                i, j, f, o = layers.split(gates, num_or_sections=4, dim=-1)
                new = cell * layers.sigmoid(f) + layers.sigmoid(i) * layers.tanh(j)
                input = layers.tanh(new) * layers.sigmoid(o)
                rnn.update_memory(hidden, input)
                rnn.update_memory(cell, new)
                rnn.step_output(input)
                rnn.step_output(new)
            rnn.step_output(input)
        outs = rnn()
        last = [layers.concat([layers.slice(outs[2 * k + kind], axes=[0], starts=[steps - 1], ends=[steps])
                               for k in range(depth)], axis=0) for kind in range(2)]
        output = layers.reshape(layers.transpose(outs[-1], perm=[1, 0, 2]), shape=[-1, WIDTH])
        logits = layers.fc(output, WORDS, param_attr='softmax_weight', bias_attr='softmax_bias')
        cost = layers.reshape(layers.softmax_with_cross_entropy(logits=logits, label=y), shape=[-1, steps])
        loss = layers.reduce_sum(layers.reduce_mean(cost, dim=[0]))
        loss.persistable = True
        for state in last:
            state.persistable = True
        clip = fluid.clip.GradientClipByGlobalNorm(clip_norm=5.0)
        rate = layers.create_global_var(name='learning_rate', shape=[1], value=1.0, dtype='float32', persistable=True)
        fluid.optimizer.SGD(learning_rate=rate, grad_clip=clip).minimize(loss)
        main, random = distribute(fluid.default_startup_program()), np.random.RandomState(trainer_id)
        exe, losses = start(), []
        for epoch in range(3):
            kept = [np.zeros((depth, rows, WIDTH), 'float32')] * 2
            firsts = random.randint(0, WORDS, (rows, 1))
            for step in range(40):
                words = (firsts + np.arange(step * steps, (step + 1) * steps + 1)) % WORDS
                feed = {'x': words[:, :-1, None].astype('int64'), 'y': words[:, 1:].reshape(-1, 1).astype('int64'),
                        'init_hidden': kept[0], 'init_cell': kept[1]}
                value, *kept = exe.run(main, feed=feed, fetch_list=[loss.name] + [each.name for each in last])
                losses.append(value.item())
            print('epoch %d ppl %.3f' % (epoch, np.exp(losses[-1] / steps)))
        exe.close()
        return losses
"""
    + TAIL
)
FAMILIES = ["helpers"] + [pytest.param(name, marks=pytest.mark.slow) for name in ("attention", "language")]


@pytest.mark.parametrize("family", FAMILIES)
def test_the_script_trains_alone(tmp_path, family):
    said, _ = start_compat(tmp_path, SCRIPT, family)
    assert "from " in said


@pytest.mark.parametrize("family", FAMILIES)
def test_the_script_trains_with_pservers(tmp_path, family):
    _, logs = start_compat(tmp_path, SCRIPT, family, servers=2, workers=2)
    assert all("from " in logs[name] for name in ("workerlog.0", "workerlog.1"))
