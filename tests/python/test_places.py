"""Programs on several places of one process: each has a part of the batch, and all share the parameters."""

import os

import numpy as np
import penstock
import pytest
from penstock import fluid

PLACES = [fluid.CPUPlace()] * 2


def network(optimizer=None, normalise=False):
    x, y = fluid.data("x", [None, 4]), fluid.data("y", [None, 1])
    hidden = fluid.layers.fc(x, 8, act=None if normalise else "relu", param_attr=fluid.ParamAttr(name="w"))
    if normalise:
        hidden = fluid.layers.batch_norm(hidden, act="relu", moving_mean_name="moving_mean")
    loss = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(hidden, 1), y))
    if optimizer is not None:
        optimizer().minimize(loss)
    return loss


def batches(count=4, examples=8):
    random = np.random.RandomState(3)
    return [
        {"x": random.rand(examples, 4).astype("float32"), "y": random.rand(examples, 1).astype("float32")}
        for _ in range(count)
    ]


def trained(make, places, feeds, build_strategy=None):
    """(losses, parameters) of training on the places; None: by the program as it is."""
    main, startup, scope = fluid.Program(), fluid.Program(), fluid.Scope()
    main.random_seed = startup.random_seed = 5
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        loss = make()
    with fluid.scope_guard(scope):
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(startup)
        compiled = (
            main
            if places is None
            else fluid.CompiledProgram(main).with_data_parallel(loss.name, build_strategy=build_strategy, places=places)
        )
        losses = [exe.run(compiled, feed=feed, fetch_list=[loss])[0] for feed in feeds]
        names = [var.name for var in main.list_vars() if var.persistable]
        return losses, {name: np.array(scope.find_var(name).get_tensor()) for name in names}


def momentum_with_decay_and_clipping():
    rate = fluid.layers.exponential_decay(0.1, decay_steps=2, decay_rate=0.5)
    return fluid.optimizer.Momentum(
        rate, 0.9, regularization=fluid.regularizer.L2Decay(0.01), grad_clip=fluid.clip.GradientClipByGlobalNorm(0.1)
    )


@pytest.mark.parametrize(
    "optimizer",
    [lambda: fluid.optimizer.SGD(0.1), lambda: fluid.optimizer.Adam(0.05), momentum_with_decay_and_clipping],
)
@pytest.mark.parametrize("places", [1, 2, 4])
def test_places_train_like_one_place_on_the_joint_batch(optimizer, places):
    feeds = batches()
    losses, parameters = trained(lambda: network(optimizer), [fluid.CPUPlace()] * places, feeds)
    alone, expected = trained(lambda: network(optimizer), None, feeds)
    assert [loss.shape for loss in losses] == [(places,)] * len(feeds)
    np.testing.assert_allclose([loss.mean() for loss in losses], np.ravel(alone), rtol=1e-5)
    assert set(parameters) == set(expected) and any(name.startswith("w") for name in parameters)
    for name, value in expected.items():
        np.testing.assert_allclose(parameters[name], value, rtol=1e-4, atol=1e-6, err_msg=name)


def test_runs_are_reproducible():
    feeds = batches()
    first = trained(lambda: network(lambda: fluid.optimizer.Adam(0.05)), PLACES * 2, feeds)
    for _ in range(10):
        again = trained(lambda: network(lambda: fluid.optimizer.Adam(0.05)), PLACES * 2, feeds)
        assert np.array_equal(first[0], again[0])
        assert all(np.array_equal(first[1][name], again[1][name]) for name in first[1])


def test_each_place_may_have_its_own_feed():
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup):
        loss = network(lambda: fluid.optimizer.SGD(0.0))
    exe, scope = fluid.Executor(fluid.CPUPlace()), fluid.Scope()
    with fluid.scope_guard(scope):
        exe.run(startup)
        compiled = fluid.CompiledProgram(main).with_data_parallel(loss.name, places=PLACES)
        first, second = batches(2, 3)[0], batches(2, 5)[1]  # of different sizes
        (apart,) = exe.run(compiled, feed=[first, second], fetch_list=[loss], return_merged=False)
        expected = [exe.run(main, feed=feed, fetch_list=[loss])[0] for feed in (first, second)]
        np.testing.assert_allclose(np.ravel(apart), np.ravel(expected), rtol=1e-6)
        (weights,) = exe.run(compiled, feed=[first, second], fetch_list=["w"])
        assert weights.shape == (8, 8) and np.array_equal(weights[:4], weights[4:])
        with pytest.raises(penstock.ProgramError, match="feed is a list of 3 dicts, but 2 places run the program"):
            exe.run(compiled, feed=[first, second, first], fetch_list=[loss])


