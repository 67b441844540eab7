"""memory_optimize and release_memory give the same numbers with less memory."""

import re

import numpy as np
import penstock
import pytest


def net(fluid):
    x = fluid.data("x", [None, 8])
    h = x
    for _ in range(6):
        h = fluid.layers.fc(h, 8, act="relu")
    loss = fluid.layers.mean(h)
    fluid.optimizer.SGD(0.1).minimize(loss)
    return loss


def train(fluid, rewrite):
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 3
    with fluid.unique_name.guard(), fluid.program_guard(main, startup), fluid.scope_guard(fluid.Scope()):
        loss = net(fluid)
        rewrite(main, loss)
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(startup)
        feed = {"x": np.linspace(-1, 1, 24, dtype="float32").reshape(3, 8)}
        return [exe.run(main, feed=feed, fetch_list=[loss])[0].tobytes() for _ in range(4)], main


def types(program):
    return [op.type for op in program.global_block().ops]


@pytest.mark.parametrize("level", [0, 1])
def test_a_program_with_reused_buffers_trains_to_the_same_bytes(fluid, level, capsys):
    expected, plain = train(fluid, lambda program, loss: None)
    got, less = train(
        fluid,
        lambda program, loss: fluid.memory_optimize(
            program, skip_opt_set=[loss], print_log=True, level=level, skip_grads=False
        ),
    )
    assert got == expected
    assert types(less) == types(plain)
    assert len(less.global_block().vars) < len(plain.global_block().vars)
    assert "for each batch item" in capsys.readouterr().out


def sentiment(fluid):
    """Feeds of words in sequences, and of other inputs: three different numbers of rows."""
    layers = fluid.layers
    words = fluid.data("words", [None, 1], dtype="int64", lod_level=1)
    h = layers.embedding(words, [30, 8])
    for _ in range(3):
        h = layers.fc(h, 8, act="tanh")
    hidden, _ = layers.dynamic_lstm(layers.fc(h, 32), 32)
    h = layers.sequence_pool(hidden, "max")
    for _ in range(3):
        h = layers.fc(h, 8, act="relu")
    g = fluid.data("dense", [None, 8])
    for _ in range(3):
        g = layers.fc(g, 8, act="relu")
    loss = layers.elementwise_add(layers.mean(h), layers.mean(g))
    fluid.optimizer.SGD(0.1).minimize(loss)
    return loss


def outputs(program):
    return [name for op in program.global_block().ops for name in op.output_arg_names]


def bytes_saved(plain, less, sizes):
    """The saving if variables of one name share a buffer of the largest size."""
    tenants = {}
    for old, new in zip(outputs(plain), outputs(less)):
        tenants.setdefault(new, {})[old] = sizes.get(old, 0)
    return sum(sum(of.values()) - max(of.values()) for of in tenants.values() if len(of) > 1)


def bytes_said(report, rows):
    """Of a summary such as 'saves 8 bytes and 32 bytes for each row of words'."""
    summary = report.strip().splitlines()[-1]
    said = re.findall(r"(\d+) bytes(?: for each (batch item|row of \S+?))?(?=,| and |$)", summary.split("saves ")[1])
    return sum(int(count) * (rows[what.replace("row of ", "")] if what else 1) for count, what in said)


@pytest.mark.parametrize("level", [0, 1])
def test_the_reported_savings_hold_for_sequences(fluid, level, capsys):
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 3
    with fluid.program_guard(main, startup):
        loss = sentiment(fluid)
    less = main.clone()
    fluid.memory_optimize(less, skip_opt_set=[loss], print_log=True, level=level, skip_grads=False)
    report = capsys.readouterr().out
    words = fluid.create_lod_tensor(np.arange(7, dtype="int64").reshape(7, 1), [[4, 1, 2]], fluid.CPUPlace())
    feed = {"words": words, "dense": np.ones((5, 8), "float32")}
    exe = fluid.Executor(fluid.CPUPlace())

    def run(program, fetches):
        with fluid.scope_guard(fluid.Scope()):
            exe.run(startup)
            return [exe.run(program, feed=feed, fetch_list=fetches, return_numpy=False) for _ in range(3)]

    temporaries = [name for name in dict.fromkeys(outputs(main)) if not main.global_block().var(name).persistable]
    values = {name: np.array(value) for name, value in zip(temporaries, run(main, temporaries)[0])}
    rows = {name: value.shape[0] for name, value in values.items() if value.ndim} | {"words": 7, "batch item": 5}
    saved = bytes_saved(main, less, {name: value.nbytes for name, value in values.items()})
    assert bytes_said(report, rows) == saved > 5000
    assert "for each row of words" in report and "for each batch item" in report
    for expected, got in zip(run(main, [loss]), run(less, [loss])):
        assert np.array(expected[0]).tobytes() == np.array(got[0]).tobytes()


def test_delete_var_lists_released_variables(fluid):
    expected, _ = train(fluid, lambda program, loss: None)
    got, less = train(fluid, lambda program, loss: fluid.release_memory(program, {loss.name}))
    assert got == expected
    assert "delete_var" in types(less)


def test_wrong_arguments_are_refused(fluid):
    net(fluid)
    main = fluid.default_main_program()
    with pytest.raises(ValueError, match="level must be 0 or 1"):
        fluid.memory_optimize(main, level=2)
    with pytest.raises(penstock.ProgramError, match='"lost" is to be kept'):
        fluid.memory_optimize(main, skip_opt_set=["lost"])
    with pytest.raises(TypeError, match="a Program is needed"):
        fluid.release_memory("main")
