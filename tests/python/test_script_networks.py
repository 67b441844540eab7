"""Networks of public scripts as two pservers and two trainers: `import paddle`, roles from the environment,
DistributeTranspiler in sync mode."""

import pytest
from fleet_jobs import alias_environment, launch

# argv: a network below. Each is (loss, feeds, a function that gives a batch, optimizer).
SCRIPT = '''
    import os
    import sys
    import numpy as np
    import paddle
    import paddle.fluid as fluid

    L = fluid.layers
    WORDS = 40

    def tokens(random, rows):
        """Sequences that repeat their first word, so that the next word can be learned."""
        return [[int(first)] * int(length) for first, length in zip(random.randint(0, WORDS, rows),
                                                                   random.randint(2, 6, rows))]

    def word(name, lod=1):
        return L.data(name=name, shape=[1], dtype='int64', lod_level=lod)

    def embed(input, width=16, name=None):
        return L.embedding(input=input, size=[WORDS, width], is_sparse=True,
                           param_attr=name and fluid.ParamAttr(name=name))

    def digits():
        image, label = L.data('pixel', [1, 12, 12]), word('label', 0)
        conv = fluid.nets.simple_img_conv_pool(image, filter_size=5, num_filters=8, pool_size=2, pool_stride=2,
                                               act='relu')
        cost = L.cross_entropy(input=L.fc(conv, size=4, act='softmax'), label=label)

        def batch(random):
            labels = random.randint(0, 4, 32)
            images = random.rand(32, 1, 12, 12).astype('float32') * 0.1
            for image, label in zip(images, labels):
                image[:, 3 * label:3 * label + 3] += 1
            return [(image, [label]) for image, label in zip(images, labels)]
        return L.mean(cost), [image, label], batch, fluid.optimizer.Adam(0.01)

    def residual():
        image, label = L.data('image', [3, 8, 8]), word('label', 0)

        def conv_bn(input, filters, act='relu'):
            conv = L.conv2d(input, filters, 3, padding=1, bias_attr=False)
            return L.batch_norm(conv, act=act)
        first = conv_bn(image, 8)
        block = L.elementwise_add(x=first, y=conv_bn(conv_bn(first, 8), 8, act=None), act='relu')
        pool = L.pool2d(block, pool_type='avg', global_pooling=True)
        loss = L.mean(L.cross_entropy(L.fc(L.dropout(pool, 0.1), 3, act='softmax'), label))
        rate = L.piecewise_decay(boundaries=[20, 30], values=[0.1, 0.05, 0.01])

        def batch(random):
            labels = random.randint(0, 3, 16)
            images = random.rand(16, 3, 8, 8).astype('float32')
            for image, label in zip(images, labels):
                image[label] += 1
            return [(image, [label]) for image, label in zip(images, labels)]
        return loss, [image, label], batch, fluid.optimizer.Momentum(
            learning_rate=rate, momentum=0.9, regularization=fluid.regularizer.L2Decay(1e-4))

    def ngram():
        names = ['firstw', 'secondw', 'thirdw', 'nextw']
        words = [word(name, 0) for name in names]
        hidden = L.fc(L.concat([embed(each, name='shared_w') for each in words[:3]], axis=1), size=64, act='sigmoid')
        loss = L.mean(L.cross_entropy(input=L.fc(hidden, size=WORDS, act='softmax'), label=words[3]))

        def batch(random):
            return [([first], [first], [first], [first]) for first in random.randint(0, WORDS, 64)]
        return loss, words, batch, fluid.optimizer.AdagradOptimizer(0.3)

    def recommender():
        user, title, score = word('user_id', 0), word('movie_title'), L.data('score', [1])
        one = L.fc(embed(user), size=16, act='tanh')
        other = fluid.nets.sequence_conv_pool(embed(title), num_filters=16, filter_size=3, act='tanh',
                                              pool_type='sum')
        similar = L.scale(x=L.cos_sim(X=one, Y=other), scale=5.0)
        loss = L.mean(L.square_error_cost(input=similar, label=score))

        def batch(random):
            titles = tokens(random, 32)
            users = [title[0] if random.rand() < 0.5 else int(random.randint(WORDS)) for title in titles]
            return [([user], title, [5.0 if user % 2 == title[0] % 2 else -5.0]) for user, title in zip(users, titles)]
        return loss, [user, title, score], batch, fluid.optimizer.Adam(0.02)

    def sentiment():
        text, label = word('words'), word('label', 0)
        projected = L.fc(embed(text), size=4 * 16)
        lstm, _ = L.dynamic_lstm(input=projected, size=4 * 16)
        pools = [L.sequence_pool(each, pool_type='max') for each in (projected, lstm)]
        loss = L.mean(L.cross_entropy(L.fc(pools, size=2, act='softmax'), label))

        def batch(random):
            return [(text, [int(text[0] < WORDS // 2)]) for text in tokens(random, 32)]
        return loss, [text, label], batch, fluid.optimizer.Adagrad(0.05)

    def roles():
        text, target = word('word_data'), word('target')
        hidden = L.fc([embed(text), L.dynamic_gru(L.fc(embed(text), 3 * 16), 16, is_reverse=True)], size=4)
        loss = L.mean(L.linear_chain_crf(input=hidden, label=target, param_attr=fluid.ParamAttr(
            name='crfw', learning_rate=0.1)))
        rate = L.exponential_decay(learning_rate=0.1, decay_steps=10, decay_rate=0.9, staircase=True)
        fluid.optimizer.SGD(learning_rate=rate).minimize(loss)
        L.crf_decoding(input=hidden, param_attr=fluid.ParamAttr(name='crfw'))

        def batch(random):
            return [(text, [each % 4 for each in text]) for text in tokens(random, 32)]
        return loss, [text, target], batch, None

    def sessions():
        source, following = word('src_wordseq'), word('dst_wordseq')
        gru = L.dynamic_gru(L.fc(embed(source), size=3 * 16), size=16)
        scores = L.fc(gru, size=WORDS, act='softmax')
        L.accuracy(input=scores, label=following, k=20)
        return L.mean(L.cross_entropy(scores, following)), [source, following], lambda random: [
            (text, text) for text in tokens(random, 32)], fluid.optimizer.Adagrad(0.2)

    def tags():
        text, right, wrong = word('text'), word('pos_tag'), word('neg_tag')
        seen = L.fc(L.sequence_pool(L.sequence_conv(embed(text), num_filters=16, filter_size=3, act='tanh'), 'max'), 16)
        good, bad = [L.cos_sim(seen, L.sequence_pool(embed(each, name='tag_emb'), 'sum')) for each in (right, wrong)]
        margin = L.fill_constant_batch_size_like(input=bad, shape=[-1, 1], value=0.5, dtype='float32')
        zero = L.fill_constant_batch_size_like(input=bad, shape=[-1, 1], value=0.0, dtype='float32')
        loss = L.mean(L.elementwise_max(zero, L.elementwise_add(L.elementwise_sub(margin, good), bad)))
        return loss, [text, right, wrong], lambda random: [
            (text, [text[0] % 5], [(text[0] + 1) % 5]) for text in tokens(random, 32)], fluid.optimizer.Adagrad(0.1)

    def interest():
        history = L.data('history', [5, 1], dtype='int64')
        item, label = word('item', 0), L.data('label', [1])
        past = L.reshape(embed(L.reshape(history, [-1, 1]), name='item_emb'), [-1, 5, 16])
        now = embed(item, name='item_emb')
        tiled = L.expand(L.reshape(now, [-1, 1, 16]), [1, 5, 1])
        weights = L.softmax(L.squeeze(L.fc(L.concat([past, tiled, past - tiled], axis=2), 1, num_flatten_dims=2), [2]))
        pooled = L.squeeze(L.matmul(L.unsqueeze(weights, [1]), past), [1])
        logit = L.fc(L.concat([pooled, now, pooled * now], axis=1), 1)
        loss = L.reduce_mean(L.sigmoid_cross_entropy_with_logits(x=logit, label=label))

        def batch(random):
            pasts = random.randint(0, WORDS, (32, 5, 1))
            return [(past, [item], [float(item in past)]) for past, item in zip(
                pasts, [int(past[0, 0]) if i % 2 else int(random.randint(WORDS)) for i, past in enumerate(pasts)])]
        return loss, [history, item, label], batch, fluid.optimizer.Adam(0.1)

    fluid.default_startup_program().random_seed = 7
    loss, feeds, batch, optimizer = globals()[sys.argv[1]]()
    if optimizer is not None:
        optimizer.minimize(loss)
    place = fluid.CPUPlace()
    exe = fluid.Executor(place)
    trainer_id = int(os.getenv('PADDLE_TRAINER_ID', '0'))
    t = fluid.DistributeTranspiler()
    t.transpile(trainer_id, pservers=os.environ['PADDLE_PSERVER_ENDPOINTS'],
                trainers=int(os.environ['PADDLE_TRAINERS_NUM']), sync_mode=True)
    if os.environ['TRAINING_ROLE'] == 'PSERVER':
        current = os.environ['PADDLE_CURRENT_ENDPOINT']
        program = t.get_pserver_program(current)
        exe.run(t.get_startup_program(current, program))
        exe.run(program)
        sys.exit(0)
    exe.run(fluid.default_startup_program())
    train_exe = fluid.ParallelExecutor(use_cuda=False, loss_name=loss.name, main_program=t.get_trainer_program(),
                                       num_trainers=1, trainer_id=0)
    feeder = fluid.DataFeeder(feed_list=feeds, place=place)
    random = np.random.RandomState(trainer_id)
    reader = paddle.reader.firstn(lambda: iter(lambda: batch(random), None), 40)
    losses = []
    for step, rows in enumerate(reader()):
        value, = train_exe.run(feed=feeder.feed(rows), fetch_list=[loss.name])
        losses.append(float(value))
        if step % 20 == 0:
            print('step %d loss %f' % (step, value))
    first, last = np.mean(losses[:5]), np.mean(losses[-5:])
    print('from %.4f to %.4f' % (first, last))
    assert last < 0.9 * first, losses
    if trainer_id == 0:
        fluid.io.save_persistables(exe, 'model', t.get_trainer_program())
    exe.close()
'''
NETWORKS = ("digits", "residual", "ngram", "recommender", "sentiment", "roles", "sessions", "tags", "interest")
QUICK = ("residual", "sessions")


@pytest.mark.parametrize(
    "network", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in NETWORKS]
)
def test_the_network_trains(tmp_path, network):
    code, said, logs = launch(tmp_path, SCRIPT, network, **alias_environment())
    assert code == 0, said + "".join(text[-2000:] for text in logs.values())
    for trainer in ("workerlog.0", "workerlog.1"):
        assert "from " in logs[trainer]
    assert (tmp_path / "model").is_dir()
