"""Optimizers that adapt the size of the step to each element, by the history of its gradients."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock._src.base.argument_texts import OPTIMIZER
from penstock._src.base.doc_texts import with_texts
from penstock._src.ir.types import require_decays, require_finite
from penstock._src.ir.variable import Variable
from penstock._src.optimizer.base import Optimizer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from penstock._penstock import MinimizeResult
    from penstock._src.ir.operator import Operator
    from penstock._src.ir.program import Program
    from penstock._src.optimizer.clip import GradientClipBase
    from penstock._src.parameters.regularizer import WeightDecayRegularizer


@with_texts(OPTIMIZER, call="Adam(0.001)")
class AdamOptimizer(Optimizer):
    """Adam: steps by the running mean of the gradient, divided by the square root of the running mean of its square.

    Args:
        beta1 (float | Variable): decay of the first moment.
        beta2 (float | Variable): decay of the second moment.
        epsilon (float): added to the divisor.
        {common}
        lazy_mode (bool): with a sparse gradient, update only the rows that it contains, and their moments.

    Raises:
        TypeError: an argument has the wrong type.

    {example}
    """

    type = "adam"
    _moment1_acc_str = "moment1"
    _moment2_acc_str = "moment2"
    _beta1_pow_acc_str = "beta1_pow_acc"
    _beta2_pow_acc_str = "beta2_pow_acc"

    def __init__(
        self,
        learning_rate: Variable | float = 0.001,
        beta1: Variable | float = 0.9,
        beta2: Variable | float = 0.999,
        epsilon: float = 1e-8,
        parameter_list: Sequence[Variable | str] | None = None,
        regularization: WeightDecayRegularizer | None = None,
        grad_clip: GradientClipBase | None = None,
        name: str | None = None,
        lazy_mode: bool = False,
    ) -> None:
        super().__init__(learning_rate, parameter_list, regularization, grad_clip, name)
        betas = {"beta1": beta1, "beta2": beta2}
        numbers = {name: beta for name, beta in betas.items() if not isinstance(beta, Variable)}
        require_finite("Adam", epsilon=epsilon)
        require_decays("Adam", **numbers)
        self._beta1, self._beta2, self._epsilon, self._lazy_mode = beta1, beta2, epsilon, lazy_mode
        given = {name.capitalize() + "Tensor": beta for name, beta in betas.items() if isinstance(beta, Variable)}
        self._inputs = given
        self._attrs = dict(numbers, epsilon=epsilon, lazy_mode=lazy_mode, min_row_size_to_use_multithread=1000)


@with_texts(OPTIMIZER, call="Adagrad(0.1)")
class AdagradOptimizer(Optimizer):
    """Adagrad: moment += grad ** 2; param -= learning_rate * grad / (sqrt(moment) + epsilon).

    Args:
        epsilon (float): added to the divisor.
        {common}
        initial_accumulator_value (float): initial value of the moment.

    {example}

    Reference:
        Duchi, Hazan and Singer, Adaptive Subgradient Methods, JMLR 2011.
    """

    type = "adagrad"
    _moment_acc_str = "moment"

    def __init__(
        self,
        learning_rate: Variable | float,
        epsilon: float = 1e-6,
        parameter_list: Sequence[Variable | str] | None = None,
        regularization: WeightDecayRegularizer | None = None,
        grad_clip: GradientClipBase | None = None,
        name: str | None = None,
        initial_accumulator_value: float = 0.0,
    ) -> None:
        super().__init__(learning_rate, parameter_list, regularization, grad_clip, name)
        require_finite("Adagrad", epsilon=epsilon)
        self._attrs = {"epsilon": epsilon}
        self._initial = {"moment": float(initial_accumulator_value)}


@with_texts(OPTIMIZER, call="DecayedAdagrad(0.1)")
class DecayedAdagradOptimizer(Optimizer):
    """Adagrad with a running mean: moment = decay * moment + (1 - decay) * grad ** 2.

    Args:
        decay (float): factor of the moment.
        epsilon (float): added to the divisor.
        {common}

    {example}
    """

    type = "decayed_adagrad"
    _moment_acc_str = "moment"

    def __init__(
        self,
        learning_rate: Variable | float,
        decay: float = 0.95,
        epsilon: float = 1e-6,
        parameter_list: Sequence[Variable | str] | None = None,
        regularization: WeightDecayRegularizer | None = None,
        grad_clip: GradientClipBase | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(learning_rate, parameter_list, regularization, grad_clip, name)
        require_finite("DecayedAdagrad", epsilon=epsilon)
        require_decays("DecayedAdagrad", decay=decay)
        self._attrs = {"decay": decay, "epsilon": epsilon}


@with_texts(OPTIMIZER, call="Adamax(0.002)")
class AdamaxOptimizer(Optimizer):
    """Adamax: Adam with the exponentially weighted maximum of the gradient instead of the root of its second moment.

    Args:
        beta1 (float): decay of the first moment.
        beta2 (float): decay of the maximum.
        epsilon (float): added to the divisor.
        {common}

    {example}

    Reference:
        Kingma and Ba, Adam: A Method for Stochastic Optimization, ICLR 2015, section 7.
    """

    type = "adamax"
    _moment_acc_str = "moment"
    _inf_norm_acc_str = "inf_norm"
    _beta1_pow_acc_str = "beta1_pow_acc"

    def __init__(
        self,
        learning_rate: Variable | float = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        parameter_list: Sequence[Variable | str] | None = None,
        regularization: WeightDecayRegularizer | None = None,
        grad_clip: GradientClipBase | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(learning_rate, parameter_list, regularization, grad_clip, name)
        require_finite("Adamax", epsilon=epsilon)
        require_decays("Adamax", beta1=beta1, beta2=beta2)
        self._attrs = {"beta1": beta1, "beta2": beta2, "epsilon": epsilon}


@with_texts(OPTIMIZER, call="Adadelta(1.0)")
class AdadeltaOptimizer(Optimizer):
    """Adadelta: derives the size of a step from the sizes of earlier steps. As in Fluid, the learning rate has no
    effect.

    Args:
        learning_rate (float | Variable): has no effect; its variable is created, but the op does not use it.
        epsilon (float): added under the square roots.
        rho (float): decay of the running means.
        {common}

    {example}

    Reference:
        Zeiler, ADADELTA: An Adaptive Learning Rate Method, arXiv:1212.5701.
    """

    type = "adadelta"
    _avg_squared_grad_acc_str = "_avg_squared_grad"
    _avg_squared_update_acc_str = "_avg_squared_update"

    def __init__(
        self,
        learning_rate: Variable | float,
        epsilon: float = 1e-6,
        rho: float = 0.95,
        parameter_list: Sequence[Variable | str] | None = None,
        regularization: WeightDecayRegularizer | None = None,
        grad_clip: GradientClipBase | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(learning_rate, parameter_list, regularization, grad_clip, name)
        require_finite("Adadelta", epsilon=epsilon)
        require_decays("Adadelta", rho=rho)
        self._attrs = {"epsilon": epsilon, "rho": rho}


@with_texts(OPTIMIZER, call="RMSProp(0.01)")
class RMSPropOptimizer(Optimizer):
    """RMSProp: divides steps by the square root of the running mean of squared gradients, with momentum.

    Args:
        rho (float): decay of the running mean.
        epsilon (float): added under the square root.
        momentum (float): factor of the previous step.
        centered (bool): subtract the square of the mean gradient.
        {common}

    {example}
    """

    type = "rmsprop"
    _momentum_acc_str = "momentum"
    _mean_square_acc_str = "mean_square"
    _mean_grad_acc_str = "mean_grad"

    def __init__(
        self,
        learning_rate: Variable | float,
        rho: float = 0.95,
        epsilon: float = 1e-6,
        momentum: float = 0.0,
        centered: bool = False,
        parameter_list: Sequence[Variable | str] | None = None,
        regularization: WeightDecayRegularizer | None = None,
        grad_clip: GradientClipBase | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(learning_rate, parameter_list, regularization, grad_clip, name)
        require_finite("RMSProp", epsilon=epsilon, momentum=momentum)
        require_decays("RMSProp", rho=rho)
        self._attrs = {"decay": rho, "epsilon": epsilon, "momentum": momentum, "centered": centered}


@with_texts(OPTIMIZER, call="Ftrl(0.1, l1=0.01)")
class FtrlOptimizer(Optimizer):
    """Follow the regularized leader; `l1` makes small parameters exactly zero.

    Fluid 1.8.5 uses l1 in place of l2; this optimizer uses l2.

    Args:
        l1 (float): weight of the L1 norm.
        l2 (float): weight of the L2 norm.
        lr_power (float): exponent of the accumulated squares.
        {common}

    {example}

    Reference:
        McMahan et al., Ad Click Prediction: a View from the Trenches, KDD 2013.
    """

    type = "ftrl"
    _squared_acc_str = "squared"
    _linear_acc_str = "linear"

    def __init__(
        self,
        learning_rate: Variable | float,
        l1: float = 0.0,
        l2: float = 0.0,
        lr_power: float = -0.5,
        parameter_list: Sequence[Variable | str] | None = None,
        regularization: WeightDecayRegularizer | None = None,
        grad_clip: GradientClipBase | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(learning_rate, parameter_list, regularization, grad_clip, name)
        require_finite("Ftrl", l1=l1, l2=l2, lr_power=lr_power)
        self._attrs = {"l1": l1, "l2": l2, "lr_power": lr_power}


@with_texts(OPTIMIZER, call="Lamb(0.001)")
class LambOptimizer(Optimizer):
    """LAMB: Adam with the step scaled by the ratio of the norms of parameter and step.

    Args:
        lamb_weight_decay (float): weight decay.
        beta1 (float): decay of the first moment.
        beta2 (float): decay of the second moment.
        epsilon (float): added to the divisor.
        {parameters}
        exclude_from_weight_decay_fn (callable | None): takes a parameter and returns whether to exclude it from weight
            decay.

    Raises:
        TypeError: `exclude_from_weight_decay_fn` is not callable.

    {example}

    Reference:
        You et al., Large Batch Optimization for Deep Learning, ICLR 2020.
    """

    type = "lamb"
    _moment1_acc_str = "moment1"
    _moment2_acc_str = "moment2"
    _beta1_pow_acc_str = "beta1_pow_acc"
    _beta2_pow_acc_str = "beta2_pow_acc"

    def __init__(
        self,
        learning_rate: Variable | float = 0.001,
        lamb_weight_decay: float = 0.01,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-6,
        parameter_list: Sequence[Variable | str] | None = None,
        regularization: WeightDecayRegularizer | None = None,
        grad_clip: GradientClipBase | None = None,
        exclude_from_weight_decay_fn: Callable[..., Any] | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(learning_rate, parameter_list, regularization, grad_clip, name)
        require_finite("Lamb", lamb_weight_decay=lamb_weight_decay, epsilon=epsilon)
        require_decays("Lamb", beta1=beta1, beta2=beta2)
        if exclude_from_weight_decay_fn is not None and not callable(exclude_from_weight_decay_fn):
            raise TypeError(
                "Lamb: exclude_from_weight_decay_fn must be a function of a parameter, not "
                f"{exclude_from_weight_decay_fn!r}"
            )
        self._excludes = exclude_from_weight_decay_fn
        self._attrs = {"weight_decay": lamb_weight_decay, "beta1": beta1, "beta2": beta2, "epsilon": epsilon}

    def _record(self, program: Program, made: MinimizeResult) -> list[Operator]:
        ops = super()._record(program, made)
        for op in ops:
            if self._excludes is not None and op.type == self.type:
                if self._excludes(program.global_block().var(op.input("Param")[0])):
                    op._set_attr("weight_decay", 0.0)
        return ops


Adam = AdamOptimizer


Adagrad = AdagradOptimizer


DecayedAdagrad = DecayedAdagradOptimizer


Adamax = AdamaxOptimizer


Adadelta = AdadeltaOptimizer


RMSProp = RMSPropOptimizer


Ftrl = FtrlOptimizer


Lamb = LambOptimizer
