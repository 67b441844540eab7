"""ExponentialMovingAverage and ModelAverage: averages of each parameter, computed during training. With pservers, each
trainer averages the parameters that it receives.

    optimizer.minimize(loss)
    average = fluid.optimizer.ExponentialMovingAverage(0.999)
    average.update()
    ...                                # train
    with average.apply(exe):
        ...                            # test, with the averages as parameters
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import numpy

from penstock._src.base.doc_texts import with_texts
from penstock._src.base.errors import state_error
from penstock._src.executor.scopes import global_scope
from penstock._src.ir import framework, unique_name
from penstock._src.ir.framework import name_scope, program_guard
from penstock._src.ir.program import Program
from penstock._src.ir.types import require_decays
from penstock._src.layers import arithmetic, control_flow, creation, nn, tensor
from penstock._src.optimizer.base import Optimizer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from penstock._src.executor.executor import Executor
    from penstock._src.ir.block import Block
    from penstock._src.ir.variable import Parameter, Variable
    from penstock._src.parameters.regularizer import WeightDecayRegularizer


def _averaged_parameters(keeper: Callable[[Parameter], str]) -> list[tuple[Parameter, Variable]]:
    """Returns (parameter, variable that keeps its value while the average replaces it) for the default main program."""
    pairs = []
    for param in framework.default_main_program().global_block().all_parameters():
        if param.do_model_average is not False:
            kept = param.block.create_var(
                name=unique_name.generate(keeper(param)), dtype=param.dtype, persistable=False, stop_gradient=True
            )
            pairs.append((param, kept))
    return pairs


def _in(block: Block, var: Variable, shape: Sequence[int] | None = None) -> Variable:
    """Declares `var` in another program, so that both use the same variable of the scope."""
    return block.create_var(
        name=var.name,
        shape=list(var.shape if shape is None else shape),
        dtype=var.dtype,
        persistable=True,
        stop_gradient=True,
    )


def _restore_program(pairs: list[tuple[Parameter, Variable]]) -> Program:
    program = Program()
    block = program.global_block()
    with program_guard(program):
        for param, kept in pairs:
            tensor.assign(_in(block, kept, param.shape), _in(block, param))
    return program


class ParameterAverage:
    """Base class of both: programs that replace parameters by their averages and restore them."""

    _pairs: list[tuple[Parameter, Variable]]
    apply_program: Program
    restore_program: Program

    def _kept(self, param: Parameter) -> Variable:
        """Returns the variable from which the average of a parameter is computed."""
        raise NotImplementedError

    def _require_averages(self) -> None:
        for param, _ in self._pairs:
            average = global_scope().find_var(self._kept(param).name)
            if average is None or not average.is_initialized():
                raise state_error(
                    "E-average-missing",
                    f"apply: this process has no average of {param.name}",
                    "run the startup program first; the average of a parameter with sparse gradients is on its "
                    "pservers: use is_sparse=False for it, or ParamAttr(do_model_average=False)",
                )

    @contextlib.contextmanager
    def apply(self, executor: Executor, need_restore: bool = True) -> Iterator[None]:
        """Returns a context manager; inside it, the parameters hold their averages.

        Args:
            executor (Executor): runs the exchange.
            need_restore (bool): True: restore the parameters at the end; False: restore() does it.

        Returns:
            object: the context manager.

        Raises:
            penstock.StateError: this process has no averages (E-average-missing).
        """
        self._require_averages()
        executor.run(self.apply_program)
        try:
            yield
        finally:
            if need_restore:
                executor.run(self.restore_program)

    def restore(self, executor: Executor) -> None:
        """Restores the parameters after apply(need_restore=False).

        Args:
            executor (Executor): runs the exchange.
        """
        executor.run(self.restore_program)


_TRAINING = {
    "trained": """exe = fluid.Executor(fluid.CPUPlace())
