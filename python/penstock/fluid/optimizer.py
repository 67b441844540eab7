"""The optimizers: each names its op and its hyperparameters."""

from penstock.fluid._averaging import ExponentialMovingAverage, ModelAverage
from penstock.fluid._dgc import DGCMomentumOptimizer
from penstock.fluid._not_built import getattr_of
from penstock.fluid._optimizer_base import Optimizer
from penstock.fluid.core import require_numbers
from penstock.fluid.framework import Variable

__all__ = [
    'Adadelta', 'AdadeltaOptimizer', 'Adagrad', 'AdagradOptimizer', 'Adam', 'AdamOptimizer', 'Adamax',
    'AdamaxOptimizer', 'DGCMomentumOptimizer', 'DecayedAdagrad', 'DecayedAdagradOptimizer', 'Dpsgd', 'DpsgdOptimizer',
    'ExponentialMovingAverage', 'Ftrl', 'FtrlOptimizer', 'Lamb', 'LambOptimizer', 'LarsMomentum',
    'LarsMomentumOptimizer', 'ModelAverage', 'Momentum', 'MomentumOptimizer', 'Optimizer', 'RMSProp',
    'RMSPropOptimizer', 'SGD', 'SGDOptimizer',
]


class SGDOptimizer(Optimizer):
    """param -= learning_rate * grad"""

    type = 'sgd'

    def __init__(self, learning_rate, parameter_list=None, regularization=None, grad_clip=None, name=None):
        super().__init__(learning_rate, parameter_list, regularization, grad_clip, name)


class MomentumOptimizer(Optimizer):
    """velocity = momentum * velocity + grad; param -= learning_rate * velocity.

    With use_nesterov the step is learning_rate * (grad + momentum * velocity).
    """

    type = 'momentum'

    def __init__(self, learning_rate, momentum, parameter_list=None, use_nesterov=False, regularization=None,
                 grad_clip=None, name=None):
        super().__init__(learning_rate, parameter_list, regularization, grad_clip, name)
        require_numbers('Momentum', momentum=momentum)
        self._momentum = momentum
        self._use_nesterov = bool(use_nesterov)
        self._attrs = {'mu': momentum, 'use_nesterov': self._use_nesterov}


class AdamOptimizer(Optimizer):
    """Adam: steps by the running mean of the gradient over the root of that of its square."""

    type = 'adam'

    def __init__(self, learning_rate=0.001, beta1=0.9, beta2=0.999, epsilon=1e-8, parameter_list=None,
                 regularization=None, grad_clip=None, name=None, lazy_mode=False):
        super().__init__(learning_rate, parameter_list, regularization, grad_clip, name)
        if isinstance(beta1, Variable) or isinstance(beta2, Variable):
            raise NotImplementedError('Adam: beta1 and beta2 as Variables are not built; give numbers')
        require_numbers('Adam', beta1=beta1, beta2=beta2, epsilon=epsilon)
        self._beta1, self._beta2, self._epsilon, self._lazy_mode = beta1, beta2, epsilon, lazy_mode
        self._attrs = {
            'beta1': beta1,
            'beta2': beta2,
            'epsilon': epsilon,
            'lazy_mode': lazy_mode,
            'min_row_size_to_use_multithread': 1000
        }


class AdagradOptimizer(Optimizer):
    """Steps over the root of the sum of squared gradients."""

    type = 'adagrad'

    def __init__(self, learning_rate, epsilon=1e-6, parameter_list=None, regularization=None, grad_clip=None, name=None,
                 initial_accumulator_value=0.0):
        super().__init__(learning_rate, parameter_list, regularization, grad_clip, name)
        require_numbers('Adagrad', epsilon=epsilon)
        self._attrs = {'epsilon': epsilon}
        self._initial = {'moment': float(initial_accumulator_value)}


class DecayedAdagradOptimizer(Optimizer):
    """Steps over the root of the running mean of squared gradients."""

    type = 'decayed_adagrad'

    def __init__(self, learning_rate, decay=0.95, epsilon=1e-6, parameter_list=None, regularization=None,
                 grad_clip=None, name=None):
        super().__init__(learning_rate, parameter_list, regularization, grad_clip, name)
        require_numbers('DecayedAdagrad', decay=decay, epsilon=epsilon)
        self._attrs = {'decay': decay, 'epsilon': epsilon}


class AdamaxOptimizer(Optimizer):
    """Adam with the largest gradient seen in place of the root of the mean of squares."""

    type = 'adamax'

    def __init__(self, learning_rate=0.001, beta1=0.9, beta2=0.999, epsilon=1e-8, parameter_list=None,
                 regularization=None, grad_clip=None, name=None):
        super().__init__(learning_rate, parameter_list, regularization, grad_clip, name)
        require_numbers('Adamax', beta1=beta1, beta2=beta2, epsilon=epsilon)
        self._attrs = {'beta1': beta1, 'beta2': beta2, 'epsilon': epsilon}


