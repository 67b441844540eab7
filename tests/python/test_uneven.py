"""Trainers whose batches differ in size and number."""

import numpy as np
import penstock
import pytest
from rank_processes import Ranks

# argv is on_uneven, how many examples each rank's batches have, as '4,4,2;4;': three ranks, the last without any, and
# 'ranks' or 'alone', perhaps with 'norm'.
RANK = """
    import os, sys
    import numpy as np
    import penstock.fluid as fluid
    on_uneven, options = sys.argv[1], sys.argv[3].split()
    plan = [[int(n) for n in part.split(',') if n] for part in sys.argv[2].split(';')]
    rank = int(os.environ['PADDLE_TRAINER_ID'])
    fluid.default_startup_program().random_seed = 5
    words = fluid.layers.data('words', [1], dtype='int64', lod_level=1)
    x, y = fluid.data('x', [None, 6]), fluid.data('y', [None, 1])
    word = fluid.layers.sequence_pool(fluid.layers.embedding(words, [20, 4], is_sparse=True), 'sum')
    hidden = fluid.layers.concat([fluid.layers.fc(x, 8, act='tanh'), word], axis=1)
    if 'norm' in options:
        hidden = fluid.layers.batch_norm(hidden)
    loss = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(hidden, 1), y))
    fluid.optimizer.SGD(0.05).minimize(loss)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    random = np.random.RandomState(3)
    steps = max(len(sizes) for sizes in plan)
    parts = []    # of each rank in each step
    for step in range(steps):
        parts.append([])
        for sizes in plan:
            n = sizes[step] if step < len(sizes) else 0
            parts[-1].append((random.rand(n, 6).astype('float32'), random.rand(n, 1).astype('float32'),
                              random.randint(0, 20, [2 * n, 1])))
    def feed_of(x, y, words):
        return {'x': x, 'y': y, 'words': fluid.create_lod_tensor(words, [[2] * len(x)], fluid.CPUPlace())}
    fetched = []
    if 'alone' in options:
        for of_ranks in parts:
            exe.run(feed=feed_of(*(np.concatenate(one) for one in zip(*of_ranks))), fetch_list=[loss])
    else:
        build = fluid.BuildStrategy()
        build.num_trainers, build.trainer_id, build.on_uneven = len(plan), rank, on_uneven
        build.sync_batch_norm = 'norm' in options
        compiled = fluid.CompiledProgram(fluid.default_main_program()).with_data_parallel(loss.name, build)
        mine = lambda: (feed_of(*of_ranks[rank]) for of_ranks in parts[:len(plan[rank])])
        for feed in compiled.batches(mine):
            fetched.append(len(feed['x']))
            exe.run(compiled, feed=feed, fetch_list=[loss])
    scope = fluid.global_scope()
    names = [p.name for p in fluid.default_main_program().all_parameters()]
    np.savez('end%d.npz' % rank, fetched=fetched,
             **{name: np.array(scope.find_var(name).get_tensor()) for name in names})
    exe.close()
"""


def train(folder, on_uneven, plan, options="ranks"):
    ranks = 1 if "alone" in options else plan.count(";") + 1
    with Ranks(folder, RANK, ranks, on_uneven, plan, options) as job:
        job.end_well()
    return [dict(np.load(folder / (f"end{rank}.npz"))) for rank in range(ranks)]


@pytest.mark.parametrize(
    "plan, options", [("4,4,2;4,3", ""), ("5,1;2,2", ""), ("3;2,2,2;", ""), ("2,2,1;;3;1,1", ""), ("8,8,6;8;", " norm")]
)
def test_joined_ranks_equal_one_process_on_all_examples(tmp_path, plan, options):
    ours = train(tmp_path, "join", plan, "ranks" + options)
    (alone,) = train(tmp_path, "join", plan, "alone" + options)
    steps = max(len(part.split(",")) if part else 0 for part in plan.split(";"))
    for rank in ours:
        assert len(rank.pop("fetched")) == steps
    for name, value in alone.items():
        if name == "fetched":
            continue
        for rank in ours:
            np.testing.assert_allclose(rank[name], value, rtol=1e-4, atol=1e-5, err_msg=name)
            np.testing.assert_array_equal(rank[name], ours[0][name])


