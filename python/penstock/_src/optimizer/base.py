"""The base class Optimizer.

For the optimizers of Penstock, minimize() is one C++ call. For a subclass that overrides _append_optimize_op, Python
appends op by op, as Fluid does, which is slower.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock import _penstock
from penstock._src.base.argument_texts import MINIMIZE, OPTIMIZER
from penstock._src.base.doc_texts import with_texts
from penstock._src.ir import framework, unique_name
from penstock._src.ir.framework import program_guard
from penstock._src.ir.program import OpRole
from penstock._src.ir.types import VarType, require_equal_in, require_finite
from penstock._src.ir.variable import Parameter, Variable
from penstock._src.layers import creation
from penstock._src.layers.helper import LayerHelper
from penstock._src.optimizer import clip
from penstock._src.optimizer.backward import (
    add_backward,
    call_back,
    names_of,
    pairs_of,
    require_callbacks,
    require_loss,
    stopped_names,
)
from penstock._src.optimizer.error_clip import clip_errors
from penstock._src.parameters.initializer import Constant
from penstock._src.parameters.regularizer import WeightDecayRegularizer, append_regularization_ops, regularizers_in

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from typing import Any

    from penstock._penstock import MinimizeResult, NameScopes, OptimizerSpec, ProgramDesc, UniqueNames
    from penstock._src.ir.block import Block
    from penstock._src.ir.operator import Operator
    from penstock._src.ir.program import Program
    from penstock._src.ir.typing import Dtype, ParamGrads
    from penstock._src.optimizer.clip import GradientClipBase


@with_texts(OPTIMIZER)
class Optimizer:
    """The base class of optimizers.

    A subclass of your own overrides _append_optimize_op(block, (parameter, gradient)), which appends the update of
    one parameter.

    Args:
        {common}

    Raises:
        TypeError: an argument has the wrong type.

    Example:
        class Sign(fluid.optimizer.Optimizer):
            def _append_optimize_op(self, block, param_and_grad):
                param, grad = param_and_grad
                step = fluid.layers.sign(grad) * self._create_param_lr(param_and_grad)
                return block.append_op('elementwise_sub', {'X': param, 'Y': step}, {'Out': param})

        loss = fluid.layers.mean(fluid.layers.fc(fluid.data('x', [None, 4]), 1))
        ops, pairs = Sign(0.01).minimize(loss)
    """

    def __init__(
        self,
        learning_rate: Variable | float,
        parameter_list: Sequence[Variable | str] | None = None,
        regularization: WeightDecayRegularizer | None = None,
        grad_clip: GradientClipBase | None = None,
        name: str | None = None,
    ) -> None:
        if not isinstance(learning_rate, (float, int, Variable)):
            raise TypeError(f"learning_rate must be a number or a Variable, not {type(learning_rate).__name__}")
        if not isinstance(learning_rate, Variable):
            require_finite(type(self).__name__, learning_rate=learning_rate)
            require_equal_in("float32", float(learning_rate), f"{type(self).__name__}: learning_rate")
        if regularization is not None and not isinstance(regularization, WeightDecayRegularizer):
            raise TypeError(f"regularization must be an L1Decay or L2Decay, not {type(regularization).__name__}")
        if grad_clip is not None and not isinstance(grad_clip, clip.GradientClipBase):
            raise TypeError(
                f"grad_clip must be a GradientClipByValue, ByNorm or ByGlobalNorm, not {type(grad_clip).__name__}"
            )
        self._learning_rate = learning_rate
        self._parameter_list = parameter_list
        self.regularization = regularization
        self._grad_clip = grad_clip
        self._name = name
        self._dtype = VarType.FP32  # the type of the loss, and therefore of the learning rate
        self.type: str | None = getattr(self, "type", None)
        self._attrs: dict[str, Any] = {}
        self._inputs: dict[str, Variable] = {}  # hyperparameters that are Variables, by the op's slot
        self._initial: dict[str, float] = {}  # initial values of state that no attribute holds, by the state's name
        self._learning_rate_map: dict[Program, Variable] = {}
        self._accumulators: dict[str, dict[str, Variable]] = {}  # name of the state -> {parameter's name: variable}
        self._opti_name_list: list[str] = []

    # Public methods.
    @with_texts(MINIMIZE)
    def minimize(
        self,
        loss: Variable,
        startup_program: Program | None = None,
        parameter_list: Sequence[Variable | str] | None = None,
        no_grad_set: Collection[Variable | str] | None = None,
    ) -> tuple[list[Operator], list[tuple[Variable, Variable]]]:
        """Adds the backward pass and an update of each parameter.

        Args:
            {to_minimize}

        {updates_and_pairs}

        Raises:
            TypeError: `loss` is not a Variable.
            penstock.ProgramError: the loss does not have one element, or no parameter reaches it.
        """
        require_loss("minimize", loss)
        main = loss.block.program
        startup = startup_program or framework.default_startup_program()
        parameters = names_of(parameter_list or self._parameter_list)
        if self._is_custom() or self._clips(main):
            pairs = self.backward(loss, startup, parameters, no_grad_set)
            return self.apply_optimize(loss, startup, pairs), pairs
        made = _penstock.minimize(
            *self._place_of_updates(main, startup), loss.name, parameters, stopped_names(no_grad_set, main)
        )
        return self._record(main, made), pairs_of(main.current_block(), made.params_grads)

    @with_texts(MINIMIZE)
    def backward(
        self,
        loss: Variable,
        startup_program: Program | None = None,
        parameter_list: Sequence[Variable | str] | None = None,
        no_grad_set: Collection[Variable | str] | None = None,
        callbacks: Sequence[Callable[..., object]] | None = None,
    ) -> list[tuple[Variable, Variable]]:
        """Adds the backward pass: the first half of minimize().

        {of_backward}

        Raises:
            TypeError: `loss` is not a Variable.
        """
        return self._backward(loss, parameter_list, no_grad_set, callbacks)

    def _backward(
        self,
        loss: Variable,
        parameter_list: Sequence[Variable | str] | None = None,
        no_grad_set: Collection[Variable | str] | None = None,
        callbacks: Sequence[Callable[..., object]] | None = None,
        *,
        checkpoints: Sequence[str] = (),
    ) -> list[tuple[Variable, Variable]]:
        """Does the work of backward(); recomputes values between checkpoints, which are names."""
        require_loss("backward", loss)
        require_callbacks("backward", callbacks)
        self._dtype = loss.dtype
        parameters = parameter_list or self._parameter_list
        block, begin, made = add_backward(_penstock.optimizer_backward, loss, parameters, no_grad_set, checkpoints)
        if callbacks is None:
            clip_errors(block, begin)
        else:
            call_back(block, begin, callbacks, made.forward_of)
        return pairs_of(block, made.params_grads)

    @with_texts(MINIMIZE)
    def apply_gradients(self, params_grads: ParamGrads) -> list[Operator]:
        """Adds clipping, regularization and updates to the default programs: the second half of minimize().

        Args:
            params_grads (list): (parameter, gradient) pairs; a gradient of None means no update.

        {updates}
        """
        main, startup = framework.default_main_program(), framework.default_startup_program()
        # Without a gradient there is no update.
        given = [(param, grad) for param, grad in params_grads if grad is not None]
        pairs = self._clipped(sorted(given, key=lambda pair: pair[0].name))
        if self._is_custom():
            return self._apply_pairs_in_python(main, startup, pairs)
        made = _penstock.apply_gradients(
            *self._place_of_updates(main, startup), [(param.name, grad.name) for param, grad in pairs]
        )
        return self._record(main, made)

    @with_texts(MINIMIZE)
    def apply_optimize(
        self, loss: Variable, startup_program: Program | None, params_grads: ParamGrads
    ) -> list[Operator]:
        """Adds the updates, as apply_gradients() does, to the programs of a loss.

        {of_a_loss}
        """
        with program_guard(loss.block.program, startup_program or framework.default_startup_program()):
            return self.apply_gradients(params_grads)

    def get_opti_var_name_list(self) -> list[str]:
        """Lists the variables of the optimizer's state.

        Returns:
            list[str]: their names.
        """
        return list(self._opti_name_list)

    def _global_learning_rate(self, program: Program | None = None) -> Variable | None:
        return self._learning_rate_map.get(program or framework.default_main_program())

    # Clipping is built from layers.
    def _clips(self, program: Program) -> bool:
        """Returns whether gradients are clipped, between the backward pass and the updates or within the former."""
        return (
            self._grad_clip is not None
            or any(attrs.get("gradient_clip_attr") is not None for attrs in program._parameter_attrs.values())
            or any(var.error_clip is not None for var in program.global_block()._var_handles.values())
        )

    def _clipped(self, params_grads: list[tuple[Variable, Variable]]) -> list[tuple[Variable, Variable]]:
        if self._grad_clip is not None:
            return self._grad_clip(params_grads)
        return clip.append_gradient_clip_ops(params_grads)

    # Updates by C++.
    def _is_custom(self) -> bool:
        return type(self)._append_optimize_op is not Optimizer._append_optimize_op

    def _spec(self, program: Program) -> OptimizerSpec:
        rate = self._learning_rate_map.get(program, self._learning_rate)
        if self.type is None:
            raise NotImplementedError(f"{type(self).__name__} must define _append_optimize_op")
        return _penstock.OptimizerSpec(
            self.type,
            self._attrs,
            rate.name if isinstance(rate, Variable) else float(rate),
            self._name or "",
            self.regularization,
            regularizers_in(program),
            self._initial,
            int(self._dtype),
            {slot: var.name for slot, var in self._inputs.items()},
        )

    def _place_of_updates(
        self, main: Program, startup: Program
    ) -> tuple[ProgramDesc, int, ProgramDesc, UniqueNames, NameScopes, OptimizerSpec]:
        """Returns what tells C++ where updates are added, and which."""
        block = (main.desc, main.current_block_idx, startup.desc)
        return *block, unique_name.generator, framework.name_scopes(), self._spec(main)

    def _record(self, program: Program, made: MinimizeResult) -> list[Operator]:
        """Records the results of C++; returns the optimizer ops."""
        block = program.current_block()
        self._learning_rate_map[program] = block._var_recursive(made.learning_rate)
        for param, states in made.states.items():
            self._opti_name_list.extend(states)
            for accumulator, state in zip(made.accumulators, states):
                self._accumulators.setdefault(self._prefixed(accumulator), {})[param] = block._var_recursive(state)
        ops = [block._op_handle(op_id) for op_id in made.optimizer_ops]
        for op in ops:
            for param in op.input("Param"):  # none for an op that only advances state, such as adamax's
                rate = program._parameter_attrs.get(param, {}).get("learning_rate")
                if isinstance(rate, Variable):
                    op._rename_input(made.learning_rate, rate.name)
        return ops

    # Updates by Python, for subclasses.
    def _append_optimize_op(self, block: Block, param_and_grad: tuple[Variable, Variable]) -> object:
        """Appends the update of one parameter and returns the op; subclasses override it."""
        raise NotImplementedError

    def _create_accumulators(self, block: Block, parameters: list[Variable]) -> None:
        """Creates the state with _add_accumulator; subclasses override it."""

    def _finish_update(self, block: Block, parameters_and_grads: list[tuple[Variable, Variable]]) -> None:
        """Appends ops after all updates; subclasses override it."""

    def _add_accumulator(
        self,
        name: str,
        param: Variable,
        dtype: Dtype | None = None,
        fill_value: float = 0.0,
        shape: list[int] | None = None,
        type: str | None = None,
    ) -> Variable:
        """Creates a state variable for a parameter, with the parameter's shape unless a shape is given."""
        name = self._prefixed(name)
        helper = LayerHelper("accumulator", name="accumulator")
        variable = helper.create_global_variable(
            name=unique_name.generate(f"{param.name}_{name}"),
            persistable=True,
            dtype=dtype or param.dtype,
            shape=list(param.shape if shape is None else shape),
        )
        helper.set_variable_initializer(variable, Constant(float(fill_value)))
        self._accumulators.setdefault(name, {})[param.name] = variable
        self._opti_name_list.append(variable.name)
        return variable

    def _get_accumulator(self, name: str, param: Variable) -> Variable:
        return self._accumulators[self._prefixed(name)][param.name]

    def _prefixed(self, name: str) -> str:
        return name if self._name is None else f"{self._name}_{name}"

    def _create_global_learning_rate(self) -> None:
        program = framework.default_main_program()
        if program in self._learning_rate_map:
            return
        if isinstance(self._learning_rate, Variable):
            self._learning_rate_map[program] = self._learning_rate
            return
        self._learning_rate_map[program] = creation.create_global_var(
            name=unique_name.generate("learning_rate"),
            shape=[1],
            value=float(self._learning_rate),
            dtype=self._dtype,
            persistable=True,
        )

    def _create_param_lr(self, param_and_grad: tuple[Variable, Variable]) -> Variable:
        """Returns the learning rate of one parameter: the parameter's own, or the common one scaled by its factor."""
        param, program = param_and_grad[0], framework.default_main_program()
        multiplier = param.optimize_attr["learning_rate"] if isinstance(param, Parameter) else 1.0
        if isinstance(multiplier, Variable):
            return multiplier
        rate = self._learning_rate_map[program]
        if multiplier == 1.0:
            return rate
        with program._lr_schedule_guard(is_with_opt=True), framework.name_scope("scale_with_param_lr"):
            return rate * multiplier

    def _apply_pairs_in_python(
        self, program: Program, startup: Program, params_grads: list[tuple[Variable, Variable]]
    ) -> list[Operator]:
        pairs = append_regularization_ops(params_grads, self.regularization)
        return self._append_updates(program, startup, [(param, grad) for param, grad in pairs if grad is not None])

    def _append_updates(
        self, program: Program, startup: Program, params_grads: list[tuple[Variable, Variable]]
    ) -> list[Operator]:
        block = program.current_block()
        pairs = [pair for pair in params_grads if not isinstance(pair[0], Parameter) or pair[0].trainable]
        begin = len(block.ops)
        sharded = self._sharded_tables_in(block)
        pairs.sort(key=lambda pair: pair[0].name not in sharded)
        with program_guard(program, startup):
            self._create_accumulators(block, [param for param, _ in pairs])
            if not pairs or pairs[0][0].name not in sharded:
                self._create_global_learning_rate()
            for pair in pairs:
                with program._optimized_guard(pair), framework.name_scope("optimizer"):
                    self._create_global_learning_rate()  # of a table sharded by id: in the scope of its update
                    self._append_optimize_op(block, pair)
            with program._role_guard(OpRole.Optimize):
                self._finish_update(block, pairs)
        return block.ops[begin:]

    @staticmethod
    def _sharded_tables_in(block: Block) -> set[str]:
        """Returns the tables that are sharded by id over pservers; as in Fluid, they are updated first."""
        names: set[str] = set()
        for op in block.ops:
            if op.has_attr("is_distributed") and op.attr("is_distributed"):
                names.update(op.input_arg_names)
        return names
