"""FLAGS_check_nan_inf: the error names the first op that makes a NaN or an Inf, with the variable, the counts and the
line."""

import os
import subprocess
import sys
import textwrap

import numpy as np
import penstock
import pytest


@pytest.fixture
def watched(fluid):
    fluid.set_flags({"FLAGS_check_nan_inf": 1})
    yield fluid
    fluid.set_flags({"FLAGS_check_nan_inf": False})


def test_the_first_op_that_produces_nan_is_named(watched):
    x = watched.data("x", [None, 2])
    root = watched.layers.sqrt(x)
    total = watched.layers.reduce_sum(watched.layers.scale(root, 2.0))
    exe = watched.Executor()
    good = np.ones((3, 2), "float32")
    assert exe.run(feed={"x": good}, fetch_list=[total])[0] == 12
    bad = good.copy()
    bad[1, 1] = bad[2, 0] = -1
    with pytest.raises(penstock.ProgramError) as error:
        exe.run(feed={"x": bad}, fetch_list=[total])
    text = str(error.value)
    assert text.startswith("sqrt: Out = sqrt_0.tmp_0 holds 2 nan and 0 inf in 6 elements, the first at [1, 1]")
    assert error.value.id == "E-run-nan"
    assert "sqrt_0.tmp_0 = sqrt(X=x)" in text and "test_nan_check.py" in text and "note" not in text


def test_nan_in_the_inputs_of_an_op_is_noted(watched):
    x = watched.data("x", [None, 2])
    out = watched.layers.scale(x, 2.0)
    with pytest.raises(penstock.ProgramError) as error:
        watched.Executor().run(feed={"x": np.array([[np.inf, np.nan]], "float32")}, fetch_list=[out])
    assert "holds 1 nan and 1 inf in 2 elements, the first at [0, 0]" in str(error.value)
    assert "note: its input x holds 1 nan and 1 inf" in str(error.value)


def test_diverging_parameters_are_reported_at_their_update(watched):
    x = watched.data("x", [None, 1])
    loss = watched.layers.mean(watched.layers.fc(x, 1, bias_attr=False, param_attr=watched.ParamAttr(name="w")))
    watched.optimizer.SGD(3e38).minimize(loss)
    exe = watched.Executor()
    exe.run(watched.default_startup_program())
    with pytest.raises(penstock.ProgramError, match="sgd: ParamOut = w holds 0 nan and 1 inf in 1 elements"):
        exe.run(feed={"x": np.full((1, 1), 10, "float32")}, fetch_list=[loss])


def test_nan_is_not_checked_by_default(fluid):
    out = fluid.layers.sqrt(fluid.data("x", [None]))
    assert np.isnan(fluid.Executor().run(feed={"x": -np.ones(1, "float32")}, fetch_list=[out])[0][0])


@pytest.mark.parametrize("value, says", [("1", "E-run-nan"), ("0", "fine")])
def test_the_environment_enables_the_nan_check(tmp_path, value, says):
    script = tmp_path / "train.py"
    script.write_text(
        textwrap.dedent("""
        import numpy as np
        import penstock
        import penstock.fluid as fluid
        out = fluid.layers.log(fluid.data('x', [None]))
        try:
            fluid.Executor().run(feed={'x': np.zeros(2, 'float32')}, fetch_list=[out])
            print('fine')
        except penstock.ProgramError as error:
            print(error.id)
    """)
    )
    got = subprocess.run(
        [sys.executable, str(script)],
        env=dict(os.environ, FLAGS_check_nan_inf=value),
        stdout=subprocess.PIPE,
        text=True,
        timeout=180,
    )
    assert got.stdout.strip() == says
