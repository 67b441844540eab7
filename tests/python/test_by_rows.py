"""Chains of elementwise ops run on a few rows at a time (PENSTOCK_FUSION=on, the default): results have the bytes of
the ops one after the other, and memory, errors, profiles and several places treat a chain as they treat its ops."""

import contextlib
import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import penstock
import pytest
from penstock import _penstock
from test_memory_plan import held_in_a_step

PENSTOCK = os.path.join(os.path.dirname(sys.executable), "penstock")

RUN = '''
import hashlib
import json
import sys
import numpy as np
import penstock
import penstock.fluid as fluid

kind, rows, fetches = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
layers = fluid.layers
main, startup = fluid.Program(), fluid.Program()
main.random_seed = startup.random_seed = 3


def dense(x):
    """A bias, activations and scales between products of matrices."""
    x = layers.fc(x, 1000, act='gelu')
    x = layers.scale(layers.tanh(layers.scale(x, 0.5, 0.25)), 3.0)
    x = layers.fc(layers.elementwise_mul(x, layers.sigmoid(x)), 900, act='swish')
    return layers.elementwise_max(layers.relu(x), layers.scale(x, 0.1))


def images(x):
    """Images, with one bias for each channel."""
    x = layers.reshape(x, [-1, 10, 16, 16])
    x = layers.conv2d(x, 20, 5, act='relu')
    x = layers.pool2d(layers.conv2d(layers.leaky_relu(layers.square(x)), 12, 3, act='tanh'), 2, 'max', 2)
    return layers.elementwise_sub(x, layers.scale(layers.exp(x), 0.1))


def shared(x):
    """Results that several ops read, and a table of rows for each example."""
    a = layers.elementwise_add(layers.sigmoid(x), layers.tanh(x))
    b = layers.elementwise_mul(a, layers.elementwise_add(a, x))
    c = layers.reshape(layers.elementwise_div(b, layers.scale(layers.abs(a), 1.0, 1.0)), [-1, 40, 64])
    row = layers.create_parameter([64], 'float32', name='row')
    return layers.log(layers.scale(layers.square(layers.elementwise_add(c, row)), 1.0, 0.5))


with fluid.program_guard(main, startup):
    x = fluid.data('x', [None, 2560])
    y = fluid.data('y', [None, 1], dtype='int64')
    hidden = globals()[kind](x)
    loss = layers.mean(layers.softmax_with_cross_entropy(layers.fc(hidden, 5), y))
    fluid.optimizer.Momentum(0.01, 0.9).minimize(loss)
exe = fluid.Executor()
exe.run(startup)
random = np.random.RandomState(0)
middle = [v for v in main.list_vars() if v.name.startswith(tuple(fetches))] if fetches else []
out = []


def digest(value):
    return hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()


for batch in (rows, rows, rows + 3):
    feed = {'x': random.rand(batch, 2560).astype('float32') - 0.5, 'y': random.randint(0, 5, (batch, 1))}
    out.append([digest(v) for v in exe.run(main, feed=feed, fetch_list=[loss] + middle)])
out.append([digest(fluid.global_scope().find_var(p.name).get_tensor()) for p in main.all_parameters()])
print(json.dumps(out))
'''


def run(code, *arguments, threads=1, fusion="on"):
    env = dict(os.environ, PENSTOCK_FUSION=fusion, OMP_NUM_THREADS=str(threads))
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)], env=env, text=True, capture_output=True, timeout=120
    )


def trained(*arguments, **options):
    done = run(RUN, *arguments, **options)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("kind", ["dense", "images", "shared"])
@pytest.mark.parametrize("threads", [1, 2])
def test_training_has_the_bytes_of_single_ops(kind, threads):
    assert trained(kind, 301, threads=threads) == trained(kind, 301, threads=threads, fusion="off")


def test_results_in_the_middle_of_a_chain_can_be_fetched():
    names = ("tanh", "sigmoid", "scale", "square")
    assert trained("shared", 301, *names) == trained("shared", 301, *names, fusion="off")


