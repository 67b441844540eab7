"""geo-SGD in real processes: trainers optimize locally and exchange changes."""

import textwrap

import numpy as np
import pytest

SCRIPT = textwrap.dedent("""
    import os, sys
    import numpy as np
    import penstock.fluid as fluid
    from job_script import program_of
    from penstock.fluid.communicator import Communicator, DistributedMode

    role, index, out, steps = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
    endpoints = os.environ.get('ENDPOINTS', '')
    trainers = int(os.environ['TRAINERS'])
    communicator = os.environ.get('COMMUNICATOR', 'before')
    fluid.default_main_program().random_seed = fluid.default_startup_program().random_seed = 3
    x = fluid.data('x', [None, 8])
    words = fluid.data('words', [None, 1], 'int64')
    y = fluid.data('y', [None, 1])
    hidden = fluid.layers.fc(x, 3000, act='relu')
    if 'DENSE' in os.environ:
        output = fluid.layers.fc(hidden, 1)
    else:
        word = fluid.layers.embedding(words, [4000, 16], is_sparse=True, param_attr=fluid.ParamAttr(name='table'))
        output = fluid.layers.fc([hidden, word], 1)
    loss = fluid.layers.mean(fluid.layers.square_error_cost(output, y))
    names = [p.name for p in fluid.default_main_program().all_parameters()]
    fluid.optimizer.Momentum(float(os.environ.get('RATE', 0.002)), 0.9).minimize(loss)
    exe, scope = fluid.Executor(fluid.CPUPlace()), fluid.global_scope()

    def values():
        return {name: np.array(scope.find_var(name).get_tensor()) for name in names}

    program = fluid.default_main_program()
    if role != 'local':
        config = fluid.DistributeTranspilerConfig()
        config.geo_sgd_mode, config.geo_sgd_need_push_nums = True, int(os.environ.get('PUSH_EVERY', 3))
        t = fluid.transpiler.GeoSgdTranspiler(config)
        t.transpile(index if role == 'trainer' else 0, pservers=endpoints, trainers=trainers)
        program = program_of(role, index, exe, t)
    kwargs = None
    if 'KWARGS' in os.environ and role == 'trainer':
        kwargs = {'push_vars': t._get_vars_info(), 'trainers': trainers, 'push_nums': 2}
    if role == 'trainer' and communicator == 'before':
        mine = Communicator(program, DistributedMode.GEO, kwargs)
        mine.start()
    exe.run(fluid.default_startup_program())
    if role == 'trainer' and communicator == 'after':
        mine = Communicator(program, DistributedMode.GEO, kwargs)
        mine.start()
    if 'SET' in os.environ:
        for name, value in values().items():
            random = np.random.RandomState(len(name)).rand(*value.shape).astype('float32')
            scope.find_var(name).get_tensor().set(random * 0.01, fluid.CPUPlace())
    losses, fewer = [], role == 'trainer' and index == 1
    for step in range(steps // 2 if fewer else steps):
        random = np.random.RandomState(10 * step + index)
        rows = random.rand(16, 8).astype('float32')
        feed = {'x': rows, 'words': random.randint(0, 4000, (16, 1)), 'y': rows.sum(axis=1, keepdims=True)}
        losses.append(exe.run(program, feed=feed, fetch_list=[loss])[0][0])
    if 'NO_STOP' not in os.environ and role == 'trainer':
        mine.stop()
        assert mine.is_running() is False
    np.savez(os.path.join(out, role + str(index)), losses=losses, **values())
    exe.close()
""")


@pytest.mark.parametrize(
    "settings",
    [{}, {"DENSE": "1"}, {"COMMUNICATOR": "after", "KWARGS": "1"}, {"NO_STOP": "1"}, {"SET": "1"}],
    ids=lambda each: "-".join(each) or "plain",
)
def test_a_single_trainer_equals_one_machine_exactly(job, settings):
    (distributed,) = job.train(1, 7, **settings)
    job.start("local", 0, steps=7)
    assert {result[0] for result in job.wait().values()} == {0}
    local = np.load(job.folder / "local0.npz")
    for name in local.files:
        np.testing.assert_array_equal(distributed[name], local[name], name)


