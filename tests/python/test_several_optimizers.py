"""Several optimizers in one process of ranks, and gradients that the program uses itself: two ranks end with the
numbers of one process on the joined batch."""

import numpy as np
import pytest
from rank_processes import Ranks

# argv: what wraps the optimizers, the kind of program, and a file. 'alone': one process on the joined batch.
TRAIN = """
    import os, sys
    import numpy as np
    import penstock.fluid as fluid
    L = fluid.layers
    by, kind, path = sys.argv[1:]
    rank, ranks = (0, 1) if by == 'alone' else (int(os.environ['PADDLE_TRAINER_ID']),
                                                int(os.environ['PADDLE_TRAINERS_NUM']))
    addresses = os.environ['PADDLE_TRAINER_ENDPOINTS'].split(',')
    if by == 'hvd':
        import penstock.hvd as hvd
        hvd.init()
    elif by.startswith('fleet'):
        from penstock.fluid.incubate.fleet import collective
        from penstock.fluid.incubate.fleet.base import role_maker
        collective.fleet.init(role_maker.PaddleCloudRoleMaker(is_collective=True))
    passes = 2 if kind == 'passes' else 1

    def wrapped(optimizer, **settings):
        if by == 'hvd':
            return hvd.DistributedOptimizer(optimizer, **settings)
        if by.startswith('fleet'):
            strategy = collective.DistributedStrategy()
            strategy.mode, strategy.collective_mode = 'collective', by[6:]
            if by == 'fleet-nccl2':
                strategy.mode, strategy.collective_mode = 'nccl2', None
            return collective.fleet.distributed_optimizer(optimizer, strategy)
        return optimizer

    def transpile(main, start):
        if by == 'transpiler':
            config = fluid.DistributeTranspilerConfig()
            config.mode, config.collective_mode = 'collective', 'grad_allreduce'
            config.nccl_comm_num = 2
            fluid.DistributeTranspiler(config).transpile(rank, program=main, startup_program=start, trainers=addresses,
                                                         current_endpoint=addresses[rank])

    def dense(x, name, size=3):
        return L.fc(x, size, param_attr=name + 'w', bias_attr=name + 'b')

    main, start = fluid.default_main_program(), fluid.default_startup_program()
    main.random_seed = start.random_seed = 5 + rank if by != 'alone' else 5
    x = fluid.data('x', [None, 4])
    ids = fluid.data('ids', [None, 1], dtype='int64')
    programs = [main]
    if kind in ('shared', 'twice'):    # two optimizers of one parameter
        trunk = L.tanh(dense(x, 't'))
        one = L.mean(L.square(dense(trunk, 'o') - 1.0))
        two = L.mean(L.square(dense(trunk, 'p') + 1.0))
        optimizer = fluid.optimizer.SGD(0.1)
        wrapped(optimizer).minimize(one)
        wrapped(optimizer if kind == 'twice' else fluid.optimizer.Adam(0.05)).minimize(two)
        losses = [one, two]
    elif kind == 'three':
        losses = [L.mean(L.square(dense(x, name) - target)) for name, target in (('a', 1.0), ('b', 2.0), ('c', 3.0))]
        inner = [fluid.optimizer.Momentum(0.1, 0.9, grad_clip=fluid.clip.GradientClipByGlobalNorm(0.5)),
                 fluid.optimizer.Adam(0.05, regularization=fluid.regularizer.L2Decay(0.1)), fluid.optimizer.SGD(0.1)]
        for loss, optimizer, name in zip(losses, inner, 'abc'):
            wrapped(optimizer).minimize(loss, parameter_list=[name + 'w', name + 'b'])
    elif kind == 'passes':    # gradients of two runs, one of them sparse
        rows = L.embedding(ids, [20, 3], is_sparse=True, param_attr='table')
        one = L.mean(L.square(L.reshape(rows, [-1, 3]) - 1.0))
        two = L.mean(L.square(dense(x, 'd') - 1.0))
        settings = {'backward_passes_per_step': passes} if by == 'hvd' else {}
        scale = 0.5 if by == 'hvd' else 1.0
        wrapped(fluid.optimizer.Momentum(0.4 * scale, 0.5), **settings).minimize(one)
        wrapped(fluid.optimizer.SGD(0.2 * scale), **settings).minimize(two)
        losses = [one, two]
    elif kind in ('clip', 'own', 'fetched'):
        loss = L.mean(L.square(dense(L.tanh(dense(x, 'h')), 'o') - 1.0))
        optimizer = wrapped(fluid.optimizer.SGD(0.5))
        losses = [loss]
        if kind == 'clip':    # by the user's own ops
            pairs = optimizer.backward(loss)
            norm = L.sqrt(L.sums([L.reduce_sum(L.square(g)) for _, g in pairs]))
            factor = 0.1 / L.elementwise_max(norm, L.fill_constant([1], 'float32', 0.1))
            optimizer.apply_gradients([(p, g * factor) for p, g in pairs])
            losses.append(norm)
        elif kind == 'own':
            pairs = optimizer.backward(loss) if by == 'hvd' else fluid.backward.append_backward(loss)
            for p, g in pairs:
                L.assign(p - g * 0.5, p)
        else:
            pairs = optimizer.backward(loss) if by == 'hvd' else fluid.backward.append_backward(loss)
            losses = [loss] + [g for _, g in sorted(pairs, key=lambda pair: pair[0].name)]
    elif kind == 'sgd':
        losses = [L.mean(L.square(dense(x, name) - target)) for name, target in (('a', 1.0), ('b', 2.0))]
        for loss, name in zip(losses, 'ab'):
            wrapped(fluid.optimizer.SGD(0.1)).minimize(loss, parameter_list=[name + 'w', name + 'b'])
    elif kind in ('gan', 'sgd_gan'):    # two programs, and one that only evaluates
        second = fluid.Program()
        losses = []
        for program, name in ((main, 'D'), (second, 'G')):
            with fluid.program_guard(program, start):
                x = fluid.data('x', [None, 4])
                with fluid.unique_name.guard(name):
                    loss = L.mean(L.square(dense(L.tanh(dense(x, name)), name + 'o') - 1.0))
                    test = program.clone(for_test=True)
                    inner = fluid.optimizer.Adam(0.05, grad_clip=fluid.clip.GradientClipByNorm(0.3))
                    if kind == 'sgd_gan':
                        inner = fluid.optimizer.SGD(0.1)
                    wrapped(inner).minimize(loss, startup_program=start)
                losses.append(loss)
        programs = [main, second]
    transpile(main, start)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(start)
    if by == 'alone':
        np.savez(path + 'start.npz', **{p.name: np.array(fluid.global_scope().find_var(p.name).get_tensor())
                                        for program in programs for p in program.all_parameters()})
    values = {p.name: fluid.global_scope().find_var(p.name).get_tensor()
              for program in programs for p in program.all_parameters()}
    fetched = []
    for step in range(4):
        random = np.random.RandomState(step)
        whole = {'x': random.rand(8, 4).astype('float32'), 'ids': random.randint(0, 20, (8, 1))}
        runs = passes if by == 'hvd' else 1
        for part in range(runs):
            begin, size = (rank * runs + part) * 8 // (ranks * runs), 8 // (ranks * runs)
            feed = {name: value[begin:begin + size] for name, value in whole.items()}
            for program, of_program in zip(programs, [losses] if len(programs) == 1 else [[one] for one in losses]):
                known = {name: value for name, value in feed.items() if name in program.global_block().vars}
                to_run = collective.fleet.main_program if by == 'fleet-nccl2' and len(programs) == 1 else program
                out = exe.run(to_run, feed=known, fetch_list=of_program)
        if kind == 'fetched':    # the user's own update, by NumPy
            fetched.append(out[0])
            for name, gradient in zip(sorted(values), out[1:]):
                values[name].set(np.array(values[name]) - 0.5 * gradient, fluid.CPUPlace())
        if kind in ('gan', 'sgd_gan'):
            fetched.append(exe.run(test, feed={'x': whole['x']}, fetch_list=[losses[1].name])[0])
    np.savez('%s%d.npz' % (path, rank), fetched=np.array(fetched if 'gan' in kind else []),
             **{name: np.array(value) for name, value in values.items()})
    exe.close()
"""