SEQUENCES = """
import numpy as np
import penstock.fluid as fluid

main, startup = fluid.Program(), fluid.Program()
with fluid.program_guard(main, startup):
    x = fluid.data('x', [None, 4096], lod_level=1)
    sums = fluid.layers.sequence_pool(fluid.layers.tanh(fluid.layers.scale(x, 2.0)), 'sum')
exe = fluid.Executor()
for lengths in ([30, 40], [30, 40], [5, 65], [1, 2, 100]):
    values = np.arange(sum(lengths) * 4096, dtype='float32').reshape(-1, 4096) % 7 - 3
    fed = fluid.create_lod_tensor(values, [lengths], fluid.CPUPlace())
    got = exe.run(main, feed={'x': fed}, fetch_list=[sums])[0]
    ends = np.cumsum(lengths)
    wanted = [np.tanh(values[end - n:end] * 2).sum(0) for end, n in zip(ends, lengths)]
    np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-4)
"""


def test_sequences_keep_their_lengths():
    done = run(SEQUENCES)
    assert done.returncode == 0, done.stderr


ROWS, WIDTH = 700, 1024


def chain(fluid, x):
    """A chain of five ops, and its loss."""
    bias = fluid.layers.create_parameter([WIDTH], "float32", name="bias")
    hidden = fluid.layers.tanh(fluid.layers.elementwise_add(x, bias))
    return fluid.layers.mean(fluid.layers.square(fluid.layers.scale(fluid.layers.sigmoid(hidden), 2.0, 0.5)))


