"""Jobs of ranks without pservers, as processes: every collective mode trains like one process on the joined batch."""

import os

import numpy as np
import pytest
from rank_processes import Ranks

# A rank: argv is the mode. It saves its parameters in a file. Ranks start with different values. Options may
# follow the mode: "nccl2 rings groups norm" has two rings, groups of two ranks and sync_batch_norm;
# "compiled levels" groups that the strategy asks for; "local_sgd k3" averages every third step, and "dgc late"
# compresses after the last step. "apart" is local_sgd of two ranks in one process, in scopes of their own.
RANK = """
    import os, sys
    import numpy as np
    import penstock.fluid as fluid
    mode, *options = sys.argv[1].split()
    rank, addresses = int(os.environ['PADDLE_TRAINER_ID']), os.environ['PADDLE_TRAINER_ENDPOINTS'].split(',')
    fluid.default_startup_program().random_seed = 5 + rank
    x, y = fluid.data('x', [None, 13]), fluid.data('y', [None, 1])
    hidden = fluid.layers.fc(x, 1300 if 'dgc' in options else 8, act='tanh')
    if 'norm' in options:
        hidden = fluid.layers.batch_norm(hidden)
    loss = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(hidden, 1), y))
    if 'dgc' in options:
        begin = 100 if 'late' in options else 2
        fluid.optimizer.DGCMomentumOptimizer(0.01, 0.9, begin, sparsity=[0.75]).minimize(loss)
    else:
        fluid.optimizer.Momentum(0.05, 0.9).minimize(loss)
    main, startup = fluid.default_main_program(), fluid.default_startup_program()
    ranks, k = len(addresses), 3 if 'k3' in options else 1
    if mode not in ('alone', 'apart'):
        config = fluid.DistributeTranspilerConfig()
        config.mode = 'nccl2' if mode in ('nccl2', 'compiled') else 'collective'
        if config.mode == 'collective':
            config.collective_mode = mode
        config.nccl_comm_num, config.local_sgd_k_steps = 2 if 'rings' in options else 1, k
        if 'groups' in options:
            config.use_hierarchical_allreduce, config.hierarchical_allreduce_inter_nranks = True, 2
        t = fluid.DistributeTranspiler(config)
        t.transpile(rank, trainers=','.join(addresses), current_endpoint=addresses[rank])
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(startup)
    build = fluid.BuildStrategy()
    build.sync_batch_norm = 'norm' in options
    if 'levels' in options:
        build.use_hierarchical_allreduce, build.hierarchical_allreduce_inter_nranks = True, 2
    if mode == 'nccl2':
        parallel = fluid.ParallelExecutor(use_cuda=False, loss_name=loss.name, num_trainers=ranks, trainer_id=rank,
                                          build_strategy=build)
        run = lambda feed: parallel.run([loss.name], feed=feed)
    elif mode == 'compiled':
        build.num_trainers, build.trainer_id = ranks, rank
        compiled = fluid.CompiledProgram(main).with_data_parallel(loss.name, build)
        run = lambda feed: exe.run(compiled, feed=feed, fetch_list=[loss])
    else:
        run = lambda feed: exe.run(main, feed=feed, fetch_list=[loss])
    random = np.random.RandomState(3)
    names = [p.name for p in main.all_parameters()]
    apart = [fluid.Scope() for _ in range(2)] if mode == 'apart' else []
    for scope in apart:
        exe.run(startup, scope=scope)
    for step in range(6):
        xs = random.rand(16, 13).astype('float32')
        ys = xs.sum(axis=1, keepdims=True) / 5
        for part, scope in enumerate(apart):
            mine = slice(8 * part, 8 * part + 8)
            exe.run(main, feed={'x': xs[mine], 'y': ys[mine]}, scope=scope)
        if apart:
            for name in names if step % k == k - 1 else ():
                tensors = [scope.find_var(name).get_tensor() for scope in apart]
                mean = np.mean([np.array(tensor) for tensor in tensors], axis=0)
                for tensor in tensors + [fluid.global_scope().var(name).get_tensor()]:
                    tensor.set(mean, fluid.CPUPlace())
            continue
        mine = slice(None) if mode == 'alone' else slice(16 // ranks * rank, 16 // ranks * (rank + 1))
        run({'x': xs[mine], 'y': ys[mine]})
    np.savez('end%d.npz' % rank, **{name: np.array(fluid.global_scope().find_var(name).get_tensor()) for name in names})
    exe.close()
"""


