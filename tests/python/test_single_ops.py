"""fluid.op.Operator runs single ops in a scope, as op tests do: here a small one, in the style of Fluid's, compares
results and gradients with NumPy's and with finite differences."""

import numpy as np
import penstock
import pytest


class OpCase:
    """One op with arrays for its inputs: {slot: array} or {slot: [(name, array)]}."""

    def __init__(self, fluid, kind, inputs, outputs, attrs=None):
        self.fluid, self.kind, self.attrs = fluid, kind, attrs or {}
        self.scope, self.place = fluid.Scope(), fluid.CPUPlace()
        self.inputs = {slot: value if isinstance(value, list) else [(slot, value)] for slot, value in inputs.items()}
        self.names = {slot: [name for name, _ in named] for slot, named in self.inputs.items()}
        for named in self.inputs.values():
            for name, array in named:
                self.scope.var(name).get_tensor().set(array, self.place)
        for name in outputs:
            self.scope.var(name).get_tensor()
        self.op = fluid.op.Operator(kind, **self.names, **{name: name for name in outputs}, **self.attrs)

    def run(self, output):
        self.op.run(self.scope, self.place)
        return np.array(self.scope.find_var(output).get_tensor())

    def slope(self, name, output, delta=1e-4):
        """The gradient of the mean of `output` by finite differences."""
        tensor = self.scope.find_var(name).get_tensor()
        grad = np.zeros(tensor.shape(), "float64")
        for i in range(grad.size):
            at = tensor._get_double_element(i)
            tensor._set_double_element(i, at + delta)
            above = self.run(output).mean()
            tensor._set_double_element(i, at - delta)
            grad.flat[i] = (above - self.run(output).mean()) / (2 * delta)
            tensor._set_double_element(i, at)
        return grad

    def gradient(self, name, output):
        """The same by append_backward."""
        fluid = self.fluid
        program = fluid.Program()
        with fluid.program_guard(program, fluid.Program()):
            block = program.global_block()
            for named in self.inputs.values():
                for var, array in named:
                    block.create_var(name=var, shape=array.shape, dtype=array.dtype)
            block.append_op(self.kind, self.names, {output: output}, self.attrs)
            op = block.ops[-1]
            op.desc.infer_var_type(block.desc)
            op.desc.infer_shape(block.desc)
            fluid.backward.append_backward(fluid.layers.mean(block.var(output)), parameter_list=[name])
        feed = {var: array for named in self.inputs.values() for var, array in named}
        return fluid.Executor(self.place).run(program, feed=feed, fetch_list=[name + "@GRAD"])[0]


def numbers(*shape):
    return np.random.RandomState(7).uniform(0.3, 1.0, shape)


CASES = {
    "mul": ({"X": numbers(2, 3), "Y": numbers(3, 4)}, {}, lambda X, Y: X @ Y),
    "elementwise_add": ({"X": numbers(2, 3), "Y": numbers(3)}, {"axis": -1}, lambda X, Y: X + Y),
    "tanh": ({"X": numbers(2, 3)}, {}, lambda X: np.tanh(X)),
    "scale": ({"X": numbers(2, 3)}, {"scale": 2.0, "bias": 1.0}, lambda X: 2 * X + 1),
    "concat": (
        {"X": [("a", numbers(2, 3)), ("b", numbers(2, 1))]},
        {"axis": 1},
        lambda a, b: np.concatenate([a, b], 1),
    ),
}


@pytest.mark.parametrize("kind", CASES)
def test_single_ops_return_results_and_gradients(fluid, kind):
    inputs, attrs, expected = CASES[kind]
    case = OpCase(fluid, kind, inputs, ["Out"], attrs)
    arrays = {name: array for named in case.inputs.values() for name, array in named}
    np.testing.assert_allclose(case.run("Out"), expected(**arrays), rtol=1e-12)
    for name in arrays:
        np.testing.assert_allclose(case.slope(name, "Out"), case.gradient(name, "Out"), rtol=1e-6, atol=1e-9)


def test_one_op_may_run_with_other_shapes_and_types(fluid):
    case = OpCase(fluid, "relu", {"X": np.array([-1.0, 2.0], "float32")}, ["Out"])
    assert case.run("Out").tolist() == [0.0, 2.0]
    case.scope.find_var("X").get_tensor().set(np.array([[3.0], [-4.0], [5.0]], "float64"), case.place)
    out = case.run("Out")
    assert out.tolist() == [[3.0], [0.0], [5.0]] and out.dtype == np.float64


