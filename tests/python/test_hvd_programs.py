"""penstock.hvd on programs: ranks as processes, compared with one process and with NumPy."""

import numpy as np
import pytest
from rank_processes import Ranks

# A regression with 16 rows per step, divided among the ranks, which start with different values; `alone` is the same
# without ranks. Each rank saves its final values in a file.
TRAIN = """
    import sys
    import numpy as np
    import penstock.fluid as fluid
    import penstock.hvd as hvd
    how, path = sys.argv[1:]
    hvd.init()
    rank, ranks = hvd.rank(), hvd.size()
    fluid.default_startup_program().random_seed = 5 + rank
    x, y = fluid.data('x', [None, 13]), fluid.data('y', [None, 1])
    hidden = fluid.layers.fc(x, 8, act='tanh')
    loss = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(hidden, 1), y))
    op = {'sum': hvd.Sum, 'adasum': hvd.Adasum}.get(how, hvd.Average)
    passes = 2 if how in ('passes', 'adam') else 1
    rate = 0.05 / ranks if how == 'sum' else 0.05 / passes
    if how == 'adam':
        inner = fluid.optimizer.Adam(rate, grad_clip=fluid.clip.GradientClipByGlobalNorm(.5),
                                     regularization=fluid.regularizer.L2Decay(0.01))
    elif how == 'adasum':
        inner = fluid.optimizer.SGD(rate)
    elif how == 'warmup':
        inner = fluid.optimizer.Momentum(hvd.warmup_learning_rate(0.02, 4), 0.9)
    else:
        inner = fluid.optimizer.Momentum(rate, 0.9, grad_clip=fluid.clip.GradientClipByGlobalNorm(1.))
    if how in ('sum', 'fp16', 'passes', 'joined'):
        inner._grad_clip = None
    compression = hvd.Compression.fp16 if how == 'fp16' else hvd.Compression.none
    optimizer = hvd.DistributedOptimizer(inner, compression=compression, op=op, backward_passes_per_step=passes)
    optimizer.minimize(loss)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    main = fluid.default_main_program()
    names = [p.name for p in main.all_parameters()]
    value = lambda name: np.array(fluid.global_scope().find_var(name).get_tensor())
    begin = {name: value(name) for name in names}
    random = np.random.RandomState(3)
    rates = []
    for step in range(6):
        xs = random.rand(16, 13).astype('float32')
        ys = xs.sum(axis=1, keepdims=True) / 5
        if how == 'joined':
            if step % 2 == 0:
                before = xs, ys
                continue
            xs, ys = np.concatenate([before[0], xs]), np.concatenate([before[1], ys])
        mine = slice(len(xs) // ranks * rank, len(xs) // ranks * (rank + 1))
        exe.run(feed={'x': xs[mine], 'y': ys[mine]}, fetch_list=[loss])
        rates.append(value(optimizer._global_learning_rate().name)[0])
    final = {name: value(name) for name in names}
    np.savez('%s%d.npz' % (path, rank), rates=rates, **final, **{'begin ' + name: begin[name] for name in names})

    # Ranks with different values get one rank's values again: parameters and state.
    for name in names + optimizer.get_opti_var_name_list():
        tensor = fluid.global_scope().find_var(name).get_tensor()
        tensor.set(np.full_like(np.array(tensor), rank + 0.5))
    hvd.broadcast_parameters(main, root_rank=ranks - 1)
    assert all((value(name) == ranks - 0.5).all() for name in names)
    for name in optimizer.get_opti_var_name_list():
        fluid.global_scope().find_var(name).get_tensor().set(np.full_like(value(name), rank + 0.5))
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    assert all((value(name) == 0.5).all() for name in optimizer.get_opti_var_name_list())
    arrays = {'b': np.full(3, rank), 'a': np.full((2, 2), rank + 1.)}
    hvd.broadcast_parameters(arrays, 0)
    assert (arrays['a'] == 1).all() and (arrays['b'] == 0).all()
    exe.close()
"""


def train(folder, how, ranks):
    """The initial and final values of each rank."""
    with Ranks(folder, TRAIN, ranks, how, folder / (f"{how}-{ranks}-")) as job:
        job.end_well()
    return [dict(np.load(folder / (f"{how}-{ranks}-{rank}.npz"))) for rank in range(ranks)]


