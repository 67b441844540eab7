# Written by tools/dev/gen_stubs.py.
# mypy: disable-error-code="override"
from typing import Any, Callable, Iterable, Iterator

from penstock.fluid.transpiler.details import vars_distributed as vars_distributed
from penstock.fluid.transpiler.details.vars_distributed import VarDistributed as VarDistributed
from penstock.fluid.transpiler.details.vars_distributed import VarStruct as VarStruct
from penstock.fluid.transpiler.details.vars_distributed import VarsDistributed as VarsDistributed

__all__: list[str]