exe.run(fluid.default_startup_program())
exe.run(feed={'x': np.ones((2, 4), 'float32')})
with average.apply(exe):"""
}


@with_texts(_TRAINING)
class ExponentialMovingAverage(ParameterAverage):
    """Keeps a moving average of each parameter: average = decay * average + (1 - decay) * parameter, in each run.
    apply() corrects the bias of its initial value 0.

    Args:
        decay (float): factor of the previous average.
        thres_steps (Variable | None): counts steps, shape [1]; the decay is then min(decay, (1 + steps) / (10 +
            steps)).
        name (str | None): prefix of the names of the averages.

    Example:
        loss = fluid.layers.mean(fluid.layers.fc(fluid.data('x', [None, 4]), 1))
        fluid.optimizer.SGD(0.1).minimize(loss)
        average = fluid.optimizer.ExponentialMovingAverage(0.999)
        average.update()
        {trained}
            pass    # test here, with the averages as parameters
    """

    def __init__(self, decay: float = 0.999, thres_steps: Variable | None = None, name: str | None = None) -> None:
        require_decays("ExponentialMovingAverage", decay=decay)
        self._decay = decay
        self._thres_steps = thres_steps
        self._name = name if name is not None else ""
        self._decay_var = self._make_decay()
        self._step_counter_name = "@EMA_STEP_COUNTER@"
        self._pairs = _averaged_parameters(lambda param: f"{self._name}{param.name}.ema_tmp")
        self._averages = {param.name: self._make_average(param, kept) for param, kept in self._pairs}
        self.apply_program = self._make_apply_program()
        self.restore_program = _restore_program(self._pairs)

    def _make_decay(self) -> Variable:
        with framework.default_main_program()._lr_schedule_guard():
            decay: Variable = creation.create_global_var(
                [1], self._decay, "float32", persistable=True, name="scheduled_ema_decay_rate"
            )
            if self._thres_steps is not None:
                steps = tensor.cast(self._thres_steps, "float32")  # integer division would lose the fraction
                early = (steps + 1.0) / (steps + 10.0)
                with control_flow.Switch() as switch:
                    with switch.case(early < self._decay):
                        tensor.assign(early, decay)
                    with switch.default():
                        tensor.assign(numpy.array([self._decay], "float32"), decay)
        return decay

    @contextlib.contextmanager
    def _ops_of(self, param: Parameter, kept: Variable) -> Iterator[None]:
        with param.block.program._optimized_guard([param, kept]), name_scope("moving_average"):
            yield

    def _make_average(self, param: Parameter, kept: Variable) -> Variable:
        with self._ops_of(param, kept):
            average: Variable = creation.create_global_var(
                param.shape,
                0.0,
                param.dtype,
                persistable=True,
                name=unique_name.generate(f"{self._name}{param.name}_ema"),
            )
        return average

    def _make_apply_program(self) -> Program:
        program = Program()
        block = program.global_block()
        with program_guard(program):
            step = creation.create_global_var([1], 0, "int64", persistable=True, name=self._step_counter_name)
            step = tensor.cast(step, "float32")
            decay_pow = arithmetic.elementwise_pow(_in(block, self._decay_var), step)
            for param, kept in self._pairs:
                average, value = _in(block, self._averages[param.name]), _in(block, param)
                tensor.assign(value, _in(block, kept, param.shape))
                with control_flow.Switch() as switch:
                    with switch.case(step > 0):
                        tensor.assign(average / (1.0 - decay_pow), value)
                    with switch.default():
                        tensor.assign(average, value)
        return program

    def _kept(self, param: Parameter) -> Variable:
        return self._averages[param.name]

    def update(self) -> None:
        """Adds the ops of one step of the average. Call it after minimize."""
        nn.autoincreased_step_counter(counter_name=self._step_counter_name)
        for param, kept in self._pairs:
            with self._ops_of(param, kept):
                average = self._averages[param.name]
                tensor.assign(average * self._decay_var + param * (1 - self._decay_var), average)


@with_texts(_TRAINING)
class ModelAverage(Optimizer, ParameterAverage):
    """Keeps the mean of each parameter over the last steps.

    The window is `average_window_rate` times the number of steps so far, limited by its minimum and maximum.

    Args:
        average_window_rate (float): the window's share of all steps.
        min_average_window (int): the minimum number of steps of the window.
        max_average_window (int): the maximum number of steps of the window.
        regularization (WeightDecayRegularizer | None): ignored; accepted for compatibility with Fluid.
        name (str | None): prefix of the names of the sums.

    Raises:
        TypeError: `regularization` has another type.

    Example:
        loss = fluid.layers.mean(fluid.layers.fc(fluid.data('x', [None, 4]), 1))
        fluid.optimizer.SGD(0.1).minimize(loss)
        average = fluid.optimizer.ModelAverage(0.15, min_average_window=2, max_average_window=10)
        {trained}
            pass    # test here, with the means as parameters
    """

    _SUMS = ("sum_1", "sum_2", "sum_3")
    _COUNTS = ("num_accumulates", "old_num_accumulates", "num_updates")

    def __init__(
        self,
        average_window_rate: float,
        min_average_window: int = 10000,
        max_average_window: int = 10000,
        regularization: WeightDecayRegularizer | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(0.0, regularization=regularization, name=name)
        self._attrs = {
            "average_window": average_window_rate,
            "min_average_window": min_average_window,
            "max_average_window": max_average_window,
        }
        self._pairs = _averaged_parameters(lambda param: f"{param.name}.tmp")
        for param, kept in self._pairs:
            with param.block.program._optimized_guard([param, kept]), name_scope("move_average"):
                self._append_accumulation(param)
        self.apply_program = self._make_apply_program()
        self.restore_program = _restore_program(self._pairs)

    def _kept(self, param: Parameter) -> Variable:
        return self._get_accumulator(self._SUMS[0], param)

    def _append_accumulation(self, param: Parameter) -> None:
        states = {name: self._add_accumulator(name, param) for name in self._SUMS}
        states.update((name, self._add_accumulator(name, param, dtype="int64", shape=[1])) for name in self._COUNTS)
        inputs = {"in_" + name: state for name, state in states.items()}
        outputs = {"out_" + name: state for name, state in states.items()}
        param.block.append_op("average_accumulates", dict(inputs, param=param), outputs, self._attrs)

    def _make_apply_program(self) -> Program:
        program = Program()
        block = program.global_block()
        with program_guard(program):
            for param, kept in self._pairs:
                value = _in(block, param)
                tensor.assign(value, _in(block, kept, param.shape))
                sums = [_in(block, self._get_accumulator(name, param)) for name in self._SUMS]
                counts = [_in(block, self._get_accumulator(name, param)) for name in self._COUNTS[:2]]
                steps, total = tensor.sum(counts), tensor.sum(sums)
                steps, total = tensor.cast(steps, param.dtype), tensor.cast(total, param.dtype)
                block.append_op("elementwise_div", {"X": total, "Y": steps}, {"Out": value})
        return program
