"""Programs that no layer makes, with mismatched ops: each gives an error, and none crashes the process."""

import numpy as np
import penstock
import pytest


def run_op(fluid, op, inputs, outputs, attrs):
    """One hand-made op on temporaries; an in-place output has the name of its input."""
    main = fluid.Program()
    block = main.global_block()
    feed = {}
    for slot, value in inputs.items():
        block.create_var(name=f"fed_{slot}", shape=value.shape, dtype=str(value.dtype), is_data=True)
        block.create_var(name=slot, shape=value.shape, dtype=str(value.dtype))
        block.append_op("assign", {"X": [f"fed_{slot}"]}, {"Out": [slot]})
        feed[f"fed_{slot}"] = value
    for name in outputs.values():
        if not block.has_var(name):
            block.create_var(name=name)
    block.append_op(op, {slot: [slot] for slot in inputs}, {slot: [name] for slot, name in outputs.items()}, attrs)
    return fluid.Executor(fluid.CPUPlace()).run(main, feed=feed, fetch_list=list(outputs.values()))


X = np.arange(6, dtype="float32").reshape(2, 3)
COLUMN = np.ones((3, 1), "float32")


@pytest.mark.parametrize(
    "op, inputs, outputs, attrs, says",
    [
        (
            "cast",
            {"X": X},
            {"Out": "X"},
            {"in_dtype": 5, "out_dtype": 3},
            r"cast: Out \(i64\[2, 3\]\) and X \(f32\[2, 3\]\) are one variable",
        ),
        ("elementwise_add", {"X": X, "Y": X[0]}, {"Out": "Y"}, {}, "are one variable"),
        ("mul", {"X": X, "Y": COLUMN}, {"Out": "X"}, {}, "must be another variable than X"),
        ("top_k", {"X": X}, {"Out": "top", "Indices": "top"}, {"k": 1}, "are one variable"),
        ("gather", {"X": X, "Index": np.array([1, 0])}, {"Out": "X"}, {}, "must be another variable than X"),
        ("transpose2", {"X": X}, {"Out": "X"}, {"axis": [1, 0]}, "must be another variable than X"),
        ("argsort", {"X": X}, {"Out": "X", "Indices": "i"}, {}, "must be another variable than X"),
        ("sigmoid", {"X": X}, {}, {}, "output Out is missing"),
        ("smooth_l1_loss", {"X": X, "Y": X}, {"Out": "o"}, {}, "output Diff is missing"),
        ("top_k", {"X": X}, {"Out": "top"}, {"k": 1}, "output Indices is missing"),
    ],
)
def test_mismatched_arguments_are_reported(fluid, op, inputs, outputs, attrs, says):
    with pytest.raises(penstock.ProgramError, match=says):
        run_op(fluid, op, inputs, outputs, attrs)


def test_a_fed_variable_may_be_overwritten_with_another_type(fluid):
    main = fluid.Program()
    block = main.global_block()
    for name in "xy":
        block.create_var(name=name, shape=[2, 3], dtype="float32", is_data=True)
    block.append_op("cast", {"X": ["x"]}, {"Out": ["y"]}, {"in_dtype": 5, "out_dtype": 3})
    exe = fluid.Executor(fluid.CPUPlace())
    (out,) = exe.run(main, feed={"x": X, "y": X}, fetch_list=["y"])
    np.testing.assert_array_equal(out, X.astype("int64"))


def test_a_number_beyond_32_bits_is_not_an_int_attribute(fluid):
    main = fluid.Program()
    main.global_block().create_var(name="x")
    with pytest.raises(penstock.ProgramError, match="dtype is 1099511627776, but must be of kind int"):
        main.global_block().append_op("fill_constant", {}, {"Out": ["x"]}, {"shape": [1], "dtype": 1 << 40})


def test_a_fed_gradient_keeps_its_shape(fluid):
    """Fluid declares it like another variable; variables without a data layer are not compared."""
    main = fluid.Program()
    main.global_block().create_var(name="x", shape=[9, 4], dtype="float32")
    main.global_block().create_var(name="y")
    main.global_block().append_op("scale", {"X": ["x"]}, {"Out": ["y"]}, {"scale": 2.0})
    (out,) = fluid.Executor(fluid.CPUPlace()).run(main, feed={"x": X}, fetch_list=["y"])
    np.testing.assert_array_equal(out, 2 * X)


def test_an_op_may_overwrite_a_variable_of_the_same_size(fluid):
    (out,) = run_op(fluid, "scale", {"X": X}, {"Out": "X"}, {"scale": 2.0})
    np.testing.assert_array_equal(out, 2 * X)
