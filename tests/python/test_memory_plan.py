"""The memory that the plan of a run names is what the run holds: each model of the benches, and training with
recomputation."""

import gc
import pathlib
import sys

import numpy as np
import pytest
from penstock import _penstock

STEPS = pathlib.Path(__file__).resolve().parents[2] / "tools" / "bench" / "steps"
sys.path.insert(0, str(STEPS))

import fluid_models  # noqa: E402

# A batch per model, and the rows of feeds that have other ones: a label for each word of 64, words of 80.
BATCHES = {"lenet": 4, "resnet20": 4, "resnet50": 1, "transformer": 2, "lstm": 4, "word2vec": 8}
OTHER_ROWS = {"transformer": {"y": 64}, "lstm": {"x": fluid_models.WORDS}}
AGREE = 0.05


def shapes(model, batch):
    return {name: [batch * rows, 1] for name, rows in OTHER_ROWS.get(model, {}).items()}


def held_in_a_step(fluid, main, startup, feed, fetch):
    """The most bytes that buffers hold in a step, beyond those held before the model was built, and the value."""
    gc.collect()  # what earlier tests have left
    before, _ = _penstock.buffer_bytes()
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(startup)
    for _ in range(2):  # the first one prepares
        exe.run(main, feed=feed, fetch_list=[fetch])
    _penstock.reset_peak_of_buffers()
    (value,) = exe.run(main, feed=feed, fetch_list=[fetch])
    return _penstock.buffer_bytes()[1] - before, value


@pytest.mark.parametrize("model", BATCHES)
def test_the_memory_plan_of_each_model_is_as_expected(fluid, model):
    batch = BATCHES[model]
    data = fluid_models.inputs(fluid, model, batch)
    loss = fluid_models.minimized(fluid, model, data.vars)
    main, startup = fluid.default_main_program(), fluid.default_startup_program()
    feed = {var.name: value for var, value in zip(data.vars, data.draw(np.random.RandomState(7)))}
    parts = _penstock.memory_need_by_part(main.desc, batch, shapes(model, batch))
    held, _ = held_in_a_step(fluid, main, startup, feed, loss)
    planned = sum(parts.values())
    # The tensors of the caller are his own, not copies.
    assert held == pytest.approx(planned - parts["fed"], rel=AGREE), (parts, held)
    low, _, _ = _penstock.memory_need(main.desc, batch, shapes(model, batch))
    assert low == planned


def test_the_memory_of_a_step_does_not_grow(fluid):
    data = fluid_models.inputs(fluid, "lenet", 4)
    loss = fluid_models.minimized(fluid, "lenet", data.vars)
    feed = {var.name: value for var, value in zip(data.vars, data.draw(np.random.RandomState(7)))}
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    held = []
    for _ in range(4):
        _penstock.reset_peak_of_buffers()
        exe.run(feed=feed, fetch_list=[loss])
        held.append(_penstock.buffer_bytes()[1])
    assert held[1] == held[2] == held[3]


def residual_blocks(fluid):
    """resnet20 with the outputs of its blocks as checkpoints."""
    data = fluid_models.inputs(fluid, "resnet20", 8)
    x, y = data.vars
    hidden, channels, kept = fluid_models.normalised(fluid, x, 16, 3), 16, []
    for times, stride in fluid_models.strides([3, 3, 3]):
        main = fluid_models.normalised(fluid, hidden, 16 * times, 3, stride)
        main = fluid_models.normalised(fluid, main, 16 * times, 3, 1, None)
        hidden = fluid_models.added(fluid, main, hidden, channels, 16 * times, stride)
        channels = 16 * times
        kept.append(hidden)
    loss = fluid_models.classified(fluid, fluid_models.pooled(fluid, hidden), 10, y)
    return data, loss, kept


def layers(fluid):
    data = fluid_models.inputs(fluid, "lenet", 512)
    hidden, kept = fluid.layers.fc(data.vars[0], 64, act="relu"), []
    for number in range(24):
        hidden = fluid.layers.tanh(fluid.layers.fc(hidden, 64))
        kept += [hidden] if number % 5 == 4 else []
    return data, fluid_models.classified(fluid, hidden, 10, data.vars[1]), kept


@pytest.mark.parametrize("build, batch, at_most", [(residual_blocks, 8, 0.65), (layers, 512, 0.5)])
def test_activations_between_checkpoints_are_freed_and_recomputed(fluid, monkeypatch, build, batch, at_most):
    monkeypatch.setenv("PENSTOCK_LAYOUTS", "plain")  # equal bytes: ops that run twice weigh twice in the choice

    def train(recomputes):
        main, startup = fluid.Program(), fluid.Program()
        startup.random_seed = 11
        with fluid.program_guard(main, startup), fluid.unique_name.guard(), fluid.scope_guard(fluid.Scope()):
            data, loss, kept = build(fluid)
            optimizer = fluid.optimizer.SGD(0.01)
            if recomputes:
                optimizer = fluid.optimizer.RecomputeOptimizer(optimizer)
                optimizer._set_checkpoints(kept)
            optimizer.minimize(loss)
            feed = {var.name: value for var, value in zip(data.vars, data.draw(np.random.RandomState(7)))}
            parts = _penstock.memory_need_by_part(main.desc, batch, {})
            held, value = held_in_a_step(fluid, main, startup, feed, loss)
            return parts, held, value.tobytes()

    plain, plain_held, plain_loss = train(False)
    again, again_held, again_loss = train(True)
    assert again_loss == plain_loss
    assert again["persistable"] == plain["persistable"]
    assert again["arena"] <= at_most * plain["arena"], (again, plain)
    assert plain_held - again_held == pytest.approx(plain["arena"] - again["arena"], rel=AGREE)
