"""Small scripts in the style of public ones that read data with readers, or whose test programs share the trainer's
variables: benchmarks, word vectors, clicks, image classification. They run as one process, and as two pservers and two
trainers."""

import os
import subprocess
import sys
import textwrap

import pytest
from fleet_jobs import alias_environment, launch

SCRIPT = '''
    import os
    import sys
    import numpy as np
    import paddle
    import paddle.fluid as fluid
    import paddle.fluid.core as core
    import paddle.fluid.transpiler.distribute_transpiler as distribute_transpiler

    L, WORDS = fluid.layers, 30
    role, trainer_id = os.getenv('TRAINING_ROLE', 'TRAINER'), int(os.getenv('PADDLE_TRAINER_ID', '0'))
    endpoints = os.getenv('PADDLE_PSERVER_ENDPOINTS', '')

    def distribute(train_prog, startup_prog):
        """A trainer's programs. A pserver's process ends here."""
        if not endpoints:
            return train_prog, startup_prog
        config = fluid.DistributeTranspilerConfig()
        config.slice_var_up = True
        t = distribute_transpiler.DistributeTranspiler(config=config)
        t.transpile(trainer_id, program=train_prog, pservers=endpoints, trainers=int(os.environ['PADDLE_TRAINERS_NUM']),
                    sync_mode=True, startup_program=startup_prog)
        if role == 'TRAINER':
            return t.get_trainer_program(), startup_prog
        current = os.environ['PADDLE_CURRENT_ENDPOINT']
        server_prog = t.get_pserver_program(current)
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(t.get_startup_program(current, server_prog, startup_program=startup_prog))
        exe.run(server_prog)
        exit(0)

    def parallel(loss, program, **more):
        strategy, build = fluid.ExecutionStrategy(), fluid.BuildStrategy()
        strategy.num_threads = 2
        strategy.allow_op_delay = False
        build.reduce_strategy = fluid.BuildStrategy.ReduceStrategy.Reduce
        return fluid.ParallelExecutor(False, loss, main_program=program, exec_strategy=strategy, build_strategy=build,
                                      num_trainers=1, trainer_id=0, **more)

    def images(seed, count):
        random = np.random.RandomState(seed)
        for _ in range(count):
            label = random.randint(0, 5)
            image = random.rand(1, 8, 8).astype('float32') * 0.2
            image[0, label] += 1
            yield image, label

    def benchmark():
        def get_model(is_train, main_prog):
            with fluid.program_guard(main_prog, startup_prog), fluid.unique_name.guard():
                image, label = L.data(name='pixel', shape=[1, 8, 8]), L.data(name='label', shape=[1], dtype='int64')
                conv = fluid.nets.simple_img_conv_pool(input=image, filter_size=3, num_filters=4, pool_size=2,
                                                       pool_stride=2, act='relu')
                predict = L.fc(input=conv, size=5, act='softmax')
                cost = L.mean(x=L.cross_entropy(input=predict, label=label))
                if is_train:
                    fluid.optimizer.AdamOptimizer(learning_rate=0.02).minimize(cost)
                return cost, L.accuracy(input=predict, label=label)

        train_prog, test_prog, startup_prog = fluid.Program(), fluid.Program(), fluid.Program()
        startup_prog.random_seed = 1
        (cost, accuracy), (_, test_accuracy) = get_model(True, train_prog), get_model(False, test_prog)
        train_prog, startup_prog = distribute(train_prog, startup_prog)
        place = core.CPUPlace()
        fluid.Executor(place).run(startup_prog)
        exe = parallel(cost.name, train_prog)
        test_exe = fluid.ParallelExecutor(False, main_program=test_prog, share_vars_from=exe)
        feeders = [fluid.DataFeeder([var for var in program.global_block().vars.values() if var.is_data], place)
                   for program in (train_prog, test_prog)]
        batches, losses = paddle.batch(lambda: images(trainer_id, 640), batch_size=32), []
        for _ in range(4):
            for data in batches():
                loss, _ = exe.run([cost.name, accuracy.name], feed=feeders[0].feed(data))
                losses.append(np.mean(loss))
        metric = fluid.metrics.Accuracy()
        for data in paddle.batch(lambda: images(9, 64), batch_size=16)():
            metric.update(value=np.array(test_exe.run([test_accuracy.name], feed=feeders[1].feed(data))[0]),
                          weight=len(data))
        assert metric.eval() > 0.8, metric.eval()
        return losses

    def word_vectors():
        words = [L.data(name=name, shape=[width], dtype='int64')
                 for name, width in (('input_word', 1), ('true_label', 1), ('neg_label', 3))]
        py_reader = L.create_py_reader_by_data(capacity=8, feed_list=words, name='py_reader', use_double_buffer=True)
        center, right, wrong = L.read_file(py_reader)

        def embed(word, name, width=8):
            return L.embedding(input=word, is_sparse=True, size=[WORDS, width], param_attr=fluid.ParamAttr(
                name=name, initializer=fluid.initializer.Uniform(-0.1, 0.1)))
        near, true_w = embed(center, 'emb'), embed(right, 'emb_w')
        false_w = L.reshape(embed(L.reshape(wrong, shape=[-1, 1]), 'emb_w'), shape=[-1, 3, 8])
        true = L.elementwise_add(L.reduce_sum(near * true_w, dim=1, keep_dim=True), embed(right, 'emb_b', 1))
        false = L.reshape(L.matmul(L.reshape(near, shape=[-1, 1, 8]), false_w, transpose_y=True), shape=[-1, 3])
        ones = L.fill_constant_batch_size_like(true, shape=[-1, 1], value=1.0, dtype='float32')
        zeros = L.fill_constant_batch_size_like(true, shape=[-1, 3], value=0.0, dtype='float32')
        loss = L.reduce_mean(L.reduce_sum(L.sigmoid_cross_entropy_with_logits(true, ones), dim=1) +
                             L.reduce_sum(L.sigmoid_cross_entropy_with_logits(false, zeros), dim=1))
        fluid.optimizer.SGD(learning_rate=L.exponential_decay(
            learning_rate=1.0, decay_steps=1000, decay_rate=0.9, staircase=True)).minimize(loss)
        distribute(fluid.default_main_program(), fluid.default_startup_program())

        def provider():
            random = np.random.RandomState(trainer_id)
            for _ in range(100):
                word = random.randint(0, WORDS, (64, 1))
                arrays = [word, word // 5 * 5 + random.randint(0, 5, (64, 1)), random.randint(0, WORDS, (64, 3))]
                tensors = [fluid.Tensor() for _ in arrays]
                for tensor, array in zip(tensors, arrays):
                    tensor.set(array.astype('int64'), fluid.CPUPlace())
                yield tensors
        py_reader.decorate_tensor_provider(provider)
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(fluid.default_startup_program())
        losses = []
        for _ in range(3):
            py_reader.start()
            try:
                while True:
                    losses.append(np.mean(exe.run(fetch_list=[loss.name])))
            except fluid.core.EOFException:
                py_reader.reset()
        if trainer_id == 0:
            fluid.io.save_params(executor=exe, dirname='saved')
            assert sorted(os.listdir('saved')) == ['__digests__', 'emb', 'emb_b', 'emb_w']
        return losses

    def clicks():
        dense, label = L.data('dense_input', [3]), L.data('label', [1], dtype='int64')
        sparse = [L.data('C%d' % i, [1], lod_level=1, dtype='int64') for i in range(3)]
        py_reader = L.create_py_reader_by_data(capacity=8, feed_list=[dense] + sparse + [label], name='py_reader')
        inputs = L.read_file(py_reader)
        rows = [L.sequence_pool(L.embedding(input=each, is_sparse=True, size=[WORDS, 4],
                                            param_attr=fluid.ParamAttr(name='SparseFeatFactors')), pool_type='average')
                for each in inputs[1:-1]]
        predict = L.fc(L.fc(L.concat(rows + inputs[:1], axis=1), 16, act='relu'), 2, act='softmax')
        loss = L.reduce_sum(L.cross_entropy(input=predict, label=inputs[-1]))
        auc, batch_auc, _ = L.auc(input=predict, label=inputs[-1], num_thresholds=2**12, slide_steps=20)
        fluid.optimizer.Adam(learning_rate=0.02).minimize(loss)
        main, startup = distribute(fluid.default_main_program(), fluid.default_startup_program())

        def samples():
            random = np.random.RandomState(trainer_id)
            for _ in range(3200):
                ids = random.randint(0, WORDS, 3).tolist()
                yield [random.rand(3).tolist()] + [[each] for each in ids] + [[int(ids[0] % 2)]]
        py_reader.decorate_paddle_reader(paddle.batch(paddle.reader.shuffle(samples, buf_size=500), batch_size=50))
        exe = fluid.Executor(fluid.CPUPlace())
        pe = parallel(loss.name, main)
        exe.run(startup)
        losses = []
        for _ in range(2):
            py_reader.start()
            try:
                while True:
                    value, area, _ = pe.run(fetch_list=[loss.name, auc.name, batch_auc.name])
                    losses.append(np.mean(value))
            except fluid.core.EOFException:
                py_reader.reset()
        assert np.mean(area) > 0.8, area
        if trainer_id == 0:
            fluid.io.save_persistables(executor=exe, dirname='saved', main_program=fluid.default_main_program())
        return losses

    def classification():
        def build(is_train, main_prog):
            with fluid.program_guard(main_prog, startup_prog):
                reader = L.py_reader(capacity=8, shapes=([-1, 1, 8, 8], (-1, 1)), dtypes=('float32', 'int64'),
                                     name='train_reader' if is_train else 'test_reader', use_double_buffer=True)
                with fluid.unique_name.guard():
                    image, label = L.read_file(reader)
                    conv = L.batch_norm(L.conv2d(image, 8, 3, bias_attr=False), act='relu', is_test=not is_train)
                    cost, pred = L.softmax_with_cross_entropy(L.fc(conv, 5), label, return_softmax=True)
                    loss, accuracy = L.mean(x=cost), L.accuracy(input=pred, label=label, k=1)
                    if is_train:
                        rate = warm_up(L.piecewise_decay(boundaries=[40, 60], values=[0.2, 0.1, 0.05]), 10, 0.02, 0.2)
                        fluid.optimizer.Momentum(learning_rate=rate, momentum=0.9).minimize(loss)
                count = 640 if is_train else 64
                reader.decorate_paddle_reader(paddle.batch(lambda: images(trainer_id, count), batch_size=16))
                return reader, loss, accuracy

        def warm_up(learning_rate, steps, start_lr, end_lr):
            with fluid.default_main_program()._lr_schedule_guard():
                lr = L.tensor.create_global_var(shape=[1], value=0.0, dtype='float32', persistable=True, name='warm_up')
                step = L.learning_rate_scheduler._decay_step_counter()
                with L.control_flow.Switch() as switch:
                    with switch.case(step < steps):
                        L.tensor.assign(start_lr + (end_lr - start_lr) * (step / steps), lr)
                    with switch.default():
                        L.tensor.assign(learning_rate, lr)
                return lr

        train_prog, test_prog, startup_prog = fluid.Program(), fluid.Program(), fluid.Program()
        reader, loss, accuracy = build(True, train_prog)
        test_reader, _, test_accuracy = build(False, test_prog)
        train_prog, startup_prog = distribute(train_prog, startup_prog)
        startup_exe = fluid.Executor(fluid.CPUPlace())
        startup_exe.run(startup_prog)
        exe, losses = parallel(loss.name, train_prog), []
        for number in range(2):
            reader.start()
            try:
                while True:
                    losses.append(np.mean(exe.run([loss.name, accuracy.name])[0]))
            except fluid.core.EOFException:
                reader.reset()
            found = []
            test_reader.start()
            try:
                while True:
                    found.append(startup_exe.run(program=test_prog, fetch_list=[test_accuracy])[0])
            except fluid.core.EOFException:
                test_reader.reset()
            fluid.io.save_persistables(startup_exe, 'saved%d/%d' % (trainer_id, number), main_program=train_prog)
        assert np.mean(found) > 0.8, found
        startup_exe.close()
        return losses

    fluid.default_startup_program().random_seed = 3
    losses = globals()[sys.argv[1]]()
    first, last = np.mean(losses[:5]), np.mean(losses[-5:])
    print('from %.4f to %.4f' % (first, last))
    assert last < 0.8 * first, losses
'''
FAMILIES = ["benchmark", "word_vectors"] + [
    pytest.param(name, marks=pytest.mark.slow) for name in ("clicks", "classification")
]


@pytest.fixture
def paddle():
    """The environment in which `import paddle` is Penstock."""
    return dict(alias_environment(), CPU_NUM="1")


@pytest.mark.parametrize("family", FAMILIES)
def test_the_script_trains_with_pservers(tmp_path, paddle, family):
    code, said, logs = launch(tmp_path, SCRIPT, family, **paddle)
    assert code == 0, said + "".join(text[-2000:] for text in logs.values())
    for trainer in ("workerlog.0", "workerlog.1"):
        assert "from " in logs[trainer]


@pytest.mark.parametrize("family", FAMILIES)
def test_the_script_trains_alone(tmp_path, paddle, family):
    (tmp_path / "job.py").write_text(textwrap.dedent(SCRIPT))
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PADDLE_")}
    done = subprocess.run(
        [sys.executable, "job.py", family],
        cwd=tmp_path,
        env={**kept, **paddle},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
