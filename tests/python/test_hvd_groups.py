"""penstock.hvd: parts, groups, objects, process sets, joins and facts of Horovod 0.28; ranks as processes."""

import json
import subprocess
import sys

import penstock.hvd as hvd
import pytest
from rank_processes import Ranks

START = """
    import sys
    import numpy as np
    import penstock
    import penstock.fluid as fluid
    import penstock.hvd as hvd
    hvd.init()
    rank, size = hvd.rank(), hvd.size()
    same, close = np.testing.assert_array_equal, np.testing.assert_allclose

    def of(r, dtype='float32', shape=(3, 5)):
        values = np.random.RandomState(7 + r).uniform(-2, 2, shape)
        return (values * 10).astype(dtype) if np.dtype(dtype).kind in 'iu' else values.astype(dtype)

    def of_all(*arguments):
        return [of(r, *arguments) for r in range(size)]

    def refuses(error, id, call):
        try:
            call()
        except error as raised:
            assert id in str(raised) and len(str(raised).splitlines()) == 1, str(raised)
        else:
            assert False, 'nothing was raised'
"""

PARTS = (
    START
    + """
    # Rows to all: evenly, by splits, some not sent, other types.
    for dtype in ('float32', 'int64', 'float16', 'bool'):
        rows = [(np.arange(size * 4).reshape(size * 2, 2) + 100 * r).astype(dtype) for r in range(size)]
        same(hvd.alltoall(rows[rank]), np.concatenate([r[2 * rank:2 * rank + 2] for r in rows]))
    splits = [[(r + to) % 3 for to in range(size)] for r in range(size)]
    rows = [of(r, 'float64', (3 * size, 2)) for r in range(size)]
    got, counts = hvd.alltoall(rows[rank], splits=np.array(splits[rank]), name='parts')
    begins = [sum(splits[r][:rank]) for r in range(size)]
    same(got, np.concatenate([rows[r][begins[r]:begins[r] + splits[r][rank]] for r in range(size)]))
    same(counts, [splits[r][rank] for r in range(size)])
    assert counts.dtype == 'int32'
    got, counts = hvd.synchronize(hvd.alltoall_async(rows[rank]))
    same(counts, [3] * size)
    got, counts = hvd.alltoall(np.zeros((0, 3)), splits=[0] * size)
    assert got.shape == (0, 3)

    # A reduced part: evenly, and with rows left over for the first ranks.
    for count in (2 * size, 2 * size + 1, size - 1, 1):
        each, more = divmod(count, size)
        begin = rank * each + min(rank, more)
        end = begin + each + (rank < more)
        for dtype, near in (('float32', 1e-6), ('int32', 0)):
            whole = np.sum(of_all(dtype, (count, 3)), axis=0)
            got = hvd.reducescatter(of(rank, dtype, (count, 3)), op=hvd.Sum)
            assert got.dtype == dtype
            close(got, whole[begin:end], rtol=near, atol=near)
        close(hvd.reducescatter(of(rank, 'float64', (count,))), np.mean(of_all('float64', (count,)), axis=0)[begin:end])
        same(hvd.reducescatter(of(rank, 'int64', (count,)), op=hvd.Max),
             np.max(of_all('int64', (count,)), axis=0)[begin:end])
    halves = hvd.reducescatter(of(rank), compression=hvd.Compression.fp16)
    assert halves.dtype == 'float32'
    close(hvd.synchronize(hvd.reducescatter_async(np.ones((size, 2)), op=hvd.Sum, prescale_factor=2.,
                                                  postscale_factor=.25)), np.full((1, 2), size / 2))

    # Factors.
    close(hvd.allreduce(of(rank), op=hvd.Sum, prescale_factor=.5, postscale_factor=4.), 2 * np.sum(of_all(), axis=0),
          rtol=1e-5)
    mine = np.full(3, rank + 1)
    hvd.allreduce_(mine, op=hvd.Sum, postscale_factor=.5)
    same(mine, [size * (size + 1) // 2 // 2] * 3)

    # Groups.
    arrays = lambda r: [of(r), of(r, 'int64', (4,)), of(r, 'float32', ()), of(r, 'float64', (2, 2))]
    sums = [np.sum(each, axis=0) for each in zip(*[arrays(r) for r in range(size)])]
    for got, right in zip(hvd.grouped_allreduce(arrays(rank), op=hvd.Sum, name='group'), sums):
        assert got.shape == right.shape and got.dtype == right.dtype
        close(got, right, rtol=1e-5)
    mine = arrays(rank)
    given = hvd.grouped_allreduce_(mine, op=hvd.Sum)
    assert all(a is b for a, b in zip(given, mine))
    close(mine[0], sums[0], rtol=1e-5)
    mine = arrays(rank)
    handle = hvd.grouped_allreduce_async_(mine, op=hvd.Sum)
    hvd.synchronize(handle)
    same(mine[1], sums[1])
    got = hvd.synchronize(hvd.grouped_allreduce_async(arrays(rank)[::3]))
    close(got[1], sums[3] / size)
    if size & (size - 1) == 0:
        one, two = hvd.grouped_allreduce([of(rank), of(rank, 'float64')], op=hvd.Adasum)
        close(one, hvd.allreduce(of(rank), op=hvd.Adasum), rtol=1e-6)
    halves = hvd.grouped_allreduce([of(rank), of(rank, 'int32')], op=hvd.Sum, compression=hvd.Compression.fp16)
    assert [half.dtype.name for half in halves] == ['float32', 'int32']
    one, two = hvd.grouped_allgather([of(rank, 'float32', (rank, 2)), of(rank, 'int8', (1,))])
    same(one, np.concatenate([of(r, 'float32', (r, 2)) for r in range(size)]))
    same(two, np.concatenate(of_all('int8', (1,))))
    one, two = hvd.synchronize(hvd.grouped_allgather_async([of(rank), of(rank)]))
    same(one, two)
    one, two = hvd.grouped_reducescatter([of(rank, 'float64', (size, 2)), of(rank, 'int32', (2 * size,))], op=hvd.Sum)
    close(one, np.sum(of_all('float64', (size, 2)), axis=0)[rank:rank + 1])
    same(two, np.sum(of_all('int32', (2 * size,)), axis=0)[2 * rank:2 * rank + 2])
    hvd.synchronize(hvd.grouped_reducescatter_async([np.ones(size)]))

    # Plain values.
    import argparse, collections
    value = {'epoch': 3, 'big': 2 ** 70, 'rates': [0.1, float('inf')], 1: (None, True, b'ab', 'ü'), 'w': of(0),
             'set': {1, 2}, 's': np.float32(2.5), 'c': 1 + 2j, 'ns': argparse.Namespace(lr=0.1, layers=[1, 2]),
             'o': collections.OrderedDict(b=1, a=2), 'dtype': np.dtype('float16'), 'e': [], 'y': bytearray(b'x')}
    got = dict(hvd.broadcast_object(value if rank == 1 else None, root_rank=1))
    same(got.pop('w'), value.pop('w'))
    assert got == value, got
    assert list(got['o']) == ['b', 'a'] and type(got['s']) is np.float32 and type(got['y']) is bytearray
    assert hvd.allgather_object({'rank': rank, 'x': [rank] * rank}) == [{'rank': r, 'x': [r] * r} for r in range(size)]
    refuses(penstock.ProgramError, 'E-hvd-object', lambda: hvd.broadcast_object(lambda: 1))
    refuses(penstock.ProgramError, 'E-hvd-object', lambda: hvd.allgather_object(object() if rank == 1 else 1))
    refuses(penstock.ProgramError, 'E-hvd-object', lambda: hvd.broadcast_object(np.array([None])))

    # Facts.
    assert (hvd.cross_rank(), hvd.cross_size(), hvd.is_homogeneous()) == (0, 1, True)
    assert hvd.gloo_built() == hvd.gloo_enabled() and not hvd.mpi_enabled()
    assert (hvd.ddl_built(), hvd.ccl_built(), hvd.rocm_built()) == (False,) * 3
    assert isinstance(hvd.nccl_built(), int) and isinstance(hvd.cuda_built(), bool)
    refuses(ValueError, 'E-hvd-mpi', hvd.mpi_threads_supported)
    assert hvd.HorovodInternalError is penstock.PeerError
    refuses(NotImplementedError, 'hvd.SyncBatchNorm', lambda: hvd.SyncBatchNorm)
    refuses(NotImplementedError, 'hvd.elastic.TorchState', lambda: hvd.elastic.TorchState)

    # Errors that are detected before other ranks are involved.
    refuses(penstock.ProgramError, 'E-hvd-splits', lambda: hvd.alltoall(np.ones(size + 1)))
    refuses(penstock.ProgramError, 'E-hvd-splits', lambda: hvd.alltoall(np.ones(2), splits=[3] * size))
    refuses(penstock.ProgramError, 'E-hvd-splits', lambda: hvd.alltoall(np.ones(2), splits=[1] * (size + 1)))
    refuses(penstock.ProgramError, 'E-hvd-splits', lambda: hvd.alltoall(np.ones(2), splits=[.5] * size))
    refuses(penstock.ProgramError, 'E-hvd-array', lambda: hvd.alltoall(np.float32(1)))
    refuses(penstock.ProgramError, 'E-hvd-array', lambda: hvd.reducescatter(np.float32(1)))
    refuses(penstock.ProgramError, 'E-hvd-op', lambda: hvd.reducescatter(np.ones(2), op=hvd.Adasum))
    refuses(penstock.ProgramError, 'E-hvd-op', lambda: hvd.reducescatter(np.ones(2, 'int32')))
    refuses(penstock.ProgramError, 'E-hvd-op', lambda: hvd.allreduce(np.ones(2), prescale_factor='2'))
    refuses(penstock.ProgramError, 'E-hvd-array', lambda: hvd.grouped_allreduce([]))
    refuses(penstock.ProgramError, 'E-hvd-array', lambda: hvd.grouped_allgather(np.ones(2)))
    print('all is well')
"""
)