def test_batch_norm_moments_are_per_place_or_synchronized():
    feeds = batches(2)
    halves = [{name: value[:4] for name, value in feed.items()} for feed in feeds]
    make = lambda: network(lambda: fluid.optimizer.SGD(0.1), normalise=True)  # noqa: E731
    no_update = lambda: network(lambda: fluid.optimizer.SGD(0.0), normalise=True)  # noqa: E731
    own = trained(no_update, PLACES, feeds)[1]["moving_mean"]
    np.testing.assert_allclose(own, trained(no_update, None, halves)[1]["moving_mean"], rtol=1e-5)
    strategy = fluid.BuildStrategy()
    strategy.sync_batch_norm = True
    parameters, expected = trained(make, PLACES, feeds, strategy)[1], trained(make, None, feeds)[1]
    for name, value in expected.items():
        np.testing.assert_allclose(parameters[name], value, rtol=1e-4, atol=1e-5, err_msg=name)


def test_sequences_are_split_and_joined_between_sequences():
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup):
        x = fluid.data("x", [None, 1], lod_level=1)
        twice = fluid.layers.scale(x, 2.0)
        sums = fluid.layers.sequence_pool(x, "sum")
    exe = fluid.Executor(fluid.CPUPlace())
    compiled = fluid.CompiledProgram(main).with_data_parallel(places=PLACES)
    fed = fluid.create_lod_tensor(np.arange(10, dtype="float32").reshape(10, 1), [[1, 2, 3, 4, 0]], fluid.CPUPlace())
    values = exe.run(compiled, feed={"x": fed}, fetch_list=[twice, sums], return_numpy=False)
    assert values[0].recursive_sequence_lengths() == [[1, 2, 3, 4, 0]]
    assert np.ravel(values[0]).tolist() == [2.0 * i for i in range(10)]
    assert np.ravel(values[1]).tolist() == [0.0, 3.0, 12.0, 30.0, 0.0]
    (parts,) = exe.run(compiled, feed={"x": fed}, fetch_list=[twice], return_numpy=False, return_merged=False)
    assert [part.recursive_sequence_lengths() for part in parts] == [[[1, 2, 3]], [[4, 0]]]  # as Fluid cuts


@pytest.mark.parametrize(
    "examples, places, parts",
    [
        (7, 4, [2, 2, 2, 1]),
        (8, 4, [2, 2, 2, 2]),
        (10, 4, [3, 3, 3, 1]),
        (3, 2, [2, 1]),
        (5, 4, [1, 1, 1, 2]),
        (9, 4, [2, 2, 2, 3]),  # Fluid leaves the last place without examples and raises an error
    ],
)
@pytest.mark.parametrize("trains", [True, False])
def test_an_uneven_batch_is_split_as_in_fluid(examples, places, parts, trains):
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup):
        x = fluid.data("x", [None, 1])
        rows = fluid.layers.slice(fluid.layers.shape(x), [0], [0], [1])
        loss = fluid.layers.mean(fluid.layers.fc(x, 1))
        if trains:
            fluid.optimizer.SGD(0.1).minimize(loss)
    with fluid.scope_guard(fluid.Scope()):
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(startup)
        compiled = fluid.CompiledProgram(main).with_data_parallel(loss.name, places=[fluid.CPUPlace()] * places)
        (of_places,) = exe.run(compiled, feed={"x": np.ones((examples, 1), "float32")}, fetch_list=[rows])
    fewer = {5: [2, 2, 1], 9: [3, 3, 3]}  # places, as Fluid, if the program does not train
    assert of_places.tolist() == (parts if trains else fewer.get(examples, parts))


def weighted(on_uneven):
    strategy = fluid.BuildStrategy()
    strategy.on_uneven = on_uneven
    return strategy


@pytest.mark.parametrize("examples", [7, 10, 5])
def test_places_with_unequal_parts_weight_them_by_examples(examples):
    feeds = batches(3, examples)
    make = lambda: network(momentum_with_decay_and_clipping)  # noqa: E731
    expected = trained(make, None, feeds)[1]
    parameters = trained(make, PLACES * 2, feeds, weighted("join"))[1]
    for name, value in expected.items():
        np.testing.assert_allclose(parameters[name], value, rtol=1e-4, atol=1e-6, err_msg=name)
    unweighted = trained(make, PLACES * 2, feeds)[1]
    assert any(np.abs(unweighted[name] - value).max() > 1e-5 for name, value in expected.items())


