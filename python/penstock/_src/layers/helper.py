"""LayerHelper: the functions that all layers share: names, parameters, temporaries, bias and activation."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import Any

from penstock._src.base.doc_texts import with_texts
from penstock._src.base.errors import program_error
from penstock._src.ir import framework, unique_name
from penstock._src.ir.operator import Operator
from penstock._src.ir.types import VarType
from penstock._src.ir.variable import Variable
from penstock._src.layers.helper_base import LayerHelperBase
from penstock._src.parameters.initializer import Constant
from penstock._src.parameters.param_attr import ParamAttr


def describe(value: object) -> str:
    """Describes a wrong argument for an error: a small value itself, any other value by its type."""
    return repr(value) if value is None or isinstance(value, (bool, int, float, str)) else type(value).__name__


def require_variables(layer: str, **inputs: object) -> None:
    """Raises an error that names the argument if an argument is not a Variable."""
    for name, value in inputs.items():
        if not isinstance(value, Variable):
            raise TypeError(f"{layer}: {name} must be a Variable, not {describe(value)}")


_KINDS = {int: "an int", float: "a float", bool: "a bool", str: "a str", list: "a list", Variable: "a Variable"}


def require_kind(layer: str, *kinds: type, **arguments: object) -> None:
    """Raises an error that names the argument if an argument has none of the types; a tuple counts as a list."""
    for name, value in arguments.items():
        if not isinstance(value, (*kinds, tuple) if list in kinds else kinds):
            allowed = " or ".join(_KINDS[kind] for kind in kinds)
            raise TypeError(f"{layer}: {name} must be {allowed}, not {describe(value)}")


def require_rank(layer: str, name: str, var: Variable, rank: int) -> None:
    if len(var.shape) < rank:
        raise ValueError(f"{layer}: {name} must have at least {rank} axes, but its shape is {var.shape}")


def require_name(name: object) -> None:
    """Raises unless the name of a variable is a str."""
    if not isinstance(name, str):
        raise TypeError(f"data: the name must be a str, not {describe(name)}")
    if not name:
        raise program_error("E-var-name", "data: a variable must have a name")


_INPUT = {"input_param_name": "input_param_name (str): the argument."}


class LayerHelper(LayerHelperBase):
    """Helps to write layers: generates names, creates parameters and temporaries, appends ops, bias and activation.

    Args:
        layer_type (str): prefix of the names of the variables that the layer creates.
        **kwargs (object): the layer's arguments: `name`, `input`, `param_attr`, `bias_attr`, `act`.

    Example:
        from penstock.fluid.layer_helper import LayerHelper

        def doubled(x, name=None):
            helper = LayerHelper('doubled', name=name).takes(x=x)
            out = helper.create_variable_for_type_inference(x.dtype)
            helper.append_op('scale', {'X': x}, {'Out': out}, {'scale': 2.0})
            return out

        assert doubled(fluid.data('x', [None, 4])).shape == (-1, 4)
    """

    def __init__(self, layer_type: str, **kwargs: Any) -> None:
        self.kwargs = kwargs
        name = kwargs.get("name")
        super().__init__(unique_name.generate(layer_type) if name is None else name, layer_type)

    def append_op(
        self,
        type: str | None = None,
        inputs: Mapping[str, Any] | None = None,
        outputs: Mapping[str, Any] | None = None,
        attrs: Mapping[str, Any] | None = None,
        stop_gradient: bool = False,
    ) -> Operator:
        """Appends an op to the current block of the default main program.

        Args:
            type (str): the op.
            inputs (dict | None): {slot: Variable or list of Variables}.
            outputs (dict | None): {slot: Variable or list of Variables}.
            attrs (dict | None): {attribute: value}.
            stop_gradient (bool): ignored; accepted for compatibility with Fluid.

        Returns:
            Operator: the op.

        Raises:
            TypeError: a slot contains a value that is not a Variable.
        """
        self.require_slots(inputs)
        self.require_slots(outputs)
        return framework.default_main_program().current_block().append_op(type, inputs, outputs, attrs)

    # Inputs.
    def takes(self, **inputs: object) -> LayerHelper:
        """Raises if an argument is not a Variable.

        Args:
            **inputs (Variable): the arguments, by name.

        Returns:
            LayerHelper: itself.

        Raises:
            TypeError: an argument is not a Variable; the message names it.
        """
        require_variables(self.layer_type, **inputs)
        return self

    def require_slots(self, slots: Mapping[str, Any] | None) -> None:
        """Raises if an op's slots contain a value that is not a Variable.

        Args:
            slots (dict | None): {slot: Variable or list of Variables}.

        Raises:
            TypeError: a value is not a Variable.
        """
        for slot, given in (slots or {}).items():
            for one in given if isinstance(given, (list, tuple)) else (given,):
                if one is not None and not isinstance(one, Variable):
                    require_variables(self.layer_type, **{slot: one})

    @with_texts(_INPUT)
    def multiple_input(self, input_param_name: str = "input") -> list[Variable]:
        """Returns the inputs of a layer that takes one or several inputs.

        Returns:
            list[Variable]: the inputs.

        Raises:
            TypeError: an input is not a Variable.
            ValueError: there are no inputs.
        """
        inputs = self.kwargs.get(input_param_name, [])
        if not isinstance(inputs, (Variable, list, tuple)):
            raise TypeError(
                f"{self.layer_type}: {input_param_name} must be a Variable or a list of Variables, not "
                f"{describe(inputs)}"
            )
        inputs = [inputs] if isinstance(inputs, Variable) else list(inputs)
        if not inputs:
            raise ValueError(f"{self.layer_type}: {input_param_name} is an empty list")
        for one in inputs:
            require_variables(self.layer_type, **{input_param_name: one})
        return inputs

    @with_texts(_INPUT)
    def input(self, input_param_name: str = "input") -> Variable:
        """Returns the single input of the layer.

        Returns:
            Variable: the input.

        Raises:
            TypeError: the input is not a Variable.
            ValueError: there are several inputs.
        """
        inputs = self.multiple_input(input_param_name)
        if len(inputs) != 1:
            raise ValueError(f"{self.layer_type} layer only takes one input, but got {len(inputs)}")
        return inputs[0]

    @with_texts(_INPUT)
    def input_dtype(self, input_param_name: str = "input") -> VarType:
        """Returns the element type of the inputs.

        Returns:
            VarType: the element type.

        Raises:
            TypeError: an input is not a Variable.
            ValueError: there are no inputs, or they have different types.
        """
        first, *others = self.multiple_input(input_param_name)
        dtype: VarType = first.dtype
        for each in others:
            if dtype != each.dtype:
                raise ValueError(f"Data Type mismatch: {dtype.name} to {each.dtype.name}")
        return dtype

    @with_texts(_INPUT)
    def iter_inputs_and_params(self, input_param_name: str = "input") -> Iterable[tuple[Variable, ParamAttr]]:
        """Pairs each input with the attributes of its parameter.

        Returns:
            Iterator: (Variable, ParamAttr) pairs.

        Raises:
            TypeError: an input is not a Variable.
            ValueError: there are no inputs, or the layer has attributes for another number of parameters.
        """
        inputs = self.multiple_input(input_param_name)
        return zip(inputs, self.multiple_param_attr(len(inputs)))

    # Parameters.
    @property
    def param_attr(self) -> Any:
        """The layer's `param_attr` as a ParamAttr, or a list of them."""
        return ParamAttr._to_attr(self.kwargs.get("param_attr"))

    @property
    def bias_attr(self) -> Any:
        """The layer's `bias_attr` as a ParamAttr; False: no bias."""
        return ParamAttr._to_attr(self.kwargs.get("bias_attr"))

    def multiple_param_attr(self, length: int) -> list[ParamAttr]:
        """Returns the attributes of several parameters.

        Args:
            length (int): the number of parameters.

        Returns:
            list[ParamAttr]: the attributes of each parameter.

        Raises:
            ValueError: the layer has attributes for another number of parameters.
        """
        attr = self.param_attr
        if isinstance(attr, ParamAttr):
            # Copies, because a parameter without a name gets a new name for each input.
            return [copy.copy(attr) for _ in range(length)]
        if len(attr) == 1 and length > 1:
            return [copy.copy(attr[0]) for _ in range(length)]
        if len(attr) != length:
            raise ValueError(f"parameter number mismatch: {len(attr)} attributes for {length} inputs")
        attrs: list[ParamAttr] = attr
        return attrs

    # Variables.
    def get_parameter(self, name: str) -> Variable:  # in a loaded program, parameters are Variables
        """Finds a parameter of the main program.

        Args:
            name (str): its name.

        Returns:
            Parameter: the parameter.

        Raises:
            ValueError: the program has no such parameter.
        """
        block = self.main_program.global_block()
        if not block.has_var(name):
            raise ValueError(f"{self.layer_type}: the program has no parameter {name}")
        return block.var(name)

    # Bias and activation.
    def append_bias_op(self, input_var: Variable, dim_start: int = 1, dim_end: int | None = None) -> Variable:
        """Adds the layer's bias, unless `bias_attr` is False.

        Args:
            input_var (Variable): the variable to which it is added.
            dim_start (int): the first axis of the bias.
            dim_end (int | None): the axis after the last axis of the bias; None: all remaining axes.

        Returns:
            Variable: the sum.
        """
        bias_attr = self.bias_attr
        if not bias_attr:
            return input_var
        dtype = input_var.dtype
        shape = list(input_var.shape[dim_start:dim_end])
        bias = self.create_parameter(bias_attr, shape, dtype, is_bias=True)
        out = self.create_variable_for_type_inference(dtype)
        self.append_op("elementwise_add", {"X": input_var, "Y": bias}, {"Out": out}, {"axis": dim_start})
        return out

    def append_activation(self, input_var: Variable) -> Variable:
        """Applies the layer's activation `act`, if there is one.

        Args:
            input_var (Variable): its argument.

        Returns:
            Variable: the result.

        Raises:
            TypeError: `act` is not a str.
        """
        act = self.kwargs.get("act")
        if act is None:
            return input_var
        if not isinstance(act, str):
            raise TypeError(f"act must be a str, the type of an op, not {act!r}")
        attrs = {key: self.kwargs[key] for key in ("use_cudnn", "use_mkldnn") if self.kwargs.get(key)}
        out = self.create_variable_for_type_inference(input_var.dtype)
        self.append_op(act, {"X": input_var}, {"Out": out}, attrs)
        return out

    def append_initializer(self, var: Variable, value: float) -> None:
        """Sets the initial value of a variable to a constant.

        Args:
            var (Variable): the variable.
            value (float): the constant.
        """
        self.set_variable_initializer(var, Constant(value))
