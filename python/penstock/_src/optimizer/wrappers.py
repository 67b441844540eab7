"""Optimizers that change how another one trains: RecomputeOptimizer and LookaheadOptimizer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock._src.base.argument_texts import MINIMIZE
from penstock._src.base.doc_texts import with_texts
from penstock._src.base.errors import not_built, state_error
from penstock._src.base.same_arguments import arguments_of
from penstock._src.ir import framework
from penstock._src.ir.framework import program_guard
from penstock._src.ir.program import OpRole
from penstock._src.layers import arithmetic, comparison, control_flow, creation, tensor
from penstock._src.optimizer.backward import names_of, require_loss
from penstock._src.optimizer.base import Optimizer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from penstock._src.ir.operator import Operator
    from penstock._src.ir.program import Program
    from penstock._src.ir.typing import ParamGrads
    from penstock._src.ir.variable import Variable


class RecomputeOptimizer(Optimizer):
    """Recomputes values of the forward pass for the gradients instead of keeping them: uses less memory and more time.

    Values that only ops between two checkpoints use are not kept; see append_backward. The results are the same.

    Args:
        optimizer (Optimizer): computes the updates.

    Raises:
        TypeError: `optimizer` is not an Optimizer.

    Example:
        h = fluid.layers.fc(fluid.data('x', [None, 4]), 8, act='relu')
        loss = fluid.layers.mean(fluid.layers.fc(h, 1))
        optimizer = fluid.optimizer.RecomputeOptimizer(fluid.optimizer.SGD(0.1))
        optimizer._set_checkpoints([h])
        optimizer.minimize(loss)
    """

    def __init__(self, optimizer: Optimizer) -> None:
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"RecomputeOptimizer takes an Optimizer, not {optimizer!r}")
        self._optimizer = optimizer
        self._checkpoints: list[str] | None = None
        self._learning_rate = optimizer._learning_rate
        self._learning_rate_map = optimizer._learning_rate_map

    def _set_checkpoints(self, checkpoints: Sequence[Variable | str]) -> None:
        """Sets the checkpoints: the Variables, or their names, whose values are kept."""
        self._checkpoints = names_of(checkpoints)

    def load(self, stat_dict: Mapping[Any, Any]) -> None:
        """Raises an error, as in Fluid: the state belongs to the inner optimizer.

        Args:
            stat_dict (dict): not used.

        Raises:
            NotImplementedError: always.
        """
        raise not_built("RecomputeOptimizer: load the state of the inner optimizer by fluid.load")

    @with_texts(MINIMIZE)
    @arguments_of(Optimizer.backward)
    def backward(
        self, loss: Variable, startup_program: Program | None = None, *rest: Any, **named: Any
    ) -> list[tuple[Variable, Variable]]:
        """Adds the gradients, computed from values that are recomputed between checkpoints.

        {of_backward}

        Raises:
            penstock.StateError: before _set_checkpoints.
            penstock.ProgramError: a checkpoint is not a variable of the program (E-backward-checkpoint).
        """
        if self._checkpoints is None:
            raise state_error(
                "E-recompute-checkpoints", "RecomputeOptimizer: no checkpoints are set", "call _set_checkpoints first"
            )
        return self._optimizer._backward(loss, *rest, **named, checkpoints=self._checkpoints)

    @with_texts(MINIMIZE)
    def apply_gradients(self, params_grads: ParamGrads) -> list[Operator]:
        """Adds the inner optimizer's updates.

        {from_pairs}
        """
        return self._optimizer.apply_gradients(params_grads)

    @with_texts(MINIMIZE)
    def apply_optimize(
        self, loss: Variable, startup_program: Program | None, params_grads: ParamGrads
    ) -> list[Operator]:
        """Adds the inner optimizer's updates to the programs of a loss.

        {of_a_loss}
        """
        return self._optimizer.apply_optimize(loss, startup_program, params_grads)

    @with_texts(MINIMIZE)
    @arguments_of(Optimizer.minimize)
    def minimize(
        self, loss: Variable, startup_program: Program | None = None, *rest: Any, **named: Any
    ) -> tuple[list[Operator], list[tuple[Variable, Variable]]]:
        """Adds gradients and updates.

        Args:
            {to_minimize}

        {updates_and_pairs}

        Raises:
            penstock.StateError: before _set_checkpoints.
        """
        require_loss("minimize", loss)
        pairs = self.backward(loss, startup_program, *rest, **named)
        return self.apply_optimize(loss, startup_program, pairs), pairs


class LookaheadOptimizer:
    """Every k steps, moves slow weights towards the weights of another optimizer, which then continues from them.

    Every k-th step sets slow = alpha * fast + (1 - alpha) * slow, then fast = slow. With pservers, this is part of the
    update of each parameter in the synchronous modes; in geo mode each trainer does it; other modes refuse it.

    Args:
        inner_optimizer (Optimizer): trains the fast weights.
        alpha (float): from 0 to 1.
        k (int): steps between two moves.

    Raises:
        ValueError: alpha or k is out of range.

    Example:
        loss = fluid.layers.mean(fluid.layers.fc(fluid.data('x', [None, 4]), 1))
        fluid.optimizer.LookaheadOptimizer(fluid.optimizer.SGD(0.1), alpha=0.5, k=5).minimize(loss)

    Reference: Zhang et al., Lookahead Optimizer: k steps forward, 1 step back.
    """

    type = "lookahead"

    def __init__(self, inner_optimizer: Optimizer, alpha: float = 0.5, k: int = 5) -> None:
        if inner_optimizer is None:
            raise ValueError("LookaheadOptimizer: inner_optimizer is None")
        if not 0.0 <= alpha <= 1.0:
            raise ValueError(f"LookaheadOptimizer: alpha must be from 0 to 1, not {alpha!r}")
        if not isinstance(k, int) or k <= 0:
            raise ValueError(f"LookaheadOptimizer: k must be a positive int, not {k!r}")
        self.inner_optimizer, self.alpha, self.k = inner_optimizer, alpha, k

    @with_texts(MINIMIZE)
    def minimize(
        self, loss: Variable, startup_program: Program | None = None
    ) -> tuple[list[Operator], list[tuple[Variable, Variable]]]:
        """Adds gradients, updates, and the moves of the slow weights.

        Args:
            loss (Variable): the loss to minimize.
            startup_program (Program): receives the initial values; None: the default one.

        {updates_and_pairs}
        """
        made = self.inner_optimizer.minimize(loss, startup_program=startup_program)
        startup = startup_program or framework.default_startup_program()
        main = loss.block.program
        with program_guard(main, startup), main._role_guard(OpRole.Optimize):
            slow = {param.name: self._slow(main, startup, param) for param, _ in made[1]}
            self._move(main, slow)
        return made

    @staticmethod
    def _slow(main: Program, startup: Program, param: Variable) -> Variable:
        """Creates the slow weights of a parameter, with the same initial value."""
        name = param.name + "@SLOW"
        kept = startup.global_block().create_var(name=name, shape=param.shape, dtype=param.dtype, persistable=True)
        startup.global_block().append_op("assign", {"X": startup.global_block().var(param.name)}, {"Out": kept})
        return main.global_block().create_var(name=name, shape=param.shape, dtype=param.dtype, persistable=True)

    def _move(self, main: Program, slow: Mapping[str, Variable]) -> None:
        def constant(name: str, value: float, dtype: str) -> Variable:
            made: Variable = creation.create_global_var([1], value, dtype, persistable=True, name="lookahead_" + name)
            return made

        period, step = constant("k", self.k, "int32"), constant("step", 0, "int32")
        alpha = constant("alpha", self.alpha, "float32")
        comparison.increment(step, value=1.0, in_place=True)
        is_due = comparison.equal(arithmetic.elementwise_mod(step, period), tensor.fill_constant([1], "int32", 0))
        rest = arithmetic.elementwise_sub(tensor.fill_constant([1], "float32", 1.0), alpha)
        with control_flow.Switch() as switch:
            with switch.case(is_due):
                for name, kept in slow.items():
                    fast = main.global_block().var(name)
                    moved = arithmetic.elementwise_add(
                        arithmetic.elementwise_mul(fast, alpha), arithmetic.elementwise_mul(kept, rest)
                    )
                    tensor.assign(moved, output=kept)
                    tensor.assign(moved, output=fast)