HVD = ["shared", "twice", "three", "passes", "clip", "own", "fetched", "gan"]
FLEET = ["shared", "twice", "three", "clip", "gan"]
CASES = (
    [("hvd", kind) for kind in HVD]
    + [("fleet-grad_allreduce", kind) for kind in FLEET]
    + [("fleet-nccl2", kind) for kind in ("three", "gan", "clip")]
    + [("fleet-local_sgd", kind) for kind in ("sgd", "sgd_gan")]
    + [("transpiler", kind) for kind in ("three", "shared", "clip", "own", "fetched")]
)


def train(folder, by, kind, ranks):
    with Ranks(folder, TRAIN, ranks, by, kind, str(folder / by)) as job:
        job.end_well()
    return [dict(np.load(folder / (f"{by}{rank}.npz"))) for rank in range(ranks)]


@pytest.mark.parametrize("by, kind", CASES)
def test_ranks_train_as_one_process_on_the_joined_batch(tmp_path, by, kind):
    (alone,) = train(tmp_path, "alone", kind, 1)
    start = np.load(tmp_path / "alonestart.npz")
    assert all(np.abs(alone[name] - start[name]).max() > 1e-3 for name in start.files)
    for each in train(tmp_path, by, kind, 2):
        assert each.keys() == alone.keys()
        for name in alone:
            np.testing.assert_allclose(each[name], alone[name], rtol=1e-4, atol=1e-5, err_msg=name)
