"""DistributeTranspiler: Fluid's interface to a pure function."""

import itertools
import json

import numpy
import penstock
import pytest

PSERVERS = "10.0.0.1:6174,10.0.0.2:6174"


def net(fluid, optimizer=None):
    x = fluid.data("x", [None, 100])
    y = fluid.data("y", [None, 1])
    hidden = fluid.layers.fc(x, 200, act="relu")
    loss = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(hidden, 1), y))
    (optimizer or fluid.optimizer.SGD(0.01)).minimize(loss)
    return loss


def transpiled(fluid, **arguments):
    t = fluid.DistributeTranspiler()
    t.transpile(0, pservers=PSERVERS, trainers=2, **arguments)
    return t


def types(program):
    return [op.type for op in program.global_block().ops]


def test_program_handles_refer_to_the_trainer_programs(fluid):
    loss = net(fluid)
    main, startup = fluid.default_main_program(), fluid.default_startup_program()
    before = main.clone()
    t = transpiled(fluid)
    assert "recv" in types(startup), "scripts run the startup handle after transpile()"
    assert types(main) == types(before), "the main handle changes with get_trainer_program()"
    trainer = t.get_trainer_program()
    assert trainer is main
    assert "sgd" not in types(main) and "send_barrier" in types(main)
    assert main.global_block().var(loss.name) is loss
    assert t.source_main.desc.serialize_to_string() == before.desc.serialize_to_string()
    assert "recv" not in types(t.source_startup)


def test_an_op_that_the_transpiler_removed_raises(fluid):
    net(fluid)
    sgd = fluid.default_main_program().global_block().ops[-1]
    transpiled(fluid).get_trainer_program()
    with pytest.raises(penstock.StateError, match="no longer"):
        sgd.type


def test_getters_may_be_called_repeatedly_in_any_order(fluid):
    net(fluid)
    t = transpiled(fluid)
    endpoint = PSERVERS.split(",")[1]
    first = t.get_pserver_program(endpoint).desc.serialize_to_string()
    startup = t.get_startup_program(endpoint, None).desc.serialize_to_string()
    trainer = t.get_trainer_program().desc.serialize_to_string()
    assert t.get_trainer_program().desc.serialize_to_string() == trainer
    main, start = t.get_pserver_programs(endpoint)
    assert main.desc.serialize_to_string() == first and start.desc.serialize_to_string() == startup
    assert types(main) == ["listen_and_serv"]


def test_each_order_of_getters_and_transpiles_gives_the_same_bytes(fluid):
    net(fluid)
    endpoint = PSERVERS.split(",")[0]
    t = fluid.DistributeTranspiler()
    calls = {
        "transpile": lambda: t.transpile(0, pservers=PSERVERS, trainers=2),
        "trainer": lambda: t.get_trainer_program(),
        "pserver": lambda: t.get_pserver_program(endpoint),
        "startup": lambda: t.get_startup_program(endpoint, None),
    }
    made = {name: set() for name in calls}
    for order in itertools.permutations(calls):
        for name in ("transpile",) + order:
            program = calls[name]()
            made[name].add(fluid.default_startup_program().desc.serialize_to_string())
            if program is not None:
                made[name].add(program.desc.serialize_to_string())
    assert {name: len(bytes) for name, bytes in made.items()} == dict(transpile=1, trainer=2, pserver=2, startup=2)


def test_a_second_transpile_starts_from_the_snapshot(fluid):
    net(fluid)
    first = transpiled(fluid)
    programs_of_first = first.get_trainer_program().desc.serialize_to_string()
    again = transpiled(fluid)
    assert again.get_trainer_program().desc.serialize_to_string() == programs_of_first
    assert again.plan == first.plan


