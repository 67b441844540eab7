"""Ops after minimize() that read what is trained see it updated, as on one machine. Real processes."""

import os
import subprocess
import sys
import textwrap

import numpy as np
import penstock
import pytest
from fleet_jobs import launch_well

# argv: 'alone' or a mode of the transpiler; then what follows minimize().
SCRIPT = """
    import os, sys
    import numpy as np
    import penstock.fluid as fluid
    L = fluid.layers

    mode, what = sys.argv[1], sys.argv[2]
    fluid.default_main_program().random_seed = fluid.default_startup_program().random_seed = 3
    x, y = fluid.data('x', [None, 64]), fluid.data('y', [None, 1])
    words = fluid.data('words', [None, 1], 'int64')
    names = ['w', 'b']
    output = L.fc(L.fc(x, 512, act='tanh', param_attr='w'), 1, bias_attr='b')
    if 'table' in what:
        output = L.fc([output, L.embedding(words, [500, 4], is_sparse=True, is_distributed='sharded' in what,
                                           param_attr='t')], 1)
    loss = L.mean(L.square_error_cost(output, y))
    fluid.optimizer.SGD(0.002).minimize(loss)
    main = fluid.default_main_program()
    w, b = (main.global_block().var(name) for name in names)
    kept = {}

    def keep(name, like):
        made = L.create_parameter(like.shape, 'float32', name=name, default_initializer=fluid.initializer.Constant(0.5))
        made.stop_gradient = True
        kept[name] = made
        return made

    if what == 'target':
        for like in (w, b):
            target = keep('target_' + like.name, like)
            L.assign(target * 0.9 + like * 0.1, target)
        shown = L.reduce_sum(L.abs(w))
    elif what == 'block':
        target = keep('target_w', w)
        step = L.autoincreased_step_counter()
        due = L.equal(L.elementwise_mod(step, L.fill_constant([1], 'int64', 2)), L.fill_constant([1], 'int64', 0))
        shown = L.cond(due, lambda: L.reduce_sum(L.assign(w, target)), lambda: L.reduce_sum(w) * 2.0)
    elif what == 'joined':
        target = keep('target_b', b)
        both = L.concat([b, target], axis=0)    # reads like the op that joins slices
        L.assign(L.reduce_mean(both, keep_dim=True), target)
        shown = L.reduce_sum(both)
    else:    # rows of the table: a lookup of its own, after the update
        shown = L.reduce_sum(L.square(L.embedding(words, [500, 4], is_sparse=True, is_distributed='sharded' in what,
                                                  param_attr='t')))
    exe = fluid.Executor(fluid.CPUPlace())
    index, trainers = int(os.environ.get('PADDLE_TRAINER_ID', 0)), int(os.environ.get('PADDLE_TRAINERS_NUM', 1))
    communicator = None
    if mode in ('grad_allreduce', 'local_sgd'):
        config = fluid.DistributeTranspilerConfig()
        config.mode, config.collective_mode = 'collective', mode
        fluid.DistributeTranspiler(config).transpile(index, trainers=os.environ['PADDLE_TRAINER_ENDPOINTS'],
                                                     current_endpoint=os.environ['PADDLE_CURRENT_ENDPOINT'])
    elif mode != 'alone':
        config = fluid.DistributeTranspilerConfig()
        if mode != 'sync':
            config.sync_mode = False
            config.runtime_split_send_recv = mode in ('half_async', 'not_async')
            config.half_async = mode in ('half_async', 'not_async')
            config.completely_not_async = mode == 'not_async'
        t = fluid.DistributeTranspiler(config)
        pserver = os.environ['TRAINING_ROLE'] == 'PSERVER'
        t.transpile(0 if pserver else index, pservers=os.environ['PADDLE_PSERVER_ENDPOINTS'], trainers=trainers,
                    sync_mode=mode == 'sync')
        if pserver:
            main, startup = t.get_pserver_programs(os.environ['PADDLE_CURRENT_ENDPOINT'])
            exe.run(startup)
            exe.run(main)
            sys.exit(0)
        main = t.get_trainer_program()
        if config.runtime_split_send_recv:
            from penstock.fluid.communicator import Communicator, DistributedMode
            steps = DistributedMode.SYNC if mode == 'not_async' else DistributedMode.HALF_ASYNC
            communicator = Communicator(main, steps)
            communicator.start()
    exe.run(fluid.default_startup_program())
    found = []
    for step in range(4):
        random = np.random.RandomState(step)
        rows, ids = random.rand(8, 64).astype('float32'), random.randint(0, 500, (8, 1))
        mine = slice(index * 8 // trainers, (index + 1) * 8 // trainers)
        feed = {'x': rows[mine], 'y': rows.mean(1, keepdims=True)[mine], 'words': ids[mine]}
        found.append(np.ravel(exe.run(main, feed=feed, fetch_list=[shown])[0])[0])
    values = {name: np.array(fluid.global_scope().find_var(name).get_tensor()) for name in [*names, *kept]}
    if communicator is not None:
        communicator.stop()
    exe.close()
    np.savez('worker%d.npz' % index, shown=found, **values)
"""


