"""Two programs in one job, in turns on one set of pservers: a GAN's discriminator and generator. What cannot be one
job is refused with E-plan-programs."""

import textwrap

import numpy as np
import penstock
import pytest
from penstock._src.io import pserver_held as _pserver_held
from penstock._src.io import pserver_values as _pserver_values
from test_jobs import Job

NET = textwrap.dedent("""
    import os
    import numpy as np
    import penstock.fluid as fluid

    L = fluid.layers
    d_program, g_program = fluid.Program(), fluid.Program()
    d_startup = fluid.default_startup_program()
    g_startup = fluid.Program() if 'TWO_STARTUPS' in os.environ else d_startup
    for each in (d_program, g_program, d_startup, g_startup):
        each.random_seed = 3

    def generated(z):
        hidden = L.batch_norm(L.fc(z, 2400, act='tanh', param_attr='g_wide', bias_attr='g_b'), param_attr='g_scale',
                              bias_attr='g_shift', moving_mean_name='g_mean', moving_variance_name='g_var')
        return L.fc(hidden, 6, param_attr='g_last', bias_attr=False)

    def judged(x):
        hidden = L.fc(x, 3000, act='tanh', param_attr='d_wide', bias_attr='d_b')
        return L.fc(hidden, 1, param_attr='d_last', bias_attr=False)

    def optimizer():
        kind = os.environ.get('OPTIMIZER', 'sgd')
        if kind == 'decayed':
            return fluid.optimizer.Momentum(L.exponential_decay(0.1, 2, 0.5), 0.9)
        return fluid.optimizer.Adam(0.01) if kind == 'adam' else fluid.optimizer.SGD(0.1)

    def build(d_names=None, g_names=('g_wide', 'g_b', 'g_scale', 'g_shift', 'g_last')):
        with fluid.program_guard(d_program, d_startup):
            real, z = fluid.data('real', [None, 6]), fluid.data('z', [None, 4])
            fake = generated(z)
            fake.stop_gradient = True
            d_loss = L.mean(L.square(judged(real) - 1.0)) + L.mean(L.square(judged(fake)))
            optimizer().minimize(d_loss, parameter_list=d_names)
        with fluid.program_guard(g_program, g_startup):
            z = fluid.data('z', [None, 4])
            fake = generated(z)
            g_loss = L.mean(L.square(judged(fake) - 1.0))
            optimizer().minimize(g_loss, parameter_list=g_names and list(g_names))
        return d_loss, g_loss
""")

