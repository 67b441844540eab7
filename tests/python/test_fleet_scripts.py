"""Small scripts in the style of public ones, with paddle's names, as two servers and two trainers: Fleet's quick start,
CTR with a dataset and a pipe command, word2vec in the asynchronous modes."""

import re

import numpy as np
import pytest
from fleet_jobs import alias_environment, launch, launch_well


@pytest.fixture(scope="module")
def paddle():
    """The environment in which `import paddle` is Penstock."""
    return alias_environment()


QUICK_START = """
    import numpy as np
    import paddle.fluid as fluid
    from paddle.fluid.incubate.fleet.base import role_maker
    from paddle.fluid.incubate.fleet.parameter_server.distribute_transpiler import fleet
    from paddle.fluid.transpiler.distribute_transpiler import DistributeTranspilerConfig

    def mlp(input_x, input_y, hid_dim=32, label_dim=2):
        fc_1 = fluid.layers.fc(input=input_x, size=hid_dim, act='tanh')
        fc_2 = fluid.layers.fc(input=fc_1, size=hid_dim, act='tanh')
        prediction = fluid.layers.fc(input=[fc_2], size=label_dim, act='softmax')
        return fluid.layers.mean(x=fluid.layers.cross_entropy(input=prediction, label=input_y))

    def gen_data(batch):
        x = np.random.random(size=(batch, 32)).astype('float32')
        return {'x': x, 'y': (x[:, :1] > 0.5).astype('int64')}

    input_x = fluid.layers.data(name='x', shape=[32], dtype='float32')
    input_y = fluid.layers.data(name='y', shape=[1], dtype='int64')
    cost = mlp(input_x, input_y)
    optimizer = fluid.optimizer.SGD(learning_rate=0.5)
    role = role_maker.PaddleCloudRoleMaker()
    fleet.init(role)
    config = DistributeTranspilerConfig()
    config.sync_mode = True
    optimizer = fleet.distributed_optimizer(optimizer, config)
    optimizer.minimize(cost)
    if fleet.is_server():
        fleet.init_server()
        fleet.run_server()
    elif fleet.is_worker():
        fleet.init_worker()
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(fluid.default_startup_program())
        np.random.seed(fleet.worker_index())
        losses = []
        for i in range(150):
            cost_val = exe.run(program=fluid.default_main_program(), feed=gen_data(128), fetch_list=[cost.name])
            losses.append(cost_val[0][0])
        np.savez('worker%d.npz' % fleet.worker_index(), losses=losses)
        fleet.stop_worker()
"""


@pytest.mark.parametrize("older", [False, True])
def test_the_quick_start_trains(tmp_path, paddle, older):
    """Scripts of releases before 1.8 call neither init_worker nor stop_worker."""
    script = re.sub(r"\n *fleet\.(init|stop)_worker\(\)", "", QUICK_START) if older else QUICK_START
    trainers, _ = launch_well(tmp_path, script, **paddle)
    for trainer in trainers:
        assert np.mean(trainer["losses"][-10:]) < 0.6 * np.mean(trainer["losses"][:5]), trainer["losses"]