def alone(folder, what):
    (folder / "alone.py").write_text(textwrap.dedent(SCRIPT))
    subprocess.run(
        [sys.executable, "alone.py", "alone", what],
        cwd=folder,
        check=True,
        timeout=60,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    return dict(np.load(folder / "worker0.npz"))


# Trainers that do not wait for each other have the values of one machine only if there is one.
@pytest.mark.parametrize(
    "mode, workers, what",
    [
        ("sync", 2, "target"),
        ("sync", 2, "block"),
        ("sync", 2, "joined"),
        ("sync", 2, "table"),
        ("sync", 2, "sharded table"),
        ("not_async", 2, "target"),
        ("async", 1, "target"),
        ("async", 1, "block"),
        ("async", 1, "table"),
        ("half_async", 1, "target"),
        ("half_async", 1, "table"),
        ("grad_allreduce", 2, "target"),
        ("local_sgd", 2, "target"),
        ("local_sgd", 2, "block"),
        ("local_sgd", 2, "joined"),
    ],
)
def test_ops_after_the_update_see_the_new_value(tmp_path, mode, workers, what):
    want = alone(tmp_path, what)
    servers = 0 if mode in ("grad_allreduce", "local_sgd") else 2
    trainers, _ = launch_well(tmp_path, SCRIPT, mode, what, workers=workers, servers=servers)
    for trainer in trainers:
        for name in set(want) - {"shown"}:
            np.testing.assert_allclose(trainer[name], want[name], rtol=2e-5, atol=1e-6, err_msg=name)
    shown = [trainer["shown"] for trainer in trainers]
    shown = np.sum(shown, 0) if "table" in what else np.mean(shown, 0)  # of a trainer's own rows
    np.testing.assert_allclose(shown, want["shown"], rtol=2e-5)


def test_a_gradient_of_an_updated_parameter_is_refused_with_advice(fluid):
    x = fluid.data("x", [None, 4])
    hidden = fluid.layers.fc(x, 3, param_attr="w", bias_attr=False)
    fluid.optimizer.SGD(0.1).minimize(fluid.layers.mean(hidden), parameter_list=["w"])
    again = fluid.layers.fc(fluid.layers.fc(x, 3, param_attr="w", bias_attr=False), 1, param_attr="v", bias_attr=False)
    fluid.optimizer.SGD(0.1).minimize(fluid.layers.mean(again), parameter_list=["v"])
    with pytest.raises(penstock.ProgramError, match="put the two updates into two programs") as refused:
        fluid.DistributeTranspiler().transpile(0, pservers="a:1", trainers=2)
    assert refused.value.id == "E-check-source"


def test_in_compat_mode_ops_run_before_the_update_as_in_fluid(fluid):
    x = fluid.data("x", [None, 4])
    loss = fluid.layers.mean(fluid.layers.fc(x, 3, param_attr="w", bias_attr=False))
    fluid.optimizer.SGD(0.1).minimize(loss)
    fluid.layers.reduce_sum(fluid.default_main_program().global_block().var("w"))
    main, startup = fluid.default_main_program(), fluid.default_startup_program()
    orders = {}
    for compat in (None, "fluid-1.8"):
        given = {} if compat is None else {"compat": compat}
        with pytest.warns(UserWarning) if compat else open(os.devnull):
            roles = penstock.transpile(main, startup, "a:1", trainers=2, **given)
        ops = [op.type for op in roles.trainers[0].main.global_block().ops]
        orders[compat] = ops.index("reduce_sum") > ops.index("fetch_barrier")
    assert orders == {None: True, "fluid-1.8": False}
