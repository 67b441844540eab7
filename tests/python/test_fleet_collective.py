"""The collective fleet: in each mode, two ranks train like those of DistributeTranspiler; and the settings that its
strategy rejects."""

import numpy as np
import pytest
from fleet_jobs import launch_well
from penstock.fluid.incubate.fleet import collective
from penstock.fluid.incubate.fleet.base import role_maker

# argv: the mode, and 'fleet' or 'transpiler'.
RANK = """
    import os, sys
    import numpy as np
    import penstock.fluid as fluid
    from penstock.fluid.incubate.fleet.base import role_maker
    from penstock.fluid.incubate.fleet.collective import DistributedStrategy, fleet

    mode, by = sys.argv[1:]
    rank, addresses = int(os.environ['PADDLE_TRAINER_ID']), os.environ['PADDLE_TRAINER_ENDPOINTS'].split(',')
    fluid.default_startup_program().random_seed = 5 + rank
    x, y = fluid.data('x', [None, 13]), fluid.data('y', [None, 1])
    output = fluid.layers.fc(fluid.layers.fc(x, 8, act='tanh'), 1)
    loss = fluid.layers.mean(fluid.layers.square_error_cost(output, y))
    optimizer = fluid.optimizer.Momentum(0.05, 0.9)
    exe = fluid.Executor(fluid.CPUPlace())
    if by == 'fleet':
        fleet.init(role_maker.PaddleCloudRoleMaker(is_collective=True))
        strategy = DistributedStrategy()
        if mode == 'local_sgd':
            strategy.use_local_sgd = True
        elif mode != 'nccl2':
            strategy.mode, strategy.collective_mode = 'collective', mode
        fleet.distributed_optimizer(optimizer, strategy).minimize(loss)
        main, startup = fleet.main_program, fleet.startup_program
    else:
        optimizer.minimize(loss)
        config = fluid.DistributeTranspilerConfig()
        config.mode = 'nccl2' if mode == 'nccl2' else 'collective'
        config.collective_mode = None if mode == 'nccl2' else mode
        fluid.DistributeTranspiler(config).transpile(rank, trainers=','.join(addresses),
                                                     current_endpoint=addresses[rank])
        main, startup = fluid.default_main_program(), fluid.default_startup_program()
        if mode == 'nccl2':
            build = fluid.BuildStrategy()
            build.num_trainers, build.trainer_id = len(addresses), rank
            main = fluid.CompiledProgram(main).with_data_parallel(loss.name, build)
    exe.run(startup)
    random = np.random.RandomState(3)
    losses = []
    for step in range(6):
        xs = random.rand(16, 13).astype('float32')
        mine = slice(8 * rank, 8 * rank + 8)
        feed = {'x': xs[mine], 'y': xs[mine].sum(axis=1, keepdims=True) / 5}
        losses.append(exe.run(main, feed=feed, fetch_list=[loss])[0][0])
    names = [p.name for p in fluid.default_main_program().all_parameters()]
    values = {name: np.array(fluid.global_scope().find_var(name).get_tensor()) for name in names}
    if by == 'fleet':
        whole = [0.0]
        fleet.all_reduce_worker([rank + 0.5], whole)
        values['summed'] = np.array(whole)
        fleet.barrier_worker()
        if fleet.is_first_worker():
            fleet.save_persistables(exe, 'model')
            fleet.save_inference_model(exe, 'inference', ['x'], [output])
    np.savez('worker%d.npz' % rank, losses=losses, **values)
    exe.close()
"""


@pytest.mark.parametrize("mode", ["grad_allreduce", "local_sgd", "nccl2"])
def test_two_ranks_equal_the_transpilers_result(tmp_path, mode):
    fleets, _ = launch_well(tmp_path, RANK, mode, "fleet", servers=0)
    transpilers, _ = launch_well(tmp_path, RANK, mode, "transpiler", servers=0)
    for ours, theirs in zip(fleets, transpilers):
        assert ours.pop("summed") == [2.0]
        assert ours.keys() == theirs.keys()
        for name in theirs:
            np.testing.assert_array_equal(ours[name], theirs[name], name)
    for name in fleets[0]:
        if name != "losses":
            np.testing.assert_array_equal(fleets[0][name], fleets[1][name], name)
    assert (tmp_path / "model" / "fc_0.w_0").exists() and (tmp_path / "inference" / "__model__").exists()


