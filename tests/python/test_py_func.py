"""py_func: Python code inside a program, forward and backward, and its errors."""

import subprocess
import sys
import textwrap

import numpy as np
import penstock
import pytest


def created(fluid, name, shape, dtype="float32"):
    return fluid.default_main_program().current_block().create_var(name=name, shape=shape, dtype=dtype)


def test_the_function_gets_tensors_and_its_arrays_become_variables(fluid):
    x, y = fluid.data("x", [None, 3]), fluid.data("y", [None, 3])
    total, product = created(fluid, "total", [-1, 3]), created(fluid, "product", [-1, 3])
    seen = []

    def both(a, b):
        seen.append((type(a), np.array(a)))
        return np.array(a) + np.array(b), np.array(a) * np.array(b)

    outs = fluid.layers.py_func(both, [x, y], [total, product])
    assert outs == [total, product]
    a, b = np.arange(6, dtype="float32").reshape(2, 3), np.full((2, 3), 2, "float32")
    exe = fluid.Executor()
    for _ in range(2):
        got = exe.run(feed={"x": a, "y": b}, fetch_list=[fluid.layers.scale(total, 1.0), product])
    np.testing.assert_array_equal(got[0], a + b)
    np.testing.assert_array_equal(got[1], a * b)
    assert seen[0][0] is fluid.LoDTensor and (seen[0][1] == a).all()


def tanh(fluid, x, **options):
    out = created(fluid, "tanh", list(x.shape))
    return fluid.layers.py_func(func=np.tanh, x=x, out=out, **options)


@pytest.mark.parametrize("skips", [False, True])
def test_the_gradient_is_a_function(fluid, skips):
    fluid.default_startup_program().random_seed = 3
    x = fluid.data("x", [None, 4])
    hidden = fluid.layers.fc(x, 4, param_attr="w", bias_attr=False)
    given = []

    def backward(*args):
        given.append(len(args))
        y, dy = args[-2:]
        return np.array(dy) * (1 - np.square(np.array(y)))

    ours = tanh(fluid, hidden, backward_func=backward, skip_vars_in_backward_input=hidden if skips else None)
    builtin = fluid.layers.tanh(fluid.layers.fc(x, 4, param_attr="v", bias_attr=False))
    loss = fluid.layers.mean(fluid.layers.square(ours)) + fluid.layers.mean(fluid.layers.square(builtin))
    fluid.optimizer.SGD(0.5).minimize(loss)
    op = [op for op in fluid.default_main_program().global_block().ops if op.type == "py_func"][1]
    assert op.input("X") == ([] if skips else [hidden.name]) + ["tanh", "tanh@GRAD"]
    assert op.output("Out") == [hidden.name + "@GRAD"] and op.attr("backward_callable_id") == -1
    exe, scope = fluid.Executor(), fluid.global_scope()
    exe.run(fluid.default_startup_program())
    scope.find_var("v").get_tensor().set(np.array(scope.find_var("w").get_tensor()), fluid.CPUPlace())
    for step in range(3):
        exe.run(feed={"x": np.eye(4, dtype="float32") + step}, fetch_list=[loss])
    np.testing.assert_allclose(
        np.array(scope.find_var("w").get_tensor()), np.array(scope.find_var("v").get_tensor()), rtol=1e-5, atol=1e-6
    )
    assert given == [2 if skips else 3] * 3


def test_the_gradient_of_an_unneeded_input_may_be_none(fluid):
    x = fluid.data("x", [2, 2])
    w = fluid.layers.create_parameter([2, 2], "float32", name="w")
    out = created(fluid, "out", [2, 2])
    fluid.layers.py_func(
        lambda a, b: np.array(a) * np.array(b), [x, w], out, lambda a, b, y, dy: (None, np.array(dy) * np.array(a))
    )
    ((_, grad),) = fluid.backward.append_backward(fluid.layers.reduce_sum(out))
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    a = np.array([[1, 2], [3, 4]], "float32")
    np.testing.assert_array_equal(exe.run(feed={"x": a}, fetch_list=[grad])[0], a)


def test_without_a_backward_function_no_gradient_flows(fluid):
    w = fluid.layers.create_parameter([2], "float32", name="w")
    v = fluid.layers.create_parameter([2], "float32", name="v")
    out = tanh(fluid, w)
    loss = fluid.layers.reduce_sum(out * v)
    assert [p.name for p, _ in fluid.backward.append_backward(loss)] == ["v"]


def test_a_function_may_have_no_inputs_or_no_outputs(fluid):
    x = fluid.data("x", [1])
    seen, counter = [], created(fluid, "counter", [1], "int64")
    fluid.layers.py_func(lambda: np.array([len(seen)]), None, counter)
    fluid.layers.py_func(lambda a: seen.append(float(np.array(a)[0])), x, None)
    exe = fluid.Executor()
    counts = [exe.run(feed={"x": np.array([k], "float32")}, fetch_list=[counter])[0][0] for k in range(3)]
    assert counts == [0, 1, 2] and seen == [0, 1, 2]


