"""Tensors filled with one value or with evenly spaced values."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy

from penstock._src.ir.argument_types import ArgumentError
from penstock._src.ir.types import VarType, float_attr, require_equal_in, to_dtype
from penstock._src.ir.variable import Variable
from penstock._src.layers.decorators import Attrs, layer, op_layer
from penstock._src.layers.helper import LayerHelper, require_kind
from penstock._src.layers.tensor import assign, fill_constant, value_attrs
from penstock._src.layers.tensor import range as range_layer
from penstock._src.parameters.initializer import Constant, Initializer
from penstock._src.parameters.param_attr import ParamAttr

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from penstock._src.ir.variable import Parameter


@layer(fluid_accepts={"dtype": "bool int32 int64 float16 float32 float64"})
def full(
    shape: Variable | Sequence[Any],
    fill_value: float | Variable,
    out: Variable | None = None,
    dtype: str | None = None,
    device: str | None = None,
    stop_gradient: bool = True,
    name: str | None = None,
) -> Variable:
    """Creates a tensor filled with one value.

    Args:
        shape (Variable or list): its shape; a list may hold Variables.
        fill_value (float or Variable): the value; a Variable has one element.
        dtype (str): the type, by default float32.

    Returns:
        Variable: shape `shape`, type `dtype`.

    Raises:
        TypeError: `dtype` is not supported, or `out` has another type.
        ValueError: `shape` is empty.

    Example:
        x = fluid.layers.full([2, 3], 1.5)
    """
    if isinstance(shape, (list, tuple)) and not shape:
        raise ArgumentError("full: shape must not be empty")
    helper = LayerHelper("full", name=name)
    dtype = "float32" if dtype is None else dtype
    if out is None:
        out = helper.create_variable_for_type_inference(dtype)
    out = fill_constant(shape=shape, dtype=dtype, value=fill_value, out=out)
    out.stop_gradient = stop_gradient
    return out


@layer(fluid_accepts={"dtype": "bool int32 int64 float16 float32 float64"})
def full_like(
    input: Variable,
    fill_value: float,
    out: Variable | None = None,
    dtype: str | None = None,
    device: str | None = None,
    stop_gradient: bool = True,
    name: str | None = None,
) -> Variable:
    """Creates a tensor filled with one value in the shape of another tensor.

    Args:
        input (Variable): the tensor that provides the shape; any type.
        fill_value (float): the value.
        dtype (str): the type, by default that of `input`.

    Returns:
        Variable: same shape as `input`, type `dtype`.

    Raises:
        TypeError: `input` is not a Variable, or `dtype` is not supported.
        penstock.ProgramError: the op does not support the type of `input`.

    Example:
        y = fluid.layers.full_like(fluid.data('x', [None, 3]), 2.0, dtype='int64')
    """
    helper = LayerHelper("full_like", name=name).takes(input=input)
    kind = input.dtype if dtype is None else to_dtype(dtype)
    if out is None:
        out = helper.create_variable_for_type_inference(kind)
    attrs = {"value": float_attr(fill_value), "dtype": int(kind)}
    helper.append_op("fill_any_like", {"X": input}, {"Out": out}, attrs)
    out.stop_gradient = stop_gradient
    return out


@layer(fluid_accepts={"x out": "bool int32 int64 float32 float64"})
def zeros_like(x: Variable, out: Variable | None = None) -> Variable:
    """Creates a tensor of zeros in the shape and type of another tensor.

    Args:
        x (Variable): the tensor that provides shape and type.

    Returns:
        Variable: same shape and type as `x`; it has no gradient.

    Example:
        zeros = fluid.layers.zeros_like(fluid.data('x', [None, 3]))
    """
    helper = LayerHelper("zeros_like").takes(x=x)
    if out is None:
        out = helper.create_variable_for_type_inference(x.dtype)
    helper.append_op("fill_zeros_like", {"X": x}, {"Out": out})
    out.stop_gradient = True
    return out


@op_layer(
    "fill_any_like", fluid_accepts={"x out": "bool int32 int64 float32 float64"}, prefix="ones_like", like=zeros_like
)
def ones_like(x: Variable, out: Variable | None = None) -> Attrs:
    """Creates a tensor of ones in the shape and type of another tensor.

    Returns:
        Variable: same shape and type as `x`.

    Example:
        ones = fluid.layers.ones_like(fluid.data('x', [None, 3], 'int64'))
    """
    return {"value": 1.0}


def arange(
    start: float | Variable,
    end: float | Variable,
    step: float | Variable = 1,
    dtype: str | None = None,
    name: str | None = None,
) -> Variable:
    """Creates the evenly spaced numbers start, start + step, ... up to but not including end.

    Args:
        start (float or Variable): the first number; a Variable has one element of type `dtype`.
        end (float or Variable): the bound, which is excluded; a Variable has one element of type `dtype`.
        step (float or Variable): the difference between neighbours; a Variable has one element of type `dtype`.
        dtype (str): float32 (the default), float64, int32 or int64.
        name (str): has no effect, as in Fluid.

    Returns:
        Variable: shape [-1], type `dtype`; it has no gradient.

    Raises:
        penstock.ProgramError: a Variable does not hold one element.

    Example:
        odd = fluid.layers.arange(1, 10, 2, 'int64')
    """
    return range_layer(start, end, step, "float32" if dtype is None else dtype)


@layer("linspace", fluid_accepts={"start stop": "float32 float64", "num": "int32"})
def linspace(start: float | Variable, stop: float | Variable, num: int | Variable, dtype: str) -> Variable:
    """Creates `num` evenly spaced numbers from start to stop, both included.

    Args:
        start (float or Variable): the first number; a Variable has one element of type `dtype`.
        stop (float or Variable): the last number; a Variable has one element of type `dtype`.
        num (int or Variable): the number of elements, at least 1.
        dtype (str): float32 or float64.

    Returns:
        Variable: shape [-1], same type as `start`.

    Raises:
        TypeError: a Variable has an unsupported element type.
        penstock.ProgramError: a Variable does not hold one element, or `num` is below 1 when the program runs.

    Example:
        x = fluid.layers.linspace(0.0, 1.0, 5, 'float32')   # 0, 0.25, 0.5, 0.75, 1
    """
    helper = LayerHelper("linspace")
    bounds = [one if isinstance(one, Variable) else fill_constant([1], dtype, one) for one in (start, stop)]
    num = num if isinstance(num, Variable) else fill_constant([1], "int32", num)
    out = helper.create_variable_for_type_inference(bounds[0].dtype)
    helper.append_op("linspace", {"Start": bounds[0], "Stop": bounds[1], "Num": num}, {"Out": out})
    return out


@layer()
def rank(input: Variable) -> Variable:
    """Returns the rank of a tensor, the number of its axes.

    Args:
        input (Variable): any shape and type.

    Returns:
        Variable: shape [], int32.

    Example:
        two = fluid.layers.rank(fluid.data('x', [None, 3]))
    """
    LayerHelper("rank").takes(input=input)
    return assign(numpy.array(len(input.shape), "int32"))


@op_layer("size")
def size(input: Variable) -> Attrs:
    """Returns the number of elements of a tensor.

    Returns:
        Variable: shape [1], int64.

    Example:
        count = fluid.layers.size(fluid.data('x', [None, 3]))
    """


def create_tensor(dtype: str | VarType, name: str | None = None, persistable: bool = False) -> Variable:
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


def create_parameter(
    shape: Sequence[int],
    dtype: str | VarType,
    name: str | None = None,
    attr: ParamAttr | None = None,
    is_bias: bool = False,
    default_initializer: Initializer | None = None,
) -> Parameter:
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
    require_kind("create_parameter", list, shape=shape)
    if default_initializer is not None and not isinstance(default_initializer, Initializer):
        raise TypeError(
            f"create_parameter: default_initializer must be an Initializer, not {type(default_initializer).__name__}"
        )
    attr = ParamAttr(name=name) if attr is None else attr
    parameter: Parameter = helper.create_parameter(attr, list(shape), to_dtype(dtype), is_bias, default_initializer)
    return parameter


def create_global_var(
    shape: Sequence[int],
    value: float,
    dtype: str | VarType,
    persistable: bool = False,
    force_cpu: bool = False,
    name: str | None = None,
) -> Variable:
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


@op_layer("fill_constant_batch_size_like", stop_gradient=True)
def fill_constant_batch_size_like(
    input: Variable,
    shape: Sequence[int],
    dtype: str | VarType,
    value: float | int,
    input_dim_idx: int = 0,
    output_dim_idx: int = 0,
    force_cpu: bool = False,
) -> Attrs:
    """Creates a tensor filled with one value, taking one extent of its shape from another tensor.

    Args:
        input: the tensor that provides the extent; any shape and type.
        shape: the shape; the extent at `output_dim_idx` is replaced.
        dtype: type of its elements.
        input_dim_idx: axis of `input` whose extent is taken.
        output_dim_idx: axis of the result that gets it.

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
    dtype = to_dtype(dtype)
    values = value_attrs(value, dtype, "fill_constant_batch_size_like")
    return {"shape": list(shape), "dtype": int(dtype), **values}
