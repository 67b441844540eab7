"""Modes in which trainers update parameters: geo-SGD, and jobs without pservers."""

import json

import penstock
import pytest

RANKS = "10.0.0.1:6170,10.0.0.2:6170"
PSERVERS = ["127.0.0.1:6174", "127.0.0.1:6175"]


def net(fluid):
    x = fluid.data("x", [None, 13])
    y = fluid.data("y", [None, 1])
    loss = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(x, 1), y))
    fluid.optimizer.SGD(0.01).minimize(loss)
    return loss


def types(program):
    return [op.type for op in program.global_block().ops]


def config_of(fluid, mode, **fields):
    config = fluid.DistributeTranspilerConfig()
    config.mode = mode
    for name, value in fields.items():
        setattr(config, name, value)
    return config


def transpiled(fluid, config, rank=1, trainers=RANKS):
    t = fluid.DistributeTranspiler(config)
    t.transpile(rank, trainers=trainers, current_endpoint=RANKS.split(",")[rank])
    return t


def test_nccl2_changes_only_the_startup_program(fluid):
    net(fluid)
    main = fluid.default_main_program()
    before = types(main)
    t = transpiled(fluid, config_of(fluid, "nccl2", nccl_comm_num=2))
    startup = fluid.default_startup_program()
    assert types(startup)[-1] == "gen_nccl_id"
    op = startup.global_block().ops[-1]
    assert (op.attr("trainers"), op.attr("trainer_id"), op.attr("nccl_comm_num")) == (RANKS.split(","), 1, 2)
    assert {"NCCLID", "NCCLID_1"} <= set(startup.global_block().vars)
    assert types(t.get_trainer_program()) == before
    assert (main._trainers_endpoints, main._nccl_comm_num) == (RANKS.split(","), 2)
    assert (main._use_hierarchical_allreduce, main._hierarchical_allreduce_inter_nranks) == (False, 0)


def test_collective_changes_both_programs_in_place(fluid):
    loss = net(fluid)
    main, startup = fluid.default_main_program(), fluid.default_startup_program()
    t = transpiled(fluid, config_of(fluid, "collective", collective_mode="grad_allreduce"))
    assert types(main).count("c_allreduce_sum") == 2 and types(startup).count("c_broadcast") == 2
    assert main.global_block().var(loss.name) is loss
    assert "c_allreduce_sum" not in types(main._origin_program) and "c_broadcast" not in types(startup._origin_program)
    assert t.get_trainer_program() is main
    assert "reduce fc_0.w_0@GRAD : f32[13, 1] on ring 0" in t.plan


def test_a_second_transpile_starts_from_the_snapshot(fluid):
    net(fluid)
    config = config_of(fluid, "collective", collective_mode="local_sgd")
    once = transpiled(fluid, config).get_trainer_program().desc.serialize_to_string()
    assert transpiled(fluid, config).get_trainer_program().desc.serialize_to_string() == once


@pytest.mark.parametrize(
    "make, expected",
    [
        (
            lambda collective: collective.GradAllReduce(1),
            ["scale", "c_sync_calc_stream", "c_allreduce_sum", "c_sync_comm_stream"],
        ),
        (lambda collective: collective.LocalSGD(1), ["elementwise_sub", "assign", "c_allreduce_sum", "scale"]),
        (lambda collective: collective.LocalSGD(1, k_steps=4), ["increment", "elementwise_mod", "conditional_block"]),
        (
            lambda collective: collective.LocalSGD(1, k_steps=4, adaptive=True),
            ["increment", "equal", "conditional_block"],
        ),
        (lambda collective: collective.SingleProcessMultiThread(), ["scale", "c_allreduce_sum"]),
    ],
)
def test_each_collective_class_applies_its_mode(fluid, make, expected):
    net(fluid)
    startup, main = fluid.default_startup_program(), fluid.default_main_program()
    transpiler = make(fluid.transpiler.collective)
    transpiler.transpile(startup, main, 0, RANKS, RANKS.split(",")[0], wait_port=True)
    assert set(expected) <= set(types(main))
    assert (transpiler.nranks, transpiler.rank, transpiler.endpoints) == (2, 0, RANKS.split(","))
    devices = isinstance(transpiler, fluid.transpiler.collective.SingleProcessMultiThread)
    assert types(startup)[-1] == "c_comm_init_all" if devices else "c_comm_init" in types(startup)


def test_snapshots_have_fluids_names(fluid):
    assert fluid.transpiler.collective.LocalSGD().snapshot_name("w") == "w@SNAPSHOT"


