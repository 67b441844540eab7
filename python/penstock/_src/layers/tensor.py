"""Creating, casting and joining tensors."""

from __future__ import annotations

import operator

import numpy

from penstock._src.ir.argument_types import ArgumentError
from penstock._src.ir.types import VarType, dtype_name, float_attr, nearest_float32, require_equal_in, to_dtype
from penstock._src.ir.variable import Variable
from penstock._src.layers.decorators import Attrs, layer, op_layer
from penstock._src.layers.helper import LayerHelper, describe
from penstock._src.parameters.initializer import VALUES_MAX, Constant, Initializer
from penstock._src.parameters.param_attr import ParamAttr

__all__ = [
    "argmax",
    "argmin",
    "argsort",
    "assign",
    "cast",
    "concat",
    "create_global_var",
    "create_parameter",
    "create_tensor",
    "fill_constant",
    "fill_constant_batch_size_like",
    "gaussian_random",
    "has_inf",
    "has_nan",
    "isfinite",
    "ones",
    "range",
    "sum",
    "sums",
    "uniform_random",
    "zeros",
]


def create_tensor(dtype, name=None, persistable=False):
    """Declares a variable of a given type without a shape, for ops to write.

    Args:
        dtype (str | VarType): type of its elements.
        name (str | None): its name; None: a generated one.
        persistable (bool): whether its value stays in the scope between runs and is saved.

    Returns:
        Variable: the variable, without a shape, of type `dtype`.

    Example:
        t = fluid.layers.create_tensor('float32')
    """
    helper = LayerHelper("create_tensor", name=name)
    return helper.create_variable(name=helper.name, dtype=dtype, persistable=persistable)


def create_parameter(shape, dtype, name=None, attr=None, is_bias=False, default_initializer=None):
    """Creates a parameter: a persistable variable that is trained and that the startup program initialises.

    Args:
        shape (list[int]): its shape.
        dtype (str | VarType): type of its elements.
        name (str | None): its name; None: a generated one.
        attr (ParamAttr | None): initializer, regularizer, learning rate and more.
        is_bias (bool): whether the default initial value is 0 instead of Xavier's.
        default_initializer (Initializer | None): used if `attr` has no initializer.

    Returns:
        Parameter: the parameter.

    Raises:
        TypeError: `shape` is not a list or tuple, or `default_initializer` is not an Initializer.

    Example:
        w = fluid.layers.create_parameter([4, 2], 'float32')
    """
    helper = LayerHelper("create_parameter", name=name)
    if not isinstance(shape, (list, tuple)):
        raise TypeError(f"create_parameter: shape must be a list or tuple, not {type(shape).__name__}")
    if default_initializer is not None and not isinstance(default_initializer, Initializer):
        raise TypeError(
            f"create_parameter: default_initializer must be an Initializer, not {type(default_initializer).__name__}"
        )
    attr = ParamAttr(name=name) if attr is None else attr
    return helper.create_parameter(attr, list(shape), to_dtype(dtype), is_bias, default_initializer)


def create_global_var(shape, value, dtype, persistable=False, force_cpu=False, name=None):
    """Creates a variable of the main program that the startup program fills with one value.

    Args:
        shape (list[int]): its shape.
        value (float): initial value of each element.
        dtype (str | VarType): type of its elements.
        persistable (bool): whether its value stays in the scope between runs and is saved.
        force_cpu (bool): keep it in host memory.
        name (str | None): its name; None: a generated one.

    Returns:
        Variable: the variable, of shape `shape` and type `dtype`, with stop_gradient set.

    Example:
        step = fluid.layers.create_global_var([1], 0, 'int64', persistable=True, name='step')
    """
    helper = LayerHelper("global_var", name=name)
    require_equal_in(to_dtype(dtype), float_attr(value), "create_global_var")
    var = helper.create_global_variable(
        dtype=dtype, shape=list(shape), persistable=persistable, name=name, stop_gradient=True
    )
    helper.set_variable_initializer(var, Constant(float_attr(value), force_cpu))
    return var


