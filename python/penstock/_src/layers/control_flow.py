"""Comparisons, counters, and layers whose ops run in their own blocks."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from penstock._src.ir.types import VarType, to_dtype
from penstock._src.ir.variable import Variable
from penstock._src.layers import arithmetic, tensor
from penstock._src.layers.comparison import equal
from penstock._src.layers.control_flow_blocks import ConditionalBlock
from penstock._src.layers.decorators import layer
from penstock._src.layers.helper import LayerHelper, require_kind, require_variables

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any


@layer(fluid_accepts={"input": "bool int32 int64 float32 float64"})
def Print(
    input: Variable,
    first_n: int = -1,
    message: str | None = None,
    summarize: int = 20,
    print_tensor_name: bool = True,
    print_tensor_type: bool = True,
    print_tensor_shape: bool = True,
    print_tensor_lod: bool = True,
    print_phase: str = "both",
) -> Variable:
    """Prints a variable to standard error when the op runs, and returns its value.

    Args:
        first_n: number of times to print; -1: always.
        message: text to print before the value.
        summarize: number of elements to print; -1: all.
        print_tensor_name: print the name.
        print_tensor_type: print the type.
        print_tensor_shape: print the shape.
        print_tensor_lod: print the sequences.
        print_phase: 'forward', 'backward' (the gradient), or 'both'.

    Returns:
        Variable: the value of `input`, same shape and type.

    Example:
        x = fluid.layers.fill_constant([2], 'float32', 1.0)
        x = fluid.layers.Print(x, message='x:')
    """
    require_variables("Print", input=input)
    helper = LayerHelper("print_" + input.name).takes(input=input)
    out = helper.create_variable_for_type_inference(input.dtype)
    helper.append_op(
        "print",
        {"In": input},
        {"Out": out},
        {
            "first_n": first_n,
            "summarize": summarize,
            "message": message or "",
            "print_tensor_name": print_tensor_name,
            "print_tensor_type": print_tensor_type,
            "print_tensor_shape": print_tensor_shape,
            "print_tensor_lod": print_tensor_lod,
            "print_phase": print_phase.upper(),
        },
    )
    return out


class Switch:
    """Runs the ops of the first case whose condition is true, or those of the default.

    Args:
        name (str | None): prefix of the names of the variables that the layer creates.

    Example:
        step = fluid.layers.fill_constant([1], 'float32', 3.0)
        limit = fluid.layers.fill_constant([1], 'float32', 5.0)
        rate = fluid.layers.create_global_var([1], 0.0, 'float32', persistable=True)
        with fluid.layers.Switch() as switch:
            with switch.case(step < limit):
                fluid.layers.assign(np.array([0.1], 'float32'), rate)
            with switch.default():
                fluid.layers.assign(np.array([0.01], 'float32'), rate)
    """

    def __init__(self, name: str | None = None) -> None:
        self.helper = LayerHelper("switch", name=name)
        self._inside = False
        self._none_so_far: Variable | None = None  # whether no case has held yet

    def __enter__(self) -> Switch:
        self._inside = True
        return self

    def __exit__(self, exc_type: object, exc_val: object, exc_tb: object) -> None:
        self._inside = False

    def case(self, condition: Variable) -> Any:
        """Opens a block whose ops run if the condition is true and no earlier condition is.

        Args:
            condition (Variable): shape [1], bool.

        Returns:
            ConditionalBlock: a context manager.

        Raises:
            TypeError: the condition is not a bool Variable.
            ValueError: called outside `with Switch()`.
        """
        if not self._inside:
            raise ValueError("a case of a Switch must be inside `with Switch() as switch:`")
        if not isinstance(condition, Variable) or condition.dtype != VarType.BOOL:
            raise TypeError("the condition of a case must be a Variable of bool")
        none_before = self._none_so_far
        fails = arithmetic.logical_not(x=condition)
        if none_before is None:
            self._none_so_far = fails
            return ConditionalBlock([condition], is_scalar_condition=True)
        self._none_so_far = arithmetic.logical_and(x=none_before, y=fails)
        return ConditionalBlock([arithmetic.logical_and(x=none_before, y=condition)], is_scalar_condition=True)

    def default(self) -> ConditionalBlock:
        """Opens a block whose ops run if no condition is true.

        Returns:
            ConditionalBlock: a context manager.

        Raises:
            ValueError: there is no case before it.
        """
        if self._none_so_far is None:
            raise ValueError("the default of a Switch must follow at least one case")
        return ConditionalBlock([self._none_so_far], is_scalar_condition=True)


@layer()
def cond(
    pred: Variable,
    true_fn: Callable[..., Any] | None = None,
    false_fn: Callable[..., Any] | None = None,
    name: str | None = None,
) -> Any:
    """Runs the ops of one of two functions, and returns its results.

    Args:
        pred (Variable): shape [1], bool.
        true_fn (callable | None): builds the ops for true; returns Variables, or nested lists, tuples or dicts of them.
        false_fn (callable | None): builds the ops for false; returns the same structure.

    Returns:
        The results as new Variables, in the structure that both functions return; None if they return None.

    Raises:
        TypeError: `pred` is not a bool Variable, or a function is not callable.
        ValueError: the functions return different structures.

    Example:
        x = fluid.layers.fill_constant([1], 'float32', 3.0)
        zero = fluid.layers.fill_constant([1], 'float32', 0.0)
        size = fluid.layers.cond(x < zero, lambda: fluid.layers.scale(x, -1.0), lambda: fluid.layers.scale(x, 1.0))
    """
    if not isinstance(pred, Variable) or pred.dtype != VarType.BOOL:
        raise TypeError("cond: pred must be a Variable of bool")
    for what, function in (("true_fn", true_fn), ("false_fn", false_fn)):
        if function is not None and not callable(function):
            raise TypeError(f"cond: {what} must be callable, not {type(function).__name__}")
    if name is not None and not isinstance(name, str):
        raise TypeError(f"cond: name must be a str, not {type(name).__name__}")
    helper = LayerHelper("cond", name=name)
    if_true = _run_if(pred, true_fn, helper)
    if_false = None if false_fn is None else _run_if(arithmetic.logical_not(pred), false_fn, helper)
    if if_true is None and if_false is None:
        return None
    if _form(if_true) != _form(if_false):
        raise ValueError(
            f"Incompatible return values of true_fn and false_fn in cond: true_fn returns {_form(if_true)} and "
            "false_fn "
            f"{_form(if_false)}; they must return the same"
        )
    mask = tensor.cast(pred, "int32")
    return _map(lambda when_true, when_false: select_input([when_false, when_true], mask), if_true, if_false)


def _run_if(pred: Variable, function: Callable[[], Any] | None, helper: LayerHelper) -> Any:
    """Runs the function's ops if pred holds, and returns its results as variables of the enclosing block."""
    if function is None:
        return None
    with ConditionalBlock([pred], is_scalar_condition=True).block():
        results = function()
        return None if results is None else _map(functools.partial(_to_block_around, helper), results)


