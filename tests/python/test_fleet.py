"""fleet with parameter servers: strategies and their settings, programs, and rejected uses."""

import re

import pytest
from penstock.fluid.communicator import DistributedMode
from penstock.fluid.incubate.fleet.base import role_maker
from penstock.fluid.incubate.fleet.base.fleet_base import part_of
from penstock.fluid.incubate.fleet.parameter_server import distribute_transpiler
from penstock.fluid.incubate.fleet.parameter_server.distribute_transpiler import (
    AsyncStrategy,
    DistributedStrategy,
    GeoStrategy,
    HalfAsyncStrategy,
    ServerRuntimeConfig,
    StrategyFactory,
    SyncStrategy,
    TrainerRuntimeConfig,
)

SERVERS = ["10.0.0.1:6174", "10.0.0.2:6174"]
FACTORIES = {
    "sync": StrategyFactory.create_sync_strategy,
    "async": StrategyFactory.create_async_strategy,
    "half_async": StrategyFactory.create_half_async_strategy,
    "geo": lambda: StrategyFactory.create_geo_strategy(7),
}


@pytest.fixture
def fleet(monkeypatch):
    """A fleet that no other test has used."""
    made = distribute_transpiler.DistributedTranspiler()
    monkeypatch.setattr(distribute_transpiler, "fleet", made)
    return made


def network(fluid):
    words = fluid.data("words", [None, 1], "int64")
    word = fluid.layers.embedding(words, [5000, 16], is_sparse=True, param_attr=fluid.ParamAttr(name="table"))
    return fluid.layers.mean(fluid.layers.fc(word, 1))


def role(kind, index):
    return role_maker.UserDefinedRoleMaker(index, kind, 2, SERVERS)


def by_transpiler(fluid, name, kind):
    """(main, startup) program of server or trainer 1, as DistributeTranspiler makes them."""
    config = fluid.DistributeTranspilerConfig()
    config.sync_mode, config.runtime_split_send_recv = False, True
    config.half_async, config.completely_not_async = name in ("sync", "half_async"), name == "sync"
    config.geo_sgd_mode, config.geo_sgd_need_push_nums = name == "geo", 7
    t = fluid.transpiler.GeoSgdTranspiler(config) if name == "geo" else fluid.DistributeTranspiler(config)
    t.transpile(1, pservers=",".join(SERVERS), trainers=2, sync_mode=False)
    if kind == role_maker.Role.SERVER:
        return t.get_pserver_programs(SERVERS[1])
    return t.get_trainer_program(), fluid.default_startup_program()


@pytest.mark.parametrize("name", FACTORIES)
@pytest.mark.parametrize("kind", [role_maker.Role.WORKER, role_maker.Role.SERVER])
def test_fleet_programs_equal_the_transpilers(fluid, fleet, name, kind):
    texts = []
    for by_fleet in (True, False):
        with fluid.unique_name.guard(), fluid.program_guard(fluid.Program(), fluid.Program()):
            loss = network(fluid)
            optimizer = fluid.optimizer.Adam(0.1)
            if by_fleet:
                fleet.init(role(kind, 1))
                fleet.distributed_optimizer(optimizer, FACTORIES[name]()).minimize(loss)
                made = fleet.main_program, fleet.startup_program
            else:
                optimizer.minimize(loss)
                made = by_transpiler(fluid, name, kind)
            # Without lines of this file, and without the numbers of name scopes, which are those of the process.
            texts.append([re.sub(r' at ".*|_\d+(?=/)', "", program.to_string(True)).splitlines() for program in made])
    assert texts[0] == texts[1]


@pytest.mark.parametrize(
    "name, mode, kind",
    [
        ("sync", DistributedMode.SYNC, SyncStrategy),
        ("async", DistributedMode.ASYNC, AsyncStrategy),
        ("half_async", DistributedMode.HALF_ASYNC, HalfAsyncStrategy),
        ("geo", DistributedMode.GEO, GeoStrategy),
    ],
)
def test_a_strategy_equals_its_settings(name, mode, kind):
    strategy = FACTORIES[name]()
    config = strategy.get_program_config()
    assert type(strategy) is kind and strategy.get_trainer_runtime_config().mode == mode
    assert (config.sync_mode, config.runtime_split_send_recv) == (False, True)
    assert config.half_async is (name in ("sync", "half_async"))
    assert config.completely_not_async is (name == "sync")
    assert config.geo_sgd_mode is (name == "geo")
    assert config.geo_sgd_need_push_nums == (7 if name == "geo" else 100)
    assert strategy.get_build_strategy().async_mode is True
    assert strategy.get_execute_strategy().use_thread_barrier is (name in ("sync", "half_async"))
    assert strategy.get_debug_opt() == {}


