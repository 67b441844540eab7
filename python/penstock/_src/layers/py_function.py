"""A layer that calls a Python function."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock._src.ir import host_functions
from penstock._src.ir.variable import Variable
from penstock._src.layers.helper import LayerHelper

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any


def py_func(
    func: Callable[..., Any],
    x: Variable | Sequence[Variable] | None,
    out: Variable | Sequence[Variable] | None,
    backward_func: Callable[..., Any] | None = None,
    skip_vars_in_backward_input: Sequence[Variable] | None = None,
) -> Any:
    """Adds an op that calls a Python function whenever the program runs.

    The program stores the number of the function, so it runs only in processes that have called py_func with the same
    functions in the same order.

    Args:
        func (callable): takes a LoDTensor for each of `x`, and returns a LoDTensor or array for each of `out`.
        x (Variable | list[Variable] | None): the inputs, any shape and type.
        out (Variable | list[Variable] | None): the outputs; the caller creates them with shape and type.
        backward_func (callable | None): takes `x`, `out` and the gradients of `out`, and returns the gradients of `x`
            (None: no gradient); without it, no gradient flows through the op.
        skip_vars_in_backward_input (list[Variable] | None): the variables of `x` and `out` that are not passed to
            `backward_func`.

    Returns:
        `out`.

    Raises:
        TypeError: an argument is neither a Variable nor a list of Variables.
        ValueError: an output has no shape, or a skipped variable is neither in `x` nor in `out`.

    Example:
        x = fluid.data('x', [2, 3])
        out = fluid.default_main_program().global_block().create_var(name='out', dtype='float32', shape=[2, 3])
        fluid.layers.py_func(lambda x: np.array(x) + 1, x, out)
    """
    helper = LayerHelper("py_func")
    inputs = _variables("x", x)
    outputs = _variables("out", out)
    forward = host_functions.Function(func)
    backward = None if backward_func is None else host_functions.Function(backward_func)
    for each in outputs:
        if len(each.shape) == 0:
            raise ValueError(f"the shape of {each.name}, an output of py_func, must be set before the call")
    skipped = []
    if backward is not None and skip_vars_in_backward_input is not None:
        known = {each.name for each in inputs + outputs}
        for each in _variables("skip_vars_in_backward_input", skip_vars_in_backward_input):
            if each.name not in known:
                raise ValueError(f"{each.name} cannot be skipped, because it is neither in x nor in out")
            if each.name not in skipped:
                skipped.append(each.name)
    helper.append_op(
        "py_func",
        {"X": inputs},
        {"Out": outputs},
        {
            "forward_callable_id": forward.number,
            "backward_callable_id": -1 if backward is None else backward.number,
            "backward_skip_vars": skipped,
        },
    )
    return out


py_func.registered_func = host_functions.registered  # type: ignore[attr-defined]  # Fluid's scripts ask for these
py_func.registered_func_num = host_functions.count  # type: ignore[attr-defined]


def _variables(name: str, given: Any) -> list[Variable]:
    if given is None:
        return []
    several = [given] if isinstance(given, Variable) else given
    if not isinstance(several, (list, tuple)) or not all(isinstance(each, Variable) for each in several):
        raise TypeError(f"{name} must be a Variable or a list of them, not {given!r}")
    return list(several)