def test_places_without_examples_repeat_one_that_does_not_count():
    feeds = batches(1, 2) + batches(1, 7) + batches(1, 1) + batches(1, 8)
    make = lambda: network(lambda: fluid.optimizer.Adam(0.05), normalise=False)  # noqa: E731
    alone, expected = trained(make, None, feeds)
    losses, parameters = trained(make, PLACES * 2, feeds, weighted("join"))
    assert [len(loss) for loss in losses] == [2, 4, 1, 4]
    for name, value in expected.items():
        np.testing.assert_allclose(parameters[name], value, rtol=1e-4, atol=1e-6, err_msg=name)
    padded = [{name: np.concatenate([value, value[:1]]) for name, value in batches(1, 3)[0].items()}]
    expected = trained(make, None, padded)[1]
    losses, parameters = trained(make, PLACES * 2, batches(1, 3), weighted("pad"))
    assert [len(loss) for loss in losses] == [4]
    for name, value in expected.items():
        np.testing.assert_allclose(parameters[name], value, rtol=1e-4, atol=1e-6, err_msg=name)
    with pytest.raises(penstock.ProgramError, match="x has 3 examples for 4 places; each needs at least one"):
        trained(make, PLACES * 2, batches(1, 3), weighted("error"))


def two_optimizers():
    """A trunk that both train, and a value of the updated parameter that the program computes itself."""
    x, y = fluid.data("x", [None, 4]), fluid.data("y", [None, 1])
    trunk = fluid.layers.fc(x, 64, act="tanh", param_attr="w")
    one = fluid.layers.mean(fluid.layers.square(fluid.layers.fc(trunk, 1) - y))
    two = fluid.layers.mean(fluid.layers.square(fluid.layers.fc(trunk, 1) + y))
    fluid.optimizer.SGD(0.1).minimize(one)
    fluid.optimizer.Adam(0.05).minimize(two)
    kept = fluid.layers.create_global_var([64], 0.0, "float32", persistable=True, name="kept")
    fluid.layers.assign(fluid.layers.reduce_sum(fluid.default_main_program().global_block().var("w"), dim=0), kept)
    return two


def test_two_optimizers_update_between_passes_of_all_places():
    feeds = batches(6)
    expected = trained(two_optimizers, None, feeds)[1]
    for _ in range(5):
        parameters = trained(two_optimizers, PLACES * 2, feeds)[1]
        for name, value in expected.items():
            np.testing.assert_allclose(parameters[name], value, rtol=1e-4, atol=1e-5, err_msg=name)


def clipped_by_hand():
    loss = network()
    optimizer = fluid.optimizer.SGD(0.5)
    pairs = optimizer.backward(loss)
    norm = fluid.layers.sqrt(fluid.layers.sums([fluid.layers.reduce_sum(fluid.layers.square(g)) for _, g in pairs]))
    factor = 0.1 / fluid.layers.elementwise_max(norm, fluid.layers.fill_constant([1], "float32", 0.1))
    optimizer.apply_gradients([(p, g * factor) for p, g in pairs])
    return loss


def updated_by_hand():
    loss = network()
    for p, g in fluid.backward.append_backward(loss):
        fluid.layers.assign(p - g * 0.5, p)
    return loss


@pytest.mark.parametrize("make", [clipped_by_hand, updated_by_hand])
def test_program_ops_may_use_the_gradients(make):
    feeds = batches()
    expected = trained(make, None, feeds)[1]
    parameters = trained(make, PLACES * 2, feeds)[1]
    for name, value in expected.items():
        np.testing.assert_allclose(parameters[name], value, rtol=1e-4, atol=1e-6, err_msg=name)


def test_the_threads_of_places_are_kept_between_runs():
    threads = lambda: set(os.listdir("/proc/self/task"))  # noqa: E731
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup):
        loss = network(lambda: fluid.optimizer.SGD(0.1))
    with fluid.scope_guard(fluid.Scope()):
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(startup)
        compiled = fluid.CompiledProgram(main).with_data_parallel(loss.name, places=PLACES * 2)
        (feed,) = batches(1)
        exe.run(compiled, feed=feed)
        first = threads()
        for _ in range(10):
            exe.run(compiled, feed=feed)
            assert threads() == first


