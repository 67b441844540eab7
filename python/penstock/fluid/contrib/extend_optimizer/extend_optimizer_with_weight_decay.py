"""Weight decay apart from the gradient (Loshchilov and Hutter, Decoupled Weight Decay Regularization)."""

from penstock.fluid import framework, layers
from penstock.fluid.framework import Variable
from penstock.fluid.optimizer import Optimizer

__all__ = ['extend_with_decoupled_weight_decay']


class DecoupledWeightDecay:
    """Comes before an Optimizer in the bases of a class: its minimize decays each parameter before it is updated.

    Args:
        coeff (float or Variable): each parameter loses coeff times itself.
        apply_decay_param_fun: takes a parameter's name, returns whether it decays; None: all do.
        **kwargs: of the optimizer.
    """

    def __init__(self, coeff=0.0, apply_decay_param_fun=None, **kwargs):
        if not isinstance(coeff, (float, Variable)):
            raise TypeError('weight decay: coeff must be a float or a Variable, not %r' % (coeff,))
        self._coeff = coeff
        self._apply_decay_param_fun = apply_decay_param_fun
        self._params_name = set()
        super().__init__(**kwargs)

    def minimize(self, loss, startup_program=None, parameter_list=None, no_grad_set=None):
        """As the optimizer's minimize."""
        params_grads = self.backward(loss=loss, startup_program=startup_program, parameter_list=parameter_list,
                                     no_grad_set=no_grad_set)
        with framework.program_guard(loss.block.program, startup_program):
            for param, grad, decay in self._decays(params_grads):
                with param.block.program._optimized_guard([param, grad]), framework.name_scope('weight decay'):
                    layers.assign(layers.elementwise_sub(param, decay), output=param)
        ops = self.apply_optimize(loss, startup_program, params_grads)
        return ops, params_grads

    def _decays(self, params_grads):
        """(parameter, gradient, what the parameter loses); all of them from values before any is changed."""
        if isinstance(self._coeff, float) and self._coeff == 0.0:
            return []
        decays = []
        for param, grad in params_grads:
            if grad is None or (self._apply_decay_param_fun and not self._apply_decay_param_fun(param.name)):
                continue
            with param.block.program._optimized_guard([param, grad]), framework.name_scope('weight decay'):
                decays.append((param, grad, param * self._coeff))
            self._params_name.add(param.name)
        return decays

    def __str__(self):
        return 'Weight Decay, params: ' + ','.join(sorted(self._params_name))


def extend_with_decoupled_weight_decay(base_optimizer):
    """Returns a class like `base_optimizer` whose updates also decay parameters by themselves.

    Args:
        base_optimizer (type): a subclass of fluid.optimizer.Optimizer.

    Returns:
        type: its constructor takes weight_decay (float or Variable: each parameter p becomes p - weight_decay * p
        before its update), apply_decay_param_fun (takes a parameter's name, returns whether it decays) and what
        base_optimizer takes, by name.

    Raises:
        TypeError: base_optimizer is no such class.

    Example:
        AdamW = fluid.contrib.extend_optimizer.extend_with_decoupled_weight_decay(fluid.optimizer.Adam)
        loss = fluid.layers.mean(fluid.layers.fc(fluid.data('x', [None, 4]), 1))
        AdamW(weight_decay=0.01, learning_rate=0.1).minimize(loss)
    """
    if not (isinstance(base_optimizer, type) and issubclass(base_optimizer, Optimizer)):
        raise TypeError('extend_with_decoupled_weight_decay takes a subclass of Optimizer, not %r' % (base_optimizer,))

    class OptimizerWithDecoupledWeightDecay(DecoupledWeightDecay, base_optimizer):

        def __init__(self, weight_decay, apply_decay_param_fun=None, **kwargs):
            super().__init__(weight_decay, apply_decay_param_fun, **kwargs)

    return OptimizerWithDecoupledWeightDecay
