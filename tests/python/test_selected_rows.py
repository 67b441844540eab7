"""Selected rows in scripts: set in a scope, passed to ops, read back."""

import numpy as np
import penstock
import pytest

ROWS = [5, 2, 5, 0]
VALUE = np.arange(8, dtype="float32").reshape(4, 2)


def put(fluid, scope, name, rows, height, value):
    held = scope.var(name).get_selected_rows()
    held.set_rows(rows)
    held.set_height(height)
    held.get_tensor().set(value, fluid.CPUPlace())
    held.sync_index()


def run(fluid, scope, op, inputs, outputs, rows_of):
    """One op on variables of the scope; `rows_of` are selected rows."""
    main = fluid.Program()
    for name in [name for names in (inputs, outputs) for slot in names.values() for name in slot]:
        if main.global_block().has_var(name):
            continue
        kind = fluid.core.VarDesc.VarType
        main.global_block().create_var(
            name=name,
            persistable=True,
            dtype="float32",
            shape=[1] if name == "lr" else [8, 2],
            type=kind.SELECTED_ROWS if name in rows_of else kind.LOD_TENSOR,
        )
    main.global_block().append_op(op, inputs, outputs)
    fluid.Executor(fluid.CPUPlace()).run(main, scope=scope)


def test_rows_have_a_height_and_a_tensor(fluid):
    rows = fluid.core.SelectedRows(ROWS, 8)
    rows.get_tensor().set(VALUE, fluid.CPUPlace())
    assert (rows.rows(), rows.height(), rows.numel()) == (ROWS, 8, 8)
    np.testing.assert_array_equal(np.array(rows.get_tensor()), VALUE)
    assert fluid.core.SelectedRows().numel() == 0


def test_a_variable_holds_rows_or_a_tensor(fluid):
    scope = fluid.Scope()
    put(fluid, scope, "rows", ROWS, 8, VALUE)
    with pytest.raises(penstock.StateError, match="holds no dense tensor"):
        scope.find_var("rows").get_tensor().shape()
    scope.var("dense").get_tensor().set(VALUE, fluid.CPUPlace())
    with pytest.raises(penstock.StateError, match="holds no selected rows"):
        scope.find_var("dense").get_selected_rows().rows()


def test_duplicate_rows_are_summed(fluid):
    scope = fluid.Scope()
    put(fluid, scope, "x", ROWS, 8, VALUE)
    run(fluid, scope, "merge_selected_rows", {"X": ["x"]}, {"Out": ["merged"]}, {"x", "merged"})
    merged = scope.find_var("merged").get_selected_rows()
    assert (merged.rows(), merged.height()) == ([0, 2, 5], 8)
    np.testing.assert_array_equal(np.array(merged.get_tensor()), [[6, 7], [2, 3], [4, 6]])


def test_a_row_update_equals_the_dense_update(fluid):
    scope = fluid.Scope()
    param = np.random.RandomState(0).rand(8, 2).astype("float32")
    put(fluid, scope, "g", ROWS, 8, VALUE)
    scope.var("p").get_tensor().set(param, fluid.CPUPlace())
    scope.var("lr").get_tensor().set(np.array([0.5], "float32"), fluid.CPUPlace())
    run(fluid, scope, "sgd", {"Param": ["p"], "Grad": ["g"], "LearningRate": ["lr"]}, {"ParamOut": ["p"]}, {"g"})
    np.add.at(param, ROWS, -0.5 * VALUE)
    np.testing.assert_allclose(np.array(scope.find_var("p").get_tensor()), param, rtol=1e-6)


@pytest.mark.parametrize(
    "rows, height, value",
    [
        ([5, 2, 9, 0], 8, VALUE),
        ([5, 2, -1, 0], 8, VALUE),
        (ROWS, 7, VALUE),
        (ROWS, 8, VALUE[:3]),
        (ROWS, 8, VALUE[:, :1]),
    ],
)
def test_mismatched_rows_are_refused(fluid, rows, height, value):
    scope = fluid.Scope()
    put(fluid, scope, "g", rows, height, value)
    scope.var("p").get_tensor().set(np.zeros((8, 2), "float32"), fluid.CPUPlace())
    scope.var("lr").get_tensor().set(np.array([0.5], "float32"), fluid.CPUPlace())
    with pytest.raises(penstock.ProgramError):
        run(fluid, scope, "sgd", {"Param": ["p"], "Grad": ["g"], "LearningRate": ["lr"]}, {"ParamOut": ["p"]}, {"g"})
