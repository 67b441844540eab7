"""Gradients of a loss. C++ adds the ops; this module converts between names and handles."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock import _penstock
from penstock._src.base.doc_texts import with_texts
from penstock._src.base.errors import program_error, suggestion
from penstock._src.ir import unique_name
from penstock._src.ir.variable import GRAD_SUFFIX, Variable, grad_var_name

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from typing import Any

    from penstock._penstock import BackwardResult
    from penstock._src.ir.block import Block
    from penstock._src.ir.operator import Operator
    from penstock._src.ir.program import Program


_append_grad_suffix_ = grad_var_name  # Fluid's name


def _as_list(x: object) -> list[Any]:
    """Returns x as a list; [] for None."""
    return [] if x is None else list(x) if isinstance(x, (list, tuple)) else [x]


def names_of(variables: Collection[object] | None) -> list[str]:
    """Returns the names of a list or set of Variables or names."""
    if variables is None:
        return []
    if not isinstance(variables, (list, tuple, set, frozenset)):
        raise TypeError(f"expected a list or a set of Variables or names, not {variables!r}")
    names = []
    for name in (getattr(variable, "name", variable) for variable in variables):
        if not isinstance(name, str):
            raise TypeError(f"expected a Variable or its name, not {name!r}")
        names.append(name)
    return names


def stopped_names(no_grad_set: Collection[object] | None, program: Program) -> list[str]:
    """Returns the names of a no_grad_set. Each must be a variable of the program or the gradient of one."""
    names = names_of(no_grad_set)
    for name in names:
        if not any(block.has_var(known) for block in program.blocks for known in (name, _strip_grad_suffix_(name))):
            known = [each for block in program.blocks for each in block.vars.keys()]
            raise program_error(
                "E-no-grad-unknown", f"no_grad_set: the program has no variable {name}{suggestion(name, known)}"
            )
    return names


def _strip_grad_suffix_(name: str) -> str:
    """Returns the name of the variable that a gradient belongs to, by Fluid's rule: the part before the first
    '@GRAD'."""
    return name.split(GRAD_SUFFIX, 1)[0]


def _get_stop_gradients_(program: Program) -> dict[int, set[str]]:
    """Returns {block number: names of the gradients of its variables with stop_gradient}."""
    return {
        block.idx: {_append_grad_suffix_(var.name) for var in block.vars.values() if var.stop_gradient}
        for block in program.blocks
    }


def require_loss(caller: str, loss: object) -> None:
    if not isinstance(loss, Variable):
        raise TypeError(f"{caller}: the loss must be a Variable, not {loss!r}")


def _variables_with(op_names: list[str], names: set[str]) -> bool:
    return any(name in names for name in op_names)


def _find_op_path_(
    block: Block, outputs: Sequence[Variable], inputs: Sequence[Variable], no_grad_set: set[str]
) -> list[Operator]:
    """Returns the ops of a block through which gradients flow from `outputs` to `inputs`, or to any variable without
    `inputs`.

    Adds the names of other variables that stop gradients on the way to `no_grad_set`.
    """
    ops = [op for op in block.ops if _penstock.op_has_gradient(op.type)]
    from_inputs = {variable.name for variable in inputs}
    if inputs:
        reached = []
        for op in ops:
            if _variables_with(op.input_arg_names, from_inputs):
                from_inputs.update(name for name in op.output_arg_names if name not in no_grad_set)
                reached.append(op)
        ops = reached
    to_outputs = {variable.name for variable in outputs}
    path: list[Operator] = []
    for op in reversed(ops):
        if _variables_with(op.output_arg_names, to_outputs):
            to_outputs.update(name for name in op.input_arg_names if name not in no_grad_set)
            path.insert(0, op)
    if inputs:
        no_grad_set.update(
            name
            for op in path
            for name in op.input_arg_names
            if name not in from_inputs and block.var(name).stop_gradient
        )
    return path


def _find_no_grad_vars(
    block: Block, op_path: Sequence[Operator], targets: Sequence[Variable], no_grad_set: set[str]
) -> set[str]:
    """Returns the names of variables that the ops of a path write but `targets` do not depend on; skips ops that run
    blocks."""
    needed = {variable.name for variable in targets}
    beside: set[str] = set()
    for op in reversed(op_path):
        if not op.has_attr("sub_block"):
            beside.update(
                name
                for name in op.output_arg_names
                if name not in needed and name not in op.input_arg_names and not block.var(name).stop_gradient
            )
        needed.update(name for name in op.input_arg_names if name not in no_grad_set)
    return beside


def require_callbacks(caller: str, callbacks: Sequence[Callable[..., object]] | None) -> None:
    if callbacks is not None and not isinstance(callbacks, (list, tuple)):
        raise TypeError(f"{caller}: callbacks must be a list of functions, not {callbacks!r}")
    for callback in callbacks or ():
        if not callable(callback):
            raise TypeError(f"{caller}: a callback must be a function of block and context, not {callback!r}")


def pairs_of(block: Block, names: list[tuple[str, str]]) -> list[tuple[Variable, Variable]]:
    """Returns (Parameter, Variable) for each pair of names."""
    return [(block._var_recursive(param), block._var_recursive(grad)) for param, grad in names]


def call_back(
    block: Block, begin: int, callbacks: Sequence[Callable[..., object]], forward_of: Mapping[str, str]
) -> None:
    """Calls each callback after each gradient op, as if the ops from `begin` on were being appended one by one. No
    callback is called after the first of them, the gradient of the loss itself."""
    desc = block.program.desc
    taken = _penstock.TakenOps(desc, block.idx, begin)
    taken.put_next(desc)
    context: dict[str, Any] = dict(forward_of)
    try:
        for op_id in iter(lambda: taken.put_next(desc), None):
            op = block._op_handle(op_id)
            context["__current_op_desc__"] = getattr(op, "desc", op)
            for callback in callbacks:
                callback(block=block, context=context)
    finally:  # a callback may raise
        while taken.put_next(desc) is not None:
            pass


def add_backward(
    function: Callable[..., BackwardResult],
    loss: Variable,
    parameters: Collection[object] | None,
    no_grad_set: Collection[object] | None,
    checkpoints: Collection[object] | None,
) -> tuple[Block, int, BackwardResult]:
    """Adds the backward pass by a function of C++; returns the block, its number of ops before, and what C++ made."""
    block = loss.block.program.current_block()
    begin = len(block.ops)
    made = function(
        block.program.desc,
        block.idx,
        unique_name.generator,
        loss.name,
        names_of(parameters),
        stopped_names(no_grad_set, block.program),
        names_of(checkpoints),
    )
    return block, begin, made


def append_backward(
    loss: Variable,
    parameter_list: Sequence[Variable | str] | None = None,
    no_grad_set: Collection[Variable | str] | None = None,
    callbacks: Sequence[Callable[..., object]] | None = None,
    checkpoints: Sequence[Variable | str] | None = None,
) -> list[tuple[Variable, Variable]]:
    """Adds the gradient ops of a loss to the current block.

    With checkpoints, the values between them are not kept for the gradients but recomputed: the ops between two
    checkpoints run again if gradients need their results. Values that other ops read, and results of ops with random
    numbers, are kept. The gradients are the same, bit for bit.

    Args:
        loss (Variable): the variable to differentiate; one element.
        parameter_list (list): Variables or names of the parameters; None: all trainable ones.
        no_grad_set (set): Variables or names through which no gradient flows, in addition to those with stop_gradient.
        callbacks (list): functions that are called with `block` and `context` after each gradient op, and may append
            ops. `context` holds the name of the variable that each gradient belongs to, and '__current_op_desc__'.
        checkpoints (list): Variables, or their names, that are kept; None: all values are kept.

    Returns:
        list: (parameter, gradient) pairs of Variables.

    Raises:
        penstock.ProgramError: a required op has no gradient, `loss` does not have one element, or a checkpoint is
            not a variable of the program (E-backward-checkpoint).
        TypeError: `loss` is not a Variable, or a callback is not a function.

    Example:
        h = fluid.layers.fc(fluid.data('x', [None, 4]), 8, act='relu')
        loss = fluid.layers.mean(fluid.layers.fc(h, 1))
        pairs = fluid.backward.append_backward(loss, checkpoints=[h])
        assert [parameter.name for parameter, _ in pairs] == ['fc_0.w_0', 'fc_0.b_0', 'fc_1.w_0', 'fc_1.b_0']
    """
    require_loss("append_backward", loss)
    require_callbacks("append_backward", callbacks)
    block, begin, made = add_backward(_penstock.append_backward, loss, parameter_list, no_grad_set, checkpoints)
    if callbacks:
        call_back(block, begin, callbacks, made.forward_of)
    return pairs_of(block, made.params_grads)


_GRADIENTS = {
    "of_gradients": """targets (Variable | list[Variable]): the variables whose sum is differentiated.