def train(folder, mode, ranks):
    """The parameters of each rank."""
    with Ranks(folder, RANK, ranks, mode) as job:
        job.end_well()
    return [dict(np.load(folder / (f"end{rank}.npz"))) for rank in range(ranks)]


def check_equal_to_one_process(folder, mode, ranks):
    name, *options = mode.split()
    (alone,) = train(folder, " ".join(["alone", *options]), 1)
    first, again = train(folder, mode, ranks), train(folder, mode, ranks)
    for name, value in alone.items():
        for rank in range(ranks):
            np.testing.assert_allclose(first[rank][name], value, rtol=1e-4, atol=1e-5)
            np.testing.assert_array_equal(first[rank][name], first[0][name])
            np.testing.assert_array_equal(first[rank][name], again[rank][name])


@pytest.mark.parametrize("mode", ["grad_allreduce", "nccl2", "compiled", "local_sgd"])
@pytest.mark.parametrize("ranks", [2, 4])
def test_ranks_equal_one_process_and_are_reproducible(tmp_path, mode, ranks):
    check_equal_to_one_process(tmp_path, mode, ranks)


@pytest.mark.parametrize(
    "mode", ["nccl2 rings groups", "compiled norm groups levels", "nccl2 rings norm", "grad_allreduce rings"]
)
def test_grouped_multi_ring_and_sync_bn_ranks_equal_one_process(tmp_path, mode):
    check_equal_to_one_process(tmp_path, mode, 4)


@pytest.mark.parametrize("mode", ["grad_allreduce dgc late", "nccl2 dgc late"])
def test_dgc_ranks_equal_one_process_before_ramp_up(tmp_path, mode):
    check_equal_to_one_process(tmp_path, mode, 2)


def test_ranks_average_their_parameters_every_k_steps(tmp_path):
    (expected,) = train(tmp_path, "apart k3", 1)
    for found in train(tmp_path, "local_sgd k3", 2):
        for name, value in expected.items():
            np.testing.assert_allclose(found[name], value, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("mode", ["grad_allreduce dgc", "nccl2 dgc"])
def test_dgc_sums_the_selected_elements(tmp_path, mode):
    """Each rank selects its own elements."""
    first, again = train(tmp_path, mode, 2), train(tmp_path, mode, 2)
    for name, value in first[0].items():
        assert np.all(np.isfinite(value))
        np.testing.assert_array_equal(first[1][name], value)
        np.testing.assert_array_equal(again[0][name], value)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["grad_allreduce", "nccl2"])
def test_twenty_runs_have_the_same_bytes(tmp_path, mode):
    first = train(tmp_path, mode, 2)[0]
    for _ in range(19):
        again = train(tmp_path, mode, 2)[0]
        for name, value in first.items():
            np.testing.assert_array_equal(again[name], value)


def test_groups_without_initialization_are_refused(tmp_path):
    with Ranks(tmp_path, RANK, 4, "compiled levels") as job:
        ends = job.ends()
    assert all(code != 0 for code, _, _ in ends)
    assert all("ring 0 was made without groups of ranks" in text for _, _, text in ends), ends


@pytest.mark.skipif(os.path.exists("/dev/nvidiactl"), reason="this machine has a GPU")
def test_nccl_without_a_gpu_is_refused_in_one_line_on_all_ranks(tmp_path):
    with Ranks(tmp_path, RANK, 2, "grad_allreduce", environment={"PENSTOCK_COLLECTIVE_BACKEND": "nccl"}) as job:
        ends = job.ends()
    for code, _, errors in ends:
        assert code != 0
        line = [line for line in errors.splitlines() if "E-collective-choice" in line][-1]
        assert "PENSTOCK_COLLECTIVE_BACKEND is nccl, but not for rank 0 (127.0.0.1:" in line, errors


def test_mpi_without_mpirun_is_refused_in_one_line(tmp_path):
    with Ranks(tmp_path, RANK, 2, "grad_allreduce", environment={"PENSTOCK_COLLECTIVE_BACKEND": "mpi"}) as job:
        ends = job.ends()
    for code, _, errors in ends:
        assert code != 0
        assert "PENSTOCK_COLLECTIVE_BACKEND is mpi, but" in errors and "E-collective-choice" in errors, errors
