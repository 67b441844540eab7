"""CompiledProgram gives the same numbers as the program alone, and checks its options."""

import numpy as np
import penstock
import pytest


def net(fluid):
    fluid.default_startup_program().random_seed = 5
    x, y = fluid.data("x", [None, 4]), fluid.data("y", [None, 1])
    hidden = fluid.layers.fc(x, 3, act="relu")
    loss = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(hidden, 1), y))
    test = fluid.default_main_program().clone(for_test=True)
    fluid.optimizer.Momentum(0.1, 0.9).minimize(loss)
    return loss, test


def batch():
    x = np.random.RandomState(0).rand(6, 4).astype("float32")
    return {"x": x, "y": x.sum(axis=1, keepdims=True)}


def losses(fluid, program, loss, feed):
    exe = fluid.Executor()
    with fluid.scope_guard(fluid.Scope()):
        exe.run(fluid.default_startup_program())
        return [exe.run(program, feed=feed, fetch_list=[loss])[0].tolist() for _ in range(5)]


def test_a_compiled_program_trains_as_the_program_does(fluid):
    loss, _ = net(fluid)
    main = fluid.default_main_program()
    alone = losses(fluid, main, loss, batch())
    build, run = fluid.BuildStrategy(), fluid.ExecutionStrategy()
    build.fuse_all_optimizer_ops = build.memory_optimize = True
    build.reduce_strategy = fluid.BuildStrategy.ReduceStrategy.Reduce
    run.num_threads = 4
    parallel = fluid.CompiledProgram(main).with_data_parallel(
        loss_name=loss.name, build_strategy=build, exec_strategy=run, places=fluid.CPUPlace()
    )
    assert losses(fluid, fluid.CompiledProgram(main, build), loss, batch()) == alone
    assert losses(fluid, parallel, loss.name, [batch()]) == alone
    assert alone[-1] < alone[0]


def test_results_of_each_device_are_returned_on_request(fluid):
    loss, _ = net(fluid)
    parallel = fluid.CompiledProgram(fluid.default_main_program()).with_data_parallel(loss.name)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    (of_device,), (weight,) = exe.run(parallel, feed=batch(), fetch_list=[loss, "fc_0.w_0"], return_merged=False)
    assert of_device.shape == (1,) and weight.shape == (4, 3)
    assert exe.run(parallel, feed=batch(), fetch_list=[]) == []


def test_a_test_program_shares_variables_with_one_that_has_run(fluid):
    loss, test = net(fluid)
    train = fluid.CompiledProgram(fluid.default_main_program()).with_data_parallel(loss.name)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    shared = fluid.CompiledProgram(test).with_data_parallel(share_vars_from=train)
    with pytest.raises(ValueError, match="has not run yet"):
        exe.run(shared, feed=batch(), fetch_list=[loss])
    exe.run(train, feed=batch())
    (now,) = exe.run(shared, feed=batch(), fetch_list=[loss])
    assert now == exe.run(test, feed=batch(), fetch_list=[loss])[0]
    alone = fluid.CompiledProgram(test).with_data_parallel(share_vars_from=fluid.CompiledProgram(test))
    with pytest.raises(ValueError, match="with_data_parallel was not called for that program"):
        exe.run(alone, feed=batch(), fetch_list=[loss])


def test_a_compiled_program_is_saved_as_its_program(fluid, tmp_path):
    loss, _ = net(fluid)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    main = fluid.default_main_program()
    for folder, program in (("alone", main), ("compiled", fluid.CompiledProgram(main))):
        fluid.io.save_persistables(exe, str(tmp_path / folder), program, filename="all")
        with fluid.unique_name.guard():
            fluid.io.save_inference_model(str(tmp_path / folder), ["x", "y"], [loss], exe, program)
    for name in ("all", "__model__"):
        assert (tmp_path / "alone" / name).read_bytes() == (tmp_path / "compiled" / name).read_bytes()


