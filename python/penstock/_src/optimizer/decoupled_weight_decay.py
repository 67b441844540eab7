"""Decoupled weight decay (Loshchilov and Hutter, Decoupled Weight Decay Regularization)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock._src.base.same_arguments import arguments_of
from penstock._src.ir import framework
from penstock._src.ir.variable import Variable
from penstock._src.layers import arithmetic, tensor
from penstock._src.optimizer.base import Optimizer

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from penstock._src.ir.operator import Operator
    from penstock._src.ir.program import Program

    _Base = Optimizer
else:
    _Base = object


class DecoupledWeightDecay(_Base):
    """A mixin that precedes an Optimizer in the bases of a class: minimize decays each parameter before its update.

    Args:
        coeff (float or Variable): the share of itself that each parameter loses.
        apply_decay_param_fun: takes the name of a parameter and returns whether it decays; None: all decay.
        **kwargs: arguments of the optimizer.
    """

    def __init__(
        self, coeff: Variable | float = 0.0, apply_decay_param_fun: Callable[[str], bool] | None = None, **kwargs: Any
    ) -> None:
        if not isinstance(coeff, (float, Variable)):
            raise TypeError(f"weight decay: coeff must be a float or a Variable, not {coeff!r}")
        self._coeff = coeff
        self._apply_decay_param_fun = apply_decay_param_fun
        self._params_name: set[str] = set()
        super().__init__(**kwargs)

    @arguments_of(Optimizer.minimize)
    def minimize(
        self, loss: Variable, startup_program: Program | None = None, *rest: Any, **named: Any
    ) -> tuple[list[Operator], list[tuple[Variable, Variable]]]:
        """Adds gradients, weight decay and updates; the arguments and the result are those of Optimizer.minimize."""
        params_grads = self.backward(loss, startup_program, *rest, **named)
        with framework.program_guard(loss.block.program, startup_program):
            for param, grad, decay in self._decays(params_grads):
                with param.block.program._optimized_guard([param, grad]), framework.name_scope("weight decay"):
                    tensor.assign(arithmetic.elementwise_sub(param, decay), output=param)
        ops = self.apply_optimize(loss, startup_program, params_grads)
        return ops, params_grads

    def _decays(self, params_grads: list[tuple[Variable, Variable]]) -> list[tuple[Variable, Variable, Variable]]:
        """Returns [(parameter, gradient, decay)], where each decay is computed before any parameter changes."""
        if isinstance(self._coeff, float) and self._coeff == 0.0:
            return []
        decays = []
        for param, grad in params_grads:
            if grad is None or (self._apply_decay_param_fun and not self._apply_decay_param_fun(param.name)):
                continue
            with param.block.program._optimized_guard([param, grad]), framework.name_scope("weight decay"):
                decays.append((param, grad, param * self._coeff))
            self._params_name.add(param.name)
        return decays

    def __str__(self) -> str:
        return "Weight Decay, params: " + ",".join(sorted(self._params_name))


def extend_with_decoupled_weight_decay(base_optimizer: type[Optimizer]) -> type[Any]:  # as the docstring says
    """Returns a subclass of `base_optimizer` with decoupled weight decay.

    Args:
        base_optimizer (type): a subclass of fluid.optimizer.Optimizer.

    Returns:
        type: an optimizer class. Its constructor takes weight_decay (float or Variable: each parameter p becomes p -
        weight_decay * p before its update), apply_decay_param_fun (takes the name of a parameter and returns whether it
        decays) and the arguments of `base_optimizer`, by name.

    Raises:
        TypeError: `base_optimizer` is not a subclass of Optimizer.

    Reference:
        Loshchilov and Hutter, Decoupled Weight Decay Regularization, ICLR 2019.

    Example:
        AdamW = fluid.contrib.extend_optimizer.extend_with_decoupled_weight_decay(fluid.optimizer.Adam)
        loss = fluid.layers.mean(fluid.layers.fc(fluid.data('x', [None, 4]), 1))
        AdamW(weight_decay=0.01, learning_rate=0.1).minimize(loss)
    """
    if not (isinstance(base_optimizer, type) and issubclass(base_optimizer, Optimizer)):
        raise TypeError(f"extend_with_decoupled_weight_decay takes a subclass of Optimizer, not {base_optimizer!r}")

    class OptimizerWithDecoupledWeightDecay(DecoupledWeightDecay, base_optimizer):  # type: ignore[misc, valid-type]
        def __init__(
            self,
            weight_decay: Variable | float,
            apply_decay_param_fun: Callable[[str], bool] | None = None,
            **kwargs: Any,
        ) -> None:
            super().__init__(weight_decay, apply_decay_param_fun, **kwargs)

    return OptimizerWithDecoupledWeightDecay