def _to_block_around(helper: LayerHelper, var: Variable) -> Variable:
    if not isinstance(var, Variable):
        raise TypeError(f"a branch must return Variables, not {type(var).__name__}")
    program = helper.main_program
    around = program.block(program.current_block().parent_idx)
    outside = around.create_var(dtype=var.dtype, shape=list(var.shape), type=var.type)
    tensor.assign(var, outside)
    return outside


def _require_mask(layer: str, mask: object) -> None:
    if not isinstance(mask, Variable) or mask.dtype != VarType.INT32:
        raise TypeError(f"{layer}: mask must be a Variable of int32, not {mask!r}")


def select_output(input: Variable, outputs: list[Variable], mask: Variable) -> list[Variable]:
    """Copies a variable to one of several others and leaves the rest unchanged.

    Args:
        input (Variable): any shape and type.
        outputs (list[Variable]): the possible targets, same shape and type as `input`.
        mask (Variable): shape [1], int32: the position in the list.

    Returns:
        list[Variable]: `outputs`.

    Raises:
        TypeError: an argument has the wrong type.
    """
    require_variables("select_output", input=input)
    _require_mask("select_output", mask)
    require_kind("select_output", list, outputs=outputs)
    LayerHelper("select_output").append_op("select_output", {"X": input, "Mask": mask}, {"Out": outputs})
    return outputs


def select_input(inputs: Sequence[Variable], mask: Variable) -> Variable:
    """Copies one of several variables.

    Args:
        inputs (list[Variable]): variables of one type and shape.
        mask (Variable): shape [1], int32: the position in the list.

    Returns:
        Variable: a copy of the selected variable, same shape and type.

    Raises:
        TypeError: an argument has the wrong type.
    """
    require_kind("select_input", list, inputs=inputs)
    _require_mask("select_input", mask)
    helper = LayerHelper("select_input")
    first = inputs[0]
    out = helper.create_variable(dtype=first.dtype, shape=list(first.shape), type=first.type)
    helper.append_op("select_input", {"X": inputs, "Mask": mask}, {"Out": out})
    return out


def _map(function: Callable[..., Any], first: Any, *others: Any) -> Any:
    """Applies a function to the Variables of equally structured lists, tuples and dicts."""
    if isinstance(first, (list, tuple)):
        return type(first)([_map(function, *each) for each in zip(first, *others)])
    if isinstance(first, dict):
        return {key: _map(function, value, *(other[key] for other in others)) for key, value in first.items()}
    return function(first, *others)


