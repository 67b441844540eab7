"""Gradient clipping: ops between the gradients and the updates.

    fluid.optimizer.SGD(0.01, grad_clip=fluid.clip.GradientClipByGlobalNorm(5.0)).minimize(loss)

set_gradient_clip() is the older interface: it marks parameters, whose gradients an optimizer without a grad_clip clips.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from penstock._src.base.call_site import stack_level
from penstock._src.base.errors import program_error
from penstock._src.ir import framework
from penstock._src.ir.program import OpRole
from penstock._src.ir.types import VarType, require_numbers
from penstock._src.ir.variable import Parameter
from penstock._src.layers import arithmetic, nn, tensor, unary
from penstock._src.optimizer.error_clip import bounds_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, TypeVar

    from penstock._src.ir.operator import Operator
    from penstock._src.ir.program import Program
    from penstock._src.ir.typing import ParamGrads
    from penstock._src.ir.variable import Variable

    R = TypeVar("R")


def _norm(kind: str, clip_norm: float) -> float:
    require_numbers(kind, clip_norm=clip_norm)
    norm = float(clip_norm)
    if not norm >= 0:
        raise program_error("E-hyperparameter", f"{kind}: clip_norm must be at least 0, not {clip_norm!r}")
    return norm


class GradientClipBase:
    """Base class of gradient clips: called with (parameter, gradient) pairs, they return pairs with clipped gradients.

    Pairs without a gradient (None) are dropped.

    Args:
        need_clip (callable | None): takes a parameter and returns whether to clip its gradient; None: all gradients are
            clipped.

    Raises:
        TypeError: `need_clip` is not callable.
    """

    def __init__(self, need_clip: Callable[[Parameter], bool] | None = None) -> None:
        if need_clip is not None and not callable(need_clip):
            raise TypeError(f"need_clip must be a function of a parameter, not {type(need_clip).__name__}")
        self._need_clip_func: Callable[[Any], bool] | None = need_clip

    def __call__(self, params_grads: ParamGrads) -> list[tuple[Variable, Variable]]:
        pairs = _with_gradient(params_grads)
        chosen = [pair for pair in pairs if self._need_clip_func is None or self._need_clip_func(pair[0])]
        if not chosen:
            return pairs
        block = chosen[0][0].block
        begin = block.program.desc.op_count(block.idx)
        with framework.name_scope("gradient_clip"):
            clipped = dict(zip([param.name for param, _ in chosen], self._clip(chosen)))
        _name_clipped(block.ops[begin:], clipped)
        return _replaced(pairs, clipped)

    def _clip(self, pairs: list[tuple[Variable, Variable]]) -> list[Variable]:
        """Appends the ops and returns the new gradients, one per pair. Each op has the role_var of its pair."""
        return [_of_pair(pair, self._clip_one, {}) for pair in pairs]

    # For set_gradient_clip, which visits the marked parameters twice and keeps `groups` in between.
    def _measure(self, param: Variable, grad: Variable, groups: dict[str, _Group]) -> None:
        pass

    def _clip_one(self, param: Variable, grad: Variable, groups: dict[str, _Group]) -> Variable:
        """Returns the new gradient."""
        raise NotImplementedError


class GradientClipByValue(GradientClipBase):
    """Limits each element of a gradient.

    Args:
        max (float): upper bound.
        min (float | None): lower bound; None: -max.
        need_clip (callable | None): takes a parameter and returns whether to clip its gradient; None: all gradients are
            clipped.

    Example:
        loss = fluid.layers.mean(fluid.layers.fc(fluid.data('x', [None, 4]), 1))
        fluid.optimizer.SGD(0.01, grad_clip=fluid.clip.GradientClipByValue(max=1.0)).minimize(loss)
    """

    def __init__(self, max: float, min: float | None = None, need_clip: Callable[..., Any] | None = None) -> None:
        super().__init__(need_clip)
        self.max, self.min = bounds_of(max, min)

    def __str__(self) -> str:
        return f"GradientClipByValue(max={self.max:g}, min={self.min:g})"

    def _clip_one(self, param: Variable, grad: Variable, groups: dict[Any, Any]) -> Variable:
        return arithmetic.clip(x=grad, min=self.min, max=self.max)


class GradientClipByNorm(GradientClipBase):
    """Scales each gradient down so that its Euclidean norm is at most `clip_norm`.

    Args:
        clip_norm (float): the maximum norm.
        need_clip (callable | None): takes a parameter and returns whether to clip its gradient; None: all gradients are
            clipped.

    Example:
        loss = fluid.layers.mean(fluid.layers.fc(fluid.data('x', [None, 4]), 1))
        fluid.optimizer.SGD(0.01, grad_clip=fluid.clip.GradientClipByNorm(1.0)).minimize(loss)
    """

    def __init__(self, clip_norm: float, need_clip: Callable[..., Any] | None = None) -> None:
        super().__init__(need_clip)
        self.clip_norm = _norm("GradientClipByNorm", clip_norm)

    def __str__(self) -> str:
        return f"GradientClipByNorm({self.clip_norm:g})"

    def _clip_one(self, param: Variable, grad: Variable, groups: dict[Any, Any]) -> Variable:
        return arithmetic.clip_by_norm(x=grad, max_norm=self.clip_norm)


class GradientClipByGlobalNorm(GradientClipBase):
    """Scales all gradients down by one factor so that the norm over all of them is at most `clip_norm`.

    Args:
        clip_norm (float): the maximum norm.
        group_name (str): used by set_gradient_clip: the parameters of a group share one norm.
        need_clip (callable | None): takes a parameter and returns whether to clip its gradient; None: all gradients are
            clipped.

    Example:
        loss = fluid.layers.mean(fluid.layers.fc(fluid.data('x', [None, 4]), 1))
        fluid.optimizer.SGD(0.01, grad_clip=fluid.clip.GradientClipByGlobalNorm(5.0)).minimize(loss)

    Reference:
        Pascanu, Mikolov and Bengio, On the difficulty of training recurrent neural networks, ICML 2013.
    """

    def __init__(
        self, clip_norm: float, group_name: str = "default_group", need_clip: Callable[..., Any] | None = None
    ) -> None:
        super().__init__(need_clip)
        self.clip_norm = _norm("GradientClipByGlobalNorm", clip_norm)
        self.group_name = group_name

    def __str__(self) -> str:
        return f"GradientClipByGlobalNorm({self.clip_norm:g})"

    def _clip(self, pairs: list[tuple[Variable, Variable]]) -> list[Variable]:
        squares = [_of_pair(pair, lambda param, grad, _: _sum_of_squares(grad), {}) for pair in pairs]
        with pairs[-1][0].block.program._optimized_guard(pairs[-1]):
            norm = unary.sqrt(tensor.sums(squares))
            most = self._most(norm)
            factor = arithmetic.elementwise_div(x=most, y=arithmetic.elementwise_max(x=most, y=norm))
        return [
            _of_pair(pair, lambda param, grad, _: arithmetic.elementwise_mul(x=grad, y=factor), {}) for pair in pairs
        ]

    def _most(self, like: Variable) -> Variable:
        most: Variable = tensor.fill_constant(shape=[1], dtype=like.dtype, value=self.clip_norm)
        return most

    def _measure(self, param: Variable, grad: Variable, groups: dict[str, _Group]) -> None:
        if self.group_name not in groups:
            groups[self.group_name] = _Group(self.clip_norm, self._most(grad))
        group = groups[self.group_name]
        if group.clip_norm != self.clip_norm:
            raise program_error(
                "E-optimizer-group",
                f"parameters of group {self.group_name} must have one clip_norm; {param.name} has {self.clip_norm}, "
                f"another {group.clip_norm}",
            )
        group.squares.append(_sum_of_squares(grad))

    def _clip_one(self, param: Variable, grad: Variable, groups: dict[str, _Group]) -> Variable:
        return arithmetic.elementwise_mul(x=grad, y=groups[self.group_name].factor())


class _Group:
    """Parameters that share one norm in set_gradient_clip."""

    def __init__(self, clip_norm: float, most: Variable) -> None:
        self.clip_norm = clip_norm
        self.squares: list[Variable] = []
        self._most = most
        self._factor: Variable | None = None

    def factor(self) -> Variable:
        """Returns the factor, whose ops are appended at the first use."""
        if self._factor is None:
            norm = unary.sqrt(tensor.sums(self.squares))
            self._factor = arithmetic.elementwise_div(x=self._most, y=arithmetic.elementwise_max(x=self._most, y=norm))
        return self._factor


def _with_gradient(params_grads: ParamGrads) -> list[tuple[Variable, Variable]]:
    return [(param, grad) for param, grad in params_grads if grad is not None]


def _of_pair(
    pair: tuple[Variable, Variable],
    append: Callable[[Variable, Variable, dict[str, _Group]], R],
    groups: dict[str, _Group],
) -> R:
    """Returns append(param, grad, groups), and marks its ops with the role_var of this pair."""
    with pair[0].block.program._optimized_guard(list(pair)):
        return append(*pair, groups)


def _sum_of_squares(grad: Variable) -> Variable:
    if grad.type == VarType.SELECTED_ROWS:
        grad = nn.get_tensor_from_selected_rows(nn.merge_selected_rows(grad))
    return arithmetic.reduce_sum(unary.square(grad))


def _name_clipped(made: list[Operator], clipped: dict[str, Variable]) -> None:
    """Sets the role_var of the ops to (parameter, clipped gradient), whose name is now known."""
    for op in made:
        param_name = op._names_attr("op_role_var")[0]
        op._set_attr("op_role_var", [param_name, clipped[param_name].name])


def _replaced(
    params_grads: list[tuple[Variable, Variable]], clipped: dict[str, Variable]
) -> list[tuple[Variable, Variable]]:
    return [(param, clipped.get(param.name, grad)) for param, grad in params_grads]


def set_gradient_clip(
    clip: GradientClipBase, param_list: Sequence[Parameter | str] | None = None, program: Program | None = None
) -> None:
    """Marks parameters whose gradients a later minimize() clips.

    If only some parameters are marked, only their gradients are clipped; Fluid 1.8.5 then clips none.

    Args:
        clip (GradientClipBase): how to clip.
        param_list (list[Parameter | str] | None): the parameters; None: all of the program.
        program (Program | None): the program; None: the default main program.

    Raises:
        TypeError: an argument has the wrong type.

    Example:
        loss = fluid.layers.mean(fluid.layers.fc(fluid.data('x', [None, 4]), 1))
        fluid.clip.set_gradient_clip(fluid.clip.GradientClipByGlobalNorm(5.0))
        fluid.optimizer.SGD(0.01).minimize(loss)
    """
    if not isinstance(clip, GradientClipBase):
        raise TypeError(f"clip must be a GradientClipByValue, ByNorm or ByGlobalNorm, not {type(clip).__name__}")
    block = (framework.default_main_program() if program is None else program).global_block()
    if any(op._role & OpRole.Optimize for op in block.ops):
        warnings.warn(
            "set_gradient_clip after minimize() has no effect on existing ops: call it before minimize(), or "
            "give the optimizer a grad_clip",
            stacklevel=stack_level(),
        )
    given: Sequence[Parameter | str] = block.all_parameters() if param_list is None else param_list
    params = [block.var(param) if isinstance(param, str) else param for param in given]
    for param in params:
        if not isinstance(param, Parameter):
            raise TypeError(f"param_list must hold Parameters or their names, not {param!r}")
        param.gradient_clip_attr = clip


def append_gradient_clip_ops(param_grads: ParamGrads) -> list[tuple[Variable, Variable]]:
    """Clips the gradients of marked parameters with exactly the ops of Fluid 1.8. Both Fluid's transpiler and this one
    recognise these ops by their name scopes, so the second scope keeps Fluid's misspelling."""

    pairs = _with_gradient(param_grads)
    marked: list[tuple[tuple[Variable, Variable], GradientClipBase]] = []
    for pair in pairs:
        clip = getattr(pair[0], "gradient_clip_attr", None)  # in a loaded program, parameters are Variables
        if clip is not None:
            marked.append((pair, clip))
    if not marked:
        return pairs
    block = pairs[0][0].block
    begin = block.program.desc.op_count(block.idx)
    groups: dict[str, _Group] = {}
    for pair, clip in marked:
        with framework.name_scope("gradient_clip_@CLIP"):
            _of_pair(pair, clip._measure, groups)
    measuring = block.program.desc.op_count(block.idx) - begin
    clipped = {}
    for pair, clip in marked:
        with framework.name_scope("graident_clip_@CLIP"):
            clipped[pair[0].name] = _of_pair(pair, clip._clip_one, groups)
    _name_clipped(block.ops[begin : begin + measuring], clipped)
    return _replaced(pairs, clipped)