@pytest.mark.parametrize(
    "fields, kind",
    [
        ({}, SyncStrategy),
        ({"sync_mode": False}, HalfAsyncStrategy),
        ({"sync_mode": False, "runtime_split_send_recv": True}, AsyncStrategy),
        ({"sync_mode": False, "runtime_split_send_recv": True, "half_async": True}, HalfAsyncStrategy),
        ({"sync_mode": False, "geo_sgd_mode": True, "geo_sgd_need_push_nums": 9}, GeoStrategy),
    ],
)
def test_a_transpiler_configuration_selects_a_strategy(fluid, fleet, fields, kind):
    config = fluid.DistributeTranspilerConfig()
    config.slice_var_up = False
    for name, value in fields.items():
        setattr(config, name, value)
    fleet.init(role(role_maker.Role.WORKER, 0))
    fleet.distributed_optimizer(fluid.optimizer.SGD(0.1), config).minimize(network(fluid))
    assert type(fleet._transpile_config) is kind
    assert fleet._transpile_config.get_program_config() is config and config.slice_var_up is False
    assert config.geo_sgd_need_push_nums == fields.get("geo_sgd_need_push_nums", 100)


def test_settings_are_read_from_the_environment(monkeypatch):
    monkeypatch.setenv("CPU_NUM", "3")
    monkeypatch.setenv("FLAGS_communicator_send_wait_times", "8")
    monkeypatch.setenv("FLAGS_rpc_get_thread_num", "4")
    config = TrainerRuntimeConfig()
    flags = config.get_communicator_flags()
    assert flags["communicator_send_queue_size"] == flags["communicator_max_merge_var_num"] == "3"
    assert flags["communicator_min_send_grad_num_before_recv"] == "3" and flags["communicator_send_wait_times"] == "8"
    assert len(flags) == 9 and "communicator_send_wait_times" in repr(config)
    assert ServerRuntimeConfig()._rpc_get_thread_num == 4 and ServerRuntimeConfig()._rpc_send_thread_num == 12
    config.mode = DistributedMode.GEO
    assert sorted(config.get_communicator_flags()) == ["communicator_send_wait_times", "communicator_thread_pool_size"]
    config.mode = 7
    with pytest.raises(ValueError, match="must be one of DistributedMode, not 7"):
        config.get_communicator_flags()


def test_settings_are_set_by_dicts(fluid):
    strategy = FACTORIES["sync"]()
    strategy.set_trainer_runtime_config({"communicator_send_queue_size": "5"})
    with pytest.warns(UserWarning, match="communicator_send_queue_size=5 has no effect"):
        assert strategy.get_trainer_runtime_config().get_communicator_flags()["communicator_send_queue_size"] == "1"
    strategy.set_program_config({"slice_var_up": False, "completely_not_async": False})
    assert strategy.get_program_config().completely_not_async is True, "a strategy stays what it is"
    strategy.set_server_runtime_config({"_rpc_send_thread_num": 3})
    strategy.set_build_strategy({"memory_optimize": True, "async_mode": False})
    strategy.set_execute_strategy(fluid.ExecutionStrategy())
    assert strategy.get_build_strategy().async_mode is True
    assert strategy.get_execute_strategy().use_thread_barrier is True
    for setter in (
        "set_program_config",
        "set_trainer_runtime_config",
        "set_server_runtime_config",
        "set_build_strategy",
        "set_execute_strategy",
    ):
        with pytest.raises(ValueError, match="doesn't have key: nothing"):
            getattr(strategy, setter)({"nothing": 1})
        with pytest.raises(TypeError, match="is required, not 5"):
            getattr(strategy, setter)(5)
    with pytest.raises(NotImplementedError, match="use StrategyFactory"):
        DistributedStrategy().set_program_config({})