@pytest.mark.parametrize("push_every", ["1", "4"])
def test_two_trainers_may_have_different_batch_counts(job, push_every):
    # A rate at which momentum does not swing: timing decides which deltas a trainer gets when.
    for trainer in job.train(2, 300, PUSH_EVERY=push_every, RATE="0.0005"):
        losses = trainer["losses"]  # of untrained parameters: about 16
        assert np.isfinite(losses).all() and np.mean(losses[-10:]) < 1, losses


def test_running_without_a_communicator_is_refused_with_advice(job):
    job.environment.update(COMMUNICATOR="never", TRAINERS="1")
    job.start_all(steps=3, trainers=1)
    results = job.wait()
    assert {result[0] for result in results.values()} == {1}, results
    said = (
        "goes through the trainer's communicator, which is not running; call "
        "fluid.communicator.Communicator(program, mode).start() before the first step"
    )
    assert said in results["trainer0"][2], results


CORPUS_JOB = textwrap.dedent("""
    import json, os, sys
    import numpy as np
    import penstock.fluid as fluid
    from penstock.fluid.communicator import Communicator, DistributedMode

    role, index, out, steps = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
    folder = os.environ['CORPUS_JOB']
    info = json.load(open(folder + '/info.json'))
    addresses = dict(zip(info['pservers'], os.environ['ENDPOINTS'].split(',')))

    def with_addresses(data):
        for old, new in addresses.items():
            assert len(old) == len(new)
            data = data.replace(old.encode(), new.encode())
        return data

    def program_of(name):
        with open('%s/%s_%d.pb' % (folder, name, index), 'rb') as file:
            return fluid.Program.parse_from_string(with_addresses(file.read()))

    exe, scope = fluid.Executor(fluid.CPUPlace()), fluid.global_scope()
    start = np.load(folder + '/init.npz')
    exe.run(program_of(role + '_startup'))
    if role == 'pserver':
        for piece, (param, begin, rows) in json.load(open('%s/pserver_%d.slices.json' % (folder, index))).items():
            scope.find_var(piece).get_tensor().set(start[param][begin:begin + rows], fluid.CPUPlace())
        exe.run(program_of('pserver'))
        sys.exit(0)
    program = program_of('trainer')
    push_vars = json.loads(with_addresses(open(folder + '/geo_vars_info.json', 'rb').read()))
    kwargs, envs = {'push_vars': push_vars, 'trainers': info['trainers'], 'push_nums': info['geo_need_push_nums']}, {}
    if 'BY_ENVS' in os.environ:    # as Fluid's communicator has it inside
        envs = {'geo_trainer_nums': str(info['trainers']), 'geo_need_push_nums': str(info['geo_need_push_nums']),
                'geo_send_varnames': '#'.join(push_vars)}
        for param, each in push_vars.items():
            envs[param] = '#'.join('&'.join(each[key]) for key in ('var_names', 'sections', 'epmap', 'is_sparse'))
        kwargs = None
    with open(folder + '/communicator_flags.json') as file:
        communicator = Communicator(program, DistributedMode.GEO, kwargs, dict(json.load(file), **envs))
    communicator.start()
    feeds, losses = np.load(folder + '/feeds_t%d.npz' % index), []
    for step in range(steps):
        feed = {name.split(':')[1]: feeds[name] for name in feeds.files if name.startswith('s%d:' % step)}
        losses.append(exe.run(program, feed=feed, fetch_list=['mean_0.tmp_0'])[0].item())
    communicator.stop()
    np.savez(out + '/trainer%d.npz' % index, loss=losses,
             **{'final:' + name: np.array(scope.find_var(name).get_tensor()) for name in start.files})
    exe.close()
""")