@pytest.mark.parametrize("backend", ["shared_memory", "gloo", "hierarchical"])
@pytest.mark.parametrize("ranks", [2, 3])
def test_alltoall_reducescatter_groups_and_objects_equal_numpy(tmp_path, ranks, backend):
    with Ranks(tmp_path, PARTS, ranks, environment={"PENSTOCK_COLLECTIVE_BACKEND": backend}) as job:
        ends = job.ends()
        if any("this build has no Gloo" in err for _, _, err in ends):
            pytest.skip("this build has no Gloo")
        assert [(code, out) for code, out, _ in ends] == [(0, "all is well\n")] * ranks, ends


SETS = (
    START
    + """
    assert hvd.global_process_set.ranks == [0, 1, 2] and hvd.global_process_set.size() == 3
    assert hvd.global_process_set.rank() == rank and hvd.global_process_set.included()
    even = hvd.ProcessSet([2, 0])
    assert even.size() is None and even.rank() is None
    assert hvd.add_process_set(even) is even and even.ranks == [0, 2] and even.process_set_id == 1
    last = hvd.add_process_set([1, 2])
    alone = hvd.add_process_set([1])
    assert (even.size(), even.included()) == (2, rank != 1)
    if even.included():
        assert even.rank() == (0 if rank == 0 else 1)
        mine = of(rank)
        close(hvd.allreduce(mine, op=hvd.Sum, process_set=even), of(0) + of(2), rtol=1e-6)
        same(hvd.broadcast(mine, root_rank=2, process_set=even), of(2))
        same(hvd.allgather(mine, process_set=even), np.concatenate([of(0), of(2)]))
        same(hvd.alltoall(np.arange(2) + 10 * rank, process_set=even), np.array([0, 20]) + even.rank())
        same(hvd.reducescatter(np.arange(2), op=hvd.Sum, process_set=even), [2 * even.rank()])
        assert hvd.allgather_object(rank, process_set=even) == [0, 2]
        assert hvd.broadcast_object(rank, 2, process_set=even) == 2
        hvd.barrier(process_set=even)
        same(hvd.grouped_allreduce([np.ones(2)], op=hvd.Sum, process_set=even)[0], [2, 2])
        refuses(NotImplementedError, 'Adasum', lambda: hvd.allreduce(mine, op=hvd.Adasum, process_set=even))
        refuses(penstock.ProgramError, 'E-hvd-root', lambda: hvd.broadcast(mine, root_rank=1, process_set=even))
    else:
        refuses(penstock.ProgramError, 'E-hvd-process-set', lambda: hvd.allreduce(np.ones(2), process_set=even))
        refuses(penstock.ProgramError, 'E-hvd-process-set', even.rank)
    if last.included():
        same(hvd.allreduce(np.array([rank]), op=hvd.Sum, process_set=last), [3])
    if alone.included():
        same(hvd.allreduce(np.array([rank]), op=hvd.Sum, process_set=alone), [1])
    same(hvd.allreduce(np.array([rank]), op=hvd.Sum), [3])      # all ranks, beside the sets
    refuses(penstock.ProgramError, 'E-hvd-process-set', lambda: hvd.add_process_set([2, 0]))
    refuses(penstock.ProgramError, 'E-hvd-process-set', lambda: hvd.add_process_set([0, 3]))
    refuses(penstock.ProgramError, 'E-hvd-process-set', lambda: hvd.add_process_set([0, 0]))
    refuses(ValueError, 'E-hvd-process-set', lambda: hvd.ProcessSet('01'))
    refuses(penstock.ProgramError, 'E-hvd-process-set', lambda: hvd.add_process_set([0] if rank else [2]))
    assert hvd.remove_process_set(even) and not hvd.remove_process_set(even)
    assert not hvd.remove_process_set(hvd.global_process_set) and even.process_set_id is None
    refuses(penstock.ProgramError, 'E-hvd-process-set', lambda: hvd.allreduce(np.ones(2), process_set=even))
    again = hvd.add_process_set([0, 2])
    if again.included():
        same(hvd.allreduce(np.array([rank]), op=hvd.Sum, process_set=again), [2])
    hvd.barrier()
    print('all is well')
"""
)


