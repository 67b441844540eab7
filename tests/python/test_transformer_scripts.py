"""Scripts in the style of the public ones that train a transformer: biases of the attention as data, shared embeddings,
smoothed labels, a warmed-up rate, and a test program that shares the trainer's variables."""

import pytest
from fleet_jobs import alias_environment, launch, start_compat

# argv: how batches come to the program: feeds, py_reader or data_loader.
SCRIPT = '''
    import ast
    import os
    import sys
    import numpy as np
    import paddle
    import paddle.fluid as fluid
    import paddle.fluid.layers as layers

    class Config(object):
        vocab, max_length, model, key, inner, head, layer, dropout = 24, 10, 32, 16, 512, 2, 2, 0.05
        preprocess_cmd, postprocess_cmd, smooth, warmup, learning_rate, batch, epochs = 'n', 'da', 0.1, 60, 1.0, 16, 2
        START, END = 0, 1

    def merge(opts):
        for name, value in zip(opts[::2], opts[1::2]):
            assert hasattr(Config, name), name
            setattr(Config, name, ast.literal_eval(value))

    how = sys.argv[1]
    merge(sys.argv[2:])
    POSITIONS = ('src_pos_enc_table', 'trg_pos_enc_table')

    def positions():
        steps, half = np.arange(Config.max_length)[:, None], Config.model // 2
        angles = steps / np.power(10000.0, np.arange(half)[None, :] / (half - 1))
        return np.concatenate([np.sin(angles), np.cos(angles)], axis=1).astype('float32')

    def project(x, size, name=None):
        return layers.fc(input=x, size=size, bias_attr=False, num_flatten_dims=2)

    def multi_head_attention(queries, keys, values, attn_bias, cache=None):
        keys, values = (queries, queries) if keys is None else (keys, values)
        width = Config.key * Config.head

        def split_heads(x):
            parts = layers.reshape(x=x, shape=[0, 0, Config.head, Config.key], inplace=True)
            return layers.transpose(x=parts, perm=[0, 2, 1, 3])
        q, k, v = [project(x, width) for x in (queries, keys, values)]
        if cache is not None:
            k = cache['k'] = layers.concat([layers.reshape(cache['k'], shape=[0, 0, width]), k], axis=1)
            v = cache['v'] = layers.concat([layers.reshape(cache['v'], shape=[0, 0, width]), v], axis=1)
        q, k, v = split_heads(q), split_heads(k), split_heads(v)
        product = layers.matmul(x=q, y=k, transpose_y=True, alpha=Config.key**-0.5)
        if attn_bias is not None:
            product += attn_bias
        weights = layers.softmax(product)
        if Config.dropout:
            weights = layers.dropout(weights, dropout_prob=Config.dropout, is_test=False)
        out = layers.transpose(layers.matmul(weights, v), perm=[0, 2, 1, 3])
        return project(layers.reshape(x=out, shape=[0, 0, width], inplace=True), Config.model)

    def feed_forward(x):
        hidden = layers.fc(input=x, size=Config.inner, num_flatten_dims=2, act='relu')
        return layers.fc(input=hidden, size=Config.model, num_flatten_dims=2)

    def process(prev_out, out, cmds):
        for cmd in cmds:
            if cmd == 'a':
                out = out + prev_out if prev_out is not None else out
            elif cmd == 'n':
                out = layers.layer_norm(out, begin_norm_axis=len(out.shape) - 1,
                                        param_attr=fluid.initializer.Constant(1.),
                                        bias_attr=fluid.initializer.Constant(0.))
            elif cmd == 'd' and Config.dropout:
                out = layers.dropout(out, dropout_prob=Config.dropout, seed=11, is_test=False)
        return out

    def block(x, *sublayers):
        for sublayer in sublayers:
            x = process(x, sublayer(process(None, x, Config.preprocess_cmd)), Config.postprocess_cmd)
        return x

    def embed(word, pos, pos_name):
        emb = layers.embedding(word, size=[Config.vocab, Config.model], padding_idx=Config.END,
                               param_attr=fluid.ParamAttr(name='word_emb_table', initializer=fluid.initializer.Normal(
                                   0., Config.model**-0.5)))
        emb = layers.scale(x=emb, scale=Config.model**0.5)
        enc = layers.embedding(pos, size=[Config.max_length, Config.model],
                               param_attr=fluid.ParamAttr(name=pos_name, trainable=False))
        enc.stop_gradient = True
        both = emb + enc
        return layers.dropout(both, dropout_prob=Config.dropout, is_test=False) if Config.dropout else both

    def encode(word, pos, bias):
        enc = embed(word, pos, POSITIONS[0])
        for _ in range(Config.layer):
            enc = block(enc, lambda x: multi_head_attention(x, None, None, bias), feed_forward)
        return process(None, enc, Config.preprocess_cmd)

    def decode(enc, word, pos, bias, src_bias, caches=None):
        dec = embed(word, pos, POSITIONS[1])
        for i in range(Config.layer):
            dec = block(dec, lambda x: multi_head_attention(x, None, None, bias, caches and caches[i]),
                        lambda x: multi_head_attention(x, enc, enc, src_bias), feed_forward)
        dec = layers.reshape(process(None, dec, Config.preprocess_cmd), shape=[-1, Config.model], inplace=True)
        table = fluid.default_main_program().global_block().var('word_emb_table')
        return layers.matmul(x=dec, y=table, transpose_y=True)

    def transformer(src_word, src_pos, src_bias, trg_word, trg_pos, trg_bias, trg_src_bias, label, weight):
        predict = decode(encode(src_word, src_pos, src_bias), trg_word, trg_pos, trg_bias, trg_src_bias)
        smooth = layers.label_smooth(label=layers.one_hot(input=label, depth=Config.vocab), epsilon=Config.smooth)
        cost = layers.softmax_with_cross_entropy(logits=predict, label=smooth, soft_label=True)
        weighted = cost * weight
        sum_cost, token_num = layers.reduce_sum(weighted), layers.reduce_sum(weight)
        token_num.stop_gradient = True
        best = layers.argmax(predict, axis=-1)
        right = layers.cast(layers.equal(layers.reshape(best, [-1, 1]), label), 'float32') * weight
        return sum_cost, sum_cost / token_num, token_num, layers.reduce_sum(right)

    BIAS = [-1, Config.head, Config.max_length, Config.max_length]
    WORD = [-1, Config.max_length, 1]
    DESCS = [('src_word', WORD, 'int64'), ('src_pos', WORD, 'int64'), ('src_slf_attn_bias', BIAS, 'float32'),
             ('trg_word', WORD, 'int64'), ('trg_pos', WORD, 'int64'), ('trg_slf_attn_bias', BIAS, 'float32'),
             ('trg_src_attn_bias', BIAS, 'float32'), ('lbl_word', [-1, 1], 'int64'), ('lbl_weight', [-1, 1], 'float32')]

    def pad(rows):
        rows = [row + [Config.END] * (Config.max_length - len(row)) for row in rows]
        return np.array(rows, 'int64').reshape(-1, Config.max_length, 1)

    def batches(seed, count):
        """Sentences of words one to three apart in the vocabulary, and the words before each of them."""
        random, steps = np.random.RandomState(seed), np.arange(Config.max_length)
        for _ in range(count):
            words, sources, targets = Config.vocab - 2, [], []
            for _ in range(Config.batch):
                line = random.randint(words) + random.randint(1, 4) * np.arange(random.randint(3, Config.max_length))
                sources.append((2 + line % words).tolist())
                targets.append((2 + (line - 1) % words).tolist())
            lengths = np.array([len(source) for source in sources])

            def bias(hidden):
                hidden = np.broadcast_to(hidden, [Config.batch] + BIAS[1:])
                return (hidden * -1e9).astype('float32')
            beyond = (steps[None, :] >= lengths[:, None])[:, None, None, :]
            ahead = (steps[None, :] > steps[:, None])[None, None]
            pos = np.tile(steps[None, :, None], (Config.batch, 1, 1)).astype('int64')
            weight = (steps[None, :] <= lengths[:, None]).astype('float32').reshape(-1, 1)
            yield [pad(sources), pos, bias(beyond), pad([[Config.START] + target for target in targets]), pos,
                   bias(ahead), bias(beyond), pad([target + [Config.END] for target in targets]).reshape(-1, 1), weight]

    def build(train_prog, startup, train):
        """The program, its reader or None, and its costs."""
        source = lambda: batches(int(os.getenv('PADDLE_TRAINER_ID', '0')) if train else 99, 150 if train else 4)
        with fluid.program_guard(train_prog, startup), fluid.unique_name.guard():
            if how == 'py_reader':
                reader = layers.py_reader(capacity=4, shapes=[shape for _, shape, _ in DESCS], lod_levels=[0] * 9,
                                          dtypes=[dtype for _, _, dtype in DESCS], use_double_buffer=True,
                                          name='train_reader' if train else 'test_reader')
                inputs = layers.read_file(reader)
                reader.decorate_tensor_provider(source)
            else:
                reader, inputs = None, [layers.data(name=name, shape=shape, dtype=dtype, append_batch_size=False)
                                        for name, shape, dtype in DESCS]
            if how == 'data_loader':
                reader = fluid.io.DataLoader.from_generator(feed_list=inputs, capacity=4, iterable=False)
                reader.set_batch_generator(source, places=fluid.CPUPlace())
            costs = transformer(*inputs)
            if train:
                rate = layers.learning_rate_scheduler.noam_decay(Config.model, Config.warmup) * Config.learning_rate
                fluid.optimizer.Adam(learning_rate=rate, beta1=0.9, beta2=0.997, epsilon=1e-9).minimize(costs[1])
        return train_prog if train else train_prog.clone(for_test=True), reader, source, costs

    def run_all(exe, reader, source, fetches):
        """What a pass over the data fetches."""
        names = [fetch.name for fetch in fetches]
        if reader is None:
            for arrays in source():
                yield exe.run(feed=[dict(zip([name for name, _, _ in DESCS], arrays))], fetch_list=names)
            return
        reader.start()
        try:
            while True:
                yield exe.run(fetch_list=names)
        except fluid.core.EOFException:
            reader.reset()

    def beam_search(beam=2):
        """A program that translates with what each layer has kept of the steps before, and its sentences."""
        infer_prog, unused = fluid.Program(), fluid.Program()
        with fluid.program_guard(infer_prog, unused), fluid.unique_name.guard():
            inputs = [layers.data(name=name, shape=shape, dtype=dtype, append_batch_size=False)
                      for name, shape, dtype in DESCS[:3]]
            enc_output = encode(*inputs)
            start_tokens, init_scores = [layers.data(name=name, shape=[1], dtype=dtype, lod_level=2)
                                         for name, dtype in (('trg_word', 'int64'), ('init_score', 'float32'))]
            src_bias = layers.data(name='trg_src_attn_bias', shape=[Config.head, 1, Config.max_length], dtype='float32')
            max_len = layers.fill_constant(shape=[1], dtype=start_tokens.dtype, value=Config.max_length)
            step_idx = layers.fill_constant(shape=[1], dtype=start_tokens.dtype, value=0)
            cond = layers.less_than(x=step_idx, y=max_len)
            while_op = layers.While(cond)
            ids = layers.array_write(layers.reshape(start_tokens, (-1, 1)), step_idx)
            scores = layers.array_write(init_scores, step_idx)
            caches = [{kind: layers.fill_constant_batch_size_like(
                input=start_tokens, shape=[-1, 0, Config.model], dtype=enc_output.dtype, value=0) for kind in 'kv'}
                for _ in range(Config.layer)]
            with while_op.block():
                pre_ids = layers.reshape(layers.array_read(array=ids, i=step_idx), (-1, 1, 1))
                pre_scores = layers.array_read(array=scores, i=step_idx)
                pre_bias, pre_enc = [layers.sequence_expand(x=x, y=pre_scores) for x in (src_bias, enc_output)]
                pre_caches = [{kind: layers.sequence_expand(x=cache[kind], y=pre_scores) for kind in 'kv'}
                              for cache in caches]
                ones = layers.fill_constant_batch_size_like(input=pre_enc, value=1, shape=[-1, 1, 1], dtype='int64')
                pre_pos = layers.elementwise_mul(x=ones, y=step_idx, axis=0)
                logits = decode(pre_enc, pre_ids, pre_pos, None, pre_bias, pre_caches)
                top, indices = layers.topk(input=layers.softmax(logits), k=beam)
                total = layers.elementwise_add(x=layers.log(top), y=layers.reshape(pre_scores, shape=[-1]), axis=0)
                total = layers.lod_reset(total, pre_ids)
                chosen, kept = layers.beam_search(pre_ids=pre_ids, pre_scores=pre_scores, ids=indices, scores=total,
                                                  beam_size=beam, end_id=Config.END)
                layers.increment(x=step_idx, value=1.0, in_place=True)
                layers.array_write(chosen, i=step_idx, array=ids)
                layers.array_write(kept, i=step_idx, array=scores)
                layers.assign(pre_bias, src_bias)
                layers.assign(pre_enc, enc_output)
                for old, new in zip(caches, pre_caches):
                    for kind in 'kv':
                        layers.assign(new[kind], old[kind])
                length_cond = layers.less_than(x=step_idx, y=max_len)
                finish_cond = layers.logical_not(layers.is_empty(x=chosen))
                layers.logical_and(x=length_cond, y=finish_cond, out=cond)
            found = layers.beam_search_decode(ids, scores, beam_size=beam, end_id=Config.END)
        return infer_prog.clone(for_test=True), found

    def translate(exe):
        infer_prog, found = beam_search()
        arrays = dict(zip([name for name, _, _ in DESCS], next(batches(99, 1))))
        ones = [[1] * Config.batch] * 2
        feed = {name: arrays[name] for name in ('src_word', 'src_pos', 'src_slf_attn_bias')}
        feed['trg_src_attn_bias'] = arrays['trg_src_attn_bias'][:, :, :1, :]
        feed['trg_word'] = fluid.create_lod_tensor(arrays['trg_word'][:, 0, :], ones, fluid.CPUPlace())
        feed['init_score'] = fluid.create_lod_tensor(np.zeros((Config.batch, 1), 'float32'), ones, fluid.CPUPlace())
        seq_ids, _ = exe.run(infer_prog, feed=feed, fetch_list=list(found), return_numpy=False)
        sources, parts = seq_ids.lod()
        tokens = np.array(seq_ids).reshape(-1).tolist()
        best = [tokens[parts[first] + 1:parts[first + 1]] for first in sources[:-1]]
        right = arrays['lbl_word'].reshape(Config.batch, -1).tolist()
        share = np.mean([row[:len(got)] == got and got[-1] == Config.END for got, row in zip(best, right)])
        print('translated %.2f of the sentences, one as %s' % (share, best[0]))
        assert share > 0.7, (best, right)

    def train():
        train_prog, test_prog, startup = fluid.Program(), fluid.Program(), fluid.Program()
        train_prog.random_seed = startup.random_seed = 17
        train_prog, reader, source, (sum_cost, avg_cost, token_num, _) = build(train_prog, startup, True)
        test_prog, *test = build(test_prog, startup, False)
        endpoints, exe = os.getenv('PADDLE_PSERVER_ENDPOINTS'), fluid.Executor(fluid.CPUPlace())
        if endpoints:
            config = fluid.DistributeTranspilerConfig()
            config.min_block_size = 8192
            t = fluid.DistributeTranspiler(config=config)
            t.transpile(int(os.environ['PADDLE_TRAINER_ID'] if os.environ['TRAINING_ROLE'] == 'TRAINER' else 0),
                        program=train_prog, startup_program=startup, pservers=endpoints,
                        trainers=int(os.environ['PADDLE_TRAINERS_NUM']))
            if os.environ['TRAINING_ROLE'] == 'PSERVER':
                server_prog, server_startup = t.get_pserver_programs(os.environ['PADDLE_CURRENT_ENDPOINT'])
                exe.run(server_startup)
                exe.run(server_prog)
                return
            train_prog = t.get_trainer_program()
        exe.run(startup)
        for name in POSITIONS:
            fluid.global_scope().find_var(name).get_tensor().set(positions(), fluid.CPUPlace())
        strategy, build_strategy = fluid.ExecutionStrategy(), fluid.BuildStrategy()
        strategy.num_iteration_per_drop_scope = 10
        build_strategy.gradient_scale_strategy = fluid.BuildStrategy.GradientScaleStrategy.One
        train_exe = fluid.ParallelExecutor(use_cuda=False, loss_name=avg_cost.name, main_program=train_prog,
                                           build_strategy=build_strategy, exec_strategy=strategy)
        test_exe = fluid.ParallelExecutor(use_cuda=False, main_program=test_prog, share_vars_from=train_exe)
        losses, smooth = [], Config.smooth
        floor = -((1 - smooth) * np.log(1 - smooth) + smooth * np.log(smooth / (Config.vocab - 1) + 1e-20))
        for number in range(Config.epochs):
            for step, (total, tokens) in enumerate(run_all(train_exe, reader, source, [sum_cost, token_num])):
                losses.append(np.sum(total) / np.sum(tokens))
                if step % 50 == 0:
                    print('epoch: %d, batch: %d, avg loss: %f, normalized loss: %f, ppl: %f' % (
                        number, step, losses[-1], losses[-1] - floor, np.exp(min(losses[-1], 100))))
            outs = list(run_all(test_exe, test[0], test[1], [test[2][0], test[2][2], test[2][3]]))
            cost, tokens, right = [np.sum([out[i] for out in outs]) for i in range(3)]
            print('epoch: %d, val avg loss: %f, right %.3f of %d tokens' % (number, cost / tokens, right / tokens,
                                                                           tokens))
        assert right / tokens > 0.9, right / tokens
        first, last = np.mean(losses[:5]), np.mean(losses[-5:])
        print('from %.4f to %.4f' % (first, last))
        assert last < 0.4 * first, losses
        translate(exe)
        exe.close()

    train()
'''
# The second family is post-norm, as in the paper.
FAMILIES = {
    "feeds": ("epochs", "3"),
    "py_reader": ("preprocess_cmd", "''", "postprocess_cmd", "'dan'", "layer", "1"),
    "data_loader": ("dropout", "0", "layer", "1"),
}
CASES = [name if name == "data_loader" else pytest.param(name, marks=pytest.mark.slow) for name in FAMILIES]


@pytest.mark.parametrize("family", CASES)
def test_the_transformer_trains_with_pservers(tmp_path, family):
    code, said, logs = launch(tmp_path, SCRIPT, family, *FAMILIES[family], CPU_NUM="1", **alias_environment())
    assert code == 0, said + "".join(text[-2000:] for text in logs.values())
    assert all("from " in logs[name] for name in ("workerlog.0", "workerlog.1"))


@pytest.mark.parametrize("family", CASES)
def test_the_transformer_trains_alone(tmp_path, family):
    said, _ = start_compat(tmp_path, SCRIPT, family, *FAMILIES[family])
    assert "val avg loss" in said