JOB = textwrap.dedent("""
    import sys

    role, index, out, steps = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
    trainers = 1 if role == 'local' else int(os.environ['TRAINERS'])
    d_loss, g_loss = build()
    if 'COPY' in os.environ:    # the generator's copy from before training, as a target network has it
        for program in (g_program, d_startup):
            program.global_block().create_var(name='g_copy', shape=[2400, 6], dtype='float32', persistable=True)
        d_startup.global_block().append_op('assign', {'X': ['g_last']}, {'Out': ['g_copy']})
        with fluid.program_guard(g_program, d_startup):
            L.mean(g_program.global_block().var('g_copy'))
    exe = fluid.Executor(fluid.CPUPlace())

    def feed(step, names):
        random, rows = np.random.RandomState(step), 8 - 2 * (step % 3) if 'BATCHES' in os.environ else 8
        whole = {'real': random.rand(rows, 6).astype('float32') + 1, 'z': random.rand(rows, 4).astype('float32')}
        part = slice(index * rows // trainers, (index + 1) * rows // trainers)
        return {name: whole[name][part] for name in names}

    names = sorted({p.name for one in (d_program, g_program) for p in one.all_parameters()})
    names += ['g_copy'] if 'COPY' in os.environ else []
    startups = list(dict.fromkeys([d_startup, g_startup]))
    if role != 'local':
        config = fluid.DistributeTranspilerConfig()
        sync = os.environ.get('MODE', 'sync') == 'sync'
        t_d, t_g = fluid.DistributeTranspiler(config), fluid.DistributeTranspiler(config)
        for t, program, startup in ((t_d, d_program, d_startup), (t_g, g_program, g_startup)):
            beside = {'beside': t_d} if t is t_g and 'TWO_STARTUPS' in os.environ else {}
            t.transpile(index if role == 'trainer' else 0, program=program, pservers=os.environ['ENDPOINTS'],
                        trainers=trainers, startup_program=startup, sync_mode=sync, **beside)
        if role == 'pserver':
            endpoint = os.environ['ENDPOINTS'].split(',')[index]
            main, startup = (t_d if 'SERVE_FIRST' in os.environ else t_g).get_pserver_programs(endpoint)
            exe.run(startup)
            if 'LOAD' in os.environ:
                fluid.io.load_persistables(exe, os.environ['LOAD'], main)
            exe.run(main)
            if 'SERVE_FIRST' in os.environ:    # the job has ended
                assert exe.run(t_g.get_pserver_program(endpoint)) == []
            sys.exit(0)
        d_program, g_program = t_d.get_trainer_program(), t_g.get_trainer_program()
    for startup in startups:
        exe.run(startup)
    scope = fluid.global_scope()

    def values():
        return {name: np.array(scope.find_var(name).get_tensor()) for name in names}

    if role == 'local' and 'LOAD' in os.environ:
        for one in (d_program, g_program):
            fluid.io.load_persistables(exe, os.environ['LOAD'].replace('trainer', 'local'), one)
    if role == 'trainer' and 'LOAD' in os.environ:
        for one in (d_program, g_program):
            fluid.io.load_params(exe, os.environ['LOAD'], one)
    start = {'start:' + name: value for name, value in values().items()}
    if 'SET' in os.environ:
        for name in names:
            if name not in ('g_mean', 'g_var'):
                tensor = scope.find_var(name).get_tensor()
                tensor.set(np.array(tensor) * 0.5, None)
    turns = [(d_program, d_loss, ('real', 'z')), (g_program, g_loss, ('z',))]
    if os.environ.get('SWAPS') == role + str(index):
        turns.reverse()
    losses = []
    for step in range(steps):
        for program, loss, fed in turns:
            losses.append(exe.run(program, feed=feed(step, fed), fetch_list=[loss])[0][0])
    np.savez(os.path.join(out, role + str(index)), losses=losses, **start, **values())
    if 'SAVE' in os.environ and index == 0:
        for one in (d_program, g_program):
            fluid.io.save_persistables(exe, os.path.join(out, 'saved_' + role), one)
    exe.close()
""")


def run(folder, trainers=2, alone=True, **environment):
    """Returns (what each trainer saved, what one machine saved)."""
    job = Job(folder, NET + JOB)
    job.environment.update(environment)
    try:
        saved = job.train(trainers)
        job.processes.clear()
        if alone:
            job.start("local", 0)
            job.wait_well()
    finally:
        job.kill_all()
    return saved, dict(np.load(folder / "local0.npz")) if alone else {}


def require_equal(saved, local, rtol=1e-4, atol=2e-6):
    np.testing.assert_allclose(np.mean([one["losses"] for one in saved], axis=0), local["losses"], rtol=rtol)
    for name, value in local.items():
        if name in ("losses", "g_mean", "g_var") or name not in saved[0]:
            continue
        for one in saved:
            np.testing.assert_allclose(one[name], value, rtol=rtol, atol=atol, err_msg=name)


@pytest.mark.parametrize("optimizer", ["sgd", "adam", "decayed"])
def test_two_programs_train_as_on_one_machine(tmp_path, optimizer):
    saved, local = run(tmp_path, trainers=1, OPTIMIZER=optimizer)
    require_equal(saved, local)


@pytest.mark.parametrize("optimizer", ["sgd", "adam", "decayed"])
def test_two_trainers_of_two_programs_receive_equal_parameters(tmp_path, optimizer):
    saved, _ = run(tmp_path, OPTIMIZER=optimizer, alone=False)
    for name in set(saved[0]) - {"losses", "g_mean", "g_var"}:
        np.testing.assert_array_equal(saved[0][name], saved[1][name], err_msg=name)


