"""penstock.hvd on arrays: ranks as processes, compared with NumPy."""

import os
import subprocess
import sys

import pytest
from rank_processes import Ranks

# The topics are parts of one script, because starting processes takes seconds. Each rank computes the expected
# results from the numbers of all ranks, compares, and prints a topic at its end.
START = """
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
"""


@pytest.fixture(
    scope="module",
    params=[(ranks, backend) for ranks in (2, 4) for backend in ("shared_memory", "gloo", "hierarchical")],
    ids=lambda param: f"{param[0]}-{param[1]}",
)
def ends(request, tmp_path_factory):
    """The exit code, standard output and standard error of each rank of the script of all topics."""
    ranks, backend = request.param
    script = START + "".join(text + f"    print('{topic}')\n" for topic, text in TOPICS.items())
    with Ranks(
        tmp_path_factory.mktemp("ranks"),
        script,
        ranks,
        ranks,
        backend,
        environment={"PENSTOCK_COLLECTIVE_BACKEND": backend},
    ) as job:
        ends = job.ends()
    if any("this build has no Gloo" in err for _, _, err in ends):
        pytest.skip("this build has no Gloo")
    return ends


def expect_end_of(topic, ends):
    """Fails with the errors of a rank that ended in the topic, and names the topic if it ended in an earlier one."""
    for _, out, err in ends:
        done = out.splitlines()
        if topic not in done:
            last = next(one for one in TOPICS if one not in done)
            pytest.fail(err if last == topic else f"a rank ended in the topic {last!r}", pytrace=False)


REDUCTIONS = """
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
"""


def test_reductions_and_broadcasts_equal_numpy(ends):
    expect_end_of("reductions", ends)


IN_PLACE = """
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
"""


def test_in_place_and_compressed_operations_equal_numpy(ends):
    expect_end_of("in place", ends)


ALLGATHER = """
    # Rows of all: different numbers, none, other types.
    rows = [of(r, 'float32', (r, 2)) for r in range(size)]
    same(hvd.allgather(rows[rank]), np.concatenate(rows))
    same(hvd.allgather(np.array([rank == 1])), [r == 1 for r in range(size)])
    assert hvd.allgather(np.zeros((0, 3))).shape == (0, 3)
"""


def test_allgather_concatenates_the_rows_of_all_ranks(ends):
    expect_end_of("allgather", ends)


ASYNCHRONOUS = """
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
"""


def test_asynchronous_operations_return_their_results(ends):
    expect_end_of("asynchronous", ends)


ADASUM = """
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
"""


def test_adasum_follows_its_definition(ends):
    expect_end_of("adasum", ends)


THREADS = """
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
"""


def test_threads_start_operations_in_an_agreed_order(ends):
    expect_end_of("threads", ends)


ERRORS = """
    # Errors that are detected before other ranks are involved.
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
    for value in (None, 'a', np.ones(2, 'int16'), np.ones(2, 'bool'), np.ones(2, 'complex64')):    # have no sum either
        refuses(penstock.ProgramError, 'E-hvd-array', lambda: hvd.allreduce(value))
    refuses(penstock.ProgramError, 'E-hvd-array', lambda: hvd.allreduce_(np.ones((2, 3)).T))
    refuses(penstock.ProgramError, 'E-hvd-array', lambda: hvd.allgather(np.float32(1)))
    refuses(penstock.ProgramError, 'E-hvd-root', lambda: hvd.broadcast(np.ones(2), size))
"""


def test_invalid_arguments_are_refused_without_the_other_ranks(ends):
    expect_end_of("errors", ends)


SHUTDOWN = """
    hvd.barrier()
    hvd.shutdown()
    assert not hvd.is_initialized()
    refuses(penstock.StateError, 'E-hvd-init', lambda: hvd.allreduce(np.ones(2)))
    refuses(penstock.StateError, 'E-collective-left', hvd.init)
"""


def test_operations_after_shutdown_are_refused(ends):
    expect_end_of("shutdown", ends)
    assert [(code, out.splitlines()) for code, out, _ in ends] == [(0, list(TOPICS))] * len(ends), ends


TOPICS = {
    "reductions": REDUCTIONS,
    "in place": IN_PLACE,
    "allgather": ALLGATHER,
    "asynchronous": ASYNCHRONOUS,
    "adasum": ADASUM,
    "threads": THREADS,
    "errors": ERRORS,
    "shutdown": SHUTDOWN,
}


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


@pytest.mark.parametrize(
    "first, second, says",
    [
        ("hvd.allreduce(np.ones(2), name='w')", "hvd.broadcast(np.ones(2), 0, name='w')", "E-collective-mismatch"),
        ("hvd.allreduce(np.ones(2), name='w')", "hvd.allreduce(np.ones(2), name='b')", "E-collective-mismatch"),
        ("hvd.allreduce(np.ones(2), name='w')", "hvd.allreduce(np.ones(3), name='w')", "E-collective-mismatch"),
        (
            "hvd.allreduce(np.ones(2), name='w')",
            "hvd.allreduce(np.ones(2), name='w', op=hvd.Adasum)",
            "E-collective-mismatch",
        ),
        ("hvd.allgather(np.ones((1, 2)), name='w')", "hvd.allgather(np.ones((4, 3)), name='w')", "E-hvd-allgather"),
        (
            "hvd.allgather(np.ones((1, 2)), name='w')",
            "hvd.allgather(np.ones((1, 2), 'float32'), name='w')",
            "E-hvd-allgather",
        ),
    ],
)
def test_all_ranks_report_mismatched_operations(tmp_path, first, second, says):
    with Ranks(tmp_path, DIFFERENT.format(first=first, second=second), 2) as job:
        for code, out, err in job.ends():
            assert code == 3, err
            assert says in out and "w, rank.py:" in out
            if says == "E-collective-mismatch":
                assert "rank.py:8" in out and "rank.py:10" in out  # both users' lines


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


def test_a_process_without_a_launcher_is_a_job_of_one_rank(tmp_path):
    path = tmp_path / "alone.py"
    path.write_text("\n".join(line[4:] for line in ALONE.splitlines()))
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PADDLE_")}
    subprocess.run([sys.executable, str(path)], env=environment, check=True, timeout=120)


LAUNCHED = """
    import numpy as np
    import penstock.hvd as hvd
    hvd.init()
    print(hvd.size(), hvd.local_size(), hvd.allreduce(np.array([hvd.rank()]), op=hvd.Sum)[0])
"""


def test_the_launcher_starts_ranks_without_pservers(tmp_path):
    (tmp_path / "train.py").write_text("\n".join(line[4:] for line in LAUNCHED.splitlines()))
    command = [sys.executable, "-m", "penstock.distributed.launch", "--worker_num", "3", "train.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    for rank in range(3):
        assert "3 3 3" in (tmp_path / "mylog" / (f"workerlog.{rank}")).read_text()


def test_importing_penstock_does_not_import_hvd():
    subprocess.run([sys.executable, "-c", 'import sys, penstock; assert "penstock.hvd" not in sys.modules'], check=True)
