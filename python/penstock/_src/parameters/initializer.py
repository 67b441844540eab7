"""Initializers: each adds the op that sets a variable's initial value to a startup program."""

from __future__ import annotations

import contextlib
import math
import numbers
from typing import TYPE_CHECKING

import numpy

from penstock._src.base.doc_texts import with_texts
from penstock._src.ir import unique_name
from penstock._src.ir.array_conversion import to_array
from penstock._src.ir.types import VarType, nearest_float32, require_equal_in, require_finite, require_numbers

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from penstock._src.ir.block import Block
    from penstock._src.ir.operator import Operator
    from penstock._src.ir.typing import Array
    from penstock._src.ir.variable import Variable


_FLOATS = (VarType.FP16, VarType.FP32, VarType.FP64)


def _stand_in(var: Variable, block: Block, label: str) -> Variable:
    """Returns the variable to fill: for a float16 variable, a float32 variable from which it is cast; otherwise the
    variable itself."""
    if var.dtype != VarType.FP16:
        return var
    return block.create_var(
        name=unique_name.generate(f"{label}.{var.name}.tmp"),
        shape=var.shape,
        dtype=VarType.FP32,
        type=VarType.LOD_TENSOR,
        persistable=False,
    )


def _cast_from(out: Variable, var: Variable, block: Block) -> None:
    if out is not var:
        attrs = {"in_dtype": int(out.dtype), "out_dtype": int(var.dtype)}
        block.append_op("cast", {"X": out}, {"Out": var}, attrs)


class Initializer:
    """Base class of the initializers: each adds the op that sets a variable's initial value to a startup program."""

    def __call__(self, param: Variable, block: Block) -> Operator:
        raise NotImplementedError

    _seed = 0
    _label: str | None = None  # prefix of the name of the float32 variable; by default the op type

    def _prepend(self, var: Variable, block: Block, op: str, attrs: dict[str, Any]) -> Operator:
        if op != "fill_constant" and var.dtype not in _FLOATS:
            raise TypeError(f"{type(self).__name__} fills variables of floats; {var.name} is {var.dtype.name}")
        out = _stand_in(var, block, self._label or op)
        attrs["shape"] = var.shape
        attrs["dtype"] = int(out.dtype)
        # Fluid declares the empty input slots only of uniform_random.
        made = block._prepend_op(op, {} if op == "uniform_random" else None, {"Out": out}, attrs)
        _cast_from(out, var, block)
        return made

    def _seed_in(self, block: Block) -> int:
        """Returns the seed, or the program's seed if the initializer has none."""
        return self._seed or block.program.random_seed

    @staticmethod
    def _fans(var: Variable) -> tuple[int, int]:
        """Returns the numbers of inputs and outputs of a unit of this weight."""
        shape = var.shape
        if len(shape) == 0:
            return 1, 1
        if len(shape) == 1:
            return shape[0], shape[0]
        if len(shape) == 2:
            return shape[0], shape[1]
        receptive = math.prod(shape[2:])
        return shape[1] * receptive, shape[0] * receptive


class ConstantInitializer(Initializer):
    """Fills a variable with one value.

    Args:
        value (float): the value.
        force_cpu (bool): keep the variable in host memory.

    Example:
        y = fluid.layers.fc(fluid.data('x', [None, 4]), 2, param_attr=fluid.initializer.Constant(0.5))
    """

    _label = "constant_init"

    def __init__(self, value: float = 0.0, force_cpu: bool = False) -> None:
        require_numbers("Constant", value=value)
        self._value = value
        self._force_cpu = force_cpu

    def __call__(self, var: Variable, block: Block) -> Operator:
        require_equal_in(var.dtype, self._value, f"Constant for {var.name}")
        nearest, is_int = nearest_float32(self._value), isinstance(self._value, numbers.Integral)
        attrs: dict[str, Any] = {"value": nearest, "force_cpu": self._force_cpu}
        if nearest != self._value if is_int else math.isinf(nearest) != math.isinf(self._value):
            attrs["str_value"] = str((int if is_int else float)(self._value))  # which replaces `value`
        return self._prepend(var, block, "fill_constant", attrs)


