"""Variable and Parameter: handles on the variables of a block (program.py explains handles)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy

from penstock._src.ir import var_desc
from penstock._src.ir.types import VAR_TYPES, VarType, checked_shape, dtype_name, to_dtype
from penstock._src.ir.variable_ops import VariableOperators

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from penstock._penstock import VarFacts
    from penstock._src.ir.block import Block
    from penstock._src.ir.operator import Operator
    from penstock._src.ir.typing import Dtype
    from penstock._src.ir.var_desc import VarDesc
    from penstock._src.optimizer.clip import GradientClipBase
    from penstock._src.optimizer.error_clip import BaseErrorClipAttr
    from penstock._src.parameters.regularizer import WeightDecayRegularizer


GRAD_SUFFIX = "@GRAD"


def grad_var_name(var_name: str) -> str:
    """Returns the name of a variable's gradient.

    Args:
        var_name (str): name of the variable.

    Returns:
        str: the name with '@GRAD' appended.

    Example:
        assert fluid.framework.grad_var_name('w') == 'w@GRAD'
    """
    return var_name + GRAD_SUFFIX


class Variable(VariableOperators):
    """A variable of a block. Layers return Variables; arithmetic on them adds ops.

    Args:
        block (Block): the block.
        name (str): its name.

    Example:
        x = fluid.data('x', [None, 4])
        y = 2.0 * x + 1.0
        assert y.shape == (-1, 4)
    """

    __slots__ = ("block", "name", "_desc", "error_clip", "_infos", "__weakref__")

    def __init__(self, block: Block, name: str) -> None:
        self.block = block
        self.name = name
        self._desc = block.program.desc
        self.error_clip: BaseErrorClipAttr | None = None

    def _set_error_clip(self, error_clip: BaseErrorClipAttr | None) -> None:
        """Sets how its gradient is clipped within the backward pass, a fluid.clip.ErrorClipByValue; Fluid's name."""
        self.error_clip = error_clip

    @property
    def desc(self) -> VarDesc:
        """The variable as Fluid's VarDesc, a view: desc.name(), desc.shape(), desc.set_shape(shape) and so on."""
        return var_desc.VarDesc(self._desc, self.block.idx, self.name)

    @property
    def shape(self) -> tuple[int, ...]:
        """Its shape as a tuple; -1: known at run time."""
        return self._desc.var_shape(self.block.idx, self.name)

    @shape.setter
    def shape(self, shape: Sequence[int]) -> None:
        self._desc.set_var_shape(self.block.idx, self.name, checked_shape(self.name, shape))

    @property
    def dtype(self) -> VarType:
        """Type of its elements, a VarType."""
        return VAR_TYPES[self._desc.var_dtype(self.block.idx, self.name)]

    @dtype.setter
    def dtype(self, dtype: Dtype) -> None:
        self._desc.set_var_dtype(self.block.idx, self.name, int(to_dtype(dtype)))

    @property
    def lod_level(self) -> int:
        """Number of levels of sequences."""
        return self._desc.var_lod_level(self.block.idx, self.name)

    @property
    def type(self) -> VarType:
        """Kind of the variable, a VarType such as LOD_TENSOR."""
        return VAR_TYPES[self._desc.var_kind(self.block.idx, self.name)]

    @property
    def persistable(self) -> bool:
        """Whether its value stays in the scope between runs, and is saved."""
        return self._desc.var_persistable(self.block.idx, self.name)

    @persistable.setter
    def persistable(self, value: bool) -> None:
        self._desc.set_var_persistable(self.block.idx, self.name, bool(value))

    def _set_info(self, key: str, value: Any) -> None:
        """Stores a value of the caller under a name; it is not part of the program."""
        if not hasattr(self, "_infos"):
            self._infos = {}
        self._infos[key] = value

    def _get_info(self, key: str) -> Any:
        return getattr(self, "_infos", {}).get(key)

    @property
    def need_check_feed(self) -> bool:
        """Whether the shape of a feed is compared with the declared shape."""
        return self._desc.var_need_check_feed(self.block.idx, self.name)

    @property
    def stop_gradient(self) -> bool:
        """Whether the backward pass stops at this variable."""
        return self._facts().stop_gradient

    @stop_gradient.setter
    def stop_gradient(self, value: bool) -> None:
        self._set_fact("stop_gradient", bool(value))

    @property
    def is_data(self) -> bool:
        """Whether the caller feeds it."""
        return self._facts().is_data

    @is_data.setter
    def is_data(self, value: bool) -> None:
        self._set_fact("is_data", bool(value))

    @property
    def grad_name(self) -> str:
        """Name of its gradient."""
        return grad_var_name(self.name)

    @property
    def op(self) -> Operator | None:
        """The last op that writes the variable; None if none does."""
        for op in reversed(self.block.ops):
            if self.name in op.output_arg_names:
                return op
        return None

    def _facts(self) -> VarFacts:
        return self._desc.var_facts(self.block.idx, self.name)

    def _set_fact(self, name: str, value: bool | float) -> None:
        facts = self._facts()
        setattr(facts, name, value)
        self._desc.set_var_facts(self.block.idx, self.name, facts)

    def to_string(self, throw_on_error: bool = True, with_details: bool = False) -> str:
        """Prints the variable's declaration.

        Args:
            throw_on_error (bool): ignored; accepted for compatibility with Fluid.
            with_details (bool): ignored; accepted for compatibility with Fluid.

        Returns:
            str: one line.
        """
        kind = self.type
        what = f"{dtype_name(self.dtype)}{list(self.shape)}" if kind == VarType.LOD_TENSOR else kind.name
        return (
            f"{'param' if isinstance(self, Parameter) else 'persist' if self.persistable else 'var'} {self.name} : "
            f"{what}"
        )

    __str__ = to_string

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"