@pytest.mark.parametrize(
    "mode, fields, arguments, says",
    [
        ("nccl2", {}, dict(trainers=2), "needs the address of each trainer, not their number"),
        ("nccl2", {}, dict(current_endpoint="a:1"), "is none of the trainers"),
        ("nccl2", {}, dict(current_endpoint="10.0.0.2:6170"), "is the address of trainer 1, and trainer_id is 0"),
        ("nccl2", {}, dict(trainer_id=-1), "trainer_id -1 is out of range"),
        ("nccl2", dict(use_hierarchical_allreduce=True), {}, "hierarchical_allreduce_inter_nranks of at least 2"),
        (
            "collective",
            dict(collective_mode="grad_allreduce"),
            dict(trainers="a:1", current_endpoint="a:1"),
            "at least 2 trainers",
        ),
        ("collective", {}, {}, "collective_mode must be one of"),
        (
            "collective",
            dict(collective_mode="grad_allreduce", local_sgd_k_steps=2),
            {},
            "needs collective_mode local_sgd",
        ),
        (
            "collective",
            dict(collective_mode="grad_allreduce"),
            dict(trainers=2.5),
            "mode collective needs the address of each trainer, comma-separated or in a list, not 2.5; give "
            "trainers='10.0.",
        ),
        (
            "nccl2",
            {},
            dict(trainers=None),
            "needs the address of each trainer, comma-separated or in a list, not None; ",
        ),
        ("pserver", {}, dict(), "trainers must be an integer"),
    ],
)
def test_an_invalid_job_is_reported_and_changes_nothing(fluid, mode, fields, arguments, says):
    net(fluid)
    before = fluid.default_startup_program().desc.serialize_to_string()
    arguments = dict(dict(trainer_id=0, trainers=RANKS, current_endpoint="10.0.0.1:6170"), **arguments)
    with pytest.raises(penstock.ProgramError) as error:
        fluid.DistributeTranspiler(config_of(fluid, mode, **fields)).transpile(**arguments)
    assert says in str(error.value)
    assert fluid.default_startup_program().desc.serialize_to_string() == before


def test_an_unknown_collective_mode_is_an_error(fluid):
    with pytest.raises(penstock.ProgramError, match="ring_allreduce"):
        fluid.DistributeTranspiler(config_of(fluid, "collective", collective_mode="ring_allreduce"))


def test_a_job_without_pservers_has_no_pserver_programs(fluid):
    net(fluid)
    t = transpiled(fluid, config_of(fluid, "nccl2"))
    with pytest.raises(penstock.ProgramError, match="there is no pserver a:1; the plan has none"):
        t.get_pserver_programs("a:1")


def test_the_native_call_changes_nothing_and_gives_all_ranks(fluid):
    net(fluid)
    main, startup = fluid.default_main_program(), fluid.default_startup_program()
    before = main.desc.serialize_to_string(), startup.desc.serialize_to_string()
    roles = penstock.transpile_ranks(main, startup, RANKS, exchange="local_sgd", k_steps=4)
    assert (main.desc.serialize_to_string(), startup.desc.serialize_to_string()) == before
    assert sorted(roles.trainers) == [0, 1] and roles.pservers == {}
    assert "average_every=4" in roles.plan and "conditional_block" in types(roles.trainers[1].main)
    assert types(penstock.transpile_ranks(main, startup, RANKS, "nccl2").trainers[0].startup)[-1] == "gen_nccl_id"
    adaptive = penstock.transpile_ranks(main, startup, RANKS, "local_sgd", k_steps=4, adaptive=True, on_uneven="pad")
    assert 'mode="local_sgd_adaptive"' in adaptive.plan and 'on_uneven="pad"' in adaptive.plan
    with pytest.raises(penstock.ProgramError, match="ring_allreduce"):
        penstock.transpile_ranks(main, startup, RANKS, "ring_allreduce")


def test_geo_variable_info_equals_fluids(fluids, fluid):
    net(fluid)
    main, startup = fluid.default_main_program(), fluid.default_startup_program()
    t = fluid.transpiler.GeoSgdTranspiler()
    t.transpile(0, pservers=",".join(PSERVERS), trainers=2)
    case = json.loads(fluids("cases", "fit_a_line.sgd@geo_p2t2", "case.json").read_text())
    assert t._get_vars_info() == case["python_side"]["geo_vars_info"]
    assert types(main)[-2:] == ["sgd", "send"] and types(startup)[-1] == "send"
    assert t.get_trainer_program() is main
    server, server_startup = t.get_pserver_programs(PSERVERS[1])
    assert server.global_block().ops[-1].attr("distributed_mode") == 3
    assert types(server_startup) == ["uniform_random"]
    assert main._is_distributed and main._is_chief and main._endpoints == PSERVERS
    assert not t.has_distributed_lookup_table
