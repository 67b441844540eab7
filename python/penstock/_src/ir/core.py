"""Names that only fluid.core has: classes of imperative mode, other names of things, and a function without effect."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock._penstock import LoDTensor, ProgramError
from penstock._src.imperative import refused
from penstock._src.ir.registry import EMPTY_VAR_NAME, GRAD_VAR_SUFFIX

if TYPE_CHECKING:
    pass


EnforceNotMet = ProgramError  # Fluid's names
# Of imperative mode; static scripts name them in isinstance().
VarBase, Layer, Tracer, BackwardStrategy, ParallelStrategy, NCCLParallelContext = (
    refused.class_of("fluid.core." + _name)
    for _name in ("VarBase", "Layer", "Tracer", "BackwardStrategy", "ParallelStrategy", "NCCLParallelContext")
)
Tensor = LoDTensor


def __unittest_throw_exception__() -> None:
    """Raises EnforceNotMet, for tests of callers."""
    raise ProgramError("this is a test exception")


def _set_eager_deletion_mode(threshold: float, fraction: float, fast: bool) -> None:
    """Does nothing: a value is always freed after its last reader."""


kEmptyVarName, kGradVarSuffix = EMPTY_VAR_NAME, GRAD_VAR_SUFFIX
