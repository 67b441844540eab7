"""Jobs of real processes with both exchanges: dense gradients are all-reduced among trainers, sparse ones go to
pservers."""

import re
import textwrap

import numpy as np
import penstock
import penstock.fluid as fluid
import pytest
from penstock._src.launch.job import free_ports

SCRIPT = textwrap.dedent("""
    import os, sys
    import numpy as np
    import penstock.fluid as fluid
    from job_script import program_of

    role, index, out, steps = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
    endpoints = os.environ['ENDPOINTS']
    fluid.default_main_program().random_seed = fluid.default_startup_program().random_seed = 3
    ids, label = fluid.data('ids', [None, 4, 1], 'int64'), fluid.data('label', [None, 1])
    rows = fluid.layers.embedding(ids, [50, 8], is_sparse='DENSE' not in os.environ,
                                  is_distributed='TABLE' in os.environ)
    hidden = fluid.layers.fc(fluid.layers.reduce_sum(rows, dim=1), 16, act='tanh')
    loss = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(hidden, 1), label))
    if 'CLIP' in os.environ:
        fluid.clip.set_gradient_clip(fluid.clip.GradientClipByGlobalNorm(0.1))
    rate = fluid.layers.exponential_decay(0.1, 2, 0.5) if 'DECAY' in os.environ else 0.1
    fluid.optimizer.Adam(rate, regularization=fluid.regularizer.L2Decay(0.01)).minimize(loss)
    names = [p.name for p in fluid.default_main_program().all_parameters() if 'embedding' not in p.name]
    config = fluid.DistributeTranspilerConfig()
    trainers = int(os.environ['TRAINERS'])
    if 'HYBRID' in os.environ:
        config.exchange = {'dense': 'allreduce', 'sparse': 'pserver'}
        if os.environ['HYBRID'] == 'auto':
            config.exchange, config.exchange_message_us = 'auto', 0.1
        trainers = os.environ.get('ADDRESSES', trainers)
    exe = fluid.Executor(fluid.CPUPlace())
    t = fluid.DistributeTranspiler(config)
    t.transpile(index if role == 'trainer' else 0, pservers=endpoints, trainers=trainers)
    program = program_of(role, index, exe, t)
    open(os.path.join(out, 'plan%d' % index), 'w').write(t.plan)
    exe.run(fluid.default_startup_program())
    losses = []
    for step in range(steps):
        random = np.random.RandomState(10 * step + index)
        feed = {'ids': random.randint(0, 50, [4, 4, 1]), 'label': random.rand(4, 1).astype('float32')}
        losses.append(exe.run(program, feed=feed, fetch_list=[loss])[0])
    found = {name: np.array(fluid.global_scope().find_var(name).get_tensor()) for name in names}
    np.savez(os.path.join(out, 'trainer%d.npz' % index), losses=losses, **found)
    exe.close()
""")


def train(job, trainers=2, **environment):
    for name in ("HYBRID", "ADDRESSES", "PADDLE_TRAINER_ENDPOINTS"):
        job.environment.pop(name, None)
    job.environment["ENDPOINTS"] = ",".join(f"127.0.0.1:{port}" for port in free_ports(2))
    trained = job.train(trainers, steps=5, **environment)
    job.processes.clear()
    return trained


def hybrid(job, name="ADDRESSES", trainers=2, exchange="1"):
    addresses = ",".join(f"127.0.0.1:{port}" for port in free_ports(trainers))
    return train(job, trainers, HYBRID=exchange, **{name: addresses})


@pytest.mark.parametrize("asked", [(), ("TABLE", "DECAY"), ("CLIP",)])
def test_both_exchanges_equal_pservers_alone_and_are_reproducible(job, asked):
    job.environment.update(dict.fromkeys(asked, "1"))
    alone, first = train(job), hybrid(job)
    again = hybrid(job, "PADDLE_TRAINER_ENDPOINTS")
    for trainer in range(2):
        for name, value in alone[trainer].items():
            np.testing.assert_allclose(first[trainer][name], value, rtol=1e-4, atol=1e-5, err_msg=name)
            np.testing.assert_array_equal(again[trainer][name], first[trainer][name], err_msg=name)
    for name in set(first[0]) - {"losses"}:
        np.testing.assert_array_equal(first[0][name], first[1][name], err_msg=name)


def test_all_processes_choose_the_same_exchange_per_parameter(job):
    alone, chosen = train(job, 3), hybrid(job, trainers=3, exchange="auto")
    for trainer in range(3):
        for name, value in alone[trainer].items():
            np.testing.assert_allclose(chosen[trainer][name], value, rtol=1e-4, atol=1e-5, err_msg=name)
    plans = [(job.folder / (f"plan{trainer}")).read_text() for trainer in range(3)]
    assert len(set(plans)) == 1
    ways = dict(re.findall(r"^exchange (\S+) by (\w+):", plans[0], re.M))
    assert ways == {
        "embedding_0.w_0": "pserver",
        "fc_0.w_0": "allreduce",
        "fc_0.b_0": "pserver",
        "fc_1.w_0": "pserver",
        "fc_1.b_0": "pserver",
    }, plans[0]


