"""DGCMomentumOptimizer: momentum with compressed gradients after a number of steps.

From step rampup_begin_step on, an op `dgc` after each large gradient sends its largest elements and keeps the rest for
later steps. The update is then plain gradient descent, because the op applies the momentum itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock._src.base.argument_texts import MINIMIZE, OPTIMIZER
from penstock._src.base.doc_texts import with_texts
from penstock._src.base.same_arguments import arguments_of
from penstock._src.ir import framework, unique_name
from penstock._src.ir.framework import program_guard
from penstock._src.ir.program import OpRole
from penstock._src.ir.types import VarType, require_finite
from penstock._src.ir.variable import Parameter
from penstock._src.layers import creation
from penstock._src.optimizer import clip
from penstock._src.optimizer.base import Optimizer
from penstock._src.parameters.regularizer import append_regularization_ops

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from penstock._src.ir.block import Block
    from penstock._src.ir.operator import Operator
    from penstock._src.ir.program import Program
    from penstock._src.ir.typing import ParamGrads
    from penstock._src.ir.variable import Variable
    from penstock._src.optimizer.clip import GradientClipByNorm, GradientClipByValue
    from penstock._src.parameters.regularizer import WeightDecayRegularizer


# A gradient with fewer elements is exchanged whole.
_LEAST_ELEMENTS = 16384
_REGULARIZERS = {"l1": 1, "l2": 2}


@with_texts(OPTIMIZER)
class DGCMomentumOptimizer(Optimizer):
    """Momentum with deep gradient compression: trainers exchange only the largest elements of each large gradient and
    keep the rest for later steps.

    Before `rampup_begin_step` it is Momentum. Then the entries of `sparsity` are used one after the other during
    `rampup_step` steps; afterwards the last one is used. Unlike in Fluid, `dgc` and the update before
    `rampup_begin_step` each keep a running sum and a count of steps, so that the update can be on a pserver and `dgc`
    on the trainers.

    Args:
        momentum (float): factor of the velocity.
        rampup_begin_step (int): the step from which gradients are compressed.
        rampup_step (int): the number of steps over which the entries of `sparsity` are used.
        sparsity (list[float]): the share of a gradient's elements that is kept for later steps.
        {parameters}
        use_nesterov (bool): use Nesterov momentum.
        num_trainers (int | None): with `grad_clip`, the number of trainers: each clips its own gradient.
        grad_clip (GradientClipByNorm | None): how gradients are clipped.

    Raises:
        TypeError: an argument has the wrong type.
        ValueError: `rampup_begin_step` is negative.

    Example:
        loss = fluid.layers.mean(fluid.layers.fc(fluid.data('x', [None, 4]), 1))
        fluid.optimizer.DGCMomentumOptimizer(0.1, 0.9, rampup_begin_step=100).minimize(loss)
    """

    type = "dgc_momentum"

    def __init__(
        self,
        learning_rate: Variable | float,
        momentum: float,
        rampup_begin_step: int,
        rampup_step: int = 1,
        sparsity: Sequence[float] = [0.999],
        parameter_list: Sequence[Variable | str] | None = None,
        use_nesterov: bool = False,
        num_trainers: int | None = None,
        regularization: WeightDecayRegularizer | None = None,
        grad_clip: GradientClipByNorm | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(learning_rate, parameter_list, regularization, grad_clip, name)
        if rampup_begin_step < 0:
            raise ValueError(f"rampup_begin_step must be at least 0, not {rampup_begin_step!r}")
        require_finite("DGCMomentum", momentum=momentum)
        self._momentum = float(momentum)
        self._use_nesterov = bool(use_nesterov)
        self._begin, self._ramp = float(rampup_begin_step), float(rampup_step)
        self._sparsity = [float(share) for share in sparsity]
        self._clip_norm = None if grad_clip is None else _share_of_norm(grad_clip, num_trainers)

    @with_texts(MINIMIZE)
    @arguments_of(Optimizer.backward)
    def backward(
        self, loss: Variable, startup_program: Program | None = None, *rest: Any, **named: Any
    ) -> list[tuple[Variable, Variable]]:
        """Adds the gradients, each large one followed by a `dgc` op.

        Args:
            {to_minimize}
            {callbacks}

        {pairs}
        """
        pairs = super().backward(loss, startup_program, *rest, **named)
        main = loss.block.program
        with program_guard(main, startup_program or framework.default_startup_program()):
            step = _lasting("__g_dgc_counter__", -1.0)
            main.global_block()._prepend_op("increment", {"X": [step]}, {"Out": [step]}, {"step": 1.0})
            for param, grad in pairs:
                if _is_large(param, grad):
                    self._append_dgc(main.global_block(), param, grad, step)
        return pairs

    @with_texts(MINIMIZE)
    def apply_gradients(self, params_grads: ParamGrads) -> list[Operator]:
        """Adds clipping, regularization and updates to the default programs; `dgc` clips and regularizes large
        gradients itself.

        {from_pairs}
        """
        main, startup = framework.default_main_program(), framework.default_startup_program()
        given = [(param, grad) for param, grad in params_grads if grad is not None]
        given.sort(key=lambda pair: pair[0].name)
        pairs = [pair for pair in given if _is_large(*pair)]  # `dgc` clips and regularizes these
        small = self._clipped([pair for pair in given if not _is_large(*pair)])
        for param, grad in append_regularization_ops(small, self.regularization):
            if grad is not None:
                pairs.append((param, grad))
        return self._append_updates(main, startup, sorted(pairs, key=lambda pair: pair[0].name))

    def _append_dgc(self, block: Block, param: Variable, grad: Variable, step: Variable) -> None:
        kept = self._add_accumulator("__dgc_u__", param)
        waiting = self._add_accumulator("__dgc_v__", param)
        count, encoded, gathered = (
            _lasting(param.name + part, 0.0, param.dtype) for part in ("__dgc_k__", "__dgc_encoded__", "__dgc_gather__")
        )
        _leave_to_next(block, param, grad)
        program = block.program
        with program._role_guard(OpRole.Backward):
            clipped = grad if self._clip_norm is None else self._append_clip(block, grad, step)
        with program._role_guard(OpRole.Backward, (param, grad)):
            block.append_op(
                "dgc",
                {"U": kept, "V": waiting, "Grad": clipped, "Param": param, "current_step": step, "nranks": _ranks()},
                {
                    "U_out": kept,
                    "V_out": waiting,
                    "EncodeGrad": encoded,
                    "k": count,
                    "Grad_out": grad,
                    "GatherBuff": gathered,
                },
                self._dgc_attrs(param),
            )

    def _dgc_attrs(self, param: Variable) -> dict[str, float | list[float]]:
        own = param.regularizer if isinstance(param, Parameter) else None
        regularizer = own or self.regularization
        return {
            "m": self._momentum,
            "use_nesterov": self._use_nesterov,
            "sparsity": self._sparsity,
            "rampup_begin_step": self._begin,
            "rampup_step": self._ramp,
            "regular_coeff": 0.0 if regularizer is None else regularizer.coefficient,
            "regular_type": 0 if regularizer is None else _REGULARIZERS[regularizer.kind],
        }

    def _append_clip(self, block: Block, grad: Variable, step: Variable) -> Variable:
        clipped = block._create_temporary(unique_name.generate(grad.name), grad.dtype, False)
        block.append_op(
            "dgc_clip_by_norm",
            {"X": grad, "current_step": step},
            {"Out": clipped},
            {"max_norm": self._clip_norm, "rampup_begin_step": self._begin},
        )
        return clipped

    def _create_accumulators(self, block: Block, parameters: list[Variable]) -> None:
        for param in parameters:
            self._add_accumulator("velocity", param)
        self._step = _lasting("__g_dgc_update_counter__", -1.0)
        with block.program._lr_schedule_guard():
            block.append_op("increment", {"X": [self._step]}, {"Out": [self._step]}, {"step": 1.0})

    def _append_optimize_op(self, block: Block, param_and_grad: tuple[Variable, Variable]) -> Operator:
        param, grad = param_and_grad
        velocity = self._get_accumulator("velocity", param)
        inputs = {
            "Param": param,
            "Grad": grad,
            "Velocity": velocity,
            "LearningRate": self._create_param_lr(param_and_grad),
        }
        outputs = {"ParamOut": param, "VelocityOut": velocity}
        attrs = {"mu": self._momentum, "use_nesterov": self._use_nesterov}
        if not _is_large(param, grad):
            return block.append_op("momentum", inputs, outputs, attrs)
        inputs.update(current_step=self._step, nranks=_ranks())
        return block.append_op(
            "dgc_momentum", inputs, dict(outputs, Grad_out=grad), dict(attrs, rampup_begin_step=self._begin)
        )


def _is_large(param: Variable, grad: Variable) -> bool:
    elements = 1
    for extent in param.shape:
        elements *= abs(extent)
    dense = VarType.SELECTED_ROWS not in (param.type, grad.type)
    return elements >= _LEAST_ELEMENTS and dense and param.dtype == VarType.FP32


def _share_of_norm(grad_clip: GradientClipByNorm | GradientClipByValue, num_trainers: int | None) -> float:
    """Returns the share of one trainer in the norm limit of all trainers."""
    if not isinstance(grad_clip, clip.GradientClipByNorm):
        raise TypeError(f"DGCMomentumOptimizer clips by GradientClipByNorm only, not by {type(grad_clip).__name__}")
    if not isinstance(num_trainers, int) or num_trainers < 1:
        raise ValueError(f"with grad_clip, num_trainers must be an int of at least 1, not {num_trainers!r}")
    share: float = grad_clip.clip_norm * num_trainers**-0.5
    return share


def _lasting(name: str, value: float, dtype: str | VarType = "float32") -> Variable:
    """Returns the variable of this name in the default programs, which is created once."""
    block = framework.default_main_program().global_block()
    if block.has_var(name):
        return block.var(name)
    kept: Variable = creation.create_global_var([1], value, dtype, persistable=True, force_cpu=True, name=name)
    return kept


def _ranks() -> Variable:
    # The number of gradients that are summed into the one that the update reads; the exchange takes the mean.
    return _lasting("__g_nranks__", 1.0)


def _leave_to_next(block: Block, param: Variable, grad: Variable) -> None:
    """Removes the role_var mark of the op that writes the gradient, because the following op receives it."""
    for op in block.ops:
        names = op._names_attr("op_role_var") if op.has_attr("op_role_var") else []
        pairs = list(zip(names[::2], names[1::2]))
        if (param.name, grad.name) in pairs:
            pairs.remove((param.name, grad.name))
            op._set_attr("op_role_var", [name for pair in pairs for name in pair])
