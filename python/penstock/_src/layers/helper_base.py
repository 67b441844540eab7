"""LayerHelperBase: names, parameters and temporaries of a layer, without its arguments."""

from __future__ import annotations

from typing import Any

from penstock._src.ir import framework, unique_name
from penstock._src.ir.types import VarType, to_dtype
from penstock._src.ir.variable import Variable
from penstock._src.parameters.initializer import Initializer
from penstock._src.parameters.param_attr import ParamAttr, WeightNormParamAttr
from penstock._src.parameters.weight_norm import create_weight_normalized


class LayerHelperBase:
    """Creates parameters and variables for a layer. LayerHelper adds ops, and reads the layer's arguments.

    Args:
        name (str): prefix of the names of the variables that the layer creates.
        layer_type (str): the layer, for errors.

    Example:
        from penstock.fluid.layer_helper_base import LayerHelperBase
        helper = LayerHelperBase('mine', 'my_layer')
        w = helper.create_parameter(fluid.ParamAttr(), [4, 2])
        assert (w.name, w.shape) == ('mine.w_0', (4, 2))
    """

    def __init__(self, name: str, layer_type: str) -> None:
        self.name = name
        self.layer_type = layer_type

    @property
    def main_program(self) -> framework.Program:
        """The default main program."""
        return framework.default_main_program()

    @property
    def startup_program(self) -> framework.Program:
        """The default startup program."""
        return framework.default_startup_program()

    def create_parameter(
        self,
        attr: Any,
        shape: list[int],
        dtype: str | VarType | None = None,
        is_bias: bool = False,
        default_initializer: Initializer | None = None,
        stop_gradient: bool = False,
    ) -> Any:
        """Declares a parameter in the main program, and in the startup program with its initializer.

        Args:
            attr (ParamAttr | str | bool | None): describes it.
            shape (list[int]): its shape.
            dtype (str | VarType | None): its element type; None: float32.
            is_bias (bool): it is a bias, with another name and initial value.
            default_initializer (Initializer | None): the initializer if `attr` has none.
            stop_gradient (bool): it gets no gradient.

        Returns:
            Parameter: the parameter, or None if `attr` is False.

        Raises:
            TypeError: `attr` is a list.
        """
        attr = ParamAttr._to_attr(attr)
        if not attr:
            return None
        if isinstance(attr, list):
            raise TypeError(
                f"{self.layer_type}: one parameter is described by one ParamAttr, not by a list of {len(attr)}"
            )
        suffix = "b" if is_bias else "w"
        attr = attr._completed(lambda: unique_name.generate(f"{self.name}.{suffix}"), default_initializer, is_bias)
        dtype = to_dtype(dtype if dtype is not None else "float32")
        if isinstance(attr, WeightNormParamAttr):
            param = create_weight_normalized(self, attr, list(shape), dtype)  # type: ignore[arg-type]  # a LayerHelper
            WeightNormParamAttr.params_with_weight_norm.append(param)
            return param
        self.startup_program.global_block().create_parameter(shape, dtype, **attr._to_kwargs(with_initializer=True))
        return self.main_program.global_block().create_parameter(
            shape, dtype, stop_gradient=stop_gradient, **attr._to_kwargs()
        )

    def create_variable_for_type_inference(self, dtype: str | VarType, stop_gradient: bool = False) -> Variable:
        """Creates a temporary of the layer; its shape comes from the op that writes it.

        Args:
            dtype (str | VarType): its element type.
            stop_gradient (bool): it gets no gradient.

        Returns:
            Variable: the temporary.
        """
        block = framework.default_main_program().current_block()
        return block._create_temporary(unique_name.generate(self.name + ".tmp"), int(to_dtype(dtype)), stop_gradient)

    create_tmp_variable = create_variable_for_type_inference

    def create_variable(self, **kwargs: Any) -> Variable:
        """Creates a variable in the current block.

        Args:
            **kwargs (object): arguments of Block.create_var.

        Returns:
            Variable: the variable.
        """
        return self.main_program.current_block().create_var(**kwargs)

    def create_global_variable(self, persistable: bool = False, **kwargs: Any) -> Variable:
        """Creates a variable in block 0.

        Args:
            persistable (bool): its value stays in the scope between runs.
            **kwargs (object): arguments of Block.create_var.

        Returns:
            Variable: the variable.
        """
        return self.main_program.global_block().create_var(persistable=persistable, **kwargs)

    def create_or_get_global_variable(self, name: str, **kwargs: Any) -> tuple[Variable, bool]:
        """Returns the variable of a name in block 0; creates it if it does not exist.

        Args:
            name (str): its name.
            **kwargs (object): arguments of Block.create_var.

        Returns:
            tuple: (Variable, whether it is new).
        """
        block = self.main_program.global_block()
        if block.has_var(name):
            return block.var(name), False
        return self.create_global_variable(name=name, **kwargs), True

    def set_variable_initializer(self, var: Variable, initializer: Initializer) -> Variable:
        """Declares a variable in the startup program too, which fills it.

        Args:
            var (Variable): the variable.
            initializer (Initializer): fills it.

        Returns:
            Variable: the variable of the startup program.
        """
        return self.startup_program.global_block().create_var(
            name=var.name, type=var.type, dtype=var.dtype, shape=var.shape, persistable=True, initializer=initializer
        )
