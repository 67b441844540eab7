"""A Transformer in the manner of public scripts, alone and as a job: encoder and decoder with attention to both, biases
that mask as feeds, one table for both vocabularies and the output, label smoothing, noam_decay, py_reader, and a test
program by share_vars_from."""

import os
import subprocess
import sys
import textwrap

import pytest
from fleet_jobs import launch

SCRIPT = '''
    import os
    import sys
    import numpy as np
    import paddle
    import paddle.fluid as fluid
    import paddle.fluid.layers as layers

    START, END, WORDS = 0, 1, 12
    WIDTH, HEADS, INNER, LAYERS, LONGEST = 16, 2, 32, 2, 6
    FIELDS = (('src_word', 'int64', 3), ('src_pos', 'int64', 3), ('src_bias', 'float32', 4), ('trg_word', 'int64', 3),
              ('trg_pos', 'int64', 3), ('trg_bias', 'float32', 4), ('cross_bias', 'float32', 4),
              ('lbl_word', 'int64', 2), ('lbl_weight', 'float32', 2))

    def around(before, after, commands, rate):
        """a: adds the input, n: normalizes, d: drops out."""
        for command in commands:
            if command == 'a' and before is not None:
                after = after + before
            elif command == 'n':
                after = layers.layer_norm(after, begin_norm_axis=len(after.shape) - 1,
                                          param_attr=fluid.initializer.Constant(1.),
                                          bias_attr=fluid.initializer.Constant(0.))
            elif command == 'd' and rate:
                after = layers.dropout(after, dropout_prob=rate, seed=3, is_test=False)
        return after

    def attention(queries, keys, bias, rate):
        def heads(input):
            projected = layers.fc(input=input, size=WIDTH, bias_attr=False, num_flatten_dims=2)
            split = layers.reshape(x=projected, shape=[0, 0, HEADS, WIDTH // HEADS], inplace=True)
            return layers.transpose(x=split, perm=[0, 2, 1, 3])
        query, key, value = heads(queries), heads(keys), heads(keys)
        product = layers.matmul(x=query, y=key, transpose_y=True, alpha=(WIDTH // HEADS)**-0.5) + bias
        weights = around(None, layers.softmax(product), 'd', rate)
        joined = layers.transpose(layers.matmul(weights, value), perm=[0, 2, 1, 3])
        return layers.fc(input=layers.reshape(x=joined, shape=[0, 0, WIDTH], inplace=True), size=WIDTH,
                         bias_attr=False, num_flatten_dims=2)

    def forward(input, rate):
        hidden = around(None, layers.fc(input=input, size=INNER, num_flatten_dims=2, act='relu'), 'd', rate)
        return layers.fc(input=hidden, size=WIDTH, num_flatten_dims=2)

    def embed(word, position, rate):
        table = fluid.ParamAttr(name='word_table', initializer=fluid.initializer.Normal(0., WIDTH**-0.5))
        emb = layers.scale(x=layers.embedding(word, size=[WORDS, WIDTH], padding_idx=None, param_attr=table),
                           scale=WIDTH**0.5)
        emb = layers.reshape(emb, shape=[0, 0, WIDTH])
        pos = layers.embedding(position, size=[LONGEST, WIDTH], param_attr=fluid.ParamAttr(
            name='position_table', trainable=False))
        pos.stop_gradient = True
        return around(None, emb + layers.reshape(pos, shape=[0, 0, WIDTH]), 'd', rate)

    def transformer(fields, rate):
        inner = embed(fields['src_word'], fields['src_pos'], rate)
        for _ in range(LAYERS):
            normed = around(None, inner, 'n', 0)
            inner = around(inner, attention(normed, normed, fields['src_bias'], rate), 'da', rate)
            inner = around(inner, forward(around(None, inner, 'n', 0), rate), 'da', rate)
        encoded = around(None, inner, 'n', 0)
        inner = embed(fields['trg_word'], fields['trg_pos'], rate)
        for _ in range(LAYERS):
            normed = around(None, inner, 'n', 0)
            inner = around(inner, attention(normed, normed, fields['trg_bias'], rate), 'da', rate)
            inner = around(inner, attention(around(None, inner, 'n', 0), encoded, fields['cross_bias'], rate), 'da',
                           rate)
            inner = around(inner, forward(around(None, inner, 'n', 0), rate), 'da', rate)
        rows = layers.reshape(around(None, inner, 'n', 0), shape=[-1, WIDTH], inplace=True)
        logits = layers.matmul(x=rows, y=fluid.default_main_program().global_block().var('word_table'),
                               transpose_y=True)
        label = layers.label_smooth(layers.one_hot(input=fields['lbl_word'], depth=WORDS), epsilon=0.1)
        cost = layers.softmax_with_cross_entropy(logits=logits, label=label, soft_label=True)
        weighted = cost * fields['lbl_weight']
        tokens = layers.reduce_sum(fields['lbl_weight'])
        tokens.stop_gradient = True
        return layers.reduce_sum(weighted) / tokens, layers.softmax(logits), tokens

    def batch(random, rows):
        """Each word of the target is the next one after that of the source."""
        sources = [random.randint(2, WORDS - 1, int(n)) for n in random.randint(2, LONGEST, rows)]
        longest = max(len(source) for source in sources) + 1
        made = {name: np.zeros([rows, longest, 1], kind) for name, kind, rank in FIELDS if rank < 4}
        for name in ('src_bias', 'trg_bias', 'cross_bias'):
            made[name] = np.zeros([rows, HEADS, longest, longest], 'float32')
        made['src_pos'][:] = made['trg_pos'][:] = np.arange(longest)[:, None]
        made['src_word'][:] = made['lbl_word'][:] = END
        for row, source in enumerate(sources):
            n = len(source)
            made['src_word'][row, :n, 0] = source
            made['trg_word'][row, 1:n + 1, 0] = made['lbl_word'][row, :n, 0] = source + 1
            made['lbl_weight'][row, :n + 1] = 1
            made['src_bias'][row, :, :, n + 1:] = made['cross_bias'][row, :, :, n + 1:] = -1e9
        made['trg_bias'][:] = np.triu(np.full([longest, longest], -1e9), 1)
        for name in ('lbl_word', 'lbl_weight'):
            made[name] = made[name].reshape(-1, 1)
        return made

    def positions():
        angles = np.arange(LONGEST)[:, None] / 10000.**(np.arange(WIDTH) // 2 * 2. / WIDTH)
        return np.where(np.arange(WIDTH) % 2, np.cos(angles), np.sin(angles)).astype('float32')

    steps, rank_id = int(sys.argv[1]), int(os.getenv('PADDLE_TRAINER_ID', '0'))
    role = os.getenv('TRAINING_ROLE', 'ALONE')
    place = fluid.CPUPlace()
    exe = fluid.Executor(place)
    train_prog, startup_prog = fluid.Program(), fluid.Program()
    train_prog.random_seed = startup_prog.random_seed = 11
    with fluid.program_guard(train_prog, startup_prog):
        with fluid.unique_name.guard():
            shapes = [[-1, 1] if rank == 2 else [-1, -1, 1] if rank == 3 else [-1, HEADS, -1, -1]
                      for _, _, rank in FIELDS]
            reader = layers.py_reader(capacity=4, shapes=shapes, dtypes=[kind for _, kind, _ in FIELDS],
                                      lod_levels=[0] * len(FIELDS), use_double_buffer=True)
            names = [name for name, _, _ in FIELDS]
            loss, _, tokens = transformer(dict(zip(names, layers.read_file(reader))), 0.02)
            rate = layers.learning_rate_scheduler.noam_decay(WIDTH, 40) * 0.5
            fluid.optimizer.Adam(learning_rate=rate, beta1=0.9, beta2=0.997, epsilon=1e-9).minimize(loss)
    if role != 'ALONE':
        t = fluid.DistributeTranspiler()
        t.transpile(rank_id, program=train_prog, startup_program=startup_prog,
                    pservers=os.environ['PADDLE_PSERVER_ENDPOINTS'], trainers=int(os.environ['PADDLE_TRAINERS_NUM']))
        train_prog = t.get_trainer_program()
    if role == 'PSERVER':
        current = os.environ['PADDLE_CURRENT_ENDPOINT']
        served, start = t.get_pserver_programs(current)
        exe.run(start)
        exe.run(served)
        sys.exit(0)
    test_prog = fluid.Program()
    with fluid.program_guard(test_prog, fluid.Program()):
        with fluid.unique_name.guard():
            fields = {name: layers.data(name=name, shape=shape, dtype=kind, append_batch_size=False)
                      for (name, kind, _), shape in zip(FIELDS, shapes)}
            test_loss, test_scores, _ = transformer(fields, 0.)
    test_prog = test_prog.clone(for_test=True)

    exe.run(startup_prog)
    fluid.global_scope().find_var('position_table').get_tensor().set(positions(), place)
    train_exe = fluid.ParallelExecutor(use_cuda=False, loss_name=loss.name, main_program=train_prog)
    test_exe = fluid.ParallelExecutor(use_cuda=False, main_program=test_prog, share_vars_from=train_exe)
    random = np.random.RandomState(rank_id)
    held_out = batch(np.random.RandomState(77), 40)

    def tested():
        value, scores = test_exe.run(feed=held_out, fetch_list=[test_loss.name, test_scores.name])
        right = (scores.argmax(1) == held_out['lbl_word'][:, 0])[held_out['lbl_weight'][:, 0] > 0].mean()
        return np.asarray(value).item(), right

    reader.decorate_tensor_provider(lambda: ([made[name] for name in names] for made in
                                             (batch(random, 24) for _ in range(steps))))
    reader.start()
    seen, losses = 0., []
    try:
        while True:
            value, counted = train_exe.run(fetch_list=[loss.name, tokens.name])
            losses.append(np.asarray(value).item())
            seen += np.sum(counted)
    except fluid.core.EOFException:
        reader.reset()
    after, right = tested()
    print('from %.4f to %.4f, %d tokens, %.3f right' % (losses[0], after, seen, right))
    assert after < 0.5 * losses[0] and right > 0.9 and seen > steps * 24 * 3
    exe.close()
'''
STEPS = 150


