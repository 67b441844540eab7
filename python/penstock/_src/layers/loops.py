"""While and while_loop: ops that run in a loop."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from penstock._src.ir.types import VarType
from penstock._src.ir.variable import Variable
from penstock._src.layers import tensor
from penstock._src.layers.control_flow_blocks import BlockGuard, OpenedGuard, crossing_vars
from penstock._src.layers.decorators import layer
from penstock._src.layers.helper import LayerHelper, describe

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager
    from typing import Any

    from penstock._src.ir.block import Block


class While:
    """Runs the ops of a block repeatedly while a condition is true; the ops must update the condition.

    Args:
        cond (Variable): the condition, one bool element; the ops of the block write it.
        is_test (bool): do not keep the values that a gradient needs.
        name (str | None): prefix of the names of the variables that the layer creates.

    Raises:
        TypeError: `cond` is not a Variable with one bool element.

    Example:
        i = fluid.layers.fill_constant([1], 'int64', 0)
        n = fluid.layers.fill_constant([1], 'int64', 10)
        more = fluid.layers.less_than(i, n)
        with fluid.layers.While(more).block():
            fluid.layers.increment(i)
            fluid.layers.less_than(i, n, cond=more)
        exe = fluid.Executor(fluid.CPUPlace())
        assert exe.run(fetch_list=[i])[0][0] == 10
    """

    BEFORE_WHILE_BLOCK, IN_WHILE_BLOCK, AFTER_WHILE_BLOCK = range(3)

    def __init__(self, cond: Variable, is_test: bool = False, name: str | None = None) -> None:
        self.helper = LayerHelper("while", name=name)
        self.status = While.BEFORE_WHILE_BLOCK
        if not isinstance(cond, Variable) or cond.dtype != VarType.BOOL:
            raise TypeError("While: cond must be a Variable of bool")
        count = 1
        for extent in cond.shape:
            count *= extent
        if count != 1:
            raise TypeError(f"While: cond must hold one truth value, but its shape is {tuple(cond.shape)}")
        self.cond_var = cond
        self.is_test = is_test

    @contextlib.contextmanager
    def _body(self) -> Iterator[None]:
        program = self.helper.main_program
        with BlockGuard(program):
            self.status = While.IN_WHILE_BLOCK
            yield
            body = program.current_block()
        self.status = While.AFTER_WHILE_BLOCK
        self._append_op(body)

    def block(self) -> AbstractContextManager[Any]:
        """Opens the block of the loop.

        Returns:
            A context manager; ops created inside it belong to the loop.
        """
        return self._body()

    def _append_op(self, body: Block) -> None:
        around = self.helper.main_program.current_block()
        outside, out, scopes = crossing_vars(around, body, [self.cond_var.name])
        around.append_op(
            "while",
            {"X": outside, "Condition": self.cond_var},
            {"Out": out, "StepScopes": scopes},
            {"sub_block": body, "is_test": self.is_test},
        )


class WhileGuard(OpenedGuard):
    """A context manager that opens the block of a loop, as its method block() does.

    Args:
        while_op (While): runs the ops that are created inside.

    Raises:
        TypeError: `while_op` is not a While.

    Example:
        i, n = fluid.layers.fill_constant([1], 'int64', 0), fluid.layers.fill_constant([1], 'int64', 10)
        more = fluid.layers.less_than(i, n)
        with fluid.layers.control_flow.WhileGuard(fluid.layers.While(more)):
            fluid.layers.increment(i)
            fluid.layers.less_than(i, n, cond=more)
        assert fluid.Executor(fluid.CPUPlace()).run(fetch_list=[i])[0][0] == 10
    """

    def __init__(self, while_op: While) -> None:
        if not isinstance(while_op, While):
            raise TypeError(f"WhileGuard takes a While, not {type(while_op).__name__}")
        super().__init__(while_op.helper.main_program, while_op.block())
        self.while_op = while_op


@layer()
def while_loop(
    cond: Callable[..., Any],
    body: Callable[..., Any],
    loop_vars: Sequence[Variable] | Sequence[Any],
    is_test: bool = False,
    name: str | None = None,
) -> list[Variable] | tuple[Any, ...]:
    """Computes loop_vars = body(*loop_vars) while cond(*loop_vars) is true.

    Args:
        cond (callable): takes the loop variables and returns a Variable with one bool element.
        body (callable): takes the loop variables and returns the same number of Variables of the same shapes and types.
            A list or dict of Variables may also be a loop variable; `body` gets a copy, which it may change.
        loop_vars (list[Variable] | tuple): initial values, of any shape and type; the loop writes the results to the
            same Variables.
        is_test (bool): do not keep the values that a gradient needs.

    Returns:
        list[Variable] | tuple: `loop_vars`.

    Raises:
        TypeError: an argument or the result of `cond` has the wrong type.
        ValueError: `loop_vars` is empty, or `body` returns another number of variables or a dict with other keys.

    Example:
        i = fluid.layers.fill_constant([1], 'int64', 0)
        n = fluid.layers.fill_constant([1], 'int64', 10)
        i, = fluid.layers.while_loop(lambda i: i < n, lambda i: [i + 1], [i])
    """
    if not callable(cond) or not callable(body):
        raise TypeError("while_loop: cond and body must be callable")
    if not isinstance(loop_vars, (list, tuple)):
        raise TypeError(f"while_loop: loop_vars must be a list or tuple, not {type(loop_vars).__name__}")
    if len(loop_vars) == 0:
        raise ValueError("while_loop: loop_vars is empty")
    more = cond(*loop_vars)
    if not isinstance(more, Variable):
        raise TypeError(f"while_loop: cond must return a Variable, not {type(more).__name__}")
    with While(more, is_test, name).block():
        results = body(*_copied(list(loop_vars)))
        if not isinstance(results, (list, tuple)):
            results = [results]
        if len(results) != len(loop_vars):
            raise ValueError(f"while_loop: body returns {len(results)} variables; there are {len(loop_vars)} loop_vars")
        still = cond(*results)
        _assign_all(results, loop_vars)
        tensor.assign(still, more)
    return loop_vars


def _copied(value: Any) -> Any:
    """Returns the same Variables in new lists and dicts, which `body` may change."""
    if isinstance(value, (list, tuple)):
        return type(value)(_copied(one) for one in value) if type(value) in (list, tuple) else value
    return {key: _copied(one) for key, one in value.items()} if isinstance(value, dict) else value


def _assign_all(source: Any, target: Any) -> None:
    """Assigns source to the loop variables in target, which may be nested in lists and dicts.

    Tensor arrays are skipped, because the loop writes them in place.
    """
    if isinstance(target, (list, tuple, dict)):
        keys = sorted(target) if isinstance(target, dict) else range(len(target))
        kind = dict if isinstance(target, dict) else (list, tuple)
        if not isinstance(source, kind) or (sorted(source) if kind is dict else range(len(source))) != keys:
            raise ValueError(
                f"while_loop: body returns {describe(source)} where loop_vars have {describe(target)}; lists and "
                "dicts must keep "
                "their sizes and keys"
            )
        for key in keys:
            _assign_all(source[key], target[key])
    elif source.type != VarType.LOD_TENSOR_ARRAY:
        tensor.assign(source, target)