def test_cpu_num_chooses_places(monkeypatch):
    monkeypatch.setenv("CPU_NUM", "2")
    assert fluid.cpu_places() == PLACES
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup):
        loss = network(lambda: fluid.optimizer.SGD(0.1))
    with fluid.scope_guard(fluid.Scope()):
        fluid.Executor(fluid.CPUPlace()).run(startup)
        exe = fluid.ParallelExecutor(use_cuda=False, loss_name=loss.name, main_program=main)
        assert exe.device_count == 2
        assert exe.run([loss.name], feed=batches()[0])[0].shape == (2,)
        monkeypatch.setenv("CPU_NUM", "all")
        with pytest.raises(ValueError, match='CPU_NUM is "all"; it takes an integer from 1'):
            fluid.cpu_places()


def test_each_place_that_trains_needs_an_example():
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup):
        loss = network()
        test = main.clone(for_test=True)
        fluid.optimizer.SGD(0.1).minimize(loss)
    (one,) = batches(1, 1)
    with fluid.scope_guard(fluid.Scope()):
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(startup)
        compiled = fluid.CompiledProgram(main).with_data_parallel(loss.name, places=PLACES)
        with pytest.raises(penstock.ProgramError, match="x has 1 examples for 2 places; each needs at least one"):
            exe.run(compiled, feed=one, fetch_list=[loss])
        with pytest.raises(penstock.ProgramError, match="feed is a list of 1 dicts, but 2 places run the program"):
            exe.run(compiled, feed=[one], fetch_list=[loss])
        tested = fluid.CompiledProgram(test).with_data_parallel(places=PLACES)  # runs on as many as have data
        assert exe.run(tested, feed=one, fetch_list=[loss])[0].shape == (1,)
        assert exe.run(tested, feed=[one], fetch_list=[loss, "w"])[1].shape == (4, 8)


def test_a_fed_persistable_value_reaches_all_places():
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup):
        x, factor = fluid.data("x", [None, 1]), fluid.data("factor", [1])
        factor.persistable = True
        out = fluid.layers.elementwise_mul(x, factor)
    exe = fluid.Executor(fluid.CPUPlace())
    compiled = fluid.CompiledProgram(main).with_data_parallel(places=PLACES)
    x = np.array([[1], [2], [3], [4]], "float32")
    with fluid.scope_guard(fluid.Scope()):
        for factors, expected in (([2], [2, 4, 6, 8]), ([2, 3], [2, 4, 9, 12])):
            feed = {"x": x, "factor": np.array(factors, "float32")}
            assert np.ravel(exe.run(compiled, feed=feed, fetch_list=[out])[0]).tolist() == expected


@pytest.mark.parametrize("bad", [0, 3])  # in the part of the first place, or of the second
def test_an_error_of_one_place_ends_the_run_and_the_next_run_works(bad):
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup):
        ids = fluid.data("ids", [None, 1], dtype="int64")
        loss = fluid.layers.mean(fluid.layers.embedding(ids, [10, 2]))
        fluid.optimizer.SGD(0.1).minimize(loss)
    with fluid.scope_guard(fluid.Scope()):
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(startup)
        compiled = fluid.CompiledProgram(main).with_data_parallel(loss.name, places=PLACES)
        good = np.array([[1], [2], [3], [4]])
        wrong = good.copy()
        wrong[bad] = 77
        for _ in range(2):
            with pytest.raises(penstock.ProgramError, match="77"):
                exe.run(compiled, feed={"ids": wrong}, fetch_list=[loss])
            assert exe.run(compiled, feed={"ids": good}, fetch_list=[loss])[0].shape == (2,)


@pytest.mark.parametrize("drop_last", [False, True])
def test_each_place_takes_a_batch_of_a_reader(drop_last):
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup):
        x = fluid.data("x", [None, 1])
        loader = fluid.io.DataLoader.from_generator([x], capacity=4, iterable=False, drop_last=drop_last)
        doubled = fluid.layers.scale(x, 2.0)
    loader.set_batch_generator(lambda: ([np.full((1, 1), i, "float32")] for i in range(5)))
    exe = fluid.Executor(fluid.CPUPlace())
    compiled = fluid.CompiledProgram(main).with_data_parallel(places=PLACES)
    for _ in range(2):
        loader.start()
        seen = []
        with pytest.raises(fluid.core.EOFException):
            while True:
                seen.append(np.ravel(exe.run(compiled, fetch_list=[doubled])[0]))
        assert [len(of_step) for of_step in seen] == ([2, 2] if drop_last else [2, 2, 1])
        assert np.concatenate(seen).tolist() == [0.0, 2.0, 4.0, 6.0, 8.0][: 4 if drop_last else 5]  # in order
        loader.reset()