def int_list(helper, numbers, dtype="int32"):
    """Returns (attribute, Variables of one element) for numbers of which some may be Variables.

    The second list is empty if no number is a Variable.
    """

    def constant(number):
        return fill_constant([1], dtype, number, force_cpu=True, out=helper.create_variable_for_type_inference(dtype))

    return _int_list(helper, numbers, given=lambda var: var, constant=constant)


def _int_list(helper, numbers, given, constant):
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


def _shape_inputs(helper, shape):
    """Returns (slots, attribute) for a shape that is or contains Variables; int64 Variables are cast to int32."""

    def int32(var):
        return cast(var, "int32") if var.dtype == VarType.INT64 else var

    if isinstance(shape, Variable):
        shape.stop_gradient = True
        return {"ShapeTensor": int32(shape)}, []
    attr, variables = _int_list(
        helper, shape, given=int32, constant=lambda number: fill_constant([1], "int32", number, force_cpu=True)
    )
    return {"ShapeTensorList": variables} if variables else {}, attr


@layer("fill_constant", fluid_accepts={"shape": "int32 int64", "dtype": "bool float16 float32 float64 int32 int64"})
def fill_constant(shape, dtype, value, force_cpu=False, out=None):
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
    attrs = {"force_cpu": force_cpu}
    inputs, attrs["shape"] = _shape_inputs(helper, shape)
    if isinstance(value, Variable):
        inputs["ValueTensor"] = value
    else:
        attrs.update(_value_attrs(value, dtype, "fill_constant"))
    if out is None:
        out = helper.create_variable_for_type_inference(dtype)
    attrs["dtype"] = int(out.dtype)
    helper.append_op("fill_constant", inputs, {"Out": out}, attrs)
    out.stop_gradient = True
    return out


def fill_constant_batch_size_like(input, shape, dtype, value, input_dim_idx=0, output_dim_idx=0, force_cpu=False):
    """Creates a tensor filled with one value, taking one extent of its shape from another tensor.

    Args:
        input (Variable): the tensor that provides the extent; any shape and type.
        shape (list[int]): the shape; the extent at `output_dim_idx` is replaced.
        dtype (str | VarType): type of its elements.
        value (float | int): the value.
        input_dim_idx (int): axis of `input` whose extent is taken.
        output_dim_idx (int): axis of the result that gets it.
        force_cpu (bool): keep the tensor in host memory.

    Returns:
        Variable: the tensor, of shape `shape` and type `dtype`, with stop_gradient set.

    Raises:
        TypeError: `input` is not a Variable, or `dtype` is not an element type.
        penstock.ProgramError: `input` has no axis `input_dim_idx`.

    Example:
        x = fluid.data('x', [None, 8])
        zeros = fluid.layers.fill_constant_batch_size_like(x, [-1, 4], 'float32', 0.0)
        assert zeros.shape == (-1, 4)
    """
    helper = LayerHelper("fill_constant_batch_size_like")
    dtype = to_dtype(dtype)
    out = helper.create_variable_for_type_inference(dtype)
    helper.append_op(
        "fill_constant_batch_size_like",
        {"Input": input},
        {"Out": out},
        {
            "shape": list(shape),
            "dtype": int(dtype),
            **_value_attrs(value, dtype, "fill_constant_batch_size_like"),
            "input_dim_idx": input_dim_idx,
            "output_dim_idx": output_dim_idx,
            "force_cpu": force_cpu,
        },
    )
    out.stop_gradient = True
    return out


def _value_attrs(value, dtype, layer):
    """Returns the attributes of a constant: str_value replaces `value`, a float32, which cannot represent every int64
    and float64."""
    number = int if dtype in (VarType.INT64, VarType.INT32) else float
    value = number(value) if isinstance(value, str) else value
    require_equal_in(dtype, value, layer)
    return {"value": nearest_float32(value), "str_value": str(number(value))}