def test_the_native_call_changes_nothing_and_gives_all_roles(fluid):
    net(fluid)
    main, startup = fluid.default_main_program(), fluid.default_startup_program()
    before = main.desc.serialize_to_string(), startup.desc.serialize_to_string()
    roles = penstock.transpile(main, startup, PSERVERS, trainers=2)
    assert (main.desc.serialize_to_string(), startup.desc.serialize_to_string()) == before
    assert sorted(roles.trainers) == [0, 1] and list(roles.pservers) == PSERVERS.split(",")
    assert "rows [0, 50) on pserver" in roles.plan
    t = transpiled(fluid)
    trainer = roles.trainers[0].main.desc.serialize_to_string()
    assert t.get_trainer_program().desc.serialize_to_string() == trainer


@pytest.mark.parametrize(
    "arguments, says",
    [
        (dict(pservers="a:1,a:1"), '"a:1" is listed twice'),
        (dict(trainer_id=7), "trainer_id 7 is out of range; there are 2 trainers"),
        (dict(pservers=""), "pserver"),
    ],
)
def test_a_wrong_configuration_is_reported(fluid, arguments, says):
    net(fluid)
    arguments = dict(dict(trainer_id=0, pservers=PSERVERS, trainers=2), **arguments)
    before = fluid.default_startup_program().desc.serialize_to_string()
    with pytest.raises(penstock.ProgramError) as error:
        fluid.DistributeTranspiler().transpile(**arguments)
    assert says in str(error.value)
    assert fluid.default_startup_program().desc.serialize_to_string() == before


def test_the_argument_and_the_config_cannot_disagree_silently(fluid):
    net(fluid)
    config = fluid.DistributeTranspilerConfig()
    config.sync_mode = True
    with pytest.raises(penstock.ProgramError, match="sync_mode"):
        fluid.DistributeTranspiler(config).transpile(0, pservers=PSERVERS, trainers=2, sync_mode=False)
    with pytest.raises(ValueError):
        config.runtime_split_send_recv = True


def test_a_listed_start_value_is_cut_with_its_parameter(fluid):
    values = numpy.arange(35 * 7, dtype="float32").reshape(35, 7)
    initializer = fluid.initializer.NumpyArrayInitializer(values)
    x = fluid.data("x", [None, 35])
    hidden = fluid.layers.fc(x, 7, param_attr=fluid.ParamAttr("w", initializer=initializer), bias_attr=False)
    fluid.optimizer.Momentum(0.01, 0.9).minimize(fluid.layers.mean(hidden))
    main, startup = fluid.default_main_program(), fluid.default_startup_program()
    for count in (1, 2, 7):
        roles = penstock.transpile(
            main, startup, [f"10.0.0.1:{port}" for port in range(1, count + 1)], trainers=2, min_block_size=7
        )
        rows = {}
        for role in roles.pservers.values():
            with fluid.scope_guard(fluid.Scope()):
                fluid.Executor(fluid.CPUPlace()).run(role.startup)
                for name in role.main.global_block().vars:
                    if name.split(".block")[0] == "w":
                        rows[name] = numpy.array(fluid.global_scope().find_var(name).get_tensor())
        assert len(rows) == count
        slices = sorted(rows, key=lambda name: int(name.partition(".block")[2] or 0))
        assert numpy.array_equal(numpy.concatenate([rows[name] for name in slices]), values)


def asynchronous(fluid, **fields):
    config = fluid.DistributeTranspilerConfig()
    for field, value in fields.items():
        setattr(config, field, value)
    t = fluid.DistributeTranspiler(config)
    t.transpile(1, pservers=PSERVERS, trainers=2, sync_mode=False)
    return t


def serve(t):
    return t.get_pserver_program(PSERVERS.split(",")[0]).global_block().ops[-1]


def test_sync_mode_false_reaches_the_pservers(fluid):
    net(fluid)
    t = asynchronous(fluid)
    assert serve(t).attr("distributed_mode") == 2
    program = t.get_pserver_program(PSERVERS.split(",")[0])
    assert [op.type for op in program.blocks[1].ops] == ["sgd"], "each gradient is applied as it arrives"
    ops = types(t.get_trainer_program())
    assert "recv" in ops and "send_barrier" not in ops and "fetch_barrier" not in ops


