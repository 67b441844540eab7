"""Creating, casting and joining tensors."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING

import numpy

from penstock._src.ir.argument_types import ArgumentError
from penstock._src.ir.types import VarType, dtype_name, nearest_float32, require_equal_in, to_dtype
from penstock._src.ir.variable import Variable
from penstock._src.layers.decorators import layer
from penstock._src.layers.helper import LayerHelper, describe
from penstock._src.parameters.initializer import VALUES_MAX

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    from penstock._src.ir.typing import Array


def int_list(helper: LayerHelper, numbers: Iterable[Any], dtype: str = "int32") -> tuple[list[int], list[Variable]]:
    """Returns (attribute, Variables of one element) for numbers of which some may be Variables.

    The second list is empty if no number is a Variable.
    """

    def constant(number: Any) -> Variable:
        return fill_constant([1], dtype, number, force_cpu=True, out=helper.create_variable_for_type_inference(dtype))

    return _int_list(helper, numbers, given=lambda var: var, constant=constant)


def _int_list(
    helper: LayerHelper, numbers: Any, given: Callable[[Variable], Variable], constant: Callable[[Any], Variable]
) -> tuple[list[int], list[Variable]]:
    """Does the work of int_list; `given` converts a Variable, and `constant` converts a number to a Variable."""
    attr = []
    for one in numbers:
        if isinstance(one, Variable):
            one.stop_gradient = True
        try:
            attr.append(-1 if isinstance(one, Variable) else operator.index(one))
        except TypeError:
            raise TypeError(f"{helper.layer_type}: {one!r} must be an int or a Variable") from None
    if not any(isinstance(one, Variable) for one in numbers):
        return attr, []
    return attr, [given(one) if isinstance(one, Variable) else constant(one) for one in numbers]


def shape_inputs(helper: LayerHelper, shape: Any) -> tuple[dict[str, Any], list[int]]:
    """Returns (slots, attribute) for a shape that is or contains Variables; int64 Variables are cast to int32."""

    def int32(var: Variable) -> Variable:
        return cast(var, "int32") if var.dtype == VarType.INT64 else var

    if isinstance(shape, Variable):
        shape.stop_gradient = True
        return {"ShapeTensor": int32(shape)}, []
    attr, variables = _int_list(
        helper, shape, given=int32, constant=lambda number: fill_constant([1], "int32", number, force_cpu=True)
    )
    return {"ShapeTensorList": variables} if variables else {}, attr


@layer("fill_constant", fluid_accepts={"shape": "int32 int64", "dtype": "bool float16 float32 float64 int32 int64"})
def fill_constant(
    shape: Sequence[int | Variable] | Variable,
    dtype: str | VarType,
    value: float | int | Variable,
    force_cpu: bool = False,
    out: Variable | None = None,
) -> Variable:
    """Creates a tensor whose elements are all one value.

    Args:
        value (float | int | Variable): the value; a Variable has one element.
        out (Variable | None): receives the result; of type `dtype`.

    Returns:
        Variable: the tensor, of shape `shape` and type `dtype`, with stop_gradient set.

    Raises:
        TypeError: `out` has another type, `dtype` is not bool, float16, float32, float64, int32 or int64, or `shape`
            contains a value that is neither an int nor a Variable.
        ValueError: `shape` is empty.

    Example:
        one = fluid.layers.fill_constant([2, 3], 'float32', 1.0)
    """
    helper = LayerHelper("fill_constant")
    dtype = to_dtype(dtype)
    if isinstance(shape, (list, tuple)) and not shape:
        raise ArgumentError("fill_constant: shape must have an extent")
    if out is not None and helper.takes(out=out) and out.dtype != dtype:
        raise TypeError(f"fill_constant: out ({out.name}) is {dtype_name(out.dtype)}, not {dtype_name(dtype)}")
    attrs: dict[str, Any] = {"force_cpu": force_cpu}
    inputs, attrs["shape"] = shape_inputs(helper, shape)
    if isinstance(value, Variable):
        inputs["ValueTensor"] = value
    else:
        attrs.update(value_attrs(value, dtype, "fill_constant"))
    if out is None:
        out = helper.create_variable_for_type_inference(dtype)
    attrs["dtype"] = int(out.dtype)
    helper.append_op("fill_constant", inputs, {"Out": out}, attrs)
    out.stop_gradient = True
    return out


def value_attrs(value: Any, dtype: Any, layer: str) -> dict[str, Any]:
    """Returns the attributes of a constant: str_value replaces `value`, a float32, which cannot represent every int64
    and float64."""
    number = int if dtype in (VarType.INT64, VarType.INT32) else float
    value = number(value) if isinstance(value, str) else value
    require_equal_in(dtype, value, layer)
    return {"value": nearest_float32(value), "str_value": str(number(value))}


def zeros(shape: Sequence[int | Variable] | Variable, dtype: str | VarType, force_cpu: bool = False) -> Variable:
    """Creates a tensor of zeros.

    Args:
        shape (list[int | Variable] | Variable): the shape; Variables are int32 or int64.
        dtype (str | VarType): type of its elements.
        force_cpu (bool): keep the tensor in host memory.

    Returns:
        Variable: the tensor, of shape `shape` and type `dtype`, with stop_gradient set.

    Raises:
        TypeError: `dtype` is not supported by `fill_constant`.
        ValueError: `shape` is empty.

    Example:
        z = fluid.layers.zeros([2, 3], 'int64')
    """
    return fill_constant(shape, dtype, 0.0, force_cpu)


@layer(like=zeros)
def ones(shape: Sequence[int | Variable] | Variable, dtype: str | VarType, force_cpu: bool = False) -> Variable:
    """Creates a tensor of ones.

    Example:
        o = fluid.layers.ones([2, 3], 'float32')
    """
    return fill_constant(shape, dtype, 1.0, force_cpu)


@layer(
    "cast",
    fluid_accepts={
        "x": "bool uint8 int32 int64 float16 float32 float64",
        "dtype": "bool uint8 int8 int32 int64 float16 float32 float64",
    },
)
def cast(x: Variable, dtype: str | VarType) -> Variable:
    """Converts the elements to another type.

    Returns:
        Variable: same shape as `x`, of type `dtype`.

    Example:
        label = fluid.data('label', [None, 1], 'int64')
        y = fluid.layers.cast(label, 'float32')
    """
    helper = LayerHelper("cast").takes(x=x)
    dtype = to_dtype(dtype)
    out = helper.create_variable_for_type_inference(dtype)
    helper.append_op("cast", {"X": x}, {"Out": out}, {"in_dtype": int(x.dtype), "out_dtype": int(dtype)})
    return out


@layer("concat", fluid_accepts={"input": "int32 int64 float16 float32 float64"})
def concat(input: Sequence[Variable] | Variable, axis: int | Variable = 0, name: str | None = None) -> Variable:
    """Concatenates tensors along one axis.

    Args:
        input (list[Variable] | Variable): tensors of one type whose shapes differ at most in the extent of that axis,
            or one LoDTensorArray whose elements are joined.
        axis (int | Variable): the axis; negative: counted from the end; a Variable is int32 of shape [1].

    Returns:
        Variable: the joined tensor, the type of the inputs.

    Raises:
        TypeError: `input` is not a list of Variables, or a Variable has an unsupported element type.
        ValueError: `input` is empty, or holds an array beside other Variables.

    Example:
        a = fluid.data('a', [None, 3])
        b = fluid.data('b', [None, 5])
        assert fluid.layers.concat([a, b], axis=1).shape == (-1, 8)
    """
    helper = LayerHelper("concat", name=name, input=input)
    parts = helper.multiple_input()
    out = helper.create_variable_for_type_inference(helper.input_dtype())
    if is_array(parts):
        return join_array(helper, parts[0], out, axis, use_stack=False)
    if isinstance(axis, Variable):
        axis.stop_gradient = True
        helper.append_op("concat", {"X": parts, "AxisTensor": axis}, {"Out": out})
    else:
        helper.append_op("concat", {"X": parts}, {"Out": out}, {"axis": axis})
    return out


def is_array(parts: Sequence[Variable]) -> bool:
    """Returns whether the inputs of concat are one array of tensors instead of a list of tensors."""
    arrays = [part for part in parts if part.type == VarType.LOD_TENSOR_ARRAY]
    if arrays and len(parts) > 1:
        raise ValueError(f"{arrays[0].name} is an array: it is joined alone, not with {len(parts) - 1} others")
    return bool(arrays)


def join_array(helper: LayerHelper, array: Variable, out: Variable, axis: Any, use_stack: bool) -> Variable:
    index = helper.create_variable_for_type_inference("int32")
    attrs = {"axis": axis, "use_stack": use_stack}
    helper.append_op("tensor_array_to_tensor", {"X": array}, {"Out": out, "OutIndex": index}, attrs)
    return out


@layer(fluid_accepts={"input out": "int32 int64 float32 float64"})
def sums(input: Sequence[Variable] | Variable, out: Variable | None = None) -> Variable:
    """Adds tensors of one shape, or selected rows, element by element.

    Args:
        input (list[Variable] | Variable): the addends, of one shape and type.
        out (Variable | None): receives the result, same shape and type as the addends; it may be one of them.

    Returns:
        Variable: the sum, same shape and type as the addends.

    Raises:
        TypeError: an addend is not a Variable, or has an unsupported element type.
        ValueError: there are no addends.

    Example:
        a, b = fluid.data('a', [None, 3]), fluid.data('b', [None, 3])
        total = fluid.layers.sums([a, b])
    """
    helper = LayerHelper("sum", input=input)
    inputs = helper.multiple_input()
    if out is None:
        out = helper.create_variable_for_type_inference(inputs[0].dtype)
    helper.append_op("sum", {"X": inputs}, {"Out": out}, {"use_mkldnn": False})
    return out


@layer("sum", fluid_accepts={"x": "int32 int64 float32 float64"}, like=sums)
def sum(x: Sequence[Variable] | Variable) -> Variable:
    """Adds tensors of one shape, or selected rows, element by element; the same as `sums` without `out`.

    Args:
        x (list[Variable] | Variable): the addends, of one shape and type.

    Example:
        a, b = fluid.data('a', [None, 3]), fluid.data('b', [None, 3])
        total = fluid.layers.sum([a, b])
    """
    return sums(x)


@layer("assign", fluid_accepts={"input": "bool int32 int64 float16 float32 float64"})
def assign(input: Variable | Array, output: Variable | None = None) -> Variable:
    """Copies a variable, or puts a NumPy array into the program as a constant.

    Args:
        input (Variable | numpy.ndarray): what to copy: a Variable, or an array of these types with at most 1,048,576
            elements.
        output (Variable | None): receives the copy, same shape and type as `input`; None: a new Variable.

    Returns:
        Variable: the copy, same shape and type as `input`.

    Raises:
        ValueError: the array is too large.
        TypeError: `input` is neither a Variable nor an array, or has an unsupported element type.

    Example:
        table = fluid.layers.assign(np.eye(3, dtype='float32'))
    """
    helper = LayerHelper("assign")
    if isinstance(input, Variable):
        if output is None:
            output = helper.create_variable_for_type_inference(input.dtype)
        helper.append_op("assign", {"X": input}, {"Out": output})
        return output
    if not isinstance(input, numpy.ndarray):
        raise TypeError(f"assign: input must be a Variable or a numpy array, not {describe(input)}")
    if input.size > VALUES_MAX:
        raise ValueError(f"assign: the array has {input.size} elements; a program keeps at most {VALUES_MAX}")
    slots = {"bool": "bool_values", "float32": "fp32_values", "int32": "int32_values", "int64": "int64_values"}
    dtype = to_dtype(input.dtype)
    slot = slots.get(dtype_name(dtype))
    if slot is None:
        raise TypeError(f"assign takes arrays of {', '.join(slots)}, not {input.dtype}")
    if output is None:
        output = helper.create_variable_for_type_inference(dtype)
    helper.append_op(
        "assign_value",
        None,
        {"Out": output},
        {"dtype": int(dtype), "shape": list(input.shape), slot: input.ravel().tolist()},
    )
    return output


def range(
    start: int | float | Variable, end: int | float | Variable, step: int | float | Variable, dtype: str | VarType
) -> Variable:
    """Creates the numbers start, start + step, ... up to but not including end.

    Args:
        start (int | float | Variable): first number; a Variable has one element of type `dtype`.
        end (int | float | Variable): bound, which is excluded; a Variable has one element of type `dtype`.
        step (int | float | Variable): difference between neighbouring numbers, not 0; a Variable has one element of
            type `dtype`.
        dtype (str | VarType): type of the result.

    Returns:
        Variable: shape [number of elements], of type `dtype`, with stop_gradient set.

    Raises:
        TypeError: `dtype` is not supported by `fill_constant`, and a bound is a number.

    Example:
        numbers = fluid.layers.range(0, 10, 2, 'int64')
    """
    helper = LayerHelper("range")
    dtype = to_dtype(dtype)
    bounds = [one if isinstance(one, Variable) else fill_constant([1], dtype, one) for one in (start, end, step)]
    out = helper.create_variable_for_type_inference(dtype)
    helper.append_op("range", dict(zip(("Start", "End", "Step"), bounds)), {"Out": out})
    out.stop_gradient = True
    return out