def planned(program, fusion="on", batch=ROWS):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "main.pb")
        path.write_bytes(program.desc.serialize_to_string())
        done = subprocess.run(
            [PENSTOCK, "plan", "--exec", str(path), "--batch", str(batch)],
            text=True,
            env=dict(os.environ, PENSTOCK_FUSION=fusion),
            capture_output=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


def test_the_plan_lists_the_ops_of_a_chain(fluid):
    x = fluid.data("x", [None, WIDTH])
    x.stop_gradient = False
    fluid.optimizer.SGD(0.1).minimize(chain(fluid, x))
    text = planned(fluid.default_main_program())
    assert '"elementwise_add+tanh+sigmoid+scale+square"' in text
    assert text.count("     by rows: ") >= 8, text  # backward, too
    assert "     by rows: " not in planned(fluid.default_main_program(), fusion="off")
    assert "     by rows: " not in planned(fluid.default_main_program(), batch=100)


def test_the_plan_names_the_memory_that_a_step_with_chains_holds(fluid):
    x = fluid.data("x", [None, WIDTH])
    x.stop_gradient = False
    loss = chain(fluid, x)
    fluid.optimizer.SGD(0.1).minimize(loss)
    feed = {"x": np.random.RandomState(1).rand(ROWS, WIDTH).astype("float32")}
    main = fluid.default_main_program()
    parts = _penstock.memory_need_by_part(main.desc, ROWS, {})
    held, _ = held_in_a_step(fluid, main, fluid.default_startup_program(), feed, loss)
    assert held == pytest.approx(sum(parts.values()) - parts["fed"], rel=0.05), (parts, held)


def test_a_chain_needs_no_more_memory_than_its_ops(fluid, monkeypatch):
    x = fluid.data("x", [None, WIDTH])
    x.stop_gradient = False
    fluid.optimizer.SGD(0.1).minimize(chain(fluid, x))
    needs = {}
    for fusion in ("on", "off"):
        monkeypatch.setenv("PENSTOCK_FUSION", fusion)
        needs[fusion] = sum(_penstock.memory_need_by_part(fluid.default_main_program().desc, ROWS, {}).values())
    assert needs["on"] <= needs["off"] + 2 * 2**20, needs  # the parts of the rows, for each thread


def test_values_that_are_not_finite_are_found_at_the_op_that_makes_them(fluid):
    x = fluid.data("x", [None, WIDTH])
    large = fluid.layers.exp(x)
    # No output of the chain shows what the first op makes.
    total = fluid.layers.reduce_sum(fluid.layers.clip(fluid.layers.scale(large, 0.5), -1.0, 1.0))
    exe = fluid.Executor()
    values = np.zeros((ROWS, WIDTH), "float32")
    values[600, 7] = 1000
    feed = {"x": values}
    assert "by rows" in planned(fluid.default_main_program())
    for _ in range(2):  # the check may begin and end at any time
        (unwatched,) = exe.run(feed=feed, fetch_list=[total])
        fluid.set_flags({"FLAGS_check_nan_inf": 1})
        try:
            with pytest.raises(penstock.ProgramError) as error:
                exe.run(feed=feed, fetch_list=[total])
            assert exe.run(feed={"x": values * 0}, fetch_list=[total])[0] == ROWS * WIDTH * 0.5
        finally:
            fluid.set_flags({"FLAGS_check_nan_inf": False})
        assert error.value.id == "E-run-nan" and "test_by_rows.py" in str(error.value)
        assert str(error.value).startswith(
            f"exp: Out = {large.name} holds 0 nan and 1 inf in {ROWS * WIDTH} elements, the first at [600, 7]"
        )
        assert exe.run(feed=feed, fetch_list=[total])[0] == unwatched


@pytest.mark.parametrize("places", [1, 2, 3])
def test_places_run_chains(fluid, monkeypatch, places):
    def trained_on_places(fusion):
        monkeypatch.setenv("PENSTOCK_FUSION", fusion)
        main, startup, scope = fluid.Program(), fluid.Program(), fluid.Scope()
        main.random_seed = startup.random_seed = 5
        with fluid.program_guard(main, startup), fluid.unique_name.guard(), fluid.scope_guard(scope):
            x = fluid.data("x", [None, 64])
            loss = chain(fluid, fluid.layers.fc(x, WIDTH))
            fluid.optimizer.Momentum(0.1, 0.9).minimize(loss)
            exe = fluid.Executor(fluid.CPUPlace())
            exe.run(startup)
            compiled = fluid.CompiledProgram(main).with_data_parallel(loss.name, places=[fluid.CPUPlace()] * places)
            random = np.random.RandomState(3)
            losses = [
                exe.run(compiled, feed={"x": random.rand(600 * places, 64).astype("float32")}, fetch_list=[loss])[
                    0
                ].tobytes()
                for _ in range(3)
            ]
            return losses, [np.array(scope.find_var(p.name).get_tensor()).tobytes() for p in main.all_parameters()]

    assert trained_on_places("on") == trained_on_places("off")


def test_the_profile_names_the_ops_of_a_chain(fluid):
    loss = chain(fluid, fluid.data("x", [None, WIDTH]))
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    feed = {"x": np.zeros((ROWS, WIDTH), "float32")}
    exe.run(feed=feed, fetch_list=[loss])
    fluid.profiler.reset_profiler()
    fluid.profiler.start_profiler("CPU")
    exe.run(feed=feed, fetch_list=[loss])
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        fluid.profiler.stop_profiler("total", os.devnull)
    assert "elementwise_add+tanh+sigmoid+scale+square" in out.getvalue()


DIVISION = """
import numpy as np
import penstock.fluid as fluid

main = fluid.Program()
with fluid.program_guard(main):
    x, y = fluid.data('x', [512, 1024], 'int32'), fluid.data('y', [512, 1024], 'int32')
    quotient = fluid.layers.elementwise_floordiv(x, y)  # the division
    total = fluid.layers.elementwise_add(quotient, x)
ones = np.ones((512, 1024), 'int32')
fluid.Executor().run(main, feed={'x': ones, 'y': ones * 0}, fetch_list=[total])
"""


def test_an_error_names_its_op():
    done = run(DIVISION)
    assert done.returncode == 1
    assert "E-op-divide-zero" in done.stderr
    assert "op 0 of block 0" in done.stderr and "Y = y : i32[512, 1024]" in done.stderr