@pytest.mark.parametrize("backend", ["", "gloo"])
def test_a_process_set_works_independently_of_other_ranks(tmp_path, backend):
    with Ranks(tmp_path, SETS, 3, environment={"PENSTOCK_COLLECTIVE_BACKEND": backend}) as job:
        ends = job.ends()
        if any("this build has no Gloo" in err for _, _, err in ends):
            pytest.skip("this build has no Gloo")
        assert [(code, out) for code, out, _ in ends] == [(0, "all is well\n")] * 3, ends


def test_an_error_in_a_process_set_names_the_global_rank(tmp_path):
    script = (
        START
        + """
    import os, signal
    both = hvd.add_process_set([1, 2])
    hvd.barrier()
    if rank == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    if rank == 1:
        try:
            hvd.allreduce(np.ones(2), process_set=both)
        except penstock.PeerError as error:
            print(str(error).splitlines()[0])
    """
    )
    with Ranks(tmp_path, script, 3) as job:
        assert job.ends()[1][1].startswith("rank 2 is gone: ")


def test_process_sets_can_be_given_to_init(tmp_path):
    script = """
        import numpy as np
        import penstock.hvd as hvd
        first, second = hvd.ProcessSet([0]), hvd.ProcessSet([0, 1])
        hvd.init(process_sets=[first, second])
        print(first.included(), hvd.allreduce(np.array([hvd.rank()]), op=hvd.Sum, process_set=second)[0])
    """
    with Ranks(tmp_path, script, 2) as job:
        assert job.end_well() == ["True 1\n", "False 1\n"]


