"""Random numbers, integers, permutations and crops."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy

from penstock._src.ir import unique_name
from penstock._src.ir.argument_types import ArgumentError, require_types, types_of
from penstock._src.ir.types import VarType, dtype_name, to_dtype
from penstock._src.ir.variable import Variable
from penstock._src.layers.decorators import Attrs, layer, op_layer
from penstock._src.layers.helper import LayerHelper, require_kind
from penstock._src.layers.tensor import int_list, shape_inputs
from penstock._src.parameters.initializer import Constant

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


def _shape_attrs(layer: str, shape: Any, dtype: Any) -> dict[str, Any]:
    require_kind(layer, list, shape=shape)
    return {"shape": list(shape), "dtype": int(to_dtype(dtype))}


@op_layer("uniform_random_batch_size_like", fluid_accepts={"input": "float32 float64"})
def uniform_random_batch_size_like(
    input: Variable,
    shape: Sequence[int],
    dtype: str | VarType = "float32",
    input_dim_idx: int = 0,
    output_dim_idx: int = 0,
    min: float = -1.0,
    max: float = 1.0,
    seed: int = 0,
) -> Attrs:
    """Draws numbers from a uniform distribution over [min, max), taking one extent of the shape from another tensor.

    Args:
        input: the tensor that provides the extent; with sequences, the extent is their number.
        shape: the shape of the result; the extent at `output_dim_idx` is replaced.
        dtype: float32 or float64.
        input_dim_idx: the axis of `input` whose extent is taken.
        output_dim_idx: the axis of the result that gets it.
        min: lower bound, inclusive.
        max: upper bound, exclusive.

    Returns:
        Variable: shape `shape` with the extent of `input`, type `dtype`.

    Raises:
        penstock.ProgramError: `min` is above `max`, or an axis does not exist.
        TypeError: `input` is not a Variable, or has an unsupported element type, or `shape` is not a list.

    Example:
        y = fluid.layers.uniform_random_batch_size_like(fluid.data('x', [None, 3]), [-1, 11])
    """
    return _shape_attrs("uniform_random_batch_size_like", shape, dtype)


@op_layer("gaussian_random_batch_size_like", like=uniform_random_batch_size_like)
def gaussian_random_batch_size_like(
    input: Variable,
    shape: Sequence[int],
    input_dim_idx: int = 0,
    output_dim_idx: int = 0,
    mean: float = 0.0,
    std: float = 1.0,
    seed: int = 0,
    dtype: str | VarType = "float32",
) -> Attrs:
    """Draws normally distributed numbers, taking one extent of the shape from another tensor.

    Args:
        input: the tensor that provides the extent, any type; with sequences, the extent is their number.

    Raises:
        penstock.ProgramError: `std` is negative, or an axis does not exist.
        TypeError: `input` is not a Variable, or `shape` is not a list.

    Example:
        y = fluid.layers.gaussian_random_batch_size_like(fluid.data('x', [None, 3]), [-1, 11])
    """
    return _shape_attrs("gaussian_random_batch_size_like", shape, dtype)


@op_layer("sampling_id")
def sampling_id(x: Variable, min: float = 0.0, max: float = 1.0, seed: int = 0, dtype: str = "float32") -> Attrs:
    """Draws a column index for each row, from the row's distribution.

    Args:
        x: the probabilities, shape [rows, columns]; each row sums to 1.
        min: lower bound of the uniform random number that selects a column by the cumulative sums of a row.
        max: upper bound of that number, exclusive.
        dtype: has no effect: the values are int64, as in Fluid.

    Returns:
        Variable: shape [rows], int64.

    Raises:
        penstock.ProgramError: `x` is not a matrix, or `min` is above `max`.

    Example:
        shares = fluid.layers.softmax(fluid.data('x', [None, 5]))
        classes = fluid.layers.sampling_id(shares)
    """


@layer("randint", fluid_accepts={"dtype out": "int32 int64"})
def randint(
    low: int,
    high: int | None = None,
    shape: Variable | Sequence[Any] | None = None,
    out: Variable | None = None,
    dtype: str | None = None,
    device: str | None = None,
    stop_gradient: bool = False,
    seed: int = 0,
    name: str | None = None,
) -> Variable:
    """Draws integers from a uniform distribution over [low, high).

    Args:
        low (int): lower bound, inclusive; without `high`, the range is [0, low).
        high (int): upper bound, exclusive.
        shape (Variable or list): the shape, by default [1]; a list may hold Variables.
        dtype (str): the type, by default int64.
        name (str): the result's name; by default a generated one.

    Returns:
        Variable: shape `shape`, type `dtype`.

    Raises:
        TypeError: `shape` is not a list, tuple or Variable, or the type of `dtype` or `out` is neither int32 nor int64.
        ValueError: `low` is not below `high`, or `shape` is empty.

    Example:
        dice = fluid.layers.randint(1, 7, shape=[2, 3])
    """
    if high is None:
        low, high = 0, low
    if low >= high:
        raise ValueError(f"randint: low ({low}) must be below high ({high})")
    helper = LayerHelper("randint", name=name)
    inputs: dict[str, Any] = {}
    attrs: dict[str, Any] = {}
    shape = [1] if shape is None else shape
    if not isinstance(shape, (list, tuple, Variable)):
        raise TypeError(f"randint: shape must be a list, a tuple or a Variable, not {shape!r}")
    if isinstance(shape, Variable):
        shape.stop_gradient = True
        inputs["ShapeTensor"] = shape
    elif not isinstance(shape, (list, tuple)):
        raise TypeError(f"randint: shape must be a list, a tuple or a Variable, not {type(shape).__name__}")
    elif not shape:
        raise ValueError("randint: shape must not be empty")
    else:
        attrs["shape"], variables = int_list(helper, shape, "int64")
        if variables:
            inputs["ShapeTensorList"] = variables
    kind = to_dtype("int64" if dtype is None else dtype)
    if out is None and name is not None:
        out = helper.create_variable(name=name, dtype=kind, persistable=False)
    elif out is None:
        out = helper.create_variable_for_type_inference(kind)
    attrs.update(low=low, high=high, seed=seed, dtype=int(out.dtype))
    out.stop_gradient = stop_gradient
    helper.append_op("randint", inputs, {"Out": out}, attrs)
    return out


@layer(fluid_accepts={"dtype": "float32 float64"})
def randn(
    shape: Sequence[Any],
    out: Variable | None = None,
    dtype: str | None = None,
    device: str | None = None,
    stop_gradient: bool = True,
    name: str | None = None,
) -> Variable:
    """Draws numbers from the standard normal distribution (mean 0, standard deviation 1).

    Args:
        shape (list): the shape.
        dtype (str): the type, by default float32.

    Returns:
        Variable: shape `shape`, type `dtype`.

    Raises:
        TypeError: `shape` is not a list, or `dtype` is neither float32 nor float64.
        ValueError: `shape` is empty.

    Example:
        noise = fluid.layers.randn([2, 3])
    """
    helper = LayerHelper("randn", name=name)
    require_kind("randn", list, shape=shape)
    if not shape:
        raise ArgumentError("randn: shape must not be empty")
    kind = to_dtype("float32" if dtype is None else dtype)
    if out is None:
        out = helper.create_variable_for_type_inference(kind)
    out.stop_gradient = stop_gradient
    # Fluid draws the seed from NumPy too, so numpy.random.seed makes a script reproducible.
    helper.append_op(
        "gaussian_random",
        None,
        {"Out": out},
        {
            "shape": list(shape),
            "mean": 0.0,
            "std": 1.0,
            "seed": int(numpy.random.randint(0, 100)),
            "dtype": int(kind),
            "use_mkldnn": False,
        },
    )
    return out


@layer()
def randperm(
    n: int,
    out: Variable | None = None,
    dtype: str = "int64",
    device: str | None = None,
    stop_gradient: bool = True,
    seed: int = 0,
) -> Variable:
    """Returns a random permutation of 0 ... n - 1.

    Args:
        n (int): the number of numbers, at least 1.
        dtype (str): int64 or int32.
        device (str): None, 'cpu' or 'gpu'; has no effect, because the place of the executor decides.
        seed (int): seed of the permutation; 0: a different one in each run.

    Returns:
        Variable: shape [n], type `dtype`.

    Raises:
        TypeError: `dtype` is neither int32 nor int64, or `out` has another type.
        ValueError: `n` is below 1, or `device` has another value.

    Example:
        order = fluid.layers.randperm(6)
    """
    if n < 1:
        raise ValueError(f"randperm: n must be at least 1, not {n!r}")
    if device not in (None, "cpu", "gpu"):
        raise ValueError(f"randperm: device must be None, 'cpu' or 'gpu', not {device!r}")
    helper = LayerHelper("randperm")
    require_types("randperm", "dtype", dtype, types_of("int32 int64"))
    if out is not None:
        helper.takes(out=out)
        require_types("randperm", "out", out, types_of(dtype_name(dtype)))
    else:
        out = helper.create_variable_for_type_inference(dtype)
    if stop_gradient:
        out.stop_gradient = True
    helper.append_op("randperm", None, {"Out": out}, {"n": n, "dtype": int(out.dtype), "seed": seed})
    return out


def seed_variable(helper: LayerHelper, name: str, seed: int) -> Variable:
    """Creates a persistable variable that passes a seed from run to run; the startup program sets the initial seed."""
    variable = helper.create_variable(name=unique_name.generate(name), shape=[1], dtype="int64", persistable=True)
    helper.set_variable_initializer(variable, Constant(float(seed)))
    return variable


@layer("random_crop", fluid_accepts={"x": "uint8 int16 int32 float32 float64"})
def random_crop(x: Variable, shape: Sequence[Any], seed: int | Variable | None = None) -> Variable:
    """Crops a box at a random position from each instance.

    Args:
        x (Variable): shape [instances..., *box]; the leading axes that `shape` leaves out are instances.
        shape (list): the extents of the cropped box.
        seed (int or Variable): the initial seed, or an int64 Variable of one element that holds the seed; by default
            NumPy draws one.

    Returns:
        Variable: shape [instances..., *shape], same type as `x`.

    Raises:
        TypeError: `x` is not a Variable, or has an unsupported element type, or `shape` is not a list.
        ValueError: `seed` is neither an int nor a Variable.
        penstock.ProgramError: the box is larger than `x`.

    Example:
        patches = fluid.layers.random_crop(fluid.data('image', [None, 3, 32, 32]), [3, 28, 28])
    """
    helper = LayerHelper("random_crop").takes(x=x)
    require_kind("random_crop", list, shape=shape)
    out = helper.create_variable_for_type_inference(x.dtype)
    attrs: dict[str, Any] = {"shape": list(shape)}
    seed = numpy.random.randint(-65536, 65536) if seed is None else seed
    seed_var = seed
    if not isinstance(seed, Variable):
        if not isinstance(seed, (int, numpy.integer)):
            raise ValueError(f"random_crop: seed must be an int or a Variable, not {seed!r}")
        attrs["startup_seed"] = int(seed)
        seed_var = seed_variable(helper, "random_crop_seed", int(seed))
    helper.append_op("random_crop", {"X": x, "Seed": seed_var}, {"Out": out, "SeedOut": seed_var}, attrs)
    return out


@layer()
def uniform_random(
    shape: Sequence[int | Variable] | Variable,
    dtype: str | VarType = "float32",
    min: float = -1.0,
    max: float = 1.0,
    seed: int = 0,
) -> Variable:
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
    inputs: dict[str, Any] = {}
    if isinstance(shape, Variable):
        shape.stop_gradient = True
        inputs["ShapeTensor"], shape = shape, []
    else:
        shape, variables = int_list(helper, shape, "int64")
        if variables:
            inputs["ShapeTensorList"] = variables
    return _random(helper, inputs, dtype, {"shape": shape, "min": min, "max": max, "seed": seed})


@layer(like=uniform_random)
def gaussian_random(
    shape: Sequence[int | Variable] | Variable,
    mean: float = 0.0,
    std: float = 1.0,
    seed: int = 0,
    dtype: str | VarType = "float32",
) -> Variable:
    """Creates a tensor of random numbers, normally distributed.

    Args:
        mean (float): mean of the distribution.
        std (float): its standard deviation.

    Example:
        g = fluid.layers.gaussian_random([3, 4], std=0.1, seed=7)
    """
    helper = LayerHelper("gaussian_random")
    inputs, shape = shape_inputs(helper, shape)
    return _random(helper, inputs, dtype, {"shape": shape, "mean": mean, "std": std, "seed": seed})


def _random(helper: LayerHelper, inputs: dict[str, Any], dtype: Any, attrs: dict[str, Any]) -> Variable:
    dtype = to_dtype(dtype)
    out = helper.create_variable_for_type_inference(dtype)
    helper.append_op(helper.layer_type, inputs, {"Out": out}, dict(attrs, dtype=int(dtype)))
    return out
