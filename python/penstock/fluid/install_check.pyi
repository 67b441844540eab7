# Written by tools/dev/gen_stubs.py.
# mypy: disable-error-code="override"
from typing import Any, Callable, Iterable, Iterator

from penstock.fluid.compiler import CompiledProgram as CompiledProgram
from penstock.fluid.executor import Executor as Executor
from penstock.fluid.executor import scope_guard as scope_guard
from penstock.fluid.framework import Program as Program
from penstock.fluid.framework import program_guard as program_guard
from penstock.fluid.initializer import ConstantInitializer as Constant
from penstock.fluid.param_attr import ParamAttr as ParamAttr

def run_check() -> Any: ...
__all__: list[str]
