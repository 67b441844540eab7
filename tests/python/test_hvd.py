"""penstock.hvd: ranks as processes, on arrays and on programs, against NumPy and against one process."""

import os
import subprocess
import sys

import numpy as np
import penstock
import pytest
from rank_processes import Ranks

# What every rank computes for itself from the numbers of all, and compares.
ARRAYS = """
    import sys, threading
    import numpy as np
    import penstock
    import penstock.hvd as hvd
    hvd.init()
    hvd.init()
    rank, size = hvd.rank(), hvd.size()
    assert hvd.is_initialized() and size == int(sys.argv[1])
    assert (hvd.local_rank(), hvd.local_size()) == (rank, size)     # all of 127.0.0.1
    same, close = np.testing.assert_array_equal, np.testing.assert_allclose

    def of(r, dtype='float32', shape=(3, 5)):
        values = np.random.RandomState(7 + r).uniform(-2, 2, shape)
        return (values * 10).astype(dtype) if np.dtype(dtype).kind in 'iu' else values.astype(dtype)

    def of_all(*arguments):
        return [of(r, *arguments) for r in range(size)]

    # Reductions; on one host in the order of the ranks.
    in_order = sys.argv[2] == 'shared_memory'
    for dtype in ('float16', 'float32', 'float64', 'int32', 'int64', 'int8', 'uint8'):
        total = of(0, dtype) * 0
        for each in of_all(dtype):
            total = total + each
        near = 1e-2 if dtype == 'float16' else 0 if in_order or dtype[0] != 'f' else 1e-6
        mine = of(rank, dtype)
        got = hvd.allreduce(mine, op=hvd.Sum, name='sum ' + dtype)
        assert got.dtype == dtype
        close(got, total, rtol=near, atol=near)
        same(mine, of(rank, dtype))     # the argument stays
        for op, way in ((hvd.Min, np.min), (hvd.Max, np.max)):
            same(hvd.allreduce(mine, op=op), way(of_all(dtype), axis=0))
        same(hvd.broadcast(mine, root_rank=size - 1), of(size - 1, dtype))
    close(hvd.allreduce(of(rank)), np.mean(of_all(), axis=0), rtol=1e-6, atol=1e-6)
    close(hvd.allreduce(of(rank), average=False), np.sum(of_all(), axis=0), rtol=1e-6, atol=1e-6)
    close(hvd.allreduce(of(rank, 'float64'), op=hvd.Product), np.prod(of_all('float64'), axis=0), rtol=1e-12)
    assert hvd.allreduce(float(rank)) == (size - 1) / 2 and hvd.allreduce(float(rank)).shape == ()
    assert hvd.allreduce(np.zeros((0, 4))).shape == (0, 4)
    transposed = of(rank).T
    close(hvd.allreduce(transposed, op=hvd.Sum), np.sum(of_all(), axis=0).T, rtol=1e-6, atol=1e-6)
    big = hvd.allreduce(np.full(300000, rank, 'float32'), op=hvd.Sum)
    assert (big == size * (size - 1) / 2).all()

    # In place, and compressed.
    mine = of(rank)
    assert hvd.allreduce_(mine, op=hvd.Sum) is mine
    close(mine, np.sum(of_all(), axis=0), rtol=1e-6, atol=1e-6)
    mine = of(rank)
    assert hvd.broadcast_(mine, 1) is mine
    same(mine, of(1))
    halves = hvd.allreduce(of(rank), compression=hvd.Compression.fp16, op=hvd.Sum)
    expected = np.sum([each.astype('float16').astype('float32') for each in of_all()], axis=0).astype('float16')
    assert halves.dtype == 'float32'
    close(halves, expected.astype('float32'), rtol=0 if in_order else 1e-2, atol=0 if in_order else 1e-2)

    # Rows of all: different numbers, none, other types.
    rows = [of(r, 'float32', (r, 2)) for r in range(size)]
    same(hvd.allgather(rows[rank]), np.concatenate(rows))
    same(hvd.allgather(np.array([rank == 1])), [r == 1 for r in range(size)])
    assert hvd.allgather(np.zeros((0, 3))).shape == (0, 3)

    # Beside the program.
    mine = of(rank)
    handles = [hvd.allreduce_async(mine, op=hvd.Sum, name='a'), hvd.allgather_async(rows[rank]),
               hvd.broadcast_async(mine, 0), hvd.allreduce_async_(of(rank)), hvd.broadcast_async_(of(rank), 1)]
    values = [hvd.synchronize(handle) for handle in reversed(handles)][::-1]
    for value, right in zip(values, [np.sum(of_all(), axis=0), np.concatenate(rows), of(0),
                                     np.mean(of_all(), axis=0), of(1)]):
        close(value, right, rtol=1e-6, atol=1e-6)
    handle = hvd.allreduce_async(mine)
    while not hvd.poll(handle):
        pass
    hvd.synchronize(handle)

    # Adasum, by its definition.
    def pair(a, b):
        a, b = a.astype('float64'), b.astype('float64')
        return (1 - (a * b).sum() / (2 * (a * a).sum())) * a + (1 - (a * b).sum() / (2 * (b * b).sum())) * b
    def tree(values):
        return values[0] if len(values) == 1 else tree([pair(*values[i:i + 2]) for i in range(0, len(values), 2)])
    for dtype, near in (('float32', 1e-5), ('float64', 1e-12), ('float16', 3e-2)):
        got = hvd.allreduce(of(rank, dtype), op=hvd.Adasum)
        close(got, tree(of_all(dtype)), rtol=near, atol=near)
        same(hvd.allgather(got[None]), np.stack([got] * size))      # the same bytes everywhere
    close(hvd.allreduce(of(0), op=hvd.Adasum), of(0), rtol=1e-6)    # of equal vectors: their mean
    same(hvd.allreduce(np.zeros(3), op=hvd.Adasum), np.zeros(3))
    right = np.eye(size)[rank]                                      # of orthogonal ones: their sum
    same(hvd.allreduce(right, op=hvd.Adasum), np.ones(size))

    # From several threads, one after the other by agreement.
    turn, sums = threading.Condition(), []
    def add(i):
        with turn:
            turn.wait_for(lambda: len(sums) == i)
            sums.append(hvd.allreduce_async(np.array([float(i)]), op=hvd.Sum))
            turn.notify_all()
        same(hvd.synchronize(sums[i]), [i * size])
    threads = [threading.Thread(target=add, args=(i,)) for i in range(4)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()

    # What is refused before others are asked.
    def refuses(error, id, call):
        try:
            call()
        except error as raised:
            assert '[' + id + ']' in str(raised) and len(str(raised).splitlines()) == 1, str(raised)
        else:
            assert False, 'nothing was raised'
    refuses(penstock.ProgramError, 'E-hvd-handle', lambda: hvd.synchronize(handle))
    refuses(penstock.ProgramError, 'E-hvd-handle', lambda: hvd.poll(123456))
    refuses(penstock.ProgramError, 'E-hvd-op', lambda: hvd.allreduce(np.ones(2, 'int64')))
    refuses(penstock.ProgramError, 'E-hvd-op', lambda: hvd.allreduce(np.ones(2), average=True, op=hvd.Sum))
    refuses(penstock.ProgramError, 'E-hvd-op', lambda: hvd.allreduce(np.ones(2), op='sum'))
    refuses(penstock.ProgramError, 'E-hvd-array', lambda: hvd.allreduce(np.ones(2, 'int16'), op=hvd.Sum))
    refuses(penstock.ProgramError, 'E-hvd-array', lambda: hvd.allreduce(np.ones(2, 'bool'), op=hvd.Sum))
    refuses(penstock.ProgramError, 'E-hvd-array', lambda: hvd.allreduce_(np.ones((2, 3)).T))
    refuses(penstock.ProgramError, 'E-hvd-array', lambda: hvd.allgather(np.float32(1)))
    refuses(penstock.ProgramError, 'E-hvd-root', lambda: hvd.broadcast(np.ones(2), size))
    hvd.barrier()
    hvd.shutdown()
    assert not hvd.is_initialized()
    refuses(penstock.StateError, 'E-hvd-init', lambda: hvd.allreduce(np.ones(2)))
    refuses(penstock.StateError, 'E-collective-left', hvd.init)
    print('all is well')
"""