JOIN = (
    START
    + """
    # Rank r has r + 1 batches; rank 1 is the slowest in the second round.
    for counts in ([r + 1 for r in range(size)], [3 if r == 1 else 0 for r in range(size)], [2] * size):
        for step in range(counts[rank]):
            live = [r for r in range(size) if counts[r] > step]
            close(hvd.allreduce(np.full(3, rank + 1.), op=hvd.Sum, name='sum'), sum(r + 1 for r in live))
            close(hvd.allreduce(np.full(3, rank + 1., 'float32')), sum(r + 1 for r in live) / size, rtol=1e-6)
            same(hvd.allreduce(np.array([-1 - rank]), op=hvd.Max), [max(-1 - r for r in live)])
            same(hvd.allreduce(np.array([1 + rank]), op=hvd.Min), [min(1 + r for r in live)])
            handles = [hvd.allreduce_async(np.full(2, 1.), op=hvd.Sum) for _ in range(3)]
            for handle in handles:
                same(hvd.synchronize(handle), [len(live)] * 2)
            one, two = hvd.grouped_allreduce([np.ones(2), np.ones(2, 'int32')], op=hvd.Sum)
            same(two, [len(live)] * 2)
            hvd.barrier()
        last = hvd.join()
        most = [r for r in range(size) if counts[r] == max(counts)]
        assert last in most, (last, most)
        assert len(set(hvd.allgather_object(last))) == 1
    same(hvd.allreduce(np.ones(2), op=hvd.Sum), [size] * 2)
    print('all is well')
"""
)


@pytest.mark.parametrize("backend", ["", "gloo"])
@pytest.mark.parametrize("ranks", [2, 4])
def test_ranks_that_have_joined_let_the_others_reduce(tmp_path, ranks, backend):
    with Ranks(tmp_path, JOIN, ranks, environment={"PENSTOCK_COLLECTIVE_BACKEND": backend}) as job:
        ends = job.ends()
        if any("this build has no Gloo" in err for _, _, err in ends):
            pytest.skip("this build has no Gloo")
        assert [(code, out) for code, out, _ in ends] == [(0, "all is well\n")] * ranks, ends


NOT_JOINED = (
    START
    + """
    if rank == 0:
        try:
            hvd.join()
        except penstock.ProgramError as error:
            print('joined', error.id)
    else:
        try:
            {}
        except Exception as error:
            print(str(error).splitlines()[0])
"""
)