class UniformInitializer(Initializer):
    """Draws initial values uniformly from [low, high).

    Args:
        low (float): lower bound.
        high (float): upper bound.
        seed (int): seed of the random numbers; 0: the program's `random_seed`.
        diag_num (int): number of diagonal elements that are set to `diag_val`.
        diag_step (int): distance between them, in elements.
        diag_val (float): their value.

    Raises:
        ValueError: `low` is above `high`.

    Example:
        y = fluid.layers.fc(fluid.data('x', [None, 4]), 2, param_attr=fluid.initializer.Uniform(-0.1, 0.1))
    """

    def __init__(
        self,
        low: float = -1.0,
        high: float = 1.0,
        seed: int = 0,
        diag_num: int = 0,
        diag_step: int = 0,
        diag_val: float = 1.0,
    ) -> None:
        require_finite("Uniform", low=low, high=high, seed=seed)
        if low > high:
            raise ValueError(f"Uniform: low ({low}) must not be above high ({high})")
        self._low = low
        self._high = high
        self._seed = seed
        self._diag = (diag_num, diag_step, diag_val)

    def __call__(self, var: Variable, block: Block) -> Operator:
        number, step, value = self._diag
        return self._prepend(
            var,
            block,
            "uniform_random",
            {
                "min": self._low,
                "max": self._high,
                "seed": self._seed_in(block),
                "diag_num": number,
                "diag_step": step,
                "diag_val": value,
            },
        )


class NormalBase(Initializer):
    """Adds an op that draws from a normal distribution."""

    _op = ""

    def __init__(self, loc: float = 0.0, scale: float = 1.0, seed: int = 0) -> None:
        require_finite(type(self).__name__.removesuffix("Initializer"), loc=loc, scale=scale, seed=seed)
        self._mean = loc
        self._std = scale
        self._seed = seed

    def __call__(self, var: Variable, block: Block) -> Any:
        return self._prepend(var, block, self._op, {"mean": self._mean, "std": self._std, "seed": self._seed_in(block)})


_NORMAL = {
    "arguments": """Args:
    loc (float): mean.
    scale (float): standard deviation.
    seed (int): seed of the random numbers; 0: the program's `random_seed`.

Example:
    y = fluid.layers.fc(fluid.data('x', [None, 4]), 2, param_attr=fluid.initializer.{kind}(0.0, 0.1))"""
}


@with_texts(_NORMAL, kind="Normal")
class NormalInitializer(NormalBase):
    """Draws initial values from a normal distribution.

    {arguments}
    """

    _op = "gaussian_random"


@with_texts(_NORMAL, kind="TruncatedNormal")
class TruncatedNormalInitializer(NormalBase):
    """Draws initial values from a normal distribution, truncated at two standard deviations.

    {arguments}
    """

    _op = "truncated_gaussian_random"


class XavierInitializer(Initializer):
    """Draws initial values whose variance is 2 / (fan_in + fan_out).

    Args:
        uniform (bool): True: from a uniform distribution; False: from a normal distribution.
        fan_in (int | None): number of inputs of a unit; None: derived from the shape.
        fan_out (int | None): number of outputs of a unit; None: derived from the shape.
        seed (int): seed of the random numbers; 0: the program's `random_seed`.

    Example:
        y = fluid.layers.fc(fluid.data('x', [None, 4]), 2, param_attr=fluid.initializer.Xavier())

    Reference:
        Glorot and Bengio, Understanding the difficulty of training deep feedforward neural networks, AISTATS 2010.
    """

    _label = "xavier_init"

    def __init__(
        self, uniform: bool = True, fan_in: int | None = None, fan_out: int | None = None, seed: int = 0
    ) -> None:
        require_numbers("Xavier", seed=seed)
        self._uniform = uniform
        self._fan_in = fan_in
        self._fan_out = fan_out
        self._seed = seed

    def __call__(self, var: Variable, block: Block) -> Operator:
        fan_in, fan_out = self._fans(var)
        fan_in = fan_in if self._fan_in is None else self._fan_in
        fan_out = fan_out if self._fan_out is None else self._fan_out
        seed = self._seed_in(block)
        if self._uniform:
            limit = math.sqrt(6.0 / float(fan_in + fan_out))
            return self._prepend(var, block, "uniform_random", {"min": -limit, "max": limit, "seed": seed})
        std = math.sqrt(2.0 / float(fan_in + fan_out))
        return self._prepend(var, block, "gaussian_random", {"mean": 0.0, "std": std, "seed": seed})