@pytest.mark.parametrize('backend', ['shared_memory', 'gloo', 'hierarchical'])
@pytest.mark.parametrize('ranks', [2, 4])
def test_every_function_on_arrays_equals_numpy(tmp_path, ranks, backend):
    with Ranks(tmp_path, ARRAYS, ranks, ranks, backend,
               environment={'PENSTOCK_COLLECTIVE_BACKEND': backend}) as job:
        ends = job.ends()
        if any('this build has no Gloo' in err for _, _, err in ends):
            pytest.skip('this build has no Gloo')
        assert [(code, out) for code, out, _ in ends] == [(0, 'all is well\n')] * ranks, ends


DIFFERENT = """
    import sys
    import numpy as np
    import penstock.hvd as hvd
    hvd.init()
    try:
        if hvd.rank() == 0:
            {first}
        else:
            {second}
    except Exception as error:
        print(type(error).__name__, str(error))
        sys.exit(3)
"""


@pytest.mark.parametrize('first, second, says', [
    ("hvd.allreduce(np.ones(2), name='w')", "hvd.broadcast(np.ones(2), 0, name='w')", 'E-collective-mismatch'),
    ("hvd.allreduce(np.ones(2), name='w')", "hvd.allreduce(np.ones(2), name='b')", 'E-collective-mismatch'),
    ("hvd.allreduce(np.ones(2), name='w')", "hvd.allreduce(np.ones(3), name='w')", 'E-collective-mismatch'),
    ("hvd.allreduce(np.ones(2), name='w')", "hvd.allreduce(np.ones(2), name='w', op=hvd.Adasum)",
     'E-collective-mismatch'),
    ("hvd.allgather(np.ones((1, 2)), name='w')", "hvd.allgather(np.ones((4, 3)), name='w')", 'E-hvd-allgather'),
    ("hvd.allgather(np.ones((1, 2)), name='w')", "hvd.allgather(np.ones((1, 2), 'float32'), name='w')",
     'E-hvd-allgather'),
])
def test_ranks_that_do_different_things_are_all_told_which(tmp_path, first, second, says):
    with Ranks(tmp_path, DIFFERENT.format(first=first, second=second), 2) as job:
        for code, out, err in job.ends():
            assert code == 3, err
            assert says in out and 'w, rank.py:' in out
            if says == 'E-collective-mismatch':
                assert 'rank.py:8' in out and 'rank.py:10' in out      # both users' lines


