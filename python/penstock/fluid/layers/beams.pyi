# Written by tools/dev/gen_stubs.py.
# mypy: disable-error-code="override"
from typing import Any, Callable, Iterable, Iterator

from penstock.fluid.layer_helper import LayerHelper as LayerHelper
from penstock.fluid.variable import Variable as Variable

def beam_search_decode(ids: Variable, scores: Variable, beam_size: int, end_id: int, name: str | None = ...) -> tuple[Any, ...]: ...
def element_types(**types: Any) -> Any: ...
def gather_tree(ids: Variable, parents: Variable) -> Variable: ...
__all__: list[str]
