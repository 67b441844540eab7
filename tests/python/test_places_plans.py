"""Several places of one process are frames of one plan: what is compiled and made once, and what for each place."""

import os

import numpy as np
import penstock
import pytest
from penstock import fluid
from test_places import batches, momentum_with_decay_and_clipping, network

PLACES = [fluid.CPUPlace()] * 2


def stats_of(compiled):
    return compiled._on_places()._places.stats()


@pytest.mark.parametrize("places", [2, 4])
def test_places_share_one_compilation_and_one_plan_for_each_shape(places):
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup):
        loss = network(momentum_with_decay_and_clipping, normalise=True)
        hidden = next(op.input("X")[0] for op in main.global_block().ops if op.type == "mean")
    with fluid.scope_guard(fluid.Scope()):
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(startup)
        compiled = fluid.CompiledProgram(main).with_data_parallel(loss.name, places=[fluid.CPUPlace()] * places)
        for feed in batches(5, 2 * places):
            exe.run(compiled, feed=feed, fetch_list=[loss])
        assert stats_of(compiled) == {"compiled": 1, "plans": 1, "frames": places}
        for feed in batches(5, 3 * places):
            exe.run(compiled, feed=feed, fetch_list=[loss])
        assert stats_of(compiled) == {"compiled": 1, "plans": 2, "frames": 2 * places}
        for feed in batches(2, 3 * places - 1):  # the last place has one example less, a third shape
            exe.run(compiled, feed=feed, fetch_list=[loss])
        assert stats_of(compiled) == {"compiled": 1, "plans": 2, "frames": 2 * places}
        for feed in batches(2, 2 * places):
            exe.run(compiled, feed=feed, fetch_list=[loss, hidden])
        assert stats_of(compiled) == {"compiled": 2, "plans": 3, "frames": 3 * places}


def test_the_plan_outlives_an_error_of_a_place():
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup):
        ids = fluid.data("ids", [None, 1], dtype="int64")
        loss = fluid.layers.mean(fluid.layers.embedding(ids, [10, 2]))
        fluid.optimizer.SGD(0.1).minimize(loss)
    with fluid.scope_guard(fluid.Scope()):
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(startup)
        compiled = fluid.CompiledProgram(main).with_data_parallel(loss.name, places=PLACES)
        for last in (4, 77, 4):
            feed = {"ids": np.array([[1], [2], [3], [last]])}
            if last == 77:
                with pytest.raises(penstock.ProgramError, match="77"):
                    exe.run(compiled, feed=feed, fetch_list=[loss])
            else:
                exe.run(compiled, feed=feed, fetch_list=[loss])
        assert stats_of(compiled) == {"compiled": 1, "plans": 1, "frames": 4}  # two of them dropped


def test_programs_that_run_in_turn_share_the_threads_of_places():
    threads = lambda: len(os.listdir("/proc/self/task"))  # noqa: E731
    compiled, exe = [], fluid.Executor()
    for factor in (2.0, 3.0):
        main = fluid.Program()
        with fluid.program_guard(main, fluid.Program()):
            out = fluid.layers.scale(fluid.data("x", [None, 1]), factor)
        compiled.append((fluid.CompiledProgram(main).with_data_parallel(places=PLACES * 2), out, factor))
    counts = []
    for program, out, factor in compiled * 2:
        (value,) = exe.run(program, feed={"x": np.ones((4, 1), "float32")}, fetch_list=[out])
        assert value.tolist() == [[factor]] * 4
        counts.append(threads())
    assert counts == counts[:1] * 4


def piecewise():
    return fluid.optimizer.SGD(fluid.layers.piecewise_decay([2], [0.1, 0.01]))


def test_values_computed_only_by_the_first_place_are_fetched_once():
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup):
        loss = network(piecewise, normalise=True)
    rate = next(op.input("LearningRate")[0] for op in main.global_block().ops if op.type == "sgd")
    with fluid.scope_guard(fluid.Scope()):
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(startup)
        compiled = fluid.CompiledProgram(main).with_data_parallel(loss.name, places=PLACES)
        rates = [exe.run(compiled, feed=feed, fetch_list=[rate])[0].tolist() for feed in batches(4)]
    np.testing.assert_allclose(rates, [[0.1, 0.1]] * 2 + [[0.01, 0.01]] * 2)