def zeros(shape, dtype, force_cpu=False):
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
def ones(shape, dtype, force_cpu=False):
    """Creates a tensor of ones.

    Example:
        o = fluid.layers.ones([2, 3], 'float32')
    """
    return fill_constant(shape, dtype, 1.0, force_cpu)


@layer()
def uniform_random(shape, dtype="float32", min=-1.0, max=1.0, seed=0):
    """Creates a tensor of random numbers, uniformly distributed in [min, max).

    Args:
        dtype (str | VarType): float32 or float64.
        min (float): lower bound.
        max (float): upper bound.

    Returns:
        Variable: the tensor, of type `dtype`.

    Raises:
        TypeError: `shape` contains a value that is neither an int nor a Variable.

    Example:
        u = fluid.layers.uniform_random([3, 4], min=0.0, max=1.0, seed=7)
    """
    helper = LayerHelper("uniform_random")
    inputs = {}
    if isinstance(shape, Variable):
        shape.stop_gradient = True
        inputs["ShapeTensor"], shape = shape, []
    else:
        shape, variables = int_list(helper, shape, "int64")
        if variables:
            inputs["ShapeTensorList"] = variables
    return _random(helper, inputs, dtype, {"shape": shape, "min": min, "max": max, "seed": seed})


@layer()
def gaussian_random(shape, mean=0.0, std=1.0, seed=0, dtype="float32"):
    """Creates a tensor of random numbers, normally distributed.

    Args:
        mean (float): mean of the distribution.
        std (float): its standard deviation.
        dtype (str | VarType): float32 or float64.

    Returns:
        Variable: the tensor, of type `dtype`.

    Raises:
        TypeError: `shape` contains a value that is neither an int nor a Variable.

    Example:
        g = fluid.layers.gaussian_random([3, 4], std=0.1, seed=7)
    """
    helper = LayerHelper("gaussian_random")
    inputs, shape = _shape_inputs(helper, shape)
    return _random(helper, inputs, dtype, {"shape": shape, "mean": mean, "std": std, "seed": seed})


def _random(helper, inputs, dtype, attrs):
    dtype = to_dtype(dtype)
    out = helper.create_variable_for_type_inference(dtype)
    helper.append_op(helper.layer_type, inputs, {"Out": out}, dict(attrs, dtype=int(dtype)))
    return out


@layer(
    "cast",
    fluid_accepts={
        "x": "bool uint8 int32 int64 float16 float32 float64",
        "dtype": "bool uint8 int8 int32 int64 float16 float32 float64",
    },
)
def cast(x, dtype):
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
def concat(input, axis=0, name=None):
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


def is_array(parts):
    """Returns whether the inputs of concat are one array of tensors instead of a list of tensors."""
    arrays = [part for part in parts if part.type == VarType.LOD_TENSOR_ARRAY]
    if arrays and len(parts) > 1:
        raise ValueError(f"{arrays[0].name} is an array: it is joined alone, not with {len(parts) - 1} others")
    return bool(arrays)


def join_array(helper, array, out, axis, use_stack):
    index = helper.create_variable_for_type_inference("int32")
    attrs = {"axis": axis, "use_stack": use_stack}
    helper.append_op("tensor_array_to_tensor", {"X": array}, {"Out": out, "OutIndex": index}, attrs)
    return out