@pytest.fixture
def fleet(monkeypatch):
    """A fleet that no other test has used, of one rank."""
    made = collective.Collective()
    monkeypatch.setattr(collective, "fleet", made)
    made.init(role_maker.UserDefinedCollectiveRoleMaker(0, ["127.0.0.1:6170"]))
    return made


def loss_of(fluid):
    return fluid.layers.mean(fluid.layers.fc(fluid.data("x", [None, 4]), 1))


def test_a_single_rank_trains_the_unchanged_program(fluid, fleet):
    loss = loss_of(fluid)
    _, pairs = fleet.distributed_optimizer(fluid.optimizer.SGD(0.1)).minimize(loss)
    assert fleet.main_program is loss.block.program and len(pairs) == 2
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fleet.startup_program)
    before = exe.run(fleet.main_program, feed={"x": np.ones((2, 4), "float32")}, fetch_list=[loss])[0]
    after = exe.run(fleet.main_program, feed={"x": np.ones((2, 4), "float32")}, fetch_list=[loss])[0]
    assert after < before


def test_checkpoints_are_numbered_and_the_newest_is_loaded(tmp_path, fluid, fleet):
    loss = loss_of(fluid)
    fleet.distributed_optimizer(fluid.optimizer.Momentum(0.1, 0.9)).minimize(loss)
    exe, path = fluid.Executor(fluid.CPUPlace()), str(tmp_path / "checkpoints")
    exe.run(fleet.startup_program)
    assert fleet.load_check_point(exe, path, 0) is None
    with pytest.raises(ValueError, match="contains no checkpoint"):
        fleet.load_check_point(exe, path, 0, ignore_empty=False)
    assert fleet._get_last_checkpoint_no(path) == -1  # Fluid's tests of scripts call it
    weight = fluid.global_scope().find_var("fc_0.w_0").get_tensor()
    for epoch in range(3):
        exe.run(fleet.main_program, feed={"x": np.ones((2, 4), "float32")})
        fleet.save_check_point(exe, path, collective.TrainStatus(epoch), remain_all_checkpoint=epoch < 2)
        saved = np.array(weight)
    assert [each.name for each in (tmp_path / "checkpoints").iterdir()] == ["__paddle_fleet_checkpoint__.2"]
    assert fleet._get_last_checkpoint_no(path) == 2
    exe.run(fleet.main_program, feed={"x": np.ones((2, 4), "float32")})
    status = fleet.load_check_point(exe, path, 0)
    assert status == collective.TrainStatus(2) and status.next() == 3
    np.testing.assert_array_equal(np.array(weight), saved)


@pytest.mark.parametrize(
    "fields, error, message",
    [
        ({"use_dist_fc": True}, NotImplementedError, "use_dist_fc: classes that are shared out"),
        (
            {"collective_mode": "local_sgd"},
            ValueError,
            "collective_mode 'local_sgd' needs mode 'collective', not 'nccl2'",
        ),
        ({"forward_recompute": True}, ValueError, "forward_recompute needs recompute_checkpoints"),
    ],
)
def test_conflicting_and_unsupported_settings_are_refused(fluid, fleet, fields, error, message):
    strategy = collective.DistributedStrategy()
    for name, value in fields.items():
        setattr(strategy, name, value)
    with pytest.raises(error, match=message):
        fleet.distributed_optimizer(fluid.optimizer.SGD(0.1), strategy).minimize(loss_of(fluid))


def test_wrong_types_are_refused(fluid, fleet):
    with pytest.raises(TypeError, match="strategy must be a DistributedStrategy, not 5"):
        fleet.distributed_optimizer(fluid.optimizer.SGD(0.1), 5)
    with pytest.raises(TypeError, match="takes an optimizer, not 5"):
        fleet.distributed_optimizer(5)
    with pytest.raises(AttributeError, match="has no option nccl_com_num; did you mean nccl_comm_num"):
        collective.DistributedStrategy().nccl_com_num = 1
    with pytest.warns(UserWarning, match="fleet.init_worker does nothing: the job has no parameter servers"):
        fleet.init_worker()
    with pytest.raises(TypeError, match="takes an Executor, not int"):
        fleet.save_persistables(5, "x")