# A line: label, then integer and categorical features, as in the click logs of advertisements.
CLICK_GEN = """
    import paddle.fluid.incubate.data_generator as dg

    class Clicks(dg.MultiSlotDataGenerator):
        def generate_sample(self, line):
            def reader():
                fields = line.rstrip().split('\\t')
                dense = [float(value) for value in fields[1:4]]
                yield [('dense_input', dense)] + [('C%d' % i, [hash_of(fields[4 + i])]) for i in range(3)] + [
                    ('label', [int(fields[0])])]
            return reader

    def hash_of(text):
        return sum(ord(each) * 31**i for i, each in enumerate(text)) % 1001

    Clicks().run_from_stdin()
"""
CTR = """
    import os, sys
    import numpy as np
    import paddle.fluid as fluid
    import paddle.fluid.incubate.fleet.base.role_maker as role_maker
    from paddle.fluid.incubate.fleet.parameter_server.distribute_transpiler import fleet
    from paddle.fluid.incubate.fleet.parameter_server.distribute_transpiler.distributed_strategy import StrategyFactory

    mode, kind = sys.argv[1:]
    dense = fluid.layers.data(name='dense_input', shape=[3], dtype='float32')
    sparse = [fluid.layers.data(name='C%d' % i, shape=[1], lod_level=1, dtype='int64') for i in range(3)]
    label = fluid.layers.data(name='label', shape=[1], dtype='int64')
    inputs = [dense] + sparse + [label]

    def embedding(input):
        emb = fluid.layers.embedding(input=input, is_sparse=True, is_distributed=False, size=[1001, 8],
                                     param_attr=fluid.ParamAttr(name='SparseFeatFactors',
                                                                initializer=fluid.initializer.Uniform()))
        return fluid.layers.sequence_pool(input=emb, pool_type='average')

    concated = fluid.layers.concat([embedding(each) for each in sparse] + [dense], axis=1)
    fc1 = fluid.layers.fc(input=concated, size=32, act='relu')
    predict = fluid.layers.fc(input=fc1, size=2, act='softmax')
    cost = fluid.layers.mean(fluid.layers.cross_entropy(input=predict, label=label))
    auc_var, batch_auc, _ = fluid.layers.auc(input=predict, label=label, num_thresholds=2**12)

    fleet.init(role_maker.PaddleCloudRoleMaker())
    strategy = {'sync': StrategyFactory.create_sync_strategy, 'async': StrategyFactory.create_async_strategy,
                'half_async': StrategyFactory.create_half_async_strategy}[mode]()
    optimizer = fleet.distributed_optimizer(fluid.optimizer.Adam(0.01), strategy)
    optimizer.minimize(cost)
    if fleet.is_server():
        fleet.init_server()
        fleet.run_server()
        sys.exit(0)
    fleet.init_worker()
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fleet.startup_program)
    dataset = fluid.DatasetFactory().create_dataset(kind)
    dataset.set_use_var(inputs)
    dataset.set_pipe_command('%s gen.py' % sys.executable)
    dataset.set_batch_size(50)
    dataset.set_thread(2)
    files = fleet.split_files(['train/part-%d' % i for i in range(4)])
    dataset.set_filelist(files)
    sizes = []
    if kind == 'InMemoryDataset':
        dataset.load_into_memory()
        sizes = [dataset.get_memory_data_size(), dataset.get_memory_data_size(fleet)]
        dataset.global_shuffle(fleet)
        sizes += [dataset.get_shuffle_data_size(), dataset.get_shuffle_data_size(fleet)]
    for epoch in range(8):
        exe.train_from_dataset(program=fleet.main_program, dataset=dataset, fetch_list=[auc_var],
                               fetch_info=['Epoch %d auc' % epoch], print_period=2, debug=True)
    if fleet.is_first_worker():
        fleet.save_persistables(executor=exe, dirname='model')
    np.savez('worker%d.npz' % fleet.worker_index(), sizes=sizes)
    fleet.stop_worker()
"""


def write_clicks(folder):
    """Four files of 200 lines each; one feature determines the clicks."""
    random = np.random.RandomState(0)
    (folder / "train").mkdir()
    for part in range(4):
        lines = []
        for _ in range(200):
            words = [f"w{random.randint(0, 12)}" for _ in range(3)]
            clicked = int(int(words[0][1:]) < 6)
            lines.append("\t".join([str(clicked)] + [f"{value:.3f}" for value in random.rand(3)] + words) + "\n")
        (folder / "train" / (f"part-{part}")).write_text("".join(lines))


@pytest.mark.parametrize(
    "mode, kind", [("sync", "InMemoryDataset"), ("async", "QueueDataset"), ("half_async", "QueueDataset")]
)
def test_click_models_train_from_datasets(tmp_path, paddle, mode, kind):
    write_clicks(tmp_path)
    trainers, logs = launch_well(tmp_path, CTR, mode, kind, files={"gen.py": CLICK_GEN}, **paddle)
    for index in range(len(trainers)):
        log = logs[f"workerlog.{index}"]
        aucs = [float(line.partition("[")[2].rstrip("]")) for line in log.splitlines() if line.startswith("\tdata: [")]
        assert len(aucs) >= 6 and aucs[-1] > 0.8, log[-3000:]
        progress = r"^step 2: loss \d\.\d+, \d+ examples/s, \d+\.\d\d s of \d+\.\d\d s in communication$"
        assert re.search(progress, log, re.M)
    assert (tmp_path / "model" / "SparseFeatFactors").stat().st_size > 1001 * 8 * 4
    if kind == "InMemoryDataset":
        first, second = (trainer["sizes"].tolist() for trainer in trainers)
        assert first[0] == second[0] == 400 and first[1] == second[1] == first[3] == second[3] == 800
        assert first[2] + second[2] == 800 and 300 < first[2] < 500


def test_a_pipe_command_that_fails_ends_the_job_in_one_line(tmp_path, paddle):
    write_clicks(tmp_path)
    bad = CLICK_GEN.replace("fields[1:4]]", "fields[1:4] + ['x' * (fields[4] == 'w3')]]")
    code, said, logs = launch(tmp_path, CTR, "async", "QueueDataset", files={"gen.py": bad}, **paddle)
    assert code != 0
    text = said + "".join(logs.values())
    assert "ended with exit code 1" in text and "E-dataset-command" in text and "train/part-" in text
    assert "could not convert string to float" in text, "the command says why"


