"""Element types: those that layers reject, those that are checked at run time, and those of feeds."""

import subprocess
import sys
import textwrap
import warnings

import numpy as np
import penstock
import pytest


@pytest.mark.parametrize(
    "call, says",
    [
        (lambda F, half: F.layers.lod_append(half, [0, 1]), "lod_append: the element type of x must be float32 or"),
        (lambda F, half: F.layers.flatten(half), "that of half is float16"),
        (lambda F, half: F.layers.mean(F.data("n", [2], "int64")), "mean: the element type of x must be float16 or"),
        (lambda F, half: F.layers.full([2], 1, dtype="int8"), "full: dtype must be bool or"),
        (lambda F, half: F.layers.randperm(3, out=F.data("r", [3], "int32")), "randperm: the element type of out must"),
        (
            lambda F, half: F.layers.multiplex(F.data("n", [4, 2]), F.data("which", [4, 1], "int32")),
            "multiplex: inputs must be a list",
        ),
        (lambda F, half: F.layers.cond(F.data("p", [1], "bool"), lambda: half, lambda: half, 3), "name must be a str"),
    ],
)
def test_layers_refuse_the_element_types_that_fluid_refuses(fluid, call, says):
    with pytest.raises(TypeError, match=says):
        call(fluid, fluid.data("half", [4, 2], "float16"))


@pytest.mark.parametrize(
    "call",
    [
        lambda L, x: L.reshape(x, [-1, -1]),
        lambda L, x: L.reshape(x, [4, -2]),
        lambda L, x: L.reshape(x, [4, 2, 0]),
        lambda L, x: L.randn([]),
        lambda L, x: L.full([], 1.0),
    ],
)
def test_fluids_assertions_are_assertion_and_value_errors(fluid, call):
    for kind in AssertionError, ValueError:
        with pytest.raises(kind):
            call(fluid.layers, fluid.data("x", [4, 2]))


def test_an_unknown_element_type_is_a_type_error_and_a_value_error(fluid):
    for kind in TypeError, ValueError:
        with pytest.raises(kind, match="uint4"):
            fluid.core.to_dtype("uint4")


def test_float16_builds_as_for_gpus_and_runs_in_float32(fluid):
    x = fluid.data("x", [None, 2], "float16")
    y = fluid.layers.relu(x)
    assert y.dtype == fluid.core.VarDesc.VarType.FP16
    got = fluid.Executor().run(feed={"x": np.array([[-1, 0.5]], "float16")}, fetch_list=[y])[0]
    assert got.dtype == np.float16
    np.testing.assert_array_equal(got, [[0, 0.5]])


def test_the_feed_sets_the_element_type_of_layers_data(fluid):
    x = fluid.data("x", [3, 2])
    index = fluid.layers.data("index", [2], append_batch_size=False)  # float32, by default
    rows = fluid.layers.gather(x, index)
    exe = fluid.Executor()
    feed = {"x": np.arange(6, dtype="float32").reshape(3, 2), "index": np.array([2, 0], "int64")}
    np.testing.assert_array_equal(exe.run(feed=feed, fetch_list=[rows])[0], [[4, 5], [0, 1]])
    feed["index"] = np.array([2, 0], "float32")
    with pytest.raises(penstock.ProgramError, match=r"gather: element type of Index .f32. must be"):
        exe.run(feed=feed, fetch_list=[rows])
    with pytest.raises(penstock.ProgramError, match=r"gather: element type of Index"):
        fluid.layers.gather(x, fluid.data("checked", [2], "float32"))


def test_a_value_fed_to_a_persistable_variable_persists(fluid):
    total = fluid.data("total", [1])
    total.persistable = True
    fluid.layers.increment(total, 2.0)
    exe = fluid.Executor()
    assert exe.run(feed={"total": np.array([1], "float32")}, fetch_list=[total])[0] == 3
    assert exe.run(fetch_list=[total])[0] == 5


def test_the_factor_of_pow_may_have_another_type(fluid):
    x = fluid.data("x", [2], "float64")
    x.stop_gradient = False
    y = fluid.layers.pow(x, fluid.layers.fill_constant([1], "float32", 3.0))
    (dx,) = fluid.gradients(y, x)
    got = fluid.Executor().run(feed={"x": np.array([2.0, -1.0])}, fetch_list=[y, dx])
    np.testing.assert_array_equal(got, [[8, -1], [12, 3]])


def test_the_empty_variable_name_means_an_absent_argument(fluid):
    block = fluid.default_main_program().global_block()
    x = fluid.data("x", [2, 3])
    out = block.create_var(name="out", dtype="float32")
    block.append_op("concat", {"X": [x, x], "AxisTensor": "@EMPTY@"}, {"Out": out}, {"axis": 1})
    (got,) = fluid.Executor().run(feed={"x": np.ones((2, 3), "float32")}, fetch_list=[out])
    assert got.shape == (2, 6)


def test_device_guard_warns_that_it_has_no_effect(fluid):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with fluid.device_guard("gpu"):
            fluid.layers.fill_constant([1], "float32", 1.0, force_cpu=True)
            n = fluid.layers.fill_constant([1], "int64", 0)
            less = fluid.layers.less_than(n, n)
            with fluid.layers.While(less).block():
                fluid.layers.less_than(n, n, cond=less)
    assert [str(one.message)[:25] for one in caught] == ["force_cpu of fill_constan", "The Op(while) is not supp"]
    ops = fluid.default_main_program().global_block().ops
    assert [op.attr("op_device") for op in ops if op.type in ("while", "fill_constant")] == ["gpu", "gpu", ""]


def test_names_used_by_fluid_scripts_exist(fluid):
    assert fluid.framework.GRAD_VAR_SUFFIX == "@GRAD" and fluid.framework.ZERO_VAR_SUFFIX == "@ZERO"
    assert fluid.backward._append_grad_suffix_("w") == "w@GRAD"
    assert fluid.backward._as_list(None) == [] and fluid.backward._as_list((1, 2)) == [1, 2]
    x = fluid.data("x", [2])
    x._set_info("key", "value")
    assert (x._get_info("key"), x._get_info("other")) == ("value", None)
    with pytest.raises(fluid.core.EnforceNotMet, match="test exception"):
        fluid.core.__unittest_throw_exception__()
    auc = fluid.metrics.Auc("auc", num_thresholds=3)
    assert auc._stat_pos == [0] * 4 and auc._stat_neg == [0] * 4


def test_the_interpreter_exits_while_a_reader_copies_a_batch(tmp_path):
    """The thread waits for the GIL within C++ while the main thread ends the interpreter."""
    script = tmp_path / "late.py"
    script.write_text(
        textwrap.dedent("""
        import atexit, os, threading
        copy, begun, waiting = os.pipe(), threading.Event(), threading.Event()

        def last():    # registered first
            waiting.set()
            os.read(copy[0], 1)

        atexit.register(last)
        import numpy as np
        import penstock.fluid as fluid

        def batches():
            large = np.ones((20000000, 4), 'float32')
            begun.set()
            waiting.wait()
            os.write(copy[1], b'.')
            yield large,

        loader = fluid.io.DataLoader.from_generator(feed_list=[fluid.data('x', [None, 4])], capacity=2, iterable=False)
        loader.set_batch_generator(batches)
        loader.start()
        begun.wait()
    """)
    )
    ended = subprocess.run([sys.executable, str(script)], stderr=subprocess.PIPE, text=True)
    assert ended.returncode == 0, ended.stderr
