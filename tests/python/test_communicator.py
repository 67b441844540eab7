"""fluid.communicator: programs that leave sending and receiving to it, in real processes, and their errors."""

import textwrap

import numpy as np
import pytest

SCRIPT = textwrap.dedent("""
    import os, sys
    import numpy as np
    import penstock.fluid as fluid
    from job_script import program_of
    from penstock.fluid.communicator import Communicator
    from penstock.fluid.transpiler.distribute_transpiler import DistributedMode

    role, index, out, steps = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
    endpoints = os.environ['ENDPOINTS']
    by_communicator = os.environ.get('BY_COMMUNICATOR')
    fluid.default_main_program().random_seed = fluid.default_startup_program().random_seed = 3
    x = fluid.data('x', [None, 8])
    words = fluid.data('words', [None, 1], 'int64')
    y = fluid.data('y', [None, 1])
    hidden = fluid.layers.fc(x, 3000, act='relu')
    word = fluid.layers.embedding(words, [500, 128], is_sparse='SPARSE' in os.environ,
                                  param_attr=fluid.ParamAttr(name='table'))
    output = fluid.layers.fc([hidden, word], 1)
    loss = fluid.layers.mean(fluid.layers.square_error_cost(output, y))
    rate = fluid.layers.exponential_decay(0.001, 1000, 0.5) if 'SCHEDULE' in os.environ else 0.001
    fluid.optimizer.Adam(rate).minimize(loss)
    exe = fluid.Executor(fluid.CPUPlace())

    config = fluid.DistributeTranspilerConfig()
    mode = os.environ.get('MODE', 'SYNC')
    if by_communicator:
        config.sync_mode, config.runtime_split_send_recv = False, True
        config.half_async, config.completely_not_async = mode != 'ASYNC', mode == 'SYNC'
    t = fluid.DistributeTranspiler(config)
    t.transpile(index if role == 'trainer' else 0, pservers=endpoints, trainers=2, sync_mode=not by_communicator)
    program = program_of(role, index, exe, t)
    exe.run(fluid.default_startup_program())
    if by_communicator:
        said = {'pserver_endpoints': endpoints.split(','), 'trainer_id': index} if mode == 'SYNC' else None
        envs = {'communicator_min_send_grad_num_before_recv': '0', 'communicator_independent_recv_thread': '0'}
        communicator = Communicator(program, getattr(DistributedMode, mode), said, envs)
        assert communicator.is_running() is False
    if by_communicator == 'started':
        communicator.start()
        assert communicator.is_running() is True
    losses = []
    for step in range(steps):
        random = np.random.RandomState(10 * step + index)
        rows = random.rand(16, 8).astype('float32')
        feed = {'x': rows, 'words': random.randint(0, 500, (16, 1)), 'y': rows.sum(axis=1, keepdims=True)}
        losses.append(exe.run(program, feed=feed, fetch_list=[loss])[0][0])
    scope = fluid.global_scope()
    held = [p.name for p in program.all_parameters() if 'SPARSE' not in os.environ or p.name != 'table']
    np.savez(os.path.join(out, role + str(index)), losses=losses,
             **{name: np.array(scope.find_var(name).get_tensor()) for name in held})
    if by_communicator:
        communicator.stop()
        assert communicator.is_running() is False
    exe.close()
""")


@pytest.mark.parametrize("sparse", [{}, {"SPARSE": "1"}])
def test_completely_not_async_gives_the_bytes_of_sync(job, sparse):
    by_ops = job.train(steps=6, **sparse)
    by_communicator = job.train(steps=6, BY_COMMUNICATOR="started")
    for one, other in zip(by_ops, by_communicator):
        assert one.keys() == other.keys()
        for name in one:
            np.testing.assert_array_equal(one[name], other[name], name)


@pytest.mark.parametrize("mode", ["HALF_ASYNC", "ASYNC"])
@pytest.mark.parametrize("more", [{}, {"SPARSE": "1"}, {"SCHEDULE": "1"}])
def test_asynchronous_modes_train(job, mode, more):
    # A trainer may start when the other is almost done, so its first losses need not be those of an untrained model.
    untrained = 8 / 12 + 4**2  # the loss of output 0: the targets are sums of 8 numbers from [0, 1)
    for trainer in job.train(steps=60, BY_COMMUNICATOR="started", MODE=mode, **more):
        losses = trainer["losses"]
        assert np.isfinite(losses).all() and np.mean(losses[-10:]) < 0.25 * untrained, losses


CORPUS_JOB = textwrap.dedent("""
    import json, os, sys
    import numpy as np
    import penstock.fluid as fluid
    from penstock.fluid.communicator import Communicator, DistributedMode

    role, index, out, steps = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
    folder = os.environ['CORPUS_JOB']
    addresses = dict(zip(json.load(open(folder + '/info.json'))['pservers'], os.environ['ENDPOINTS'].split(',')))

    def program_of(name):
        with open('%s/%s_%d.pb' % (folder, name, index), 'rb') as file:
            data = file.read()
        for old, new in addresses.items():
            assert len(old) == len(new)
            data = data.replace(old.encode(), new.encode())
        return fluid.Program.parse_from_string(data)

    exe, scope = fluid.Executor(fluid.CPUPlace()), fluid.global_scope()
    start = np.load(folder + '/init.npz')
    exe.run(program_of(role + '_startup'))
    if role == 'pserver':
        for piece, (param, begin, rows) in json.load(open('%s/pserver_%d.slices.json' % (folder, index))).items():
            scope.find_var(piece).get_tensor().set(start[param][begin:begin + rows], fluid.CPUPlace())
        exe.run(program_of('pserver'))
        sys.exit(0)
    program = program_of('trainer')
    with open(folder + '/communicator_flags.json') as file:
        communicator = Communicator(program, getattr(DistributedMode, os.environ['MODE']), envs=json.load(file))
    communicator.start()
    feeds, losses = np.load(folder + '/feeds_t0.npz'), []
    for step in range(steps):
        feed = {name: feeds['s%d:%s' % (step, name)] for name in ('x', 'y')}
        losses.append(exe.run(program, feed=feed, fetch_list=['mean_0.tmp_0'])[0].item())
    communicator.stop()
    np.savez(out + '/trainer0.npz', loss=losses,
             **{'final:' + name: np.array(scope.find_var(name).get_tensor()) for name in start.files})
    exe.close()
""")


