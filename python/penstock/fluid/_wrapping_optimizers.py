"""Optimizers that change how another one trains."""

from penstock.fluid import framework, layers
from penstock.fluid.framework import OpRole, program_guard


class LookaheadOptimizer:
    """Each k steps, moves slow weights towards those that another optimizer has reached, and goes on from there.

    Every k-th step sets slow = alpha * fast + (1 - alpha) * slow, then fast = slow.

    Args:
        inner_optimizer (Optimizer): trains the fast weights.
        alpha (float): from 0 to 1.
        k (int): steps between two moves.

    Raises:
        ValueError: if alpha or k is out of range.

    Example:
        loss = fluid.layers.mean(fluid.layers.fc(fluid.data('x', [None, 4]), 1))
        fluid.optimizer.LookaheadOptimizer(fluid.optimizer.SGD(0.1), alpha=0.5, k=5).minimize(loss)

    Reference: Zhang et al., Lookahead Optimizer: k steps forward, 1 step back.
    """

    type = 'lookahead'

    def __init__(self, inner_optimizer, alpha=0.5, k=5):
        if inner_optimizer is None:
            raise ValueError('LookaheadOptimizer: inner_optimizer is None')
        if not 0.0 <= alpha <= 1.0:
            raise ValueError('LookaheadOptimizer: alpha must be from 0 to 1, not %r' % (alpha,))
        if not isinstance(k, int) or k <= 0:
            raise ValueError('LookaheadOptimizer: k must be a positive int, not %r' % (k,))
        self.inner_optimizer, self.alpha, self.k = inner_optimizer, alpha, k

    def minimize(self, loss, startup_program=None):
        """Adds gradients, updates and moves; returns (optimizer ops, [(parameter, gradient)]).

        Args:
            loss (Variable): is minimized.
            startup_program (Program): gives the initial values; None: the default one.
        """
        made = self.inner_optimizer.minimize(loss, startup_program=startup_program)
        startup = startup_program or framework.default_startup_program()
        main = loss.block.program
        with program_guard(main, startup), main._role_guard(OpRole.Optimize):
            slow = {param.name: self._slow(main, startup, param) for param, _ in made[1]}
            self._move(main, slow)
        return made

    @staticmethod
    def _slow(main, startup, param):
        """The slow weights of a parameter; they start where it does."""
        name = param.name + '@SLOW'
        kept = startup.global_block().create_var(name=name, shape=param.shape, dtype=param.dtype, persistable=True)
        startup.global_block().append_op('assign', {'X': startup.global_block().var(param.name)}, {'Out': kept})
        return main.global_block().create_var(name=name, shape=param.shape, dtype=param.dtype, persistable=True)

    def _move(self, main, slow):
        def constant(name, value, dtype):
            return layers.create_global_var([1], value, dtype, persistable=True, name='lookahead_' + name)

        period, step = constant('k', self.k, 'int32'), constant('step', 0, 'int32')
        alpha = constant('alpha', self.alpha, 'float32')
        layers.increment(step, value=1.0, in_place=True)
        is_due = layers.equal(layers.elementwise_mod(step, period), layers.fill_constant([1], 'int32', 0))
        rest = layers.elementwise_sub(layers.fill_constant([1], 'float32', 1.0), alpha)
        with layers.Switch() as switch:
            with switch.case(is_due):
                for name, kept in slow.items():
                    fast = main.global_block().var(name)
                    moved = layers.elementwise_add(layers.elementwise_mul(fast, alpha),
                                                   layers.elementwise_mul(kept, rest))
                    layers.assign(moved, output=kept)
                    layers.assign(moved, output=fast)