@layer(fluid_accepts={"input out": "int32 int64 float32 float64"})
def sums(input, out=None):
    """Adds tensors of one shape, or selected rows, element by element.

    Args:
        input (list[Variable] | Variable): the addends, of one shape and type.
        out (Variable | None): receives the result, same shape and type as the addends; it may be one of them.

    Returns:
        Variable: the sum, same shape and type as the addends.

    Raises:
        TypeError: an addend is not a Variable, or has an unsupported element type.
        ValueError: `input` is empty.

    Example:
        a = fluid.data('a', [None, 3])
        b = fluid.data('b', [None, 3])
        total = fluid.layers.sums([a, b])
    """
    helper = LayerHelper("sum", input=input)
    inputs = helper.multiple_input()
    if out is None:
        out = helper.create_variable_for_type_inference(inputs[0].dtype)
    helper.append_op("sum", {"X": inputs}, {"Out": out}, {"use_mkldnn": False})
    return out


@layer("sum", fluid_accepts={"x": "int32 int64 float32 float64"})
def sum(x):
    """Adds tensors of one shape, or selected rows, element by element; the same as `sums` without `out`.

    Args:
        x (list[Variable] | Variable): the addends, of one shape and type.

    Returns:
        Variable: the sum, same shape and type as the addends.

    Raises:
        TypeError: an addend is not a Variable, or has an unsupported element type.
        ValueError: `x` is empty.

    Example:
        a = fluid.data('a', [None, 3])
        b = fluid.data('b', [None, 3])
        total = fluid.layers.sum([a, b])
    """
    return sums(x)


@layer("assign", fluid_accepts={"input": "bool int32 int64 float16 float32 float64"})
def assign(input, output=None):
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


def range(start, end, step, dtype):
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


@op_layer(
    "arg_max", fluid_accepts={"x": "uint8 int16 int32 int64 float32 float64"}, prefix="arg_max", stop_gradient=True
)
def argmax(x: Variable, axis: int = 0) -> Attrs:
    """Returns the indices of the largest elements along an axis; the first one if several are equal.

    Returns:
        Variable: the shape of `x` without that axis, int64.

    Example:
        x = fluid.data('x', [None, 10])
        best = fluid.layers.argmax(x, axis=1)
    """


@op_layer(
    "arg_min", fluid_accepts={"x": "uint8 int16 int32 int64 float32 float64"}, prefix="arg_min", stop_gradient=True
)
def argmin(x: Variable, axis: int = 0) -> Attrs:
    """Returns the indices of the smallest elements along an axis; the first one if several are equal.

    Returns:
        Variable: the shape of `x` without that axis, int64.

    Example:
        x = fluid.data('x', [None, 10])
        worst = fluid.layers.argmin(x, axis=1)
    """


@layer("argsort", fluid_accepts={"input": "uint8 int16 int32 int64 float32 float64"})
def argsort(input, axis=-1, descending=False, name=None):
    """Sorts the elements along one axis.

    Args:
        descending (bool): sort in descending order.

    Returns:
        tuple[Variable, Variable]: the sorted elements, same shape and type as `input`, and the index of each in
            `input`, same shape as `input`, int64.

    Example:
        x = fluid.data('x', [None, 10])
        ordered, positions = fluid.layers.argsort(x, axis=1)
    """
    helper = LayerHelper("argsort", name=name).takes(input=input)
    out = helper.create_variable_for_type_inference(input.dtype, stop_gradient=True)
    indices = helper.create_variable_for_type_inference("int64", stop_gradient=True)
    helper.append_op(
        "argsort", {"X": input}, {"Out": out, "Indices": indices}, {"axis": axis, "descending": descending}
    )
    return out, indices


@op_layer("isfinite", fluid_accepts={"x": "int32 int64 float32 float64"})
def isfinite(x: Variable) -> Attrs:
    """Tests whether all elements are finite.

    Returns:
        Variable: shape [1], bool.
    """


@op_layer("isinf", prefix="isinf")
def has_inf(x: Variable) -> Attrs:
    """Tests whether any element is infinite.

    Returns:
        Variable: shape [1], bool.
    """


@op_layer("isnan", prefix="isnan")
def has_nan(x: Variable) -> Attrs:
    """Tests whether any element is NaN.

    Returns:
        Variable: shape [1], bool.
    """