@pytest.mark.parametrize(
    "name, mode", [("linear_sgd_halfasync_1x2", "HALF_ASYNC"), ("linear_sgd_asynccomm_1x2", "ASYNC")]
)
def test_programs_of_fluid_train_through_a_communicator(job, corpus, name, mode):
    folder = corpus / "open" / "dist_numeric" / name
    if len({len(address) for address in job.environment["ENDPOINTS"].split(",")}) > 1:
        pytest.skip("a free port has fewer digits than those in the programs")
    job.script.write_text(CORPUS_JOB)
    job.environment.update(CORPUS_JOB=str(folder), MODE=mode)
    for index in range(2):
        job.start("pserver", index)
    job.start("trainer", 0, steps=10)
    results = job.wait()
    assert {result[0] for result in results.values()} == {0}, results
    ours, reference = np.load(job.folder / "trainer0.npz"), np.load(folder / "reference.npz")
    if mode == "ASYNC":  # the time at which a gradient is applied varies; the first loss does not
        np.testing.assert_allclose(ours["loss"][0], reference["loss"][0], rtol=1e-4)
        assert np.isfinite(ours["loss"]).all()
        return
    for key in reference.files:
        np.testing.assert_allclose(ours[key], reference[key], rtol=1e-4, atol=1e-5, err_msg=key)


def test_running_without_a_communicator_is_refused_with_advice(job):
    job.environment["BY_COMMUNICATOR"] = "made"
    job.start_all()
    results = job.wait()
    assert {result[0] for result in results.values()} == {1}, results
    said = (
        "goes through the trainer's communicator, which is not running; call "
        "fluid.communicator.Communicator(program, mode).start() before the first step"
    )
    assert any(said in results[f"trainer{i}"][2] for i in range(2)), results  # the other may get the error first


def transpiled(fluid, **fields):
    x = fluid.data("x", [None, 4])
    loss = fluid.layers.mean(fluid.layers.fc(x, 1))
    fluid.optimizer.SGD(0.1).minimize(loss)
    config = fluid.DistributeTranspilerConfig()
    for name, value in fields.items():
        setattr(config, name, value)
    t = fluid.DistributeTranspiler(config)
    t.transpile(0, pservers="10.0.0.1:1,10.0.0.2:1", trainers=2, sync_mode=fields.get("sync_mode", True))
    return t.get_trainer_program()


BY_COMMUNICATOR = {"sync_mode": False, "runtime_split_send_recv": True, "completely_not_async": True}


def test_settings_that_contradict_the_program_are_refused(fluid):
    Communicator, SYNC = fluid.communicator.Communicator, fluid.communicator.DistributedMode.SYNC
    program = transpiled(fluid, **BY_COMMUNICATOR)
    with pytest.raises(ValueError, match="trainer_id is 1, but the program says 0"):
        Communicator(program, SYNC, {"trainer_id": 1})
    with pytest.raises(ValueError, match="no setting 'communicator_queue'"):
        Communicator(program, SYNC, envs={"communicator_queue": "1"})
    with pytest.raises(ValueError, match="send_queue_size must be a whole number"):
        Communicator(program, SYNC, envs={"communicator_send_queue_size": "two"})
    with pytest.raises(ValueError, match="send_queue_size must be from 1 to 1000000, not 0"):
        Communicator(program, SYNC, envs={"communicator_send_queue_size": 0})
    with pytest.raises(ValueError, match="use mode HALF_ASYNC.*E-communicator-steps"):
        Communicator(program, fluid.communicator.DistributedMode.ASYNC)
    with pytest.raises(ValueError, match="mode GEO needs 'push_vars'"):
        Communicator(program, fluid.communicator.DistributedMode.GEO)
    with pytest.raises(ValueError, match="tells no communicator of its steps.*E-communicator-program"):
        Communicator(program, fluid.communicator.DistributedMode.GEO, {"push_vars": {}, "trainers": 2, "push_nums": 1})
    with pytest.raises(ValueError, match="one of DistributedMode"):
        Communicator(program, 7)
    with pytest.raises(TypeError, match="takes the Program of a trainer, not str"):
        Communicator("main", SYNC)


def test_a_communicator_for_a_program_with_its_own_sends_is_refused(fluid):
    with pytest.raises(ValueError, match="E-communicator-program"):
        fluid.communicator.Communicator(transpiled(fluid), fluid.communicator.DistributedMode.SYNC)


def test_a_second_communicator_is_refused_while_one_runs(fluid):
    program = transpiled(fluid, **BY_COMMUNICATOR)
    mode = fluid.communicator.DistributedMode.SYNC
    first, second = (fluid.communicator.Communicator(program, mode, envs={}) for _ in range(2))
    second.stop()  # has no effect
    first.start()
    try:
        with pytest.raises(RuntimeError, match="E-communicator-running"):
            second.start()
        assert (first.is_running(), second.is_running()) == (True, False)
    finally:
        first.stop()
    assert first.is_running() is False