@pytest.fixture
def paddle():
    """The environment in which `import paddle` is Penstock."""
    path = subprocess.run([sys.executable, '-m', 'penstock.compat', '--path'], check=True, capture_output=True,
                          text=True, timeout=60).stdout.strip()
    return {'PYTHONPATH': os.pathsep.join(filter(None, [path, os.environ.get('PYTHONPATH')])), 'CPU_NUM': '1'}


@pytest.mark.parametrize('servers, workers', [(1, 1), (2, 2)])
def test_it_learns_with_servers(tmp_path, paddle, servers, workers):
    code, said, logs = launch(tmp_path, SCRIPT, STEPS, servers=servers, workers=workers, **paddle)
    assert code == 0, said + ''.join(text[-2000:] for text in logs.values())
    assert all(' right' in logs['workerlog.%d' % i] for i in range(workers))


def test_it_learns_alone(tmp_path):
    (tmp_path / 'train.py').write_text(textwrap.dedent(SCRIPT))
    kept = {name: value for name, value in os.environ.items() if not name.startswith(('PADDLE_', 'TRAINING_'))}
    done = subprocess.run([sys.executable, '-m', 'penstock.compat', 'train.py', str(STEPS)], cwd=tmp_path,
                          env={**kept, 'OMP_NUM_THREADS': '1'}, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert ' right' in done.stdout