ALONE = """
    import os, sys
    import numpy as np
    import penstock
    import penstock.hvd as hvd
    try:
        hvd.rank()
        sys.exit(4)
    except penstock.StateError as error:
        assert error.id == 'E-hvd-init'
    for again in range(2):
        hvd.init()
        assert (hvd.rank(), hvd.size(), hvd.local_rank(), hvd.local_size()) == (0, 1, 0, 1)
        x = np.arange(6.).reshape(2, 3)
        for op in (hvd.Average, hvd.Sum, hvd.Adasum, hvd.Min, hvd.Max, hvd.Product):
            np.testing.assert_array_equal(hvd.allreduce(x, op=op), x)
        np.testing.assert_array_equal(hvd.allgather(x), x)
        np.testing.assert_array_equal(hvd.synchronize(hvd.broadcast_async(x, 0)), x)
        hvd.barrier()
        hvd.shutdown()
"""


def test_a_process_without_a_launcher_is_a_job_of_its_own(tmp_path):
    path = tmp_path / 'alone.py'
    path.write_text('\n'.join(line[4:] for line in ALONE.splitlines()))
    environment = {name: value for name, value in os.environ.items() if not name.startswith('PADDLE_')}
    subprocess.run([sys.executable, str(path)], env=environment, check=True, timeout=120)


