"""Weight decay: a term that is added to the gradient of each parameter before its optimizer op."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock import _penstock
from penstock._src.base.doc_texts import with_texts
from penstock._src.ir import framework, unique_name
from penstock._src.ir.types import require_finite

if TYPE_CHECKING:
    from penstock._src.ir.program import Program
    from penstock._src.ir.typing import ParamGrads
    from penstock._src.ir.variable import Variable


class WeightDecayRegularizer:
    """Base class of the regularizers. C++ adds the ops according to `kind` and `coefficient`."""

    kind = ""

    def __init__(self, regularization_coeff: float = 0.0) -> None:
        require_finite(type(self).__name__, regularization_coeff=regularization_coeff)
        self._regularization_coeff = regularization_coeff

    @property
    def coefficient(self) -> float:
        """The coefficient, a float."""
        return float(self._regularization_coeff)

    def __str__(self) -> str:
        return f"{self.kind.upper()}Decay, regularization_coeff={self.coefficient:f}"


_DECAY = {
    "arguments": """Args:
    regularization_coeff (float): the coefficient.

Example:
    optimizer = fluid.optimizer.SGD(0.01, regularization=fluid.regularizer.{kind}(1e-4))"""
}


@with_texts(_DECAY, kind="L2Decay")
class L2DecayRegularizer(WeightDecayRegularizer):
    """L2 weight decay: gradient + coefficient * parameter.

    {arguments}
    """

    kind = "l2"


@with_texts(_DECAY, kind="L1Decay")
class L1DecayRegularizer(WeightDecayRegularizer):
    """L1 weight decay: gradient + coefficient * sign(parameter).

    {arguments}
    """

    kind = "l1"


L1Decay = L1DecayRegularizer
L2Decay = L2DecayRegularizer


def regularizers_in(program: Program) -> dict[str, L1DecayRegularizer | L2DecayRegularizer]:
    """Returns {parameter name: regularizer} for the parameters that have a regularizer."""
    return {
        name: attrs["regularizer"]
        for name, attrs in program._parameter_attrs.items()
        if attrs.get("regularizer") is not None
    }


def append_regularization_ops(
    parameters_and_grads: ParamGrads, regularization: WeightDecayRegularizer | None = None
) -> list[tuple[Variable, Variable | None]]:
    """Appends the ops that add weight decay to gradients; minimize() does so between clipping and updates.

    Args:
        parameters_and_grads (list[tuple]): (Parameter, gradient Variable or None), as append_backward returns them.
        regularization (WeightDecayRegularizer | None): regularizes parameters that have no regularizer.

    Returns:
        list[tuple]: the pairs, with the regularized gradient where there is a regularizer.

    Example:
        loss = fluid.layers.mean(fluid.layers.fc(fluid.data('x', [None, 4]), 1))
        pairs = fluid.backward.append_backward(loss)
        pairs = fluid.regularizer.append_regularization_ops(pairs, fluid.regularizer.L2Decay(1e-4))
        fluid.optimizer.SGD(0.1).apply_optimize(loss, None, pairs)
    """
    given = [(param, grad) for param, grad in parameters_and_grads if grad is not None]
    if not given:
        return list(parameters_and_grads)
    program = given[0][0].block.program
    spec = _penstock.OptimizerSpec("sgd", {}, 0.0, "", regularization, regularizers_in(program))
    block = program.current_block()
    names = [(param.name, grad.name) for param, grad in given]
    regularized = dict(
        _penstock.regularize(program.desc, block.idx, unique_name.generator, framework.name_scopes(), spec, names)
    )
    return [
        (param, grad if grad is None else block._var_recursive(regularized[param.name]))
        for param, grad in parameters_and_grads
    ]