def test_an_optimizer_updates_the_scope_in_place(fluid):
    scope, place = fluid.Scope(), fluid.CPUPlace()
    for name, values in (("param", [[1.0, 2.0]]), ("grad", [[0.5, 1.0]]), ("rate", [0.1])):
        scope.var(name).get_tensor().set(np.array(values, "float32"), place)
    sgd = fluid.op.Operator("sgd", Param="param", Grad="grad", LearningRate="rate", ParamOut="param")
    for expected in ([[0.95, 1.9]], [[0.9, 1.8]]):
        sgd.run(scope, place)
        np.testing.assert_allclose(np.array(scope.find_var("param").get_tensor()), expected, rtol=1e-6)


def test_single_ops_use_selected_rows_of_the_scope(fluid):
    scope, place = fluid.Scope(), fluid.CPUPlace()
    scope.var("param").get_tensor().set(np.ones((4, 2), "float32"), place)
    scope.var("rate").get_tensor().set(np.array([0.5], "float32"), place)
    grad = scope.var("grad").get_selected_rows()
    grad.set_height(4)
    grad.set_rows([0, 3])
    grad.get_tensor().set(np.array([[1, 1], [2, 2]], "float32"), place)
    fluid.op.Operator("sgd", Param="param", Grad="grad", LearningRate="rate", ParamOut="param").run(scope, place)
    assert np.array(scope.find_var("param").get_tensor()).tolist() == [[0.5, 0.5], [1, 1], [1, 1], [0, 0]]


def test_invalid_operators_are_refused(fluid):
    with pytest.raises(ValueError, match="no_such_op is not registered"):
        fluid.op.Operator("no_such_op", X="x")
    with pytest.raises(ValueError, match="slot X of op relu takes one variable, not 2"):
        fluid.op.Operator("relu", X=["a", "b"], Out="y")
    with pytest.raises(ValueError, match="takes the type"):
        fluid.op.Operator()
    op = fluid.op.Operator(type="relu", X="x", Out="y")
    assert (op.type(), op.input_vars(), op.output_vars()) == ("relu", ["x"], ["y"])
    assert fluid.op.Operator.get_op_inputs("concat")[0] == ("X", True)
    with pytest.raises(penstock.StateError):
        op.run(fluid.Scope(), fluid.CPUPlace())  # the scope has no x


def test_tensor_elements_can_be_read_and_set(fluid):
    tensor, place = fluid.LoDTensor(), fluid.CPUPlace()
    tensor._set_dims([2, 3])
    tensor._alloc_double(place)
    tensor._set_double_element(4, 1.5)
    assert np.array(tensor).tolist() == [[0, 0, 0], [0, 1.5, 0]] and tensor._get_double_element(4) == 1.5
    tensor._set_dims([6])
    assert tensor._get_dims() == [6] and tensor._get_double_element(4) == 1.5
    with pytest.raises(IndexError, match="element 6 of 6"):
        tensor._get_double_element(6)
    with pytest.raises(penstock.StateError, match="E-element-type"):
        tensor._get_float_element(0)
    tensor.set_recursive_sequence_lengths([[2, 4]])
    where = fluid.core.Place()
    where.set_place(place)
    copy = tensor._copy(where)
    tensor._set_double_element(0, 9.0)
    assert copy._get_double_element(0) == 0.0 and copy.recursive_sequence_lengths() == [[2, 4]]


def test_tensor_arrays_can_be_read_and_set(fluid):
    scope, place = fluid.Scope(), fluid.CPUPlace()
    one = fluid.LoDTensor()
    one.set(np.array([1.0], "float32"), place)
    array = scope.var("a").get_lod_tensor_array()
    array.append(one)
    array.append(one)
    one.set(np.array([2.0], "float32"), place)
    array[1] = one
    assert isinstance(array, fluid.LoDTensorArray)
    assert [np.array(tensor).tolist() for tensor in scope.find_var("a").get_lod_tensor_array()] == [[1.0], [2.0]]
    with pytest.raises(penstock.StateError, match="E-array-kind"):
        scope.var("t").get_tensor().set(np.array([1.0], "float32"), place)
        scope.find_var("t").get_lod_tensor_array().append(one)


def test_fetch_var_returns_a_scope_value(fluid):
    scope = fluid.Scope()
    scope.var("x").get_tensor().set(np.array([1, 2], "int64"), fluid.CPUPlace())
    assert fluid.executor._fetch_var("x", scope).tolist() == [1, 2]
    assert fluid.executor._fetch_var("x", scope, return_numpy=False).shape() == [2]
    with pytest.raises(ValueError, match="no variable y"):
        fluid.executor._fetch_var("y", scope)


def test_flags_are_set_by_name(fluid):
    flags = fluid.core.globals()
    assert flags["FLAGS_use_mkldnn"] is False and "FLAGS_check_nan_inf" in flags
    with pytest.warns(UserWarning, match="no effect"):
        flags["FLAGS_a_flag_of_a_test"] = 3
    assert flags["FLAGS_a_flag_of_a_test"] == 3
    with pytest.raises(KeyError):
        flags["FLAGS_nobody_has_set"]