def test_gradients_of_inputs_are_those_of_each_place():
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup):
        x = fluid.data("x", [None, 1])
        x.stop_gradient = False
        loss = fluid.layers.mean(fluid.layers.square(x))
        (gradient,) = fluid.gradients([loss], [x])
    compiled = fluid.CompiledProgram(main).with_data_parallel(loss.name, places=PLACES)
    fed = {"x": np.array([[1], [2], [3], [4]], "float32")}
    (value,) = fluid.Executor(fluid.CPUPlace()).run(compiled, feed=fed, fetch_list=[gradient])
    assert np.ravel(value).tolist() == [1, 2, 3, 4]  # 2 x / 2 examples


def test_tensor_arrays_are_joined_elementwise():
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup):
        x = fluid.data("x", [None, 1])
        array = fluid.layers.array_write(x, fluid.layers.fill_constant([1], "int64", 0))
        fluid.layers.array_write(fluid.layers.scale(x, 10.0), fluid.layers.fill_constant([1], "int64", 1), array)
    exe = fluid.Executor(fluid.CPUPlace())
    compiled = fluid.CompiledProgram(main).with_data_parallel(places=PLACES)
    fed = {"x": np.array([[1], [2], [3]], "float32")}
    (values,) = exe.run(compiled, feed=fed, fetch_list=[array])
    assert [np.ravel(value).tolist() for value in values] == [[1, 2, 3], [10, 20, 30]]


@pytest.mark.parametrize("given", [PLACES, None])  # None: CPU_NUM
def test_a_program_with_pservers_runs_the_joint_batch_on_one_place(given, monkeypatch):
    monkeypatch.setenv("CPU_NUM", "2")
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup):
        loss = fluid.layers.mean(fluid.data("x", [None, 1]))
    main.global_block().ops[0]._set_attr("op_role", fluid.framework.OpRole.RPC)  # as of send and recv
    compiled = fluid.CompiledProgram(main).with_data_parallel(places=given)
    exe = fluid.Executor(fluid.CPUPlace())
    feeds = [{"x": np.array([[1]], "float32")}, {"x": np.array([[2], [6]], "float32")}]
    assert exe.run(compiled, feed=feeds, fetch_list=[loss])[0].tolist() == [3.0]
    with pytest.raises(ValueError, match=r"different names: \['x'\] and \[\]"):
        exe.run(compiled, feed=[feeds[0], {}], fetch_list=[loss])


def test_the_strategy_selects_the_sum_of_gradients():
    strategy = fluid.BuildStrategy()
    strategy.gradient_scale_strategy = fluid.BuildStrategy.GradientScaleStrategy.One
    feeds = batches(1)
    summed = trained(lambda: network(lambda: fluid.optimizer.SGD(0.1)), PLACES, feeds, strategy)[1]
    expected = trained(lambda: network(lambda: fluid.optimizer.SGD(0.2)), None, feeds)[1]
    for name in summed:
        if "learning_rate" not in name:
            np.testing.assert_allclose(summed[name], expected[name], rtol=1e-4, atol=1e-6, err_msg=name)


def test_unsupported_programs_on_several_places_are_refused():
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup):
        loss = network(lambda: fluid.optimizer.SGD(0.1))
    exe = fluid.Executor(fluid.CPUPlace())
    compiled = fluid.CompiledProgram(main).with_data_parallel(loss.name, places=PLACES)
    with pytest.raises(NotImplementedError, match="use_prune"):
        exe.run(compiled, feed=batches(1)[0], fetch_list=[loss], use_prune=True)
    strategy = fluid.BuildStrategy()
    strategy.num_trainers = 2
    compiled = fluid.CompiledProgram(main).with_data_parallel(loss.name, build_strategy=strategy, places=PLACES)
    with pytest.raises(NotImplementedError, match="2 places of one process, and num_trainers=2"):
        exe.run(compiled, feed=batches(1)[0], fetch_list=[loss])