class AdadeltaOptimizer(Optimizer):
    """The size of a step follows from earlier steps; the learning rate is made, as in Fluid, and not used."""

    type = 'adadelta'

    def __init__(self, learning_rate, epsilon=1e-6, rho=0.95, parameter_list=None, regularization=None, grad_clip=None,
                 name=None):
        super().__init__(learning_rate, parameter_list, regularization, grad_clip, name)
        require_numbers('Adadelta', epsilon=epsilon, rho=rho)
        self._attrs = {'epsilon': epsilon, 'rho': rho}


class RMSPropOptimizer(Optimizer):
    """Steps over the root of the running mean of squared gradients, with momentum; centered takes off the mean."""

    type = 'rmsprop'

    def __init__(self, learning_rate, rho=0.95, epsilon=1e-6, momentum=0.0, centered=False, parameter_list=None,
                 regularization=None, grad_clip=None, name=None):
        super().__init__(learning_rate, parameter_list, regularization, grad_clip, name)
        require_numbers('RMSProp', rho=rho, epsilon=epsilon, momentum=momentum)
        self._attrs = {'decay': rho, 'epsilon': epsilon, 'momentum': momentum, 'centered': centered}


class FtrlOptimizer(Optimizer):
    """Follow the regularized leader: l1 makes small parameters exactly zero.

    Fluid 1.8.5 takes l1 for l2 too, whatever l2 is; here l2 counts.
    """

    type = 'ftrl'

    def __init__(self, learning_rate, l1=0.0, l2=0.0, lr_power=-0.5, parameter_list=None, regularization=None,
                 grad_clip=None, name=None):
        super().__init__(learning_rate, parameter_list, regularization, grad_clip, name)
        require_numbers('Ftrl', l1=l1, l2=l2, lr_power=lr_power)
        self._attrs = {'l1': l1, 'l2': l2, 'lr_power': lr_power}


class LambOptimizer(Optimizer):
    """Adam whose step follows the parameter's norm over the step's."""

    type = 'lamb'

    def __init__(self, learning_rate=0.001, lamb_weight_decay=0.01, beta1=0.9, beta2=0.999, epsilon=1e-6,
                 parameter_list=None, regularization=None, grad_clip=None, exclude_from_weight_decay_fn=None,
                 name=None):
        super().__init__(learning_rate, parameter_list, regularization, grad_clip, name)
        require_numbers('Lamb', lamb_weight_decay=lamb_weight_decay, beta1=beta1, beta2=beta2, epsilon=epsilon)
        if exclude_from_weight_decay_fn is not None and not callable(exclude_from_weight_decay_fn):
            raise TypeError('Lamb: exclude_from_weight_decay_fn must be a function of a parameter, not %r' %
                            (exclude_from_weight_decay_fn,))
        self._excludes = exclude_from_weight_decay_fn
        self._attrs = {'weight_decay': lamb_weight_decay, 'beta1': beta1, 'beta2': beta2, 'epsilon': epsilon}

    def _record(self, program, made):
        ops = super()._record(program, made)
        for op in ops:
            if self._excludes is not None and op.type == self.type:
                if self._excludes(program.global_block().var(op.input('Param')[0])):
                    op._set_attr('weight_decay', 0.0)
        return ops


class LarsMomentumOptimizer(Optimizer):
    """Momentum whose step follows the parameter's norm over the gradient's."""

    type = 'lars_momentum'

    def __init__(self, learning_rate, momentum, lars_coeff=0.001, lars_weight_decay=0.0005, parameter_list=None,
                 regularization=None, grad_clip=None, name=None):
        super().__init__(learning_rate, parameter_list, regularization, grad_clip, name)
        require_numbers('LarsMomentum', momentum=momentum, lars_coeff=lars_coeff, lars_weight_decay=lars_weight_decay)
        self._attrs = {'mu': momentum, 'lars_coeff': lars_coeff, 'lars_weight_decay': lars_weight_decay}


class DpsgdOptimizer(Optimizer):
    """A step along a clipped gradient with noise."""

    type = 'dpsgd'

    def __init__(self, learning_rate=0.001, clip=0.9, batch_size=0.999, sigma=1e-8, parameter_list=None):
        super().__init__(learning_rate, parameter_list)
        require_numbers('Dpsgd', clip=clip, batch_size=batch_size, sigma=sigma)
        self._attrs = {'clip': clip, 'batch_size': batch_size, 'sigma': sigma}


SGD = SGDOptimizer
Momentum = MomentumOptimizer
Adam = AdamOptimizer
Adagrad = AdagradOptimizer
DecayedAdagrad = DecayedAdagradOptimizer
Adamax = AdamaxOptimizer
Adadelta = AdadeltaOptimizer
RMSProp = RMSPropOptimizer
Ftrl = FtrlOptimizer
Lamb = LambOptimizer
LarsMomentum = LarsMomentumOptimizer
Dpsgd = DpsgdOptimizer

__getattr__ = getattr_of(__name__)
