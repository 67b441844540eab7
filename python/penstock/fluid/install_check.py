"""run_check tests whether an installation can train."""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.contrib.install_check import _train_a_step as _train_a_step, run_check
    from penstock._src.executor.compiler import CompiledProgram as CompiledProgram
    from penstock._src.executor.executor import Executor as Executor
    from penstock._src.executor.scopes import scope_guard as scope_guard
    from penstock._src.ir.framework import program_guard as program_guard
    from penstock._src.ir.program import Program as Program
    from penstock._src.parameters.initializer import Constant as Constant
    from penstock._src.parameters.param_attr import ParamAttr as ParamAttr

__all__ = ['run_check']

facade.make(__name__)
