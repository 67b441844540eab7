"""Jobs of ranks without pservers, as processes: every collective mode trains as one process on the joined batch."""

import os
import subprocess
import sys

import numpy as np
import pytest
from penstock.distributed.launch.job import free_ports

WAIT_S = 120

# A rank: argv is mode, rank, the addresses and the file for its parameters. Ranks begin with different values.
RANK = """
    import sys
    import numpy as np
    import penstock.fluid as fluid
    mode, rank, addresses, path = sys.argv[1], int(sys.argv[2]), sys.argv[3].split(','), sys.argv[4]
    fluid.default_startup_program().random_seed = 5 + rank
    x, y = fluid.data('x', [None, 13]), fluid.data('y', [None, 1])
    hidden = fluid.layers.fc(x, 8, act='tanh')
    loss = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(hidden, 1), y))
    fluid.optimizer.Momentum(0.05, 0.9).minimize(loss)
    main, startup = fluid.default_main_program(), fluid.default_startup_program()
    ranks = len(addresses)
    if mode != 'alone':
        config = fluid.DistributeTranspilerConfig()
        config.mode = 'nccl2' if mode in ('nccl2', 'compiled') else 'collective'
        if config.mode == 'collective':
            config.collective_mode = mode
        t = fluid.DistributeTranspiler(config)
        t.transpile(rank, trainers=','.join(addresses), current_endpoint=addresses[rank])
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(startup)
    if mode == 'nccl2':
        parallel = fluid.ParallelExecutor(use_cuda=False, loss_name=loss.name, num_trainers=ranks, trainer_id=rank)
        run = lambda feed: parallel.run([loss.name], feed=feed)
    elif mode == 'compiled':
        build = fluid.BuildStrategy()
        build.num_trainers, build.trainer_id = ranks, rank
        compiled = fluid.CompiledProgram(main).with_data_parallel(loss.name, build)
        run = lambda feed: exe.run(compiled, feed=feed, fetch_list=[loss])
    else:
        run = lambda feed: exe.run(main, feed=feed, fetch_list=[loss])
    random = np.random.RandomState(3)
    for step in range(6):
        xs = random.rand(16, 13).astype('float32')
        ys = xs.sum(axis=1, keepdims=True) / 5
        mine = slice(None) if mode == 'alone' else slice(16 // ranks * rank, 16 // ranks * (rank + 1))
        run({'x': xs[mine], 'y': ys[mine]})
    names = [p.name for p in main.all_parameters()]
    np.savez(path, **{name: np.array(fluid.global_scope().find_var(name).get_tensor()) for name in names})
    exe.close()
"""


def addresses_of(ranks):
    return ','.join('127.0.0.1:%d' % port for port in free_ports(ranks))


def train(folder, mode, ranks, **environment):
    """The parameters of each rank."""
    ended = run_ranks(folder, mode, ranks, environment)
    assert [code for code, _ in ended] == [0] * ranks, ended
    return [dict(np.load(folder / ('%s%d.npz' % (mode, rank)))) for rank in range(ranks)]


def run_ranks(folder, mode, ranks, environment):
    """How each rank ended: its exit code and its errors."""
    script = folder / 'rank.py'
    script.write_text('\n'.join(line[4:] for line in RANK.splitlines()))
    environment = dict(os.environ, OMP_NUM_THREADS='1', PENSTOCK_JOB_TOKEN='secret', PENSTOCK_JOB_ID='ranks',
                       **environment)
    addresses = addresses_of(ranks)
    paths = [folder / ('%s%d.npz' % (mode, rank)) for rank in range(ranks)]
    processes = [subprocess.Popen([sys.executable, str(script), mode, str(rank), addresses, str(path)],
                                  env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                 for rank, path in enumerate(paths)]
    try:
        texts = [process.communicate(timeout=WAIT_S) for process in processes]
    finally:
        for process in processes:
            if process.poll() is None:
                process.kill()
                process.communicate()
    return [(process.returncode, text[1]) for process, text in zip(processes, texts)]


@pytest.mark.parametrize('mode', ['grad_allreduce', 'nccl2', 'compiled'])
@pytest.mark.parametrize('ranks', [2, 4])
def test_ranks_equal_one_process_on_the_joined_batch_and_a_rerun_has_the_same_bytes(tmp_path, mode, ranks):
    alone, = train(tmp_path, 'alone', 1)
    first, again = train(tmp_path, mode, ranks), train(tmp_path, mode, ranks)
    for name, value in alone.items():
        for rank in range(ranks):
            np.testing.assert_allclose(first[rank][name], value, rtol=1e-4, atol=1e-5)
            np.testing.assert_array_equal(first[rank][name], first[0][name])
            np.testing.assert_array_equal(first[rank][name], again[rank][name])


@pytest.mark.skipif(os.path.exists('/dev/nvidiactl'), reason='this machine has a GPU')
def test_nccl_is_refused_in_one_line_on_all_ranks_where_there_is_no_gpu(tmp_path):
    for code, errors in run_ranks(tmp_path, 'grad_allreduce', 2, {'PENSTOCK_COLLECTIVE_BACKEND': 'nccl'}):
        assert code != 0
        line = [line for line in errors.splitlines() if 'E-collective-choice' in line][-1]
        assert 'PENSTOCK_COLLECTIVE_BACKEND is nccl, but not for rank 0 (127.0.0.1:' in line, errors


def test_mpi_is_refused_in_one_line_where_no_mpirun_has_started_the_ranks(tmp_path):
    for code, errors in run_ranks(tmp_path, 'grad_allreduce', 2, {'PENSTOCK_COLLECTIVE_BACKEND': 'mpi'}):
        assert code != 0
        assert 'PENSTOCK_COLLECTIVE_BACKEND is mpi, but' in errors and 'E-collective-choice' in errors, errors