def test_config_fields_select_the_asynchronous_mode(fluid):
    net(fluid)
    assert asynchronous(fluid, runtime_split_send_recv=True).plan.startswith('plan {mode="async_runtime_split"')
    half = asynchronous(fluid, sync_mode=False, runtime_split_send_recv=True, half_async=True)
    assert serve(half).attr("distributed_mode") == 1
    assert "split_byref" not in types(half.get_trainer_program())
    merged = asynchronous(fluid, sync_mode=False, runtime_split_send_recv=True, completely_not_async=True)
    assert serve(merged).attr("distributed_mode") == 0
    assert [name.endswith(".trainer_1") for name in serve(merged).input("X")][:2] == [False, True]


def test_the_dc_asgd_lambda_is_a_config_field(fluid):
    net(fluid)
    t = asynchronous(fluid, enable_dc_asgd=True, dc_asgd_lambda=0.25)
    main, startup = t.get_pserver_programs(PSERVERS.split(",")[0])
    update = {op.type: op for op in main.blocks[1].ops}
    assert main.global_block().ops[-1].attr("dc_asgd")
    assert update["scale"].attr("scale") == 0.25
    assert update["sgd"].input("Grad") == update["elementwise_add"].output("Out")
    assert types(startup).count("assign") == 2 * len(main.blocks[1:])
    for value in ("much", float("nan")):
        with pytest.raises(penstock.ProgramError, match="dc_asgd_lambda"):
            asynchronous(fluid, enable_dc_asgd=True, dc_asgd_lambda=value)


def test_native_transpile_accepts_the_same_settings(fluid):
    net(fluid)
    main, startup = fluid.default_main_program(), fluid.default_startup_program()
    roles = penstock.transpile(main, startup, PSERVERS, trainers=2, sync=False, dc_asgd=True, dc_asgd_lambda=0.5)
    assert 'mode="dc_asgd"' in roles.plan and "dc_asgd_lambda=0.5" in roles.plan
    with pytest.raises(penstock.ProgramError, match="sync_mode"):
        penstock.transpile(main, startup, PSERVERS, trainers=2, half_async=True)


def test_an_unknown_pserver_and_a_getter_too_early_are_errors(fluid):
    net(fluid)
    with pytest.raises(penstock.StateError, match="transpile"):
        fluid.DistributeTranspiler().get_trainer_program()
    with pytest.raises(penstock.ProgramError, match="10.0.0.3:6174"):
        transpiled(fluid).get_pserver_program("10.0.0.3:6174")


def test_role_programs_of_a_python_network_equal_fluids(fluids, fluid):
    """The corpus's lenet case, from Python layers to role programs, in the compatible dialect."""
    import programs
    import test_programs

    folder = fluids("cases", "lenet.momentum@sync_p2t2")
    case = json.loads((folder / "case.json").read_text())
    main, startup = fluid.default_main_program(), fluid.default_startup_program()
    main.random_seed = startup.random_seed = 1
    fluid.optimizer.Momentum(0.01, 0.9).minimize(test_programs.lenet(fluid))
    roles = penstock.transpile(
        main,
        startup,
        case["pserver_endpoints"],
        trainers=2,
        compat="fluid-1.8",
        min_block_size=case["config"]["min_block_size"],
    )
    for number, role in enumerate(roles.pservers.values()):
        ours = programs.of(role.main)
        expected = programs.read_file(folder / (f"pserver_{number}.pb"))
        for block in range(1, len(expected["blocks"])):
            assert programs.canonical_ops(ours, block) == programs.canonical_ops(expected, block)


def condition(L, x):
    hidden = L.fc(x, 4)
    less = L.less_than(L.reduce_mean(x), L.fill_constant([1], "float32", 0.0))
    return L.cond(less, lambda: L.fc(hidden, 1), lambda: L.fc(hidden, 1, act="tanh"))