# A regression of 16 rows a step, dealt out to the ranks, which begin with different values; `alone` is the same without
# ranks. What each ends with goes into a file.
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
    rate = 0.05 / ranks if how == 'sum' else 0.05
    if how == 'adasum':
        inner = fluid.optimizer.SGD(rate)
    elif how == 'warmup':
        inner = fluid.optimizer.Momentum(hvd.warmup_learning_rate(0.02, 4), 0.9)
    else:
        inner = fluid.optimizer.Momentum(rate, 0.9, grad_clip=fluid.clip.GradientClipByGlobalNorm(1.))
    if how in ('sum', 'fp16'):
        inner._grad_clip = None
    compression = hvd.Compression.fp16 if how == 'fp16' else hvd.Compression.none
    optimizer = hvd.DistributedOptimizer(inner, compression=compression, op=op)
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
        mine = slice(16 // ranks * rank, 16 // ranks * (rank + 1))
        exe.run(feed={'x': xs[mine], 'y': ys[mine]}, fetch_list=[loss])
        rates.append(value(optimizer._global_learning_rate().name)[0])
    final = {name: value(name) for name in names}
    np.savez('%s%d.npz' % (path, rank), rates=rates, **final, **{'begin ' + name: begin[name] for name in names})

    # Ranks that have come apart get one rank's values again: parameters and state.
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
    """What each rank began and ended with."""
    with Ranks(folder, TRAIN, ranks, how, folder / ('%s-%d-' % (how, ranks))) as job:
        job.end_well()
    return [dict(np.load(folder / ('%s-%d-%d.npz' % (how, ranks, rank)))) for rank in range(ranks)]


@pytest.mark.parametrize('how, near', [('average', 1e-4), ('sum', 1e-4), ('fp16', 1e-2)])
@pytest.mark.parametrize('ranks', [2, 4])
def test_programs_train_as_one_process_on_the_joined_batch(tmp_path, ranks, how, near):
    alone, = train(tmp_path, how, 1)
    for each in train(tmp_path, how, ranks):
        for name in alone.keys() - {'rates'}:
            np.testing.assert_allclose(each[name], alone[name], rtol=near, atol=near / 10)


def adasum_of(values):
    if len(values) == 1:
        return values[0]
    a, b = adasum_of(values[:len(values) // 2]), adasum_of(values[len(values) // 2:])
    dot = (a * b).sum()
    return (1 - dot / (2 * (a * a).sum())) * a + (1 - dot / (2 * (b * b).sum())) * b


@pytest.mark.parametrize('ranks', [2, 4])
def test_programs_train_by_adasum_of_each_gradient(tmp_path, ranks):
    ends = train(tmp_path, 'adasum', ranks)
    names = sorted((name[6:] for name in ends[0] if name.startswith('begin ')), key=lambda n: n.replace('w_', 'a_'))
    w1, b1, w2, b2 = (ends[0]['begin ' + name].astype('float64') for name in names)
    random = np.random.RandomState(3)
    for _ in range(6):
        xs = random.rand(16, 13).astype('float32')
        ys = xs.sum(axis=1, keepdims=True) / 5
        gradients = []
        for x, y in zip(np.split(xs, ranks), np.split(ys, ranks)):
            h = np.tanh(x @ w1 + b1)
            d = 2 * (h @ w2 + b2 - y) / len(y)
            dh = d @ w2.T * (1 - h * h)
            gradients.append((x.T @ dh, dh.sum(axis=0), h.T @ d, d.sum(axis=0)))
        w1, b1, w2, b2 = (value - 0.05 * adasum_of(list(of_ranks))
                          for value, of_ranks in zip((w1, b1, w2, b2), zip(*gradients)))
    for end in ends:
        for name, value in zip(names, (w1, b1, w2, b2)):
            np.testing.assert_allclose(end[name], value, rtol=1e-4, atol=1e-5)
            np.testing.assert_array_equal(end[name], ends[0][name])


def test_the_learning_rate_grows_to_that_of_all_ranks(tmp_path):
    for ranks in (1, 2):
        for end in train(tmp_path, 'warmup', ranks):
            top = 0.02 * ranks
            expected = [0.02 + (top - 0.02) * min(step, 4) / 4 for step in range(6)]
            np.testing.assert_allclose(end['rates'], expected, rtol=1e-6)


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
        hvd.DistributedOptimizer(fluid.optimizer.SGD(0.1), op=hvd.Adasum).minimize(loss)
    except Exception as error:
        print(error.id, str(error))
"""


def test_what_a_program_cannot_do_is_refused_in_a_line(tmp_path):
    with Ranks(tmp_path, REFUSED, 2) as job:
        for out in job.end_well():
            assert out.startswith('E-parallel-adasum') and '@GRAD is sparse' in out and len(out.splitlines()) == 1


LAUNCHED = """
    import numpy as np
    import penstock.hvd as hvd
    hvd.init()
    print(hvd.size(), hvd.local_size(), hvd.allreduce(np.array([hvd.rank()]), op=hvd.Sum)[0])
"""


def test_the_launcher_starts_ranks_without_pservers(tmp_path):
    (tmp_path / 'train.py').write_text('\n'.join(line[4:] for line in LAUNCHED.splitlines()))
    command = [sys.executable, '-m', 'penstock.distributed.launch', '--worker_num', '3', 'train.py']
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    for rank in range(3):
        assert '3 3 3' in (tmp_path / 'mylog' / ('workerlog.%d' % rank)).read_text()


def test_importing_penstock_does_not_import_it():
    subprocess.run([sys.executable, '-c', 'import sys, penstock; assert "penstock.hvd" not in sys.modules'], check=True)