def _form(results: Any) -> str:
    """Describes results for errors: 'nothing', 'Variable', '[Variable, Variable]'."""
    if results is None:
        return "nothing"
    if isinstance(results, (list, tuple)):
        return f"[{', '.join(_form(each) for each in results)}]"
    if isinstance(results, dict):
        return f"{{{', '.join(f'{key}: {_form(results[key])}' for key in sorted(results))}}}"
    return "Variable"


@layer()
def case(
    pred_fn_pairs: Sequence[Sequence[Variable | Callable[..., Any]]],
    default: Callable[..., Any] | None = None,
    name: str | None = None,
) -> Any:
    """Runs the function of the first predicate that is true, or the default, and returns its results.

    Args:
        pred_fn_pairs (list[tuple[Variable, callable]]): predicates of shape [1], bool, each with its function.
        default (callable | None): runs if no predicate is true; None: the last pair's function.

    Returns:
        The results of the function; all functions must return the same structure.

    Raises:
        TypeError: the pairs are not a list of (Variable, function).

    Example:
        x = fluid.layers.fill_constant([1], 'float32', 3.0)
        limit = fluid.layers.fill_constant([1], 'float32', 5.0)
        y = fluid.layers.case([(x < limit, lambda: fluid.layers.scale(x, 2.0))],
                              default=lambda: fluid.layers.scale(x, 1.0))
    """
    if not isinstance(pred_fn_pairs, (list, tuple)):
        raise TypeError(f"case: pred_fn_pairs must be a list, not {pred_fn_pairs!r}")
    pairs = list(pred_fn_pairs)
    if not pairs:
        raise TypeError("case: pred_fn_pairs must hold a pair")
    for pair in pairs:
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise TypeError(f"case: each of pred_fn_pairs must be a tuple (predicate, function), not {pair!r}")
        _require_function("case", pair[1])
    if default is None:
        default = pairs.pop()[1]
    otherwise = default
    for pred, function in reversed(pairs):
        otherwise = functools.partial(cond, pred, function, otherwise)
    return otherwise()


@layer()
def switch_case(
    branch_index: Variable,
    branch_fns: Mapping[int, Callable[..., Any]] | Sequence[Any],
    default: Callable[..., Any] | None = None,
    name: str | None = None,
) -> Any:
    """Runs the function that a number selects, and returns its results.

    Args:
        branch_index (Variable): shape [1], uint8, int32 or int64.
        branch_fns (dict[int, callable] | list): functions by index, or a list of functions or of (index, function).
        default (callable | None): for all other indices; None: the function of the largest index.

    Returns:
        The results of the function; all functions must return the same structure.

    Raises:
        ValueError: an index occurs twice, or there is no branch.
        TypeError: `branch_index` is not a Variable, or the index or a branch has another type.

    Example:
        index = fluid.layers.fill_constant([1], 'int32', 1)
        y = fluid.layers.switch_case(index, {1: lambda: fluid.layers.ones([2], 'float32'),
                                             2: lambda: fluid.layers.zeros([2], 'float32')})
    """
    require_variables("switch_case", branch_index=branch_index)
    if branch_index.dtype not in (VarType.UINT8, VarType.INT32, VarType.INT64):
        raise TypeError(
            f"switch_case: branch_index must be uint8, int32 or int64, but {branch_index.name} is "
            f"{branch_index.dtype.name}"
        )
    if branch_index.dtype != VarType.INT64:
        branch_index = tensor.cast(branch_index, "int64")
    branches = _branches(branch_fns)
    if default is None:
        default = branches.pop()[1]
    otherwise = default
    for index, function in branches:
        otherwise = functools.partial(cond, equal(branch_index, _index_var(index)), function, otherwise)
    return otherwise()


def _branches(given: Any) -> list[tuple[int, Callable[[], Any]]]:
    """Returns sorted (index, function) pairs of a dict, of a list of functions, or of a list of pairs."""
    if not isinstance(given, (dict, list, tuple)):
        raise TypeError(f"switch_case: branch_fns must be a dict or a list, not {given!r}")
    pairs = (
        given.items()
        if isinstance(given, dict)
        else [each if isinstance(each, tuple) and len(each) == 2 else (i, each) for i, each in enumerate(given)]
    )
    branches = {}
    for index, function in pairs:
        if not isinstance(index, int):
            raise TypeError(f"switch_case: an index of branch_fns must be an int, not {index!r}")
        if index in branches:
            raise ValueError(f"switch_case: index {index} occurs twice in branch_fns")
        _require_function("switch_case", function)
        branches[index] = function
    if not branches:
        raise ValueError("switch_case: branch_fns is empty")
    return sorted(branches.items())


def _require_function(layer: str, function: object) -> None:
    if not callable(function):
        raise TypeError(f"{layer}: a branch must be a function, not {function!r}")


def _index_var(index: int) -> Variable:
    return tensor.fill_constant([1], to_dtype("int64"), index)
