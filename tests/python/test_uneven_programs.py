"""Transpiled programs of trainers whose batches differ in size and number: ranks that sum gradients or average
parameters, and trainers with pservers."""

import pathlib
import subprocess
import sys

import numpy as np
import penstock
import pytest
from penstock._src.executor import uneven_batches
from penstock._src.launch.job import free_ports
from rank_processes import Ranks

# argv is the mode ('alone': one process with the batches of all), on_uneven, and how many examples each trainer's
# batches have, as '4,4,2;4;': three trainers, the last without any. The last ranks of a pserver job are its pservers.
SCRIPT = """
    import os, sys
    import numpy as np
    import penstock.fluid as fluid
    mode, on_uneven = sys.argv[1:3]
    plan = [[int(n) for n in part.split(',') if n] for part in sys.argv[3].split(';')]
    servers = [one for one in os.environ.get('SERVERS', '').split(',') if one]
    addresses = os.environ['PADDLE_TRAINER_ENDPOINTS'].split(',')[:len(plan)]
    rank = int(os.environ['PADDLE_TRAINER_ID'])
    fluid.default_main_program().random_seed = fluid.default_startup_program().random_seed = 5
    words = fluid.layers.data('words', [1], dtype='int64', lod_level=1)
    x, y = fluid.data('x', [None, 6]), fluid.data('y', [None, 1])
    rows = fluid.layers.embedding(words, [20, 4], is_sparse=True)
    word = fluid.layers.sequence_pool(rows, 'sum')
    hidden = fluid.layers.concat([fluid.layers.fc(x, 8, act='tanh'), word], axis=1)
    loss = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(hidden, 1), y))
    fluid.optimizer.SGD(0.05).minimize(loss)
    main, startup = fluid.default_main_program(), fluid.default_startup_program()
    names = [p.name for p in main.all_parameters()]
    config = fluid.DistributeTranspilerConfig()
    config.on_uneven = on_uneven
    exe = fluid.Executor(fluid.CPUPlace())
    if mode == 'nccl2':
        config.mode = mode
    elif mode in ('grad_allreduce', 'local_sgd'):
        config.mode, config.collective_mode = 'collective', mode
    elif mode == 'hybrid':
        config.exchange = {'dense': 'allreduce', 'sparse': 'pserver'}
    if mode != 'alone':
        t = fluid.DistributeTranspiler(config)
        if servers:
            t.transpile(min(rank, len(plan) - 1), pservers=','.join(servers), trainers=addresses)
            if rank >= len(plan):
                server, start = t.get_pserver_programs(servers[rank - len(plan)])
                exe.run(start)
                exe.run(server)
                sys.exit(0)
        else:
            t.transpile(rank, trainers=addresses, current_endpoint=addresses[rank])
        main = t.get_trainer_program()
    random = np.random.RandomState(3)
    steps = max(len(sizes) for sizes in plan)
    parts = []    # of each trainer in each step
    for step in range(steps):
        parts.append([])
        for sizes in plan:
            n = sizes[step] if step < len(sizes) else 0
            parts[-1].append((random.rand(n, 6).astype('float32'), random.rand(n, 1).astype('float32'),
                              random.randint(0, 20, [2 * n, 1])))
    def feed_of(x, y, words):
        return {'x': x, 'y': y, 'words': fluid.create_lod_tensor(words, [[2] * len(x)], fluid.CPUPlace())}
    exe.run(startup)
    fetched, program = [], main
    if mode == 'alone':
        for of_ranks in parts:
            exe.run(main, feed=feed_of(*(np.concatenate(one) for one in zip(*of_ranks))), fetch_list=[loss])
    else:
        if mode == 'nccl2':
            build = fluid.BuildStrategy()
            build.num_trainers, build.trainer_id = len(plan), rank
            program = fluid.CompiledProgram(main).with_data_parallel(loss.name, build)
        mine = lambda: (feed_of(*of_ranks[rank]) for of_ranks in parts[:len(plan[rank])])
        for feed in exe.batches(program, mine):
            fetched.append(len(feed['x']))
            exe.run(program, feed=feed, fetch_list=[loss])
    # Fetches rows of a table on pservers in one more step that all trainers take.
    last = feed_of(np.ones((10, 6), 'float32'), np.ones((10, 1), 'float32'), np.arange(20).reshape(20, 1))
    table, = exe.run(program, feed=last, fetch_list=[rows], return_numpy=False)
    scope = fluid.global_scope()
    found = {name: np.array(scope.find_var(name).get_tensor()) for name in names if name != 'embedding_0.w_0'}
    np.savez('end%d.npz' % rank, fetched=fetched, table=np.array(table), **found)
    exe.close()
"""
OF_RANKS, OF_SERVERS = ("grad_allreduce", "local_sgd", "nccl2"), ("sync", "hybrid")


def start(folder, mode, on_uneven, plan):
    trainers = 1 if mode == "alone" else plan.count(";") + 1
    servers = [f"127.0.0.1:{port}" for port in free_ports(2)] if mode in OF_SERVERS else []
    return trainers, Ranks(
        folder,
        SCRIPT,
        trainers + len(servers),
        mode,
        on_uneven,
        plan,
        environment={"SERVERS": ",".join(servers), "PADDLE_TRAINERS_NUM": str(trainers)},
    )


def train(folder, mode, on_uneven, plan):
    trainers, ranks = start(folder, mode, on_uneven, plan)
    with ranks as job:
        job.end_well()
    return [dict(np.load(folder / (f"end{rank}.npz"))) for rank in range(trainers)]