def test_files_are_split_evenly(fleet):
    assert [part_of(list("abcde"), i, 2) for i in range(2)] == [list("abc"), list("de")]
    assert [part_of(["a", "b"], i, 3) for i in range(3)] == [["a"], ["b"], []]
    fleet.init(role(role_maker.Role.WORKER, 1))
    assert fleet.split_files(list("abc")) == ["c"]
    with pytest.raises(TypeError, match="takes a list of files"):
        fleet.split_files("abc")


def test_fleet_reports_the_role_of_a_process(fleet):
    fleet.init(role(role_maker.Role.WORKER, 1))
    assert (fleet.is_worker(), fleet.is_server(), fleet.is_first_worker()) == (True, False, False)
    assert (fleet.worker_index(), fleet.worker_num(), fleet.server_num()) == (1, 2, 2)
    assert fleet.server_endpoints() == SERVERS and fleet.server_endpoints(to_string=True) == ",".join(SERVERS)


def test_early_calls_and_wrong_types_are_refused(fluid, fleet):
    with pytest.raises(RuntimeError, match="fleet.init.role_maker. must be called first"):
        fleet.worker_index()
    with pytest.raises(ValueError, match="fleet.init.role_maker. must be called before distributed_optimizer"):
        fleet.distributed_optimizer(fluid.optimizer.SGD(0.1))
    with pytest.raises(TypeError, match="fleet.init takes a role maker, not 5"):
        fleet.init(5)
    fleet.init(role(role_maker.Role.WORKER, 0))
    with pytest.raises(ValueError, match="takes an optimizer, not 5"):
        fleet.distributed_optimizer(5)
    with pytest.raises(TypeError, match="strategy must be one of StrategyFactory"):
        fleet.distributed_optimizer(fluid.optimizer.SGD(0.1), "sync")
    for call in (fleet.init_worker, fleet.init_server, fleet.run_server):
        with pytest.raises(ValueError, match="minimize.loss. must be called first"):
            call()
    with pytest.raises(TypeError, match="takes one loss"):
        fleet.distributed_optimizer(fluid.optimizer.SGD(0.1)).minimize([network(fluid)])
    exe = fluid.Executor(fluid.CPUPlace())
    with pytest.raises(ValueError, match="the program is not a trainer's"):
        fleet.save_persistables(exe, "x", fluid.Program())
    with pytest.raises(TypeError, match="takes an Executor, not int"):
        fleet.save_persistables(5, "x")
    with pytest.raises(TypeError, match="takes a Program, not CompiledProgram"):
        fleet.save_persistables(exe, "x", fluid.CompiledProgram(fluid.Program()))


@pytest.mark.parametrize("name", FACTORIES)
@pytest.mark.parametrize("kind", [role_maker.Role.WORKER, role_maker.Role.SERVER])
def test_several_optimizers_minimize_before_the_program_is_transpiled(fluid, fleet, name, kind):
    x = fluid.data("x", [None, 4])
    loss = fluid.layers.mean(
        fluid.layers.fc(fluid.layers.fc(x, 3, param_attr="w", bias_attr=False), 1, param_attr="v", bias_attr=False)
    )
    fleet.init(role(kind, 1))
    strategy = FACTORIES[name]()
    fluid.optimizer.Momentum(0.1, 0.9).minimize(loss, parameter_list=["w"])
    fleet.distributed_optimizer(fluid.optimizer.SGD(0.1), strategy).minimize(loss, parameter_list=["v"])
    assert {one.origin.name for one in fleet.main_program._parameters_on_pservers.distributed_vars} == {"w", "v"}
    with pytest.raises(ValueError, match=r"an earlier minimize\(\) has transpiled this program   \[E-fleet-twice\]"):
        fleet.distributed_optimizer(fluid.optimizer.SGD(0.1), strategy).minimize(loss)


def test_pslib_is_refused_in_one_line():
    with pytest.raises(ImportError, match="distribute_transpiler has the same interface"):
        from penstock.fluid.incubate.fleet.parameter_server.pslib import fleet  # noqa: F401
