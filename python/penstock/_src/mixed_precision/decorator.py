"""Training in mixed precision: OptimizerWithMixedPrecision and decorate."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from penstock._src.base.argument_texts import MINIMIZE
from penstock._src.base.doc_texts import with_texts
from penstock._src.base.same_arguments import arguments_of
from penstock._src.ir import unique_name
from penstock._src.ir.framework import default_main_program, default_startup_program
from penstock._src.layers import arithmetic, control_flow, creation, search, tensor
from penstock._src.mixed_precision.fp16_lists import AutoMixedPrecisionLists
from penstock._src.mixed_precision.fp16_utils import rewrite_program, update_loss_scaling, update_role_var_grad
from penstock._src.optimizer.base import Optimizer

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from penstock._src.ir.operator import Operator
    from penstock._src.ir.variable import Variable


_SCALING = {
    "scaling_steps": """incr_every_n_steps (int): steps in a row with finite gradients after which the factor grows.
decr_every_n_nan_or_inf (int): steps with other gradients after which the factor falls.
incr_ratio (float): multiplies the factor when it grows.
decr_ratio (float): multiplies the factor when it falls."""
}


@with_texts(_SCALING)
class OptimizerWithMixedPrecision:
    """An optimizer that trains in mixed precision: matrix products and convolutions in float16, the rest in float32.

    Parameters stay in float32. The loss is multiplied by a factor before the backward pass, so that small gradients do
    not vanish in float16, and the gradients are divided by it before the updates. The rewriting is that of Fluid. On
    CPUs, ops of float16 compute in float32 and round their results to float16.

    `decorate` makes one.

    Args:
        optimizer (Optimizer): the optimizer of the training in float32.
        amp_lists (AutoMixedPrecisionLists): which ops are computed in float16.
        init_loss_scaling (float): the first factor.
        use_dynamic_loss_scaling (bool): adapt the factor to whether all gradients are finite.
        {scaling_steps}

    Example:
        loss = fluid.layers.mean(fluid.layers.fc(fluid.data('x', [None, 4]), 1))
        optimizer = fluid.contrib.mixed_precision.decorate(fluid.optimizer.SGD(0.1), init_loss_scaling=8.0)
        ops, scaled_params_grads = optimizer.minimize(loss)
    """

    def __init__(
        self,
        optimizer: Optimizer,
        amp_lists: AutoMixedPrecisionLists,
        init_loss_scaling: float,
        use_dynamic_loss_scaling: bool,
        incr_every_n_steps: int,
        decr_every_n_nan_or_inf: int,
        incr_ratio: float,
        decr_ratio: float,
    ) -> None:
        self._optimizer, self._amp_lists = optimizer, amp_lists
        self._params_grads: list[tuple[Variable, Variable]] | None = None
        self._train_program, self._startup_prog = default_main_program(), default_startup_program()
        self._scaled_loss: Variable | None = None
        self._loss_scaling = _persistent("loss_scaling", init_loss_scaling, "float32")
        self._use_dynamic_loss_scaling = use_dynamic_loss_scaling
        if use_dynamic_loss_scaling:
            self._incr_every_n_steps = tensor.fill_constant(shape=[1], dtype="int32", value=incr_every_n_steps)
            self._decr_every_n_nan_or_inf = tensor.fill_constant(
                shape=[1], dtype="int32", value=decr_every_n_nan_or_inf
            )
            self._incr_ratio, self._decr_ratio = incr_ratio, decr_ratio
            self._num_good_steps = _persistent("num_good_steps", 0, "int32")
            self._num_bad_steps = _persistent("num_bad_steps", 0, "int32")
        if isinstance(getattr(optimizer, "_learning_rate", None), float):  # in float32, whatever the type of the loss
            optimizer._learning_rate_map[self._train_program] = _persistent(
                "learning_rate", cast(float, optimizer._learning_rate), "float32"
            )

    def get_loss_scaling(self) -> Variable:
        """Returns the variable that holds the factor of the loss.

        Returns:
            Variable: float32, shape [1].
        """
        return self._loss_scaling

    def get_scaled_loss(self) -> Variable | None:
        """Returns the loss multiplied by the factor.

        Returns:
            Variable | None: None before `backward`.
        """
        return self._scaled_loss

    @with_texts(MINIMIZE)
    @arguments_of(Optimizer.backward)
    def backward(self, loss: Variable, *rest: Any, **named: Any) -> list[list[Variable]]:
        """Rewrites the program to mixed precision and adds the backward pass of the scaled loss.

        Args:
            {loss}
            startup_program (Program | None): accepted for compatibility with Fluid.
            {parameters_and_callbacks}

        Returns:
            list: [parameter, gradient divided by the factor].
        """
        program = self._train_program
        rewrite_program(program, self._amp_lists)
        self._scaled_loss = loss * self._loss_scaling
        self._params_grads = self._optimizer.backward(self._scaled_loss, *rest, **named)
        update_role_var_grad(program, self._params_grads)
        divided = []
        for param, grad in self._params_grads:
            with program._optimized_guard([param, grad]):
                divided.append([param, grad / self._loss_scaling])
        return divided

    @with_texts(MINIMIZE)
    def apply_gradients(self, scaled_params_grads: Sequence[Sequence[Variable]]) -> list[Operator]:
        """Adds the updates of the parameters, and of the factor if it is dynamic.

        A step whose gradients are not all finite updates the parameters with zeros.

        Args:
            scaled_params_grads (list): the result of `backward`.

        {updates}
        """
        if self._use_dynamic_loss_scaling:
            self._adapt_scaling(scaled_params_grads)
            vars(self._train_program)["_scales_loss_dynamically"] = True  # DistributeTranspiler asks
        return self._optimizer.apply_gradients([(param, grad) for param, grad in scaled_params_grads])

    def _adapt_scaling(self, scaled_params_grads: Sequence[Sequence[Variable]]) -> None:
        total = arithmetic.reduce_sum(tensor.concat([arithmetic.reduce_sum(grad) for _, grad in scaled_params_grads]))
        finite = search.isfinite(total)
        update_loss_scaling(
            finite,
            self._loss_scaling,
            self._num_good_steps,
            self._num_bad_steps,
            self._incr_every_n_steps,
            self._decr_every_n_nan_or_inf,
            self._incr_ratio,
            self._decr_ratio,
        )
        with control_flow.Switch() as switch:
            with switch.case(finite):
                pass
            with switch.default():
                for _, grad in scaled_params_grads:
                    tensor.assign(creation.zeros_like(grad), grad)

    @with_texts(MINIMIZE)
    @arguments_of(Optimizer.minimize)
    def minimize(self, loss: Variable, *rest: Any, **named: Any) -> tuple[list[Operator], list[list[Variable]]]:
        """Adds the backward pass and the updates.

        Args:
            {loss}
            startup_program (Program | None): accepted for compatibility with Fluid.
            {parameter_list}
            {no_grad_set}

        Returns:
            tuple: (update ops, [[parameter, gradient divided by the factor]]).
        """
        divided = self.backward(loss, *rest, **named)
        return self.apply_gradients(divided), divided


def _persistent(name: str, value: float, dtype: str) -> Variable:
    var: Variable = creation.create_global_var(
        name=unique_name.generate(name), shape=[1], value=value, dtype=dtype, persistable=True
    )
    return var


@with_texts(_SCALING)
def decorate(
    optimizer: Optimizer,
    amp_lists: AutoMixedPrecisionLists | None = None,
    init_loss_scaling: float = 2**15,
    incr_every_n_steps: int = 1000,
    decr_every_n_nan_or_inf: int = 2,
    incr_ratio: float = 2.0,
    decr_ratio: float = 0.8,
    use_dynamic_loss_scaling: bool = True,
) -> OptimizerWithMixedPrecision:
    """Returns an optimizer that trains in mixed precision: see OptimizerWithMixedPrecision.

    On CPUs this saves no time: ops of float16 compute in float32. It gives the numbers of such a training.

    Args:
        optimizer (Optimizer): the optimizer of the training in float32.
        amp_lists (AutoMixedPrecisionLists | None): which ops are computed in float16; None: Fluid's lists.
        init_loss_scaling (float): the first factor of the loss.
        {scaling_steps}
        use_dynamic_loss_scaling (bool): adapt the factor; otherwise it is constant.

    Returns:
        OptimizerWithMixedPrecision: an optimizer with minimize, backward and apply_gradients.

    Raises:
        TypeError: `optimizer` is not an Optimizer.

    Example:
        loss = fluid.layers.mean(fluid.layers.fc(fluid.data('x', [None, 4]), 1))
        optimizer = fluid.contrib.mixed_precision.decorate(fluid.optimizer.SGD(0.1), init_loss_scaling=8.0)
        optimizer.minimize(loss)
    """
    if not hasattr(optimizer, "backward") or not hasattr(optimizer, "apply_gradients"):
        raise TypeError(f"mixed_precision.decorate takes an optimizer, not {type(optimizer).__name__}")
    amp_lists = AutoMixedPrecisionLists() if amp_lists is None else amp_lists
    return OptimizerWithMixedPrecision(
        optimizer,
        amp_lists,
        init_loss_scaling,
        use_dynamic_loss_scaling,
        incr_every_n_steps,
        decr_every_n_nan_or_inf,
        incr_ratio,
        decr_ratio,
    )