def test_pservers_without_parameters_only_connect_the_trainers(job):
    job.environment["DENSE"] = "1"
    alone, chosen = train(job), hybrid(job, exchange="auto")
    for trainer in range(2):
        for name, value in alone[trainer].items():
            np.testing.assert_allclose(chosen[trainer][name], value, rtol=1e-4, atol=1e-5, err_msg=name)
    assert re.findall(r" by (\w+):", (job.folder / "plan0").read_text()) == ["allreduce"] * 5


def test_each_trainer_refuses_fluids_wire_with_advice(job):
    addresses = ",".join(f"127.0.0.1:{port}" for port in free_ports(2))
    job.environment.update(HYBRID="1", ADDRESSES=addresses, TRAINERS="2", PENSTOCK_WIRE="fluid")
    for index in range(2):
        job.start("trainer", index)
    for code, _, errors in job.wait().values():
        assert code == 1 and re.search(
            r"exchange dense=allreduce, dense parameters over rings of trainers, does not run on Fluid's wire "
            r"\(wire=fluid\); transpile without it, or use the native wire   \[E-contract-policy\]",
            errors,
        ), errors


def dense_program():
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        ids = fluid.data("ids", [None, 1], "int64")
        hidden = fluid.layers.fc(fluid.layers.embedding(ids, [50, 8], is_sparse=True), 4096)
        fluid.optimizer.SGD(0.1).minimize(fluid.layers.mean(hidden))
    return main, startup


def test_native_transpile_accepts_an_exchange():
    pservers, trainers = [f"10.0.0.{i}:6174" for i in range(2)], [f"10.0.1.{i}:6170" for i in range(8)]
    roles = penstock.transpile(*dense_program(), pservers, trainers, exchange="auto")
    chosen = re.findall(r"^exchange (\S+) by (\w+): (allreduce|sparse)", roles.plan, re.M)
    assert sorted(chosen) == [
        ("embedding_0.w_0", "pserver", "sparse"),
        ("fc_0.b_0", "pserver", "allreduce"),
        ("fc_0.w_0", "allreduce", "allreduce"),
    ]
    roles = penstock.transpile(*dense_program(), pservers[:1], trainers, exchange={"dense": "allreduce"}, rings=2)
    assert 'mode="hybrid"' in roles.plan and "rings=2" in roles.plan and "exchange" not in roles.plan
    with pytest.raises(penstock.ProgramError, match="exchange_gbit, what a link carries each way, must be above 0"):
        penstock.transpile(*dense_program(), pservers, trainers, exchange="auto", exchange_gbit=0)


@pytest.mark.parametrize(
    "field, value, named",
    [
        ("sync_mode", False, "sync_mode=false; set sync_mode=true"),
        ("runtime_split_send_recv", True, "runtime_split_send_recv=true; leave out"),
        ("half_async", True, "half_async=true; leave out"),
        ("enable_dc_asgd", True, "enable_dc_asgd=true; leave out"),
        ("staleness", 2, "staleness=2; leave out"),
        ("backup_trainers", 1, "backup_trainers=1; leave out"),
        ("compression", "fp16", "compression; leave out"),
        ("clip", "global", "clip=global; clip locally"),
        ("bn_sync", "average", "bn_sync=average; leave out"),
        ("use_hierarchical_allreduce", True, "use_hierarchical_allreduce=true; leave out"),
        ("mode", "nccl2", "mode nccl2; choose mode pserver"),
        ("mode", "collective", "mode collective; choose mode pserver"),
        ("collective_mode", "local_sgd", "collective_mode=local_sgd; leave out"),
        ("local_sgd_k_steps", 4, "local_sgd_k_steps=4; leave out"),
    ],
)
def test_settings_incompatible_with_rings_are_refused(field, value, named):
    config = fluid.DistributeTranspilerConfig()
    config.exchange = {"dense": "allreduce"}
    setattr(config, field, value)
    if value == "collective":
        config.collective_mode = "grad_allreduce"
    main, startup = dense_program()
    with pytest.raises(penstock.ProgramError) as refused:
        fluid.DistributeTranspiler(config).transpile(
            0, main, "10.0.0.1:6174", "10.0.1.1:6170,10.0.1.2:6170", startup_program=startup
        )
    assert str(refused.value).startswith("plan: exchange dense=allreduce does not go with " + named), refused.value
    assert "or let pservers update all parameters (dense=pserver)   [E-plan-exchange]" in str(refused.value)


@pytest.mark.parametrize("exchange", ["allreduce", {"dense": "gossip"}, {"sparse": "allreduce"}, {"tables": "pserver"}])
def test_unknown_exchange_is_refused(exchange):
    config = fluid.DistributeTranspilerConfig()
    config.exchange = exchange
    with pytest.raises(ValueError, match="E-plan-exchange"):
        fluid.DistributeTranspiler(config)