def condition_in_a_condition(L, x):
    less = L.less_than(L.reduce_mean(x), L.fill_constant([1], "float32", 0.0))
    return L.cond(
        less,
        lambda: L.cond(less, lambda: L.fc(x, 1), lambda: L.fc(x, 1, act="tanh")),
        lambda: L.reduce_sum(x, 1, keep_dim=True),
    )


def loop(L, x):
    i, rounds = L.fill_constant([1], "int64", 0), L.fill_constant([1], "int64", 3)
    states = L.array_write(x, i)
    more = L.less_than(i, rounds)
    with L.While(more).block():
        state = L.fc(L.array_read(states, i), 100, act="tanh")
        L.increment(i)
        L.array_write(state, i, states)
        L.less_than(i, rounds, cond=more)
    return L.reduce_mean(L.array_read(states, i), 1, keep_dim=True)


def recurrence(L, x):
    rnn = L.DynamicRNN()
    with rnn.block():
        word, before = rnn.step_input(x), rnn.memory(shape=[3])
        state = L.fc([word, before], 3, act="tanh")
        rnn.update_memory(before, state)
        rnn.output(state)
    return L.fc(L.sequence_last_step(rnn()), 1)


@pytest.mark.parametrize("net_with_blocks", [condition, condition_in_a_condition, loop, recurrence])
@pytest.mark.parametrize("min_block_size", [8192, 100])
def test_parameters_that_blocks_use_are_trained_by_the_pservers(fluid, net_with_blocks, min_block_size):
    x = fluid.data("x", [None, 100], lod_level=1 if net_with_blocks is recurrence else 0)
    y = fluid.data("y", [None, 1])
    loss = fluid.layers.mean(fluid.layers.square_error_cost(net_with_blocks(fluid.layers, x), y))
    fluid.optimizer.SGD(0.01).minimize(loss)
    t = fluid.DistributeTranspiler()
    t.config.min_block_size = min_block_size
    t.transpile(0, pservers=PSERVERS, trainers=2)
    served = [
        op
        for server in PSERVERS.split(",")
        for block in t.get_pserver_program(server).blocks
        for op in block.ops
        if op.type == "sgd"
    ]
    params = fluid.default_main_program().all_parameters()
    assert len(served) >= len(params) > 0


@pytest.mark.parametrize("act", [None, "relu", "tanh"])
def test_pservers_train_parameters_reshaped_in_place(fluid, act):
    """One name with two shapes, of which the second is declared, as in Fluid's Transformer."""
    x = fluid.data("x", [None, 4, 6])
    hidden = fluid.layers.fc(x, 8, num_flatten_dims=2, act=act)
    output = fluid.layers.fc(fluid.layers.reshape(hidden, [-1, 32], inplace=True), 1)
    fluid.optimizer.SGD(0.1).minimize(fluid.layers.mean(output))
    one_machine = [op.type for op in fluid.default_main_program().global_block().ops if op.type != "sgd"]
    t = fluid.DistributeTranspiler()
    t.transpile(0, pservers="127.0.0.1:1,127.0.0.1:2", trainers=2)
    trainers = [op.type for op in t.get_trainer_program().global_block().ops]
    assert [op for op in trainers if op in one_machine] == one_machine
    assert "reshape2_grad" in trainers and trainers.count("send") == 4


def test_ops_after_the_updates_stay_on_the_trainers(fluid):
    """It reads the updated parameters, as on one machine."""
    net(fluid)
    x = fluid.default_main_program().global_block().var("x")
    again = fluid.layers.fc(x, 200, param_attr="fc_0.w_0", bias_attr=False)
    total = fluid.layers.create_global_var([1], 0.0, "float32", persistable=True)
    fluid.layers.sums([total, fluid.layers.reduce_sum(again, keep_dim=False)], out=total)
    trainer = transpiled(fluid).get_trainer_program()
    assert types(trainer).index("recv") < types(trainer).index("reduce_sum")
