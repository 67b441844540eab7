"""run_check tests whether an installation can train."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy

from penstock._penstock import Scope
from penstock._src.base.errors import error_with_id
from penstock._src.data.py_reader import data
from penstock._src.executor.compiler import CompiledProgram
from penstock._src.executor.executor import Executor
from penstock._src.executor.scopes import scope_guard
from penstock._src.ir import unique_name
from penstock._src.ir.framework import program_guard
from penstock._src.ir.program import Program
from penstock._src.layers import arithmetic, nn
from penstock._src.optimizer import optimizers
from penstock._src.parameters.initializer import Constant
from penstock._src.parameters.param_attr import ParamAttr

if TYPE_CHECKING:
    from penstock._src.ir.typing import Array


def run_check() -> None:
    """Trains a small network for one step, alone and data-parallel, and compares the results with the expected numbers.

    Raises:
        RuntimeError: a result is wrong.

    Example:
        fluid.install_check.run_check()
    """
    for data_parallel in (False, True):
        loss, weight = _train_a_step(data_parallel)
        # x = [[1, 2], [3, 4]], w = 0.1 everywhere: the loss is the mean of x . w, its gradient [2, 3] / 3 a column.
        expected = numpy.array([[0.1 - 0.3 * 2 / 3] * 3, [0.1 - 0.3] * 3])
        if not numpy.allclose(loss, 0.5, atol=1e-5) or not numpy.allclose(weight, expected, atol=1e-5):
            raise error_with_id(
                RuntimeError,
                "E-install-check",
                f"run_check: a step computed loss {loss} and weights {weight.tolist()} instead of 0.5 and "
                f"{expected.tolist()}",
            )
    print("Penstock works: one training step gave the right numbers, by itself and data-parallel.")


def _train_a_step(data_parallel: bool) -> list[Array]:
    main, startup = Program(), Program()
    with scope_guard(Scope()), program_guard(main, startup), unique_name.guard():
        x = data("x", [2, 2], append_batch_size=False)
        attr = ParamAttr(name="w", initializer=Constant(0.1))
        loss = arithmetic.mean(nn.fc(x, 3, param_attr=attr, bias_attr=False))
        optimizers.SGD(0.3).minimize(loss)
        executor = Executor()
        executor.run(startup)
        program = CompiledProgram(main).with_data_parallel(loss.name) if data_parallel else main
        feed = {"x": numpy.array([[1, 2], [3, 4]], "float32")}
        return executor.run(program, feed=feed, fetch_list=[loss, "w"])
