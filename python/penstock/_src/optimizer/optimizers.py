"""The optimizers. Each class declares its op and its hyperparameters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock._src.base.argument_texts import OPTIMIZER
from penstock._src.base.doc_texts import with_texts
from penstock._src.ir.types import require_finite
from penstock._src.optimizer.base import Optimizer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock._src.ir.variable import Variable
    from penstock._src.optimizer.clip import GradientClipBase
    from penstock._src.parameters.regularizer import WeightDecayRegularizer


@with_texts(OPTIMIZER, call="SGD(0.01)")
class SGDOptimizer(Optimizer):
    """Stochastic gradient descent: param -= learning_rate * grad.

    Args:
        {learning_rate}
        {common}

    {example}
    """

    type = "sgd"


@with_texts(OPTIMIZER, call="Momentum(0.01, momentum=0.9)")
class MomentumOptimizer(Optimizer):
    """Momentum: velocity = momentum * velocity + grad; param -= learning_rate * velocity.

    With Nesterov momentum the step is learning_rate * (grad + momentum * velocity).

    Args:
        momentum (float): factor of the velocity.
        {parameters}
        use_nesterov (bool): use Nesterov momentum.

    {example}
    """

    type = "momentum"
    _velocity_acc_str = "velocity"

    def __init__(
        self,
        learning_rate: Variable | float,
        momentum: float,
        parameter_list: Sequence[Variable | str] | None = None,
        use_nesterov: bool = False,
        regularization: WeightDecayRegularizer | None = None,
        grad_clip: GradientClipBase | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(learning_rate, parameter_list, regularization, grad_clip, name)
        require_finite("Momentum", momentum=momentum)
        self._momentum = momentum
        self._use_nesterov = bool(use_nesterov)
        self._attrs = {"mu": momentum, "use_nesterov": self._use_nesterov}


@with_texts(OPTIMIZER, call="LarsMomentum(0.01, momentum=0.9)")
class LarsMomentumOptimizer(Optimizer):
    """LARS: momentum with the step scaled by the ratio of the norms of parameter and gradient.

    Args:
        momentum (float): factor of the velocity.
        lars_coeff (float): trust coefficient.
        lars_weight_decay (float): weight decay.
        {common}

    {example}

    Reference:
        You, Gitman and Ginsburg, Large Batch Training of Convolutional Networks, arXiv:1708.03888.
    """

    type = "lars_momentum"
    _velocity_acc_str = "velocity"

    def __init__(
        self,
        learning_rate: Variable | float,
        momentum: float,
        lars_coeff: float = 0.001,
        lars_weight_decay: float = 0.0005,
        parameter_list: Sequence[Variable | str] | None = None,
        regularization: WeightDecayRegularizer | None = None,
        grad_clip: GradientClipBase | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(learning_rate, parameter_list, regularization, grad_clip, name)
        require_finite("LarsMomentum", momentum=momentum, lars_coeff=lars_coeff, lars_weight_decay=lars_weight_decay)
        self._attrs = {"mu": momentum, "lars_coeff": lars_coeff, "lars_weight_decay": lars_weight_decay}


@with_texts(OPTIMIZER, call="Dpsgd(0.01, clip=10.0, batch_size=16.0, sigma=1.0)")
class DpsgdOptimizer(Optimizer):
    """Differentially private gradient descent: the gradient is clipped by its norm, and Gaussian noise is added.

    Args:
        clip (float): the maximum norm of the gradient.
        batch_size (float): divisor of the noise.
        sigma (float): standard deviation of the noise, relative to `clip`.
        {parameters}

    {example}

    Reference:
        Abadi et al., Deep Learning with Differential Privacy, CCS 2016.
    """

    type = "dpsgd"

    def __init__(
        self,
        learning_rate: Variable | float = 0.001,
        clip: float = 0.9,
        batch_size: float = 0.999,
        sigma: float = 1e-8,
        parameter_list: Sequence[Variable | str] | None = None,
    ) -> None:
        super().__init__(learning_rate, parameter_list)
        require_finite("Dpsgd", clip=clip, batch_size=batch_size, sigma=sigma)
        self._attrs = {"clip": clip, "batch_size": batch_size, "sigma": sigma}


SGD = SGDOptimizer
Momentum = MomentumOptimizer
LarsMomentum = LarsMomentumOptimizer
Dpsgd = DpsgdOptimizer
