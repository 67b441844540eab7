"""Learning-rate layers make Fluid's programs, with Fluid's names, and compute its rates."""

import json

import numpy as np
import programs
import pytest

BY_NAME = {
    "cosine": lambda L: L.cosine_decay(0.1, 3, 7),
    "exponential_staircase": lambda L: L.exponential_decay(0.1, 5, 0.5, staircase=True),
    "inverse_time_staircase": lambda L: L.inverse_time_decay(0.1, 5, 0.5, staircase=True),
    "natural_exp": lambda L: L.natural_exp_decay(0.1, 5, 0.5),
    "noam": lambda L: L.noam_decay(64, 8),
    "piecewise": lambda L: L.piecewise_decay([4, 9, 15], [0.1, 0.05, 0.01, 0.001]),
    "polynomial": lambda L: L.polynomial_decay(0.1, 12, 0.001, 2.0),
    "polynomial_linear": lambda L: L.polynomial_decay(0.1, 12, 0.001),
    "warmup_const_int": lambda L: L.linear_lr_warmup(1, 4, 0, 1),
    "warmup_cosine": lambda L: L.linear_lr_warmup(L.cosine_decay(0.1, 3, 7), 5, 0.02, 0.1),
    "warmup_piecewise": lambda L: L.linear_lr_warmup(L.piecewise_decay([10, 15], [0.1, 0.01, 0.001]), 5, 0.0, 0.1),
}


@pytest.mark.parametrize("name", BY_NAME)
def test_a_schedule_builds_fluids_programs(fluids, fluid, name):
    BY_NAME[name](fluid.layers)
    programs.assert_same(programs.of(fluid.default_main_program()), programs.read_file(fluids("lr", name + ".pb")))
    programs.assert_same(
        programs.of(fluid.default_startup_program()), programs.read_file(fluids("lr", name + ".startup.pb"))
    )


def test_all_schedules_of_the_corpus_were_compared(corpus):
    assert {path.stem for path in (corpus / "open" / "lr").glob("*.json")} == set(BY_NAME)


@pytest.mark.parametrize("name", BY_NAME)
def test_learning_rates_match_fluid(fluids, fluid, name):
    facts = json.loads(fluids("lr", name + ".json").read_text())["alone"]
    rate = BY_NAME[name](fluid.layers)
    assert rate.name == facts["lr_var"]
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    counter = fluid.default_main_program().global_block().var("@LR_DECAY_COUNTER@")
    for expected, count in zip(facts["values"], facts["counter_after_step"]):
        value, step = exe.run(fetch_list=[rate, counter])
        assert step[0] == count
        assert np.isclose(value[0], expected, rtol=1e-5) or value[0] == expected
    assert len(facts["values"]) == 20


def test_two_layers_share_one_counter(fluid):
    layers = fluid.layers
    layers.exponential_decay(0.1, 5, 0.5)
    layers.cosine_decay(0.1, 3, 7)
    assert [op.type for op in fluid.default_main_program().global_block().ops].count("increment") == 1


def test_invalid_uses_of_switch_are_refused(fluid):
    layers = fluid.layers
    one, two = (layers.fill_constant([1], "float32", value) for value in (1.0, 2.0))
    switch = layers.Switch()
    with pytest.raises(ValueError, match="must be inside `with"):
        switch.case(one < two)
    with switch:
        with pytest.raises(ValueError, match="must follow at least one case"):
            switch.default()
        with pytest.raises(TypeError, match="a Variable of bool"):
            switch.case(one)
    with pytest.raises(ValueError, match="2 values and 2 boundaries"):
        layers.piecewise_decay([1, 2], [0.1, 0.2])


def test_an_error_inside_a_block_restores_the_current_block(fluid):
    layers = fluid.layers
    condition = layers.less_than(layers.fill_constant([1], "float32", 1.0), layers.fill_constant([1], "float32", 2.0))
    with pytest.raises(KeyError):
        with layers.Switch() as switch:
            with switch.case(condition):
                raise KeyError("mine")
    assert fluid.default_main_program().current_block().idx == 0
    assert "conditional_block" not in [op.type for op in fluid.default_main_program().global_block().ops]


def test_branches_of_cond_must_return_equal_structures(fluid):
    layers = fluid.layers
    x = fluid.data("x", [None, 8])
    condition = layers.less_than(layers.mean(x), layers.fill_constant([1], "float32", 0.0))
    with pytest.raises(ValueError, match=r"true_fn returns Variable and false_fn \[Variable, Variable\]"):
        layers.cond(condition, lambda: layers.scale(x, 2.0), lambda: [x, x])
    with pytest.raises(TypeError, match="pred must be a Variable of bool"):
        layers.cond(x, lambda: x, lambda: x)
    assert layers.cond(condition, lambda: None, lambda: None) is None
    pair = layers.cond(condition, lambda: [layers.scale(x, 2.0), x], lambda: [x, layers.square(x)])
    assert [var.shape for var in pair] == [(-1, 8), (-1, 8)]


# The example of ExponentialMovingAverage's documentation. transpile proves its results.
@pytest.mark.parametrize("mode", ["sync", "async", "half_async"])
@pytest.mark.parametrize("trainers", [1, 2])
def test_a_custom_counter_advances_with_the_schedule(fluid, trainers, mode):
    layers = fluid.layers
    x, y = layers.data("x", [128]), layers.data("y", [1])
    loss = layers.mean(layers.square_error_cost(layers.fc(layers.fc(x, 128), 1), y))
    steps = layers.autoincreased_step_counter()
    fluid.optimizer.SGD(layers.cast(steps, "float32") * 0.1).minimize(loss)
    fluid.optimizer.ExponentialMovingAverage(0.99, thres_steps=steps).update()
    config = fluid.DistributeTranspilerConfig()
    if mode == "half_async":
        config.sync_mode, config.runtime_split_send_recv, config.half_async = False, True, True
    transpiler = fluid.DistributeTranspiler(config)
    pservers = ["127.0.0.1:6174", "127.0.0.1:6175"]
    transpiler.transpile(0, pservers=",".join(pservers), trainers=trainers, sync_mode=mode == "sync")
    trainer = transpiler.get_trainer_program(wait_port=False)
    assert [op.type for op in trainer.global_block().ops].count("increment") >= 1
    for pserver in pservers:
        blocks = transpiler.get_pserver_program(pserver).blocks
        reads = [name for block in blocks for op in block.ops for name in op.input_arg_names]
        writes = [name for block in blocks for op in block.ops for name in op.output_arg_names]
        assert "@STEP_COUNTER@" in reads and "@STEP_COUNTER@" in writes