def test_sequences_are_passed_in_and_out(fluid):
    x = fluid.layers.data("x", [1], lod_level=1)
    block = fluid.default_main_program().current_block()
    out = block.create_var(name="out", shape=[-1, 1], dtype="float32", lod_level=1)

    def reverse(a):
        assert a.recursive_sequence_lengths() == [[2, 1]]
        return fluid.create_lod_tensor(np.array(a)[::-1], [[1, 2]], fluid.CPUPlace())

    fluid.layers.py_func(reverse, x, out)
    pooled = fluid.layers.sequence_pool(out, "sum")
    fed = fluid.create_lod_tensor(np.array([[1], [2], [4]], "float32"), [[2, 1]], fluid.CPUPlace())
    assert fluid.Executor().run(feed={"x": fed}, fetch_list=[pooled])[0].tolist() == [[4], [3]]


def test_arrays_kept_by_the_function_do_not_change(fluid):
    """The memory behind a temporary serves others later in the step."""
    x = fluid.data("x", [1000])
    kept = []
    half = fluid.layers.scale(x, 0.5)
    fluid.layers.py_func(lambda a: kept.append(a), half, None)
    last = half
    for _ in range(4):
        last = fluid.layers.scale(last, 2.0)
    exe = fluid.Executor()
    for k in (1, 2):
        exe.run(feed={"x": np.full(1000, k, "float32")}, fetch_list=[last])
    assert [np.unique(np.array(one)).tolist() for one in kept] == [[0.5], [1.0]]


def test_an_exception_of_the_function_is_the_cause_of_the_error(fluid):
    x = fluid.data("x", [None, 1])

    def fussy(a):
        raise LookupError("nothing here")

    out = fluid.layers.py_func(fussy, x, created(fluid, "out", [-1, 1]))
    with pytest.raises(penstock.StateError) as error:
        fluid.Executor().run(feed={"x": np.ones((1, 1), "float32")}, fetch_list=[out])
    assert isinstance(error.value.__cause__, LookupError)
    text = str(error.value)
    assert text.startswith("py_func: fussy raised LookupError: nothing here") and "in fussy" in text
    assert "out = py_func(X=x)" in text and error.value.id == "E-py-func-raised"


@pytest.mark.parametrize(
    "made, says",
    [
        (lambda a: np.ones((2, 3)), "returned f64[2, 3] for out, which is declared f32[?, 1]"),
        (lambda a: np.ones((2, 3), "float32"), "returned f32[2, 3] for out, which is declared f32[?, 1]"),
        (lambda a: None, "returned no value for out"),
        (lambda a: (a, a), "returned 2 values for 1 outputs"),
    ],
)
def test_results_that_contradict_the_declaration_are_errors(fluid, made, says):
    x = fluid.data("x", [None, 1])
    out = fluid.layers.py_func(made, x, created(fluid, "out", [-1, 1]))
    with pytest.raises(penstock.ProgramError) as error:
        fluid.Executor().run(feed={"x": np.ones((1, 1), "float32")}, fetch_list=[out])
    assert says in str(error.value)


def test_invalid_layer_arguments_are_errors(fluid):
    x = fluid.data("x", [None, 1])
    out = created(fluid, "out", [-1, 1])
    with pytest.raises(TypeError, match="func must be callable"):
        fluid.layers.py_func("tanh", x, out)
    with pytest.raises(TypeError, match="x must be a Variable or a list of them"):
        fluid.layers.py_func(np.tanh, "x", out)
    with pytest.raises(ValueError, match="the shape of bare, an output of py_func, must be set"):
        fluid.layers.py_func(np.tanh, x, created(fluid, "bare", []))
    with pytest.raises(ValueError, match="other cannot be skipped, because it is neither in x nor in out"):
        fluid.layers.py_func(np.tanh, x, out, np.tanh, fluid.data("other", [1]))


def test_a_process_without_the_function_reports_it(fluid, tmp_path):
    out = tanh(fluid, fluid.data("x", [None, 1]))
    assert fluid.layers.py_func.registered_func(fluid.layers.py_func.registered_func_num() - 1) is np.tanh
    path = tmp_path / "program"
    path.write_bytes(fluid.default_main_program().desc.serialize_to_string())
    script = textwrap.dedent("""
        import sys
        import numpy
        import penstock.fluid as fluid
        program = fluid.Program.parse_from_string(open(sys.argv[1], 'rb').read())
        fluid.Executor().run(program, feed={'x': numpy.ones((1, 1), 'float32')}, fetch_list=[sys.argv[2]])
    """)
    done = subprocess.run([sys.executable, "-c", script, str(path), out.name], capture_output=True, text=True)
    assert done.returncode != 0 and "py_func: this process has no function" in done.stderr
    assert "it has made 0" in done.stderr and "E-py-func-gone" in done.stderr