class _OptimizeAttr(dict[str, "float | Variable"]):
    """The value of optimize_attr; setting its item changes the parameter."""

    def __init__(self, param: Parameter) -> None:
        super().__init__(learning_rate=param._learning_rate())
        self._param = param

    def __setitem__(self, name: str, value: float | Variable) -> None:
        if name != "learning_rate":
            raise KeyError(f"optimize_attr may hold learning_rate only, not {name!r}")
        rate = value if isinstance(value, Variable) else float(value)
        super().__setitem__(name, rate)
        self._param._set_learning_rate(rate)


class Parameter(Variable):
    """A variable that training updates. All handles of one name share its attributes.

    Example:
        w = fluid.layers.create_parameter([4, 2], 'float32', name='w')
        w.trainable = False
    """

    __slots__ = ()

    @property
    def _attrs(self) -> dict[str, Any]:  # the attributes differ in type
        return self.block.program._parameter_attrs.setdefault(self.name, {})

    @property
    def trainable(self) -> bool:
        """Whether an optimizer updates it."""
        return self._facts().trainable

    @trainable.setter
    def trainable(self, value: bool) -> None:
        self._set_fact("trainable", bool(value))

    @property
    def is_distributed(self) -> bool:
        """Whether it is a table that is sharded by id over pservers."""
        return self._facts().is_distributed

    @is_distributed.setter
    def is_distributed(self, value: bool) -> None:
        self._set_fact("is_distributed", bool(value))

    @property
    def optimize_attr(self) -> _OptimizeAttr:
        """{'learning_rate': factor of the optimizer's learning rate, or a Variable: the parameter's own rate}."""
        return _OptimizeAttr(self)

    @optimize_attr.setter
    def optimize_attr(self, value: Mapping[str, float | Variable]) -> None:
        self.optimize_attr["learning_rate"] = value["learning_rate"]

    def _set_learning_rate(self, value: float | Variable) -> None:
        self._set_fact("learning_rate", 1.0 if isinstance(value, Variable) else value)
        self._attrs["learning_rate"] = value

    def _learning_rate(self) -> float | Variable:
        """The factor as the caller gave it; the program holds it as a float32."""
        held, given = self._facts().learning_rate, self._attrs.get("learning_rate")
        if isinstance(given, Variable):
            return given
        return given if given is not None and numpy.float32(given) == numpy.float32(held) else held

    @property
    def regularizer(self) -> WeightDecayRegularizer | None:
        """Its WeightDecayRegularizer; None: the optimizer's."""
        return self._attrs.get("regularizer")

    @regularizer.setter
    def regularizer(self, value: WeightDecayRegularizer | None) -> None:
        self._attrs["regularizer"] = value

    @property
    def do_model_average(self) -> bool | None:
        """Whether ModelAverage averages it."""
        return self._attrs.get("do_model_average")

    @do_model_average.setter
    def do_model_average(self, value: bool | None) -> None:
        self._attrs["do_model_average"] = value

    @property
    def gradient_clip_attr(self) -> GradientClipBase | None:
        """How clip.set_gradient_clip clips its gradient, or None."""
        return self._attrs.get("gradient_clip_attr")

    @gradient_clip_attr.setter
    def gradient_clip_attr(self, value: GradientClipBase | None) -> None:
        self._attrs["gradient_clip_attr"] = value