@pytest.mark.parametrize("how, near", [("average", 1e-4), ("sum", 1e-4), ("fp16", 1e-2)])
@pytest.mark.parametrize("ranks", [2, 4])
def test_programs_train_as_one_process_on_the_joined_batch(tmp_path, ranks, how, near):
    (alone,) = train(tmp_path, how, 1)
    for each in train(tmp_path, how, ranks):
        for name in alone.keys() - {"rates"}:
            np.testing.assert_allclose(each[name], alone[name], rtol=near, atol=near / 10)


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_gradients_of_several_runs_are_applied_at_once(tmp_path, ranks):
    (joined,) = train(tmp_path, "joined", 1)
    for each in train(tmp_path, "passes", ranks):
        for name in joined.keys() - {"rates"}:
            np.testing.assert_allclose(each[name], joined[name], rtol=1e-4, atol=1e-5)


def test_stateful_clipped_decayed_updates_wait_for_the_last_run(tmp_path):
    (alone,) = train(tmp_path, "adam", 1)
    for each in train(tmp_path, "adam", 2):
        for name in alone.keys() - {"rates"}:
            np.testing.assert_allclose(each[name], alone[name], rtol=1e-4, atol=1e-5)


def adasum_of(values):
    if len(values) == 1:
        return values[0]
    a, b = adasum_of(values[: len(values) // 2]), adasum_of(values[len(values) // 2 :])
    dot = (a * b).sum()
    return (1 - dot / (2 * (a * a).sum())) * a + (1 - dot / (2 * (b * b).sum())) * b


@pytest.mark.parametrize("ranks", [2, 4])
def test_programs_train_by_adasum_of_each_gradient(tmp_path, ranks):
    ends = train(tmp_path, "adasum", ranks)
    names = sorted((name[6:] for name in ends[0] if name.startswith("begin ")), key=lambda n: n.replace("w_", "a_"))
    w1, b1, w2, b2 = (ends[0]["begin " + name].astype("float64") for name in names)
    random = np.random.RandomState(3)
    for _ in range(6):
        xs = random.rand(16, 13).astype("float32")
        ys = xs.sum(axis=1, keepdims=True) / 5
        gradients = []
        for x, y in zip(np.split(xs, ranks), np.split(ys, ranks)):
            h = np.tanh(x @ w1 + b1)
            d = 2 * (h @ w2 + b2 - y) / len(y)
            dh = d @ w2.T * (1 - h * h)
            gradients.append((x.T @ dh, dh.sum(axis=0), h.T @ d, d.sum(axis=0)))
        w1, b1, w2, b2 = (
            value - 0.05 * adasum_of(list(of_ranks)) for value, of_ranks in zip((w1, b1, w2, b2), zip(*gradients))
        )
    for end in ends:
        for name, value in zip(names, (w1, b1, w2, b2)):
            np.testing.assert_allclose(end[name], value, rtol=1e-4, atol=1e-5)
            np.testing.assert_array_equal(end[name], ends[0][name])


def test_the_learning_rate_warms_up_to_that_of_all_ranks(tmp_path):
    for ranks in (1, 2):
        for end in train(tmp_path, "warmup", ranks):
            top = 0.02 * ranks
            expected = [0.02 + (top - 0.02) * min(step, 4) / 4 for step in range(6)]
            np.testing.assert_allclose(end["rates"], expected, rtol=1e-6)


REFUSED = """
    import sys
    import penstock.fluid as fluid
    import penstock.hvd as hvd
    hvd.init()
    ids = fluid.data('ids', [None, 1], dtype='int64')
    rows = fluid.layers.embedding(ids, [10, 4], is_sparse=True)
    loss = fluid.layers.mean(rows)
    for wrong in (dict(op=hvd.Min), dict(compression='fp16'), dict(backward_passes_per_step=0)):
        try:
            hvd.DistributedOptimizer(fluid.optimizer.SGD(0.1), **wrong)
            sys.exit(5)
        except (ValueError, NotImplementedError) as error:
            assert len(str(error).splitlines()) == 1
    try:
        hvd.DistributedOptimizer(fluid.optimizer.SGD(0.1), **{wrong}).{how}(loss)
    except Exception as error:
        print(error.id, str(error))
"""


@pytest.mark.parametrize(
    "wrong, how, id, why",
    [
        ("dict(op=hvd.Adasum)", "minimize", "E-parallel-adasum", "@GRAD is sparse"),
        ("dict(backward_passes_per_step=2)", "backward", "E-parallel-accumulate", "call minimize()"),
    ],
)
def test_unsupported_programs_are_refused_in_one_line(tmp_path, wrong, how, id, why):
    with Ranks(tmp_path, REFUSED.replace("{wrong}", wrong).replace("{how}", how), 2) as job:
        for out in job.end_well():
            assert out.startswith(id) and why in out and len(out.splitlines()) == 1