@pytest.mark.parametrize(
    "given",
    [
        lambda feed: feed,
        lambda feed: [
            {"rows": feed["rows"][:3], "at": feed["at"][:3]},
            {"rows": feed["rows"][3:], "at": feed["at"][3:]},
        ],
    ],
)
def test_fed_integers_stay_integers_if_an_op_needs_them(given):
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()):
        rows, at = fluid.layers.data("rows", [2]), fluid.layers.data("at", [1])  # float32, its default
        out = fluid.layers.gather(rows, at)
    compiled = fluid.CompiledProgram(main).with_data_parallel(places=PLACES)
    feed = {"rows": np.arange(12, dtype="float32").reshape(6, 2), "at": np.array([[2], [1], [0], [0], [0], [1]])}
    (value,) = fluid.Executor().run(compiled, feed=given(feed), fetch_list=[out])
    assert value[:, 0].tolist() == [4, 2, 0, 6, 6, 8]


def test_a_closed_executor_runs_nothing_on_places():
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()):
        out = fluid.layers.scale(fluid.data("x", [None, 1]), 2.0)
    compiled = fluid.CompiledProgram(main).with_data_parallel(places=PLACES)
    exe = fluid.Executor()
    exe.run(compiled, feed={"x": np.ones((2, 1), "float32")}, fetch_list=[out])
    exe.close()
    with pytest.raises(penstock.StateError, match="E-executor-closed"):
        exe.run(compiled, feed={"x": np.ones((2, 1), "float32")}, fetch_list=[out])


def test_concurrent_runs_of_one_program_are_refused():
    main, startup = fluid.Program(), fluid.Program()
    refused = []
    with fluid.program_guard(main, startup):
        x = fluid.data("x", [None, 1])
        out = main.current_block().create_var(name="out", dtype="float32", shape=[-1, 1])

        def again(value):
            try:
                exe.run(compiled, feed={"x": np.ones((2, 1), "float32")}, fetch_list=[out])
            except penstock.StateError as error:
                refused.append(error.id)
            return np.array(value)

        fluid.layers.py_func(again, x, out)
    exe = fluid.Executor(fluid.CPUPlace())
    compiled = fluid.CompiledProgram(main).with_data_parallel(places=PLACES)
    (value,) = exe.run(compiled, feed={"x": np.array([[1], [2]], "float32")}, fetch_list=[out])
    assert np.ravel(value).tolist() == [1, 2] and refused == ["E-places-busy"] * 2


def test_feeders_group_batches_for_all_places(monkeypatch):
    monkeypatch.setenv("CPU_NUM", "2")
    with fluid.program_guard(fluid.Program()):
        feeder = fluid.DataFeeder([fluid.data("x", [None, 1])], fluid.CPUPlace())
    batches_of_two = [[(1.0,)], [(2.0,)]]
    feeds = list(feeder.feed_parallel(batches_of_two))
    assert [np.ravel(feed["x"]).tolist() for feed in feeds] == [[1.0], [2.0]]
    groups = list(feeder.decorate_reader(lambda: iter(batches_of_two * 2), multi_devices=True)())
    assert [len(group) for group in groups] == [2, 2]


def test_the_first_place_updates_once_all_are_ready():
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup):
        network(momentum_with_decay_and_clipping)
    made = [
        fluid.Program._of(penstock._penstock.data_parallel(main.desc, ["a:1", "b:1"], place, 1, "mean", places=True)[0])
        for place in (0, 1)
    ]
    assert made[0].to_string(True) == made[1].to_string(True)  # one program for all places
    every = [op.type for op in made[0].global_block().ops]
    ready = every.index("fill_constant", every.index("c_sync_comm_stream"))
    assert every[ready : ready + 3] == ["fill_constant", "c_allreduce_sum", "c_sync_comm_stream"]
    assert "momentum" in every[ready:] and "momentum" not in every[:ready]
    of_first = [op.has_attr("first_place") for op in made[0].global_block().ops]
    alone = {kind for kind, first in zip(every, of_first) if first}
    assert {"momentum", "increment"} <= alone  # and the schedule of learning rates
    assert not {"mul", "mul_grad", "c_allreduce_sum", "c_sync_comm_stream"} & alone
    others = [kind for kind, first in zip(every, of_first) if not first]
    assert others[-3:] == ["fill_constant", "c_allreduce_sum", "c_sync_comm_stream"]