def test_invalid_compiled_programs_are_refused(fluid):
    loss, test = net(fluid)
    compiled = fluid.CompiledProgram(fluid.default_main_program())
    with pytest.raises(TypeError, match="takes a Program, not"):
        fluid.CompiledProgram(3)
    with pytest.raises(ValueError, match="needs loss_name"):
        compiled.with_data_parallel()
    with pytest.raises(ValueError, match="places is empty"):
        compiled.with_data_parallel(loss.name, places=[])
    with pytest.raises(NotImplementedError, match=r"on CUDAPlace\(0\): .* PENSTOCK_CUDA_FALLBACK=1"):
        compiled.with_data_parallel(loss.name, places=fluid.CUDAPlace(0))
    for wrong in ("build_strategy", "exec_strategy", "share_vars_from"):
        with pytest.raises(TypeError, match="with_data_parallel takes a .*, not 3"):
            compiled.with_data_parallel(loss.name, **{wrong: 3})
    compiled.with_data_parallel(loss.name)
    with pytest.raises(RuntimeError, match="was called already"):
        compiled.with_data_parallel(loss.name)
    build = fluid.BuildStrategy()
    build.gradient_scale_strategy = fluid.BuildStrategy.GradientScaleStrategy.Customized
    with pytest.raises(NotImplementedError, match="target_gradients"):
        fluid.Executor().run(fluid.CompiledProgram(test, build), feed=batch(), fetch_list=[loss])


def test_a_compiled_graph_can_be_prepared_but_not_run(fluid):
    graph = fluid.core.Graph(fluid.default_main_program().desc)
    compiled = fluid.CompiledProgram(graph).with_data_parallel()
    with pytest.raises(TypeError, match="a Graph does not run here; give it the Program"):
        fluid.Executor().run(compiled)


def test_several_trainers_require_their_addresses(fluid, monkeypatch):
    monkeypatch.delenv("PADDLE_TRAINER_ENDPOINTS", raising=False)
    loss, _ = net(fluid)
    build = fluid.BuildStrategy()
    build.num_trainers = 2
    main = fluid.default_main_program()
    with pytest.raises(ValueError, match="several trainers need with_data_parallel"):
        fluid.Executor().run(fluid.CompiledProgram(main, build), feed=batch(), fetch_list=[loss])
    compiled = fluid.CompiledProgram(main).with_data_parallel(loss.name, build)
    with pytest.raises(ValueError, match="num_trainers is 2, but there are 0 addresses"):
        fluid.Executor().run(compiled, feed=batch(), fetch_list=[loss])


def test_a_program_with_its_own_allreduce_is_not_transformed_again(fluid):
    """E-parallel-twice"""
    loss, _ = net(fluid)
    config = fluid.DistributeTranspilerConfig()
    config.mode, config.collective_mode = "collective", "grad_allreduce"
    fluid.DistributeTranspiler(config).transpile(0, trainers="a:1,b:1", current_endpoint="a:1")
    build = fluid.BuildStrategy()
    build.num_trainers, build.trainers_endpoints = 2, ["a:1", "b:1"]
    compiled = fluid.CompiledProgram(fluid.default_main_program()).with_data_parallel(loss.name, build)
    with pytest.raises(penstock.ProgramError, match="exchanges tensors between ranks already, by c_allreduce_sum"):
        fluid.Executor().run(compiled, feed=batch(), fetch_list=[loss])


@pytest.mark.parametrize(
    "name, fits, wrong",
    [
        ("fuse_all_reduce_ops", 0, "yes"),
        ("memory_optimize", None, "no"),
        ("num_trainers", 2, 2.5),
        ("reduce_strategy", None, 1),
        ("trainers_endpoints", ["a:1"], "a:1"),
        ("debug_graphviz_path", "here", 3),
    ],
)
def test_strategy_options_accept_only_their_type(fluid, name, fits, wrong):
    build = fluid.BuildStrategy()
    if name != "reduce_strategy":
        setattr(build, name, fits)
        assert getattr(build, name) == fits
    with pytest.raises(TypeError, match=f"BuildStrategy.{name} is .* by default, so it cannot be"):
        setattr(build, name, wrong)
    with pytest.raises(AttributeError, match="has no option num_thread; did you mean num_threads"):
        fluid.ExecutionStrategy().num_thread = 3
    assert fluid.BuildStrategy().trainers_endpoints == []