def test_an_operation_that_needs_all_ranks_ends_a_join_with_an_error(tmp_path):
    with Ranks(tmp_path, NOT_JOINED.format("hvd.allgather(np.ones((1, 2)), name='rows')"), 2) as job:
        joined, other = job.end_well()
        assert joined == "joined E-hvd-join\n"
        assert "rank 0 has joined, but another rank starts rows, rank.py" in other


PROGRAM = """
    loss = fluid.layers.mean(fluid.layers.fc(fluid.data('x', [None, 4]), 1))
    hvd.DistributedOptimizer(fluid.optimizer.SGD(0.1)).minimize(loss)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    feed = {'x': np.ones((2, 4), 'float32')}
    exe.run(feed=feed, fetch_list=[loss])
"""


def test_a_program_that_runs_while_a_rank_has_joined_is_an_error(tmp_path):
    script = START + PROGRAM + NOT_JOINED[len(START) :].format("exe.run(feed=feed, fetch_list=[loss])")
    with Ranks(tmp_path, script, 2) as job:
        joined, other = job.end_well()
        assert joined == "joined E-hvd-join\n"
        assert "a rank has joined while rank 1 runs a program" in other and "on_uneven" in other


@pytest.mark.parametrize("leaves", ["hvd.shutdown()", "pass"])
def test_a_rank_that_leaves_without_joining_ends_a_join_with_an_error(tmp_path, leaves):
    with Ranks(tmp_path, NOT_JOINED.format(leaves), 2) as job:
        assert job.end_well() == ["joined E-hvd-join\n", ""]


def test_a_timeline_has_the_operations_of_rank_0(tmp_path):
    script = (
        START
        + """
    hvd.start_timeline('timeline.json', mark_cycles=True)
    hvd.allreduce(np.ones(2), name='w')
    hvd.broadcast(np.ones(2), 0)
    if rank == 0:
        refuses(penstock.StateError, 'E-hvd-timeline', lambda: hvd.start_timeline('other.json'))
    hvd.stop_timeline()
    hvd.allreduce(np.ones(2), name='later')
    """
    )
    with Ranks(tmp_path, script, 2) as job:
        job.end_well()
    events = [event for event in json.loads((tmp_path / "timeline.json").read_text()) if event["ph"] == "X"]
    assert [event["name"] for event in events] == ["allreduce", "broadcast"] and events[0]["dur"] > 0


def test_a_single_process_joins_and_gathers():
    code = (
        "import numpy as np, penstock.hvd as hvd\n"
        "from penstock.hvd import elastic\n"
        "hvd.init()\n"
        "assert hvd.join() == 0 and hvd.broadcast_object([1]) == [1] and hvd.allgather_object(2) == [2]\n"
        "assert hvd.add_process_set([0]).size() == 1\n"
        "assert hvd.alltoall(np.arange(3)).tolist() == [0, 1, 2]\n"
        "assert hvd.reducescatter(np.arange(3.)).tolist() == [0, 1, 2]\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_horovods_optimizer_arguments_are_accepted_or_refused(fluid):
    hvd.init()
    sgd = fluid.optimizer.SGD(0.1)
    hvd.DistributedOptimizer(sgd, named_parameters=[], num_groups=2, groups=None, sparse_as_dense=True)
    for refused in ({"gradient_predivide_factor": 2.0}, {"process_set": hvd.ProcessSet([0])}):
        with pytest.raises(NotImplementedError, match="hvd.DistributedOptimizer"):
            hvd.DistributedOptimizer(sgd, **refused)


DIFFERENT_IN_A_SET = """
    import numpy as np
    import penstock
    import penstock.hvd as hvd
    hvd.init()
    last = hvd.add_process_set([1, 2])
    try:
        if hvd.rank() == 1:
            hvd.allreduce(np.ones(2), name='w', process_set=last)
        elif hvd.rank() == 2:
            hvd.broadcast(np.ones(2), 2, name='w', process_set=last)
    except penstock.ProgramError as error:
        print(error)
"""


@pytest.mark.parametrize("backend", ["shared_memory", "gloo", "hierarchical"])
def test_errors_of_a_process_set_name_global_ranks(tmp_path, backend):
    with Ranks(
        tmp_path, DIFFERENT_IN_A_SET, 3, 3, backend, environment={"PENSTOCK_COLLECTIVE_BACKEND": backend}
    ) as job:
        ends = job.ends()
    if any("this build has no Gloo" in err for _, _, err in ends):
        pytest.skip("this build has no Gloo")
    for _, out, err in ends[1:]:
        assert "ranks 1 and 2 started different operations: rank 1 all_reduce" in out, out + err
        assert "from rank 2" in out and "rank 2: broadcast" in out, out
        assert "rank 0" not in out