class MSRAInitializer(Initializer):
    """Draws initial values whose variance is 2 / fan_in.

    Args:
        uniform (bool): True: from a uniform distribution; False: from a normal distribution.
        fan_in (int | None): number of inputs of a unit; None: derived from the shape.
        seed (int): seed of the random numbers; 0: the program's `random_seed`.

    Example:
        images = fluid.data('images', [None, 3, 8, 8])
        y = fluid.layers.conv2d(images, 4, 3, param_attr=fluid.initializer.MSRA())

    Reference:
        He et al., Delving Deep into Rectifiers, ICCV 2015.
    """

    _label = "masra_init"  # as in Fluid

    def __init__(self, uniform: bool = True, fan_in: int | None = None, seed: int = 0) -> None:
        require_numbers("MSRA", seed=seed)
        self._uniform = uniform
        self._fan_in = fan_in
        self._seed = seed

    def __call__(self, var: Variable, block: Block) -> Operator:
        fan_in = self._fans(var)[0] if self._fan_in is None else self._fan_in
        seed = self._seed_in(block)
        if self._uniform:
            limit = math.sqrt(6.0 / float(fan_in))
            return self._prepend(var, block, "uniform_random", {"min": -limit, "max": limit, "seed": seed})
        return self._prepend(
            var, block, "gaussian_random", {"mean": 0.0, "std": math.sqrt(2.0 / float(fan_in)), "seed": seed}
        )


VALUES_MAX = 1024 * 1024  # maximum number of elements in an op's attribute
_VALUE_SLOTS = {VarType.FP32: ("fp32_values", "float32"), VarType.INT32: ("int32_values", "int32")}


def _prepend_values(kind: str, label: str, array: Array, var: Variable, block: Block) -> Operator:
    """Adds the op that contains the array, which becomes part of the program."""
    if array.size > VALUES_MAX:
        raise ValueError(
            f"the array has {array.size} elements; an initial value in the program may have at most {VALUES_MAX}"
        )
    out = _stand_in(var, block, label)
    if out.dtype not in _VALUE_SLOTS:
        raise ValueError(f"{kind} fills float16, float32 and int32 variables; {var.name} is {var.dtype.name}")
    slot, dtype = _VALUE_SLOTS[out.dtype]
    values = to_array(array, dtype, var.name, kind).ravel().tolist()
    attrs = {"dtype": int(out.dtype), "shape": list(array.shape), slot: values}
    made = block._prepend_op("assign_value", None, {"Out": out}, attrs)
    _cast_from(out, var, block)
    return made


class BilinearInitializer(Initializer):
    """Sets the filters of a conv2d_transpose so that it enlarges images by bilinear interpolation.

    The variable has the shape [channels, filters, width, width].

    Example:
        images = fluid.data('images', [None, 3, 8, 8])
        y = fluid.layers.conv2d_transpose(images, 3, filter_size=4, stride=2, padding=1, groups=3,
                                          param_attr=fluid.initializer.Bilinear(), bias_attr=False)
    """

    def __call__(self, var: Variable, block: Block) -> Operator:
        shape = var.shape
        if len(shape) != 4 or shape[2] != shape[3]:
            raise ValueError(f"BilinearInitializer fills [., ., n, n]; {var.name} is {list(shape)}")
        half = math.ceil(shape[3] / 2)
        centre = (2 * half - 1 - half % 2) / (2.0 * half)
        along = 1 - numpy.abs(numpy.arange(shape[3]) / half - centre)
        filters = numpy.broadcast_to(numpy.outer(along, along), shape)
        return _prepend_values("BilinearInitializer", "bilinear_init", filters, var, block)


class NumpyArrayInitializer(Initializer):
    """Sets a variable to an array, which becomes part of the startup program.

    Args:
        value (numpy.ndarray): the values, at most 1,048,576 elements.

    Raises:
        TypeError: `value` is not an array.

    Example:
        w = fluid.initializer.NumpyArrayInitializer(np.ones((4, 2), 'float32'))
        y = fluid.layers.fc(fluid.data('x', [None, 4]), 2, param_attr=w)
    """

    def __init__(self, value: Array) -> None:
        if not isinstance(value, numpy.ndarray):
            raise TypeError(f"NumpyArrayInitializer takes a numpy array, not {type(value).__name__}")
        self._value = value

    def __call__(self, var: Variable, block: Block) -> Operator:
        return _prepend_values("NumpyArrayInitializer", "numpy_array_init", self._value, var, block)


Constant = ConstantInitializer
Uniform = UniformInitializer
Normal = NormalInitializer
TruncatedNormal = TruncatedNormalInitializer
Xavier = XavierInitializer
MSRA = MSRAInitializer
Bilinear = BilinearInitializer


@contextlib.contextmanager
def init_on_cpu() -> Iterator[None]:
    """In older scripts, initializers created inside keep their values in host memory, as all initializers do in
    Penstock.

    Fluid 1.8 has replaced it with device_guard('cpu').

    Example:
        with fluid.initializer.init_on_cpu():
            step = fluid.layers.create_global_var([1], 0.0, 'float32', persistable=True)
    """
    yield