inputs (Variable | list[Variable]): the variables with respect to which it is differentiated.
target_gradients (Variable | list | None): the factor of each target, of its shape; None: ones.
no_grad_set (set | list | None): variables, or names, through which no gradient flows.""",
    "no_targets": """Raises:
    TypeError: an argument is not a Variable.
    ValueError: `targets` is empty.

Example:
    x = fluid.data('x', [None, 4])
    x.stop_gradient = False""",
}


@with_texts(_GRADIENTS)
def calc_gradient(
    targets: Sequence[Variable] | Variable,
    inputs: Sequence[Variable] | Variable,
    target_gradients: Sequence[Variable | None] | Variable | None = None,
    no_grad_set: Collection[Variable | str] | None = None,
) -> Variable | list[Variable | None] | None:
    """Adds the ops that compute the gradient of the sum of targets; returns a single gradient for a single input.

    Args:
        {of_gradients}

    Returns:
        Variable | None | list: the gradient of a single input, or a list for several inputs; None if the targets do not
            depend on an input.

    {no_targets}
        dx = fluid.backward.calc_gradient(fluid.layers.square(x), x)
    """
    of, by = _as_list(targets), _as_list(inputs)
    given = ["" if one is None else names_of([one])[0] for one in _as_list(target_gradients)]
    for target in of:
        if not isinstance(target, Variable):
            raise TypeError(f"gradients: a target must be a Variable, not {target!r}")
    if not of:
        raise ValueError("gradients: targets is empty")
    block = of[0].block.program.current_block()
    made = _penstock.gradients(
        block.program.desc,
        block.idx,
        unique_name.generator,
        names_of(of),
        names_of(by),
        given,
        stopped_names(no_grad_set, block.program),
    )
    grads = [block._var_recursive(name) if name else None for name in made]
    return grads[0] if len(grads) == 1 else grads


@with_texts(_GRADIENTS)
def gradients(
    targets: Sequence[Variable] | Variable,
    inputs: Sequence[Variable] | Variable,
    target_gradients: Sequence[Variable | None] | Variable | None = None,
    no_grad_set: Collection[Variable | str] | None = None,
) -> list[Variable | None]:
    """Adds the ops that compute the gradient of the sum of targets.

    Args:
        {of_gradients}

    Returns:
        list[Variable | None]: the gradient of each input; None if the targets do not depend on it.

    {no_targets}
        dx, = fluid.gradients(fluid.layers.square(x), x)
    """
    for name, given in (("targets", targets), ("inputs", inputs), ("target_gradients", target_gradients)):
        if given is not None and not isinstance(given, (Variable, list, tuple)):
            raise TypeError(f"gradients: {name} must be a Variable or a list of Variables, not {given!r}")
    return _as_list(calc_gradient(targets, inputs, target_gradients, no_grad_set))
