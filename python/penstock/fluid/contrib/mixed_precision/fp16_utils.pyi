# Written by tools/dev/gen_stubs.py.
# mypy: disable-error-code="override"
from typing import Any, Callable, Iterable, Iterator

from penstock.fluid.framework import Program as Program
from penstock.fluid.framework import Variable as Variable

def rewrite_program(main_prog: Program, amp_lists: Any) -> Any: ...
def update_loss_scaling(is_overall_finite: Variable, prev_loss_scaling: Variable, num_good_steps: Variable, num_bad_steps: Variable, incr_every_n_steps: Variable, decr_every_n_nan_or_inf: Variable, incr_ratio: float, decr_ratio: float) -> Any: ...
def update_role_var_grad(main_prog: Program, params_grads: list[Any]) -> Any: ...
__all__: list[str]
