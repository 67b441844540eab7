"""Adaptive local SGD: ranks choose the number of steps between averages by loss and learning rate."""

import numpy as np
import penstock
import pytest
from rank_processes import Ranks

# Saves each step's loss, rate, number of steps to the next average, and parameters.
RANK = """
    import os, sys
    import numpy as np
    import penstock.fluid as fluid
    steps, first, uneven = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    rank, addresses = int(os.environ['PADDLE_TRAINER_ID']), os.environ['PADDLE_TRAINER_ENDPOINTS'].split(',')
    fluid.default_startup_program().random_seed = 5
    x, y = fluid.data('x', [None, 6]), fluid.data('y', [None, 1])
    loss = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(fluid.layers.fc(x, 8, act='tanh'), 1), y))
    rate = fluid.layers.exponential_decay(0.1, 10, 0.5)
    fluid.optimizer.Momentum(rate, 0.5).minimize(loss)
    main, startup = fluid.default_main_program(), fluid.default_startup_program()
    names = [p.name for p in main.all_parameters()]
    config = fluid.DistributeTranspilerConfig()
    config.mode, config.collective_mode = 'collective', 'local_sgd'
    config.local_sgd_k_steps, config.local_sgd_adaptive = first, True
    config.on_uneven = 'join' if uneven else ''
    fluid.DistributeTranspiler(config).transpile(rank, trainers=addresses, current_endpoint=addresses[rank])
    exe, scope = fluid.Executor(fluid.CPUPlace()), fluid.global_scope()
    exe.run(startup)
    random = np.random.RandomState(3 + rank)
    def feeds():
        for step in range(steps - 3 * rank if uneven else steps):
            part = random.rand(4 + rank, 6).astype('float32')
            yield {'x': part, 'y': part.sum(axis=1, keepdims=True)}
    value = lambda name: np.array(scope.find_var(name).get_tensor())
    found = {name: [] for name in ['loss', 'rate', 'k', *names]}
    for feed in exe.batches(main, feeds) if uneven else feeds():
        at, rated = exe.run(main, feed=feed, fetch_list=[loss, rate])
        for name, one in (('loss', at), ('rate', rated), ('k', value('@LOCAL_SGD_K@'))):
            found[name].append(one.item())
        for name in names:
            found[name].append(value(name))
    np.savez('end%d.npz' % rank, **found)
    exe.close()
"""


def train(folder, ranks, *arguments):
    with Ranks(folder, RANK, ranks, *arguments) as job:
        job.end_well()
    return [dict(np.load(folder / (f"end{rank}.npz"))) for rank in range(ranks)]


def averages(k):
    """The steps, from 0, after which parameters are averaged: the first, and each next one k[step] steps later."""
    steps, due = [], 0
    while due < len(k):
        steps.append(due)
        due += k[due]
    return steps


@pytest.mark.parametrize("ranks, first", [(2, 16), (3, 6)])
def test_ranks_average_after_the_steps_that_the_formula_gives(tmp_path, ranks, first):
    found = train(tmp_path, ranks, 40, first)
    k, rate, loss = found[0]["k"], found[0]["rate"], sum(rank["loss"] for rank in found) / ranks
    for rank in found:
        np.testing.assert_array_equal(rank["k"], k)
        np.testing.assert_array_equal(rank["rate"], rate)
    due = averages(k)
    for number, step in enumerate(due):
        exact = np.sqrt(rate[0] / rate[step] * loss[step] / loss[0] * first)
        assert k[step] in {max(1, min(16, int(np.ceil(exact + off)))) for off in (-1e-4, 1e-4)}, (step, exact)
        until = due[number + 1] if number + 1 < len(due) else len(k)
        assert set(k[step:until]) == {k[step]}
    assert len(set(k)) > 1 and len(due) > 3
    for name in set(found[0]) - {"loss", "rate", "k"}:
        for step in range(len(k)):
            same = all(np.array_equal(rank[name][step], found[0][name][step]) for rank in found)
            assert same == (step in due), (name, step)


def test_ranks_with_unequal_batches_agree_on_the_number_of_steps(tmp_path):
    found = train(tmp_path, 3, 20, 9, "uneven")
    for rank in found:
        assert len(rank["k"]) == 20
        np.testing.assert_array_equal(rank["k"], found[0]["k"])
    due = averages(found[0]["k"])
    for name in set(found[0]) - {"loss", "rate", "k"}:
        for rank in found:
            for step in due:
                np.testing.assert_array_equal(rank[name][step], found[0][name][step], err_msg=name)
        ended = found[2][name][14:]  # since its last batch, it has only taken part in averages
        for step in range(1, len(ended)):
            assert np.array_equal(ended[step], ended[step - 1]) or 14 + step in due, (name, step)


@pytest.mark.parametrize(
    "fields, says",
    [
        (dict(collective_mode="grad_allreduce", local_sgd_adaptive=True), "needs collective_mode local_sgd"),
        (dict(collective_mode="local_sgd", local_sgd_adaptive=3), "local_sgd_adaptive must be True or False, not 3"),
    ],
)
def test_invalid_settings_are_refused(fluid, fields, says):
    loss = fluid.layers.mean(fluid.layers.fc(fluid.data("x", [None, 2]), 1))
    fluid.optimizer.SGD(0.1).minimize(loss)
    config = fluid.DistributeTranspilerConfig()
    config.mode = "collective"
    for name, value in fields.items():
        setattr(config, name, value)
    with pytest.raises(penstock.ProgramError, match=says):
        fluid.DistributeTranspiler(config).transpile(0, trainers="a:1,b:1", current_endpoint="a:1")