@pytest.mark.parametrize("environment", [{"TWO_STARTUPS": "1"}, {"SERVE_FIRST": "1"}, {"SET": "1"}, {"COPY": "1"}])
def test_startup_programs_and_manual_values_are_sent(tmp_path, environment):
    """Each program has a startup program; the pserver runs the program of the first transpiler; values that are set
    before the first step go to the pservers, for both programs."""
    saved, local = run(tmp_path, trainers=1, OPTIMIZER="adam", **environment)
    require_equal(saved, local)
    if "COPY" in environment:
        np.testing.assert_array_equal(saved[0]["g_copy"], saved[0]["start:g_last"])


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_batches_of_several_sizes(tmp_path, mode):
    """A program declares its variables again for a new shape, after the other program has declared its own."""
    saved, local = run(tmp_path, trainers=1, BATCHES="1", MODE=mode)
    require_equal(saved, local)


def test_async_steps_of_one_trainer_are_as_on_one_machine(tmp_path):
    saved, local = run(tmp_path, trainers=1, MODE="async")
    require_equal(saved, local)


def test_both_programs_are_saved_and_continued(tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir(), second.mkdir()
    saved, local = run(first, trainers=1, OPTIMIZER="adam", SAVE="1", PENSTOCK_CHECKPOINT_DIR=str(first))
    require_equal(saved, local)
    for name in sorted(path.name for path in (first / "saved_local").iterdir()):
        if not name.startswith((".", "__", "learning_rate")):
            assert (first / "saved_trainer" / name).exists(), name
    saved, local = run(second, trainers=1, OPTIMIZER="adam", LOAD=str(first / "saved_trainer"))
    assert not np.array_equal(saved[0]["start:g_wide"], saved[0]["g_wide"])
    require_equal(saved, local)


def test_trainers_with_different_program_orders_are_refused(tmp_path):
    job = Job(tmp_path, NET + JOB)
    try:
        job.environment.update(TRAINERS="2", SWAPS="trainer1", PENSTOCK_REPORT_AFTER="0.2")
        job.start_all(trainers=2)
        results = job.wait()
    finally:
        job.kill_all()
    assert all(code != 0 for code, _, _ in results.values()), results
    # A pserver tells its trainers; a trainer may hear first from the other pserver that its peer has failed.
    errors = "".join(stderr for _, _, stderr in results.values())
    assert "E-plan-order" in errors, errors
    assert "trainer 0 waits in step 0 of the program that updates d_" in errors, errors
    assert "trainer 1 waits in step 0 of the program that updates g_" in errors, errors


FLEET = textwrap.dedent("""
    import sys
    from job_script import start_worker
    from penstock.fluid.incubate.fleet.base import role_maker
    from penstock.fluid.incubate.fleet.parameter_server.distribute_transpiler import fleet

    role, index, out, steps = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
    fleet.init(role_maker.UserDefinedRoleMaker(
        index, role_maker.Role.SERVER if role == 'pserver' else role_maker.Role.WORKER, int(os.environ['TRAINERS']),
        os.environ['ENDPOINTS'].split(',')))
    made = fluid.optimizer.Adam
    fluid.optimizer.Adam = lambda rate: fleet.distributed_optimizer(made(rate))
    d_loss, g_loss = build()
    exe = fluid.Executor(fluid.CPUPlace())
    start_worker(fleet, exe)
    names = sorted({p.name for one in (d_program, g_program) for p in one.all_parameters()})
    losses = []
    for step in range(steps):
        random = np.random.RandomState(step)
        fed = {'real': random.rand(8, 6).astype('float32') + 1, 'z': random.rand(8, 4).astype('float32')}
        losses.append(exe.run(d_program, feed=fed, fetch_list=[d_loss])[0][0])
        losses.append(exe.run(g_program, feed={'z': fed['z']}, fetch_list=[g_loss])[0][0])
    values = {name: np.array(fluid.global_scope().find_var(name).get_tensor()) for name in names}
    np.savez(os.path.join(out, role + str(index)), losses=losses, **values)
    fleet.stop_worker()
""")


def test_fleet_makes_one_job_of_two_minimize(tmp_path):
    job = Job(tmp_path, NET + FLEET)
    alone = tmp_path / "alone"
    alone.mkdir()
    try:
        saved = job.train(2, OPTIMIZER="adam")
    finally:
        job.kill_all()
    local = Job(alone, NET + JOB)
    try:
        local.start("local", 0, OPTIMIZER="adam")
        local.wait_well()
    finally:
        local.kill_all()
    require_equal(saved, dict(np.load(alone / "local0.npz")))


@pytest.fixture
def net(fluid):
    names = {}
    exec(compile(NET, "net", "exec"), names)
    return names


def ops(program):
    return [op.type for op in program.global_block().ops]


def transpiled(fluid, net, **settings):
    made = []
    for program in (net["d_program"], net["g_program"]):
        made.append(fluid.DistributeTranspiler())
        made[-1].transpile(
            0, program=program, pservers="a:1,b:1", trainers=2, startup_program=net["d_startup"], **settings
        )
    return made


def test_the_startup_program_starts_each_variable_once(fluid, net):
    net["build"]()
    t_d, t_g = transpiled(fluid, net)
    started = [
        name
        for program in (net["d_startup"], *net["d_startup"]._then)
        for op in program.global_block().ops
        if op.type in ("recv", "concat", "fill_constant", "uniform_random")
        for name in op.output_arg_names
    ]
    assert started.count("d_last") == started.count("g_last") == 2, "the initializer and the recv"
    assert started.count("g_mean") == 2, "running statistics come from trainer 0, once for both programs"
    main, startup = t_d.get_pserver_programs("a:1")
    assert len(main._served_with) == len(startup._then) == 1
    assert t_g.get_trainer_program() is net["g_program"] and "send" in ops(net["g_program"])


def test_a_program_of_tables_alone_is_loaded_with_the_other(fluid, tmp_path):
    dense, rows, made = fluid.Program(), fluid.Program(), []
    with fluid.program_guard(dense):
        fluid.optimizer.SGD(0.1).minimize(fluid.layers.mean(fluid.layers.fc(fluid.data("x", [None, 4]), 1)))
    with fluid.program_guard(rows):
        word = fluid.layers.embedding(
            fluid.data("words", [None, 1], "int64"), [40, 2], is_sparse=True, is_distributed=True, param_attr="table"
        )
        fluid.optimizer.SGD(0.1).minimize(fluid.layers.mean(word))
    for program in (dense, rows):
        made.append(fluid.DistributeTranspiler())
        made[-1].transpile(0, program=program, pservers="a:1", trainers=1)
    main = made[0].get_pserver_program("a:1")
    folder = tmp_path / "__lookup_table__"
    folder.mkdir()
    assert len(main._served_with) == 1
    assert _pserver_held.programs_in(main, _pserver_values.is_in_folder(str(tmp_path))) == [main]
    (folder / "table_0").write_bytes(b"")
    assert _pserver_held.programs_in(main, _pserver_values.is_in_folder(str(tmp_path))) == [main, *main._served_with]


def test_a_program_may_be_built_after_the_other_was_transpiled(fluid, net):
    net["build"]()
    before = net["d_startup"].desc.copy()
    t_d, t_g = transpiled(fluid, net)
    with fluid.program_guard(fluid.Program(), net["d_startup"]):
        loss = fluid.layers.mean(fluid.layers.fc(fluid.data("x", [None, 4]), 1))
        fluid.optimizer.SGD(0.1).minimize(loss)
        third = fluid.DistributeTranspiler()
        third.transpile(0, pservers="a:1,b:1", trainers=2, startup_program=net["d_startup"])
    assert third._together == [t_d, t_g, third]
    assert len(third.source_startup.global_block().ops) == len(fluid.Program._of(before).global_block().ops) + 3


def test_alternative_programs_are_separate_jobs(fluid, net):
    net["build"]()
    copies = [net["d_program"].clone(), net["d_program"].clone()]
    made = []
    for copy in copies:
        made.append(fluid.DistributeTranspiler())
        made[-1].transpile(0, program=copy, pservers="a:1,b:1", trainers=2, startup_program=net["d_startup"])
    assert [len(one._together) for one in made] == [1, 1]
    assert not net["d_startup"]._then


@pytest.mark.parametrize(
    "settings, said",
    [
        ({"g_names": None}, "d_b is updated by two programs of one job"),
        ({"sync_mode": False, "split": True}, "not in mode async_runtime_split"),
        ({"trainers": 3}, "a program of the job has 3 trainers, the first one has 2"),
    ],
)
def test_incompatible_programs_are_refused(fluid, net, settings, said):
    net["build"](g_names=settings.get("g_names", ("g_wide", "g_b")))
    config = fluid.DistributeTranspilerConfig()
    config.runtime_split_send_recv = "split" in settings
    first, second = fluid.DistributeTranspiler(config), fluid.DistributeTranspiler(config)
    sync = settings.get("sync_mode", True)
    first.transpile(0, program=net["d_program"], pservers="a:1,b:1", trainers=2, sync_mode=sync)
    with pytest.raises(penstock.ProgramError, match=said) as error:
        second.transpile(
            0,
            program=net["g_program"],
            pservers="a:1,b:1",
            trainers=settings.get("trainers", 2),
            sync_mode=sync,
            beside=first,
        )
    assert error.value.id == "E-plan-programs"


def test_a_shared_schedule_needs_both_programs_on_every_pserver(fluid, net, monkeypatch):
    monkeypatch.setenv("OPTIMIZER", "decayed")
    net["build"](d_names=["d_b"])
    with pytest.raises(penstock.ProgramError, match="pserver b:1 has parameters of only some of them") as error:
        transpiled(fluid, net)
    assert error.value.id == "E-plan-programs"


def test_native_transpile_accepts_several_programs(fluid, net):
    net["build"]()
    programs = [net["d_program"], net["g_program"]]
    d, g = penstock.transpile(programs, net["d_startup"], "a:1,b:1", trainers=2)
    assert "fill_constant" not in ops(g.trainers[0].startup) and "recv" in ops(g.trainers[0].startup)
    assert "uniform_random" in ops(d.trainers[0].startup)
    alone = penstock.transpile(net["g_program"], net["d_startup"], "a:1,b:1", trainers=2)
    assert ops(alone.pservers["a:1"].main) != [] and alone.plan != g.plan, "the discriminator is no start value"
    with pytest.raises(ValueError, match="a startup program for all main programs, or one for each, not 3 for 2"):
        penstock.transpile(programs, [net["d_startup"]] * 3, "a:1,b:1")
    with pytest.raises(TypeError, match="startup must be a Program, as main is, not list"):
        penstock.transpile(programs[0], [net["d_startup"]], "a:1,b:1")


def test_only_programs_of_one_pserver_are_served_together(fluid, net):
    net["build"]()
    d, g = penstock.transpile([net["d_program"], net["g_program"]], net["d_startup"], "a:1,b:1", trainers=2)
    exe = fluid.Executor(fluid.CPUPlace())
    with pytest.raises(penstock.ProgramError, match="programs of pserver a:1 and of b:1") as error:
        exe.run([d.pservers["a:1"].main, g.pservers["b:1"].main])
    assert error.value.id == "E-server-programs"
    with pytest.raises(penstock.ProgramError, match="is not a pserver's"):
        exe.run([d.pservers["a:1"].main, net["g_program"]])
    with pytest.raises(TypeError, match="a list of the Programs of a pserver"):
        exe.run([d.pservers["a:1"].main, "main"])
    with pytest.raises(penstock.ProgramError, match="the list of programs to be served is empty"):
        exe.run([])
    with pytest.raises(penstock.ProgramError, match="take no feed and no fetch_list"):
        exe.run([d.pservers["a:1"].main], feed={"x": np.ones(1)})
    other = penstock.transpile(net["g_program"], net["d_startup"], "a:1,b:1", trainers=3)
    with pytest.raises(penstock.ProgramError, match="programs for 2 and for 3 trainers are not of one job"):
        exe.run([d.pservers["a:1"].main, other.pservers["a:1"].main])
