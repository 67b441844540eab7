"""Block: a handle on a block of a program, which returns the handles of its ops and variables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock._src.ir import unique_name
from penstock._src.ir.block_handles import BlockHandles
from penstock._src.ir.block_vars import BlockVars
from penstock._src.ir.declarations import checked_parameter_shape, require_same_declaration, warn_of_unknown_keywords
from penstock._src.ir.descs import BlockDesc
from penstock._src.ir.operator import Operator
from penstock._src.ir.types import VarType, checked_shape, require_name, to_dtype
from penstock._src.ir.variable import Parameter, Variable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from penstock._src.ir.typing import Attrs, Dtype, SlotArgs
    from penstock._src.optimizer.error_clip import BaseErrorClipAttr
    from penstock._src.parameters.initializer import Initializer
    from penstock._src.parameters.regularizer import WeightDecayRegularizer


class Block(BlockHandles):
    """A block of a program: variables and ops. `Program.block` returns it.

    Args:
        program (Program): the program.
        idx (int): its index.

    Example:
        block = fluid.default_main_program().global_block()
        x = block.create_var(name='x', shape=[2], dtype='float32')
        block.append_op('fill_constant', outputs={'Out': x}, attrs={'shape': [2], 'dtype': int(x.dtype), 'value': 1.0})
    """

    @property
    def desc(self) -> BlockDesc:
        """The block as Fluid's BlockDesc, a view: desc.op(i), desc.op_size(), desc.var(name) and so on."""
        return BlockDesc(self._desc, self.idx)

    def _sync_with_cpp(self) -> None:
        """Does nothing: Python and C++ share the program."""

    @property
    def parent_idx(self) -> int:
        """Index of the enclosing block; -1 for block 0."""
        return self._desc.parent(self.idx)

    @property
    def forward_block_idx(self) -> int:
        """For a gradient block, the index of its forward block; otherwise -1."""
        return self._desc.forward_block(self.idx)

    @property
    def ops(self) -> list[Operator]:
        """Handles of its ops, in order, as they are now."""
        return [self._op_handle(op_id) for op_id in self._desc.ops(self.idx)]

    @property
    def vars(self) -> BlockVars:
        """The block's own variables by name, a read-only view."""
        return BlockVars(self)

    def var(self, name: str) -> Variable:
        """Returns a variable of this block.

        Args:
            name (str): its name.

        Returns:
            Variable: its handle.

        Raises:
            ValueError: the block has no such variable.
            TypeError: `name` is not a str.
        """
        if not isinstance(name, str):
            raise TypeError(f"a variable is looked up by its name, not by {type(name).__name__}")
        if not self._desc.has_var(self.idx, name):
            raise ValueError(f"var {name} is not in this block")
        return self._var_handle(name)

    def has_var(self, name: str) -> bool:
        """Returns whether this block has a variable.

        Args:
            name (str): its name.

        Returns:
            bool: whether this block declares it.
        """
        return self._desc.has_var(self.idx, name)

    def all_parameters(self) -> list[Parameter]:
        """Returns the parameters of this block.

        Returns:
            list[Parameter]: in the order of their declaration.
        """
        return list(self.iter_parameters())

    def iter_parameters(self) -> Iterator[Parameter]:
        """Yields the parameters of this block.

        Returns:
            Iterator[Parameter]: in the order of their declaration.
        """
        return (var for var in self.vars.values() if isinstance(var, Parameter))

    def create_var(
        self,
        name: str | None = None,
        shape: Sequence[int] | None = None,
        dtype: Dtype | None = None,
        type: VarType = VarType.LOD_TENSOR,
        lod_level: int | None = None,
        persistable: bool | None = None,
        stop_gradient: bool = False,
        is_data: bool = False,
        need_check_feed: bool = False,
        error_clip: BaseErrorClipAttr | None = None,
        capacity: int | None = None,
        initializer: Initializer | None = None,
        belong_to_optimizer: bool = False,
        **unknown: Any,
    ) -> Variable:
        """Declares a variable, or returns the existing one of that name if the two declarations agree.

        Args:
            name (str | None): its name; None: a generated one.
            shape (list[int] | None): its shape; -1: known at run time.
            dtype (str | VarType | None): type of its elements.
            type (VarType): kind of the variable.
            lod_level (int | None): number of levels of sequences.
            persistable (bool | None): whether its value stays in the scope between runs and is saved.
            stop_gradient (bool): whether the backward pass stops at it.
            is_data (bool): the caller feeds it.
            need_check_feed (bool): the shape of a feed is checked.
            error_clip (BaseErrorClipAttr | None): how its gradient is clipped in the backward pass.
            capacity (int | None): ignored; accepted for compatibility with Fluid.
            initializer (Initializer | None): adds the op that sets its initial value.
            belong_to_optimizer (bool): ignored; accepted for compatibility with Fluid.
            **unknown (object): other keywords, ignored with a warning; Fluid takes any.

        Returns:
            Variable: its handle.

        Raises:
            ValueError: a variable of this name contradicts the arguments.
        """
        warn_of_unknown_keywords(self.create_var, unknown)
        desc = self._desc
        if name is None:
            name = unique_name.generator("_generated_var")
        require_name(name)
        number = None if dtype is None else int(to_dtype(dtype))
        if shape is not None:
            shape = checked_shape(name, shape)
        if desc.has_var(self.idx, name):
            var = self._var_handle(name)
            require_same_declaration(var, type, shape, number, lod_level, persistable)
        else:
            desc.create_var(
                self.idx,
                name,
                int(type),
                number,
                shape,
                lod_level,
                bool(persistable),
                stop_gradient,
                is_data,
                need_check_feed,
            )
            self._var_handles.pop(name, None)
            var = self._var_handles[name] = Variable(self, name)
        if error_clip is not None:
            var.error_clip = error_clip
        if initializer is not None:
            initializer(var, self)
        return var

    def _clone_variable(self, var: Variable, force_persistable: bool = True) -> Variable:
        """Declares a variable as one of another program is declared; without parameters' facts, as in Fluid."""
        persistable = var.persistable or force_persistable
        if var.type in (VarType.STEP_SCOPES, VarType.RAW):
            return self.create_var(name=var.name, type=var.type, persistable=var.persistable)
        lod_level = var.lod_level if var.type != VarType.SELECTED_ROWS else None
        return self.create_var(
            name=var.name,
            type=var.type,
            shape=var.shape,
            dtype=var.dtype,
            lod_level=lod_level,
            persistable=persistable,
            is_data=var.is_data,
            need_check_feed=var.need_check_feed,
        )

    def create_parameter(
        self,
        shape: Sequence[int],
        dtype: VarType | str,
        name: str | None = None,
        type: VarType = VarType.LOD_TENSOR,
        initializer: Initializer | None = None,
        trainable: bool = True,
        optimize_attr: Mapping[str, float] | None = None,
        regularizer: WeightDecayRegularizer | None = None,
        do_model_average: bool | None = None,
        stop_gradient: bool = False,
        is_distributed: bool = False,
        lod_level: int = 0,
        persistable: bool = True,
        need_clip: bool = True,
    ) -> Parameter:
        """Declares a parameter in block 0.

        Args:
            shape (list[int]): its shape; extents above 0.
            dtype (str | VarType): type of its elements.
            name (str | None): its name; None: a generated one.
            type (VarType): kind of the variable.
            initializer (Initializer | None): adds the op that sets its initial value, once.
            trainable (bool): whether an optimizer updates it.
            optimize_attr (dict | None): {'learning_rate': factor}.
            regularizer (WeightDecayRegularizer | None): takes precedence over the optimizer's.
            do_model_average (bool | None): whether ModelAverage averages it.
            stop_gradient (bool): whether the backward pass stops at it.
            is_distributed (bool): whether it is a table that is sharded by id over pservers.
            lod_level (int): number of levels of sequences.
            persistable (bool): accepted for compatibility with Fluid; a parameter always is.
            need_clip (bool): ignored; accepted for compatibility with Fluid.

        Returns:
            Parameter: its handle.

        Raises:
            ValueError: an extent is not above 0, or a variable of this name contradicts the arguments.
        """
        if shape is None or dtype is None:
            raise ValueError(f"parameter {name} needs a shape and an element type")
        if name is None:
            name = unique_name.generator("_generated_var")
        require_name(name)
        shape = checked_parameter_shape(name, shape)
        top = self.program.global_block()
        desc = self._desc
        number = int(to_dtype(dtype))
        known = desc.has_var(0, name)
        if known:
            require_same_declaration(top._var_handle(name), type, shape, number, None, None)
        desc.create_parameter(
            name,
            int(type),
            number,
            shape,
            lod_level,
            trainable,
            is_distributed,
            stop_gradient,
            1.0 if optimize_attr is None else optimize_attr["learning_rate"],
        )
        param = top._var_handles.get(name)
        if not isinstance(param, Parameter):
            param = top._var_handles[name] = Parameter(top, name)
        # If a name is declared again, the last declaration counts, including its defaults.
        top.program._parameter_attrs.pop(name, None)
        if optimize_attr is not None:
            param.optimize_attr = optimize_attr
        if regularizer is not None:
            param.regularizer = regularizer
        if do_model_average is not None:
            param.do_model_average = do_model_average
        if initializer is not None and not (known and self._is_written(name)):
            initializer(param, self)
        return param

    def _is_written(self, name: str) -> bool:
        return any(name in op.output_arg_names for op in self.program.global_block().ops)

    def append_op(
        self,
        type: str | None = None,
        inputs: SlotArgs | None = None,
        outputs: SlotArgs | None = None,
        attrs: Attrs | None = None,
        stop_gradient: bool = False,
    ) -> Operator:
        """Adds an op at the end.

        Args:
            type (str): its type.
            inputs (dict | None): slot -> Variable, name, or list of them.
            outputs (dict | None): slot -> Variable, name, or list of them.
            attrs (dict | None): attributes by name.
            stop_gradient (bool): ignored; accepted for compatibility with Fluid.

        Returns:
            Operator: its handle.

        Raises:
            penstock.ProgramError: the op is unknown, or its arguments do not match its declaration.
        """
        return self._insert_op(-1, type, inputs, outputs, attrs)

    def to_string(self, throw_on_error: bool = True, with_details: bool = False) -> str:
        """Prints variables and ops as text.

        Args:
            throw_on_error (bool): ignored; accepted for compatibility with Fluid.
            with_details (bool): ignored; accepted for compatibility with Fluid.

        Returns:
            str: one line each.
        """
        return "\n".join([var.to_string() for var in self.vars.values()] + [str(op) for op in self.ops])

    __str__ = to_string