@pytest.mark.parametrize("mode", OF_RANKS + OF_SERVERS)
@pytest.mark.parametrize("plan", ["4,4,2;4,3", "2,2,1;;3;1,1"])
def test_joined_trainers_equal_one_process_on_all_examples(tmp_path, mode, plan):
    ours = train(tmp_path, mode, "join", plan)
    (alone,) = train(tmp_path, "alone", "", plan)
    steps = max(len(part.split(",")) if part else 0 for part in plan.split(";"))
    assert all(len(rank["fetched"]) == steps for rank in ours)
    for name in set(alone) - {"fetched"}:
        for rank in ours:
            np.testing.assert_allclose(rank[name], alone[name], rtol=1e-4, atol=1e-5, err_msg=name)
            np.testing.assert_array_equal(rank[name], ours[0][name], err_msg=name)


@pytest.mark.parametrize("mode", ["grad_allreduce", "local_sgd", "sync"])
def test_a_finished_trainer_pads_with_its_own_batches(tmp_path, mode):
    ours = train(tmp_path, mode, "pad", "4,4,2,3;1,2")
    assert ours[0]["fetched"].tolist() == [4, 4, 2, 3] and ours[1]["fetched"].tolist() == [1, 2, 1, 2]


@pytest.mark.parametrize("mode", ["grad_allreduce", "sync"])
def test_all_trainers_report_the_trainer_without_a_batch(tmp_path, mode):
    trainers, ranks = start(tmp_path, mode, "error", "2,2;2,2;2")
    with ranks as job:
        ends = job.ends()[:trainers]
    for code, _, text in ends:
        assert code != 0
        assert "in step 1 trainers 0, 1 have a batch and trainers 2 have none   [E-uneven-data]" in text, text


def transpiled(fluid, mode="collective", trainers="127.0.0.1:1,127.0.0.1:2", loss_of=None, **fields):
    x = fluid.data("x", [None, 2])
    loss = (loss_of or fluid.layers.mean)(fluid.layers.fc(x, 1))
    fluid.optimizer.SGD(0.1).minimize(loss)
    config = fluid.DistributeTranspilerConfig()
    config.mode = mode
    for name, value in fields.items():
        setattr(config, name, value)
    t = fluid.DistributeTranspiler(config)
    t.transpile(0, trainers=trainers, current_endpoint="127.0.0.1:1", pservers="127.0.0.1:9")
    return t.get_trainer_program()


@pytest.mark.parametrize(
    "fields, says",
    [
        (dict(on_uneven="wait"), "on_uneven is 'wait'; it must be one of '', join, pad, error.*E-plan-on-uneven"),
        (dict(on_uneven="join", collective_mode="single_process_multi_thread"), "E-plan-on-uneven"),
        (dict(on_uneven="join", mode="pserver", _sync_mode=False), "the mode is async.*E-plan-on-uneven"),
        (dict(on_uneven="join", mode="pserver", backup_trainers=1), "backup_trainers=1.*E-plan-on-uneven"),
        (dict(on_uneven="join", mode="pserver", bn_sync="average"), "bn_sync=average.*E-plan-on-uneven"),
        (
            dict(on_uneven="join", mode="pserver", trainers=2),
            "needs the address of each trainer.*E-plan-rank-addresses",
        ),
    ],
)
def test_conflicting_options_are_refused(fluid, monkeypatch, fields, says):
    monkeypatch.delenv("PADDLE_TRAINER_ENDPOINTS", raising=False)
    with pytest.raises(penstock.ProgramError, match="(?s)" + says):
        transpiled(fluid, **{"collective_mode": "grad_allreduce", **fields})


def test_a_loss_that_is_not_a_mean_is_refused(fluid):
    with pytest.raises(penstock.ProgramError, match="not the gradient of layers.mean.*E-pass-uneven-loss"):
        transpiled(fluid, collective_mode="grad_allreduce", on_uneven="join", loss_of=fluid.layers.reduce_sum)


def test_uneven_batches_require_a_policy_and_connected_trainers(fluid):
    program = transpiled(fluid, collective_mode="grad_allreduce")
    exe = fluid.Executor(fluid.CPUPlace())
    with pytest.raises(ValueError, match="needs a program that was transpiled with on_uneven"):
        exe.batches(program, list)
    with pytest.raises(TypeError, match="takes a Program or a CompiledProgram, not list"):
        exe.batches([], list)
    with pytest.raises(penstock.StateError, match="has not run in this scope.*   .E-uneven-scope"):
        uneven_batches.tell_live(fluid.Scope(), False)


SAYS = """
import sys
import penstock
import penstock.fluid as fluid
from test_uneven_programs import transpiled
program = transpiled(fluid, collective_mode='grad_allreduce', on_uneven=sys.argv[1])
again = fluid.Program.parse_from_string(program.desc.serialize_to_string())
try:
    next(fluid.Executor(fluid.CPUPlace()).batches(again, list))
except penstock.StateError as error:
    print(error)
"""


@pytest.mark.parametrize("choice", ["join", "pad", "error"])
def test_programs_state_the_policy_of_uneven_batches(choice):
    """Runs in a separate process, because that of the tests may have joined ranks."""
    told = subprocess.run(
        [sys.executable, "-c", SAYS, choice],
        cwd=pathlib.Path(__file__).parent,
        capture_output=True,
        text=True,
        timeout=180,
    )
    assert "run the startup program first" in told.stdout, told.stderr