@pytest.mark.parametrize("by", ["kwargs", "envs"])
def test_fluids_programs_train_as_in_fluid(job, corpus, by):
    folder = corpus / "open" / "dist_numeric" / "linear_sgd_geo2_1x2"
    if len({len(address) for address in job.environment["ENDPOINTS"].split(",")}) > 1:
        pytest.skip("a free port has fewer digits than those in the programs")
    job.script.write_text(CORPUS_JOB)
    job.environment.update(CORPUS_JOB=str(folder), **({"BY_ENVS": "1"} if by == "envs" else {}))
    (ours,) = job.train(1, 10)
    theirs = np.load(folder / "trainer_0.npz")
    np.testing.assert_allclose(ours["loss"], theirs["loss"], rtol=1e-4, atol=1e-5)
    finals = np.load(folder / "final_params.npz")
    for name in finals.files:
        np.testing.assert_allclose(ours["final:" + name], finals[name], rtol=1e-4, atol=1e-5, err_msg=name)


def transpiled(fluid, trainers=2):
    words = fluid.data("words", [None, 1], "int64")
    word = fluid.layers.embedding(words, [50, 4], is_sparse=True, param_attr=fluid.ParamAttr(name="table"))
    fluid.optimizer.SGD(0.1).minimize(fluid.layers.mean(fluid.layers.fc(word, 1)))
    t = fluid.transpiler.GeoSgdTranspiler()
    t.transpile(0, pservers="10.0.0.1:1,10.0.0.2:1", trainers=trainers)
    return t, t.get_trainer_program()


def test_settings_that_contradict_the_program_are_refused(fluid):
    Communicator, GEO = fluid.communicator.Communicator, fluid.communicator.DistributedMode.GEO
    t, program = transpiled(fluid)
    Communicator(program, GEO)
    said = {"push_vars": t._get_vars_info(), "trainers": 2, "push_nums": 5}
    Communicator(program, GEO, said)
    with pytest.raises(ValueError, match="trainers is 3, but the program says 2"):
        Communicator(program, GEO, dict(said, trainers=3))
    with pytest.raises(ValueError, match="push_nums must be from 1 to 1000000, not 0"):
        Communicator(program, GEO, dict(said, push_nums=0))
    with pytest.raises(ValueError, match="push_nums must be a whole number, not 'often'"):
        Communicator(program, GEO, dict(said, push_nums="often"))
    with pytest.raises(ValueError, match="push_vars of table must have the form that GeoSgdTranspiler._get_vars_info"):
        Communicator(program, GEO, dict(said, push_vars={"table": {}}))
    with pytest.raises(ValueError, match="push_vars of table has 1 names, 1 numbers of rows and 2 addresses"):
        wrong = dict(t._get_vars_info()["table"], epmap=["a:1", "b:1"])
        Communicator(program, GEO, dict(said, push_vars={"table": wrong}))
    with pytest.raises(ValueError, match="pieces are 49 rows of table.delta, which has 50.*E-contract-shape"):
        wrong = dict(t._get_vars_info()["table"], var_names=["a", "b"], sections=["9", "40"], epmap=["a:1", "b:1"])
        Communicator(program, GEO, dict(said, push_vars={"table": wrong}))
    with pytest.raises(ValueError, match="is told of no parameter to exchange.*E-communicator-geo"):
        Communicator(program, GEO, dict(said, push_vars={}))
    with pytest.raises(ValueError, match="table must be 'pieces#rows#addresses#is_sparse'"):
        Communicator(program, GEO, envs={"geo_send_varnames": "table", "table": "table#50"})
    with pytest.raises(ValueError, match="E-communicator-program"):
        Communicator(program, fluid.communicator.DistributedMode.ASYNC)
    with pytest.raises(ValueError, match="E-communicator-program"):
        Communicator(fluid.Program(), GEO, said)
    with pytest.raises(ValueError, match="contains no plan, so mode GEO needs 'push_vars'"):
        Communicator(fluid.Program(), GEO, {"trainers": 2})