def test_a_finished_rank_pads_with_its_first_batches(tmp_path):
    ours = train(tmp_path, "pad", "4,4,2,3;1,2")
    assert ours[0]["fetched"].tolist() == [4, 4, 2, 3] and ours[1]["fetched"].tolist() == [1, 2, 1, 2]
    for name, value in ours[0].items():
        if name != "fetched":
            np.testing.assert_array_equal(ours[1][name], value)


def test_all_ranks_report_the_rank_without_a_batch(tmp_path):
    with Ranks(tmp_path, RANK, 3, "error", "2,2;2,2;2", "ranks") as job:
        ends = job.ends()
    for code, _, text in ends:
        assert code != 0
        assert "in step 1 trainers 0, 1 have a batch and trainers 2 have none   [E-uneven-data]" in text, text


def test_invalid_uneven_settings_are_refused(fluid, tmp_path):
    x = fluid.data("x", [None, 2])
    loss = fluid.layers.reduce_sum(fluid.layers.fc(x, 1))
    fluid.optimizer.SGD(0.1).minimize(loss)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())

    def compiled(**fields):
        build = fluid.BuildStrategy()
        for field, value in {"num_trainers": 2, "trainers_endpoints": ["127.0.0.1:1", "127.0.0.1:2"], **fields}.items():
            setattr(build, field, value)
        return fluid.CompiledProgram(fluid.default_main_program()).with_data_parallel(loss.name, build)

    def run(program):
        return exe.run(program, feed={"x": np.ones((2, 2), "float32")}, fetch_list=[loss])

    with pytest.raises(penstock.ProgramError, match="not the gradient of layers.mean.*E-pass-uneven-loss"):
        run(compiled(on_uneven="join"))
    with pytest.raises(ValueError, match="on_uneven must be one of '', 'join', 'pad', 'error', not 'wait'"):
        run(compiled(on_uneven="wait"))
    with pytest.raises(ValueError, match="on_uneven averages"):
        run(compiled(on_uneven="pad", gradient_scale_strategy=fluid.BuildStrategy.GradientScaleStrategy.One))
    with pytest.raises(ValueError, match="needs BuildStrategy.on_uneven: 'join', 'pad' or 'error'"):
        compiled().batches(list)
    assert list(compiled(num_trainers=1, on_uneven="join").batches(lambda: iter([1, 2]))) == [1, 2]


@pytest.mark.parametrize("size, ranks", [(10, 3), (9, 3), (1, 4), (0, 2), (7, 1)])
def test_a_sampler_assigns_every_example(fluid, size, ranks):
    for shuffle in (False, True):
        samplers = [fluid.io.DistributedSampler(size, ranks, rank, shuffle) for rank in range(ranks)]
        dealt = [list(sampler) for sampler in samplers]
        assert {len(one) for one in dealt} == {len(samplers[0])} == {-(-size // ranks)}
        assert {index for one in dealt for index in one} == set(range(size))
        whole = [list(fluid.io.DistributedSampler(size, ranks, rank, shuffle, drop_last=True)) for rank in range(ranks)]
        seen = [index for one in whole for index in one]
        assert len(seen) == len(set(seen)) == size // ranks * ranks


def test_epochs_of_a_sampler_differ_and_are_reproducible(fluid, monkeypatch):
    monkeypatch.setenv("PADDLE_TRAINERS_NUM", "2")
    monkeypatch.setenv("PADDLE_TRAINER_ID", "1")
    sampler = fluid.io.DistributedSampler(100)
    first = list(sampler)
    sampler.set_epoch(1)
    assert list(sampler) != first and len(first) == 50
    sampler.set_epoch(0)
    assert list(sampler) == first
    with pytest.raises(ValueError, match="rank 2 must be below the number of ranks, 2"):
        fluid.io.DistributedSampler(4, 2, 2)
    with pytest.raises(ValueError, match="num_ranks must be an integer of at least 1, not 0"):
        fluid.io.DistributedSampler(4, 0)
