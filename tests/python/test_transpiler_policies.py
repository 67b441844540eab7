"""Settings of the transpiler that Fluid does not have: staleness, backup trainers, compression."""

import penstock
import pytest

PSERVERS = "10.0.0.1:6174,10.0.0.2:6174"


def network(fluid):
    x = fluid.data("x", [None, 64])
    loss = fluid.layers.mean(fluid.layers.fc(x, 256, param_attr="w", bias_attr="b"))
    fluid.optimizer.SGD(0.1).minimize(loss)


def transpiled(fluid, sync_mode=True, **fields):
    network(fluid)
    config = fluid.DistributeTranspilerConfig()
    for name, value in fields.items():
        setattr(config, name, value)
    t = fluid.DistributeTranspiler(config)
    t.transpile(1, pservers=PSERVERS, trainers=2, sync_mode=sync_mode)
    return t


def test_every_program_states_the_staleness(fluid):
    t = transpiled(fluid, sync_mode=False, staleness=3)
    programs = [t.get_trainer_program(), fluid.default_startup_program()]
    programs += [program for address in PSERVERS.split(",") for program in t.get_pserver_programs(address)]
    for program in programs:
        assert 'policies=["staleness", "3"]' in str(program)


def test_every_program_states_the_backup_trainers(fluid):
    t = transpiled(fluid, backup_trainers=1)
    assert 'policies=["backup_trainers", "1"]' in str(t.get_trainer_program())
    assert 'policies=["backup_trainers", "1"]' in str(t.get_pserver_program("10.0.0.2:6174"))


def test_both_sides_name_compressed_messages(fluid):
    t = transpiled(fluid, compression="two_bit 0.25 from 1000, b: none")
    trainer = str(t.get_trainer_program())
    assert "w@GRAD.block0.trainer_1: two_bit 0.25" in trainer or "w@GRAD.trainer_1: two_bit 0.25" in trainer
    assert "b@GRAD.trainer_1:" not in trainer
    servers = "".join(str(t.get_pserver_program(address)) for address in PSERVERS.split(","))
    assert "trainer_0: two_bit 0.25" in servers and "trainer_1: two_bit 0.25" in servers


def test_compression_residuals_are_persistent_trainer_state(fluid):
    t = transpiled(fluid, compression="top_k 0.01, b: fp16")
    program = t.get_trainer_program()
    residual = program.global_block().var("w@RESIDUAL")
    assert residual.persistable and residual.shape == (64, 256)
    assert not program.global_block().has_var("b@RESIDUAL")
    assert fluid.default_startup_program().global_block().var("w@RESIDUAL").persistable


def test_native_transpile_accepts_staleness_and_compression(fluid):
    network(fluid)
    programs = fluid.default_main_program(), fluid.default_startup_program()
    roles = penstock.transpile(*programs, pservers=PSERVERS, trainers=2, sync=False, staleness=0, compression="bf16")
    assert "staleness=0" in roles.plan and 'compression="bf16"' in roles.plan


def test_native_transpile_accepts_uneven_batches_clipping_and_statistics(fluid):
    network(fluid)
    programs = fluid.default_main_program(), fluid.default_startup_program()
    ranks = "10.0.1.1:6170,10.0.1.2:6170"
    roles = penstock.transpile(*programs, pservers=PSERVERS, trainers=ranks, on_uneven="join")
    assert 'on_uneven="join"' in roles.plan and 'policies=["on_uneven", "join"]' in str(roles.trainers[1].main)
    roles = penstock.transpile(*programs, PSERVERS, 2, bn_sync="average", clip="global")
    assert 'clip="global"' in roles.plan and '["bn_sync", "average"]' in str(roles.trainers[0].main)


def test_native_transpile_accepts_uneven_batches_with_an_exchange(fluid):
    ranks = "10.0.1.1:6170,10.0.1.2:6170"
    rows = fluid.layers.embedding(fluid.data("ids", [None, 1], "int64"), [50, 8], is_sparse=True)
    fluid.optimizer.SGD(0.1).minimize(fluid.layers.mean(fluid.layers.fc(rows, 4)))
    roles = penstock.transpile(
        fluid.default_main_program(),
        fluid.default_startup_program(),
        PSERVERS[:13],
        ranks,
        exchange={"dense": "allreduce"},
        on_uneven="pad",
    )
    assert 'mode="hybrid"' in roles.plan and 'on_uneven="pad"' in roles.plan


@pytest.mark.parametrize(
    "call, text",
    [
        (
            lambda *p: penstock.transpile(*p, PSERVERS, "a:1,b:1", on_uneven="wait"),
            "plan: on_uneven is 'wait'; it must be one of '', join, pad, error   [E-plan-on-uneven]",
        ),
        (
            lambda *p: penstock.transpile_ranks(*p, "a:1,b:1", on_uneven="wait"),
            "plan: on_uneven is 'wait'; it must be one of '', join, pad, error   [E-plan-on-uneven]",
        ),
        (
            lambda *p: penstock.transpile(*p, PSERVERS, 2, clip="both"),
            "plan: clip is 'both'; it must be one of local, global   [E-plan-clip]",
        ),
        (
            lambda *p: penstock.transpile(*p, PSERVERS, 2, bn_sync="sum"),
            "plan: bn_sync is 'sum'; it must be one of none, average   [E-plan-bn-sync]",
        ),
        (lambda *p: penstock.transpile(*p, PSERVERS, 2, sync=False, on_uneven="join"), "E-plan-on-uneven"),
        (lambda *p: penstock.transpile(*p, PSERVERS, 2, on_uneven="join"), "E-plan-rank-addresses"),
    ],
)
def test_native_transpile_refuses_invalid_and_conflicting_options(fluid, call, text):
    network(fluid)
    with pytest.raises(penstock.ProgramError) as error:
        call(fluid.default_main_program(), fluid.default_startup_program())
    assert text in str(error.value).splitlines()[0]


@pytest.mark.parametrize(
    "fields, sync_mode, text",
    [
        (
            dict(staleness=1),
            True,
            "plan: staleness=1 bounds how far trainers of mode async are apart; the mode is sync; give sync_mode=false "
            "without another flag, or leave staleness out   [E-plan-staleness]",
        ),
        (
            dict(backup_trainers=2),
            True,
            "plan: backup_trainers must be from 0 to 1, fewer than the 2 trainers, not 2   [E-plan-backup-trainers]",
        ),
        (
            dict(backup_trainers=1),
            False,
            "plan: backup_trainers=1 are those that a step of mode sync does not wait for; the mode is async; give "
            "sync_mode=true, or leave backup_trainers out   [E-plan-backup-trainers]",
        ),
        (
            dict(compression="v: fp16"),
            True,
            "plan: compression names v, which is no parameter that pservers update   [E-plan-compression]",
        ),
    ],
)
def test_conflicting_options_are_refused(fluid, fields, sync_mode, text):
    with pytest.raises(penstock.ProgramError) as error:
        transpiled(fluid, sync_mode, **fields)
    assert str(error.value).splitlines()[0] == text


@pytest.mark.parametrize("text, id", [("zip", "E-text-syntax"), ("two_bit 0", "E-compression-value")])
def test_an_invalid_compression_is_refused_at_once(fluid, text, id):
    config = fluid.DistributeTranspilerConfig()
    config.compression = text
    with pytest.raises(penstock.ProgramError) as error:
        fluid.DistributeTranspiler(config)
    assert error.value.id == id