WORD2VEC = """
    import sys
    import numpy as np
    import paddle.fluid as fluid
    from paddle.fluid.incubate.fleet.base.role_maker import PaddleCloudRoleMaker
    from paddle.fluid.incubate.fleet.parameter_server.distribute_transpiler import fleet
    from paddle.fluid.incubate.fleet.parameter_server.distribute_transpiler.distributed_strategy import StrategyFactory

    mode, dict_size, size, neg_num = sys.argv[1], 60, 16, 3

    def skip_gram():
        words = [fluid.layers.data(name=name, shape=shape, dtype='int64')
                 for name, shape in (('input_word', [1]), ('true_label', [1]), ('neg_label', [neg_num]))]
        def embed(word, name, width):
            return fluid.layers.embedding(word, [dict_size, width], is_sparse=True, param_attr=fluid.ParamAttr(
                name=name, initializer=fluid.initializer.UniformInitializer(-0.5 / size, 0.5 / size)))
        center = embed(words[0], 'emb', size)
        true_w, true_b = embed(words[1], 'emb_w', size), embed(words[1], 'emb_b', 1)
        negative = fluid.layers.reshape(words[2], [-1, 1])
        neg_w = fluid.layers.reshape(embed(negative, 'emb_w', size), [-1, neg_num, size])
        neg_b = fluid.layers.reshape(embed(negative, 'emb_b', 1), [-1, neg_num])
        true_logits = fluid.layers.elementwise_add(
            fluid.layers.reduce_sum(fluid.layers.elementwise_mul(center, true_w), dim=1, keep_dim=True), true_b)
        neg_matmul = fluid.layers.matmul(fluid.layers.reshape(center, [-1, 1, size]), neg_w, transpose_y=True)
        neg_logits = fluid.layers.elementwise_add(fluid.layers.reshape(neg_matmul, [-1, neg_num]), neg_b)
        ones = fluid.layers.fill_constant_batch_size_like(true_logits, [-1, 1], 'float32', 1.0)
        zeros = fluid.layers.fill_constant_batch_size_like(true_logits, [-1, neg_num], 'float32', 0.0)
        true_xent = fluid.layers.sigmoid_cross_entropy_with_logits(true_logits, ones)
        neg_xent = fluid.layers.sigmoid_cross_entropy_with_logits(neg_logits, zeros)
        cost = fluid.layers.elementwise_add(fluid.layers.reduce_sum(true_xent, dim=1),
                                            fluid.layers.reduce_sum(neg_xent, dim=1))
        return fluid.layers.reduce_mean(cost)

    def batches(random):
        while True:
            word = random.randint(0, dict_size, (64, 1))
            yield {'input_word': word, 'true_label': word // 6 * 6 + random.randint(0, 6, (64, 1)),
                   'neg_label': random.randint(0, dict_size, (64, neg_num))}

    fleet.init(PaddleCloudRoleMaker())
    loss = skip_gram()
    strategy = {'async': StrategyFactory.create_async_strategy,
                'geo': lambda: StrategyFactory.create_geo_strategy(10)}[mode]()
    optimizer = fluid.optimizer.SGD(learning_rate=fluid.layers.exponential_decay(1.0, 1000, 0.9, staircase=True))
    fleet.distributed_optimizer(optimizer, strategy).minimize(loss)
    if fleet.is_server():
        fleet.init_server()
        fleet.run_server()
        sys.exit(0)
    fleet.init_worker()
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fleet.startup_program)
    compiled = fluid.compiler.CompiledProgram(fleet.main_program).with_data_parallel(
        loss_name=loss.name, build_strategy=strategy.get_build_strategy(),
        exec_strategy=strategy.get_execute_strategy())
    losses, reader = [], batches(np.random.RandomState(fleet.worker_index()))
    for step in range(400):
        losses.append(exe.run(compiled, feed=next(reader), fetch_list=[loss])[0][0])
    np.savez('worker%d.npz' % fleet.worker_index(), losses=losses)
    fleet.stop_worker()
"""


@pytest.mark.parametrize("mode", ["async", "geo"])
def test_word2vec_trains(tmp_path, paddle, mode):
    trainers, _ = launch_well(tmp_path, WORD2VEC, mode, **paddle)
    for trainer in trainers:
        assert np.mean(trainer["losses"][-20:]) < 0.8 * 4 * np.log(2), trainer["losses"][-20:]
