# Written by tools/dev/gen_stubs.py.
# mypy: disable-error-code="override"
from typing import Any, Callable, Iterable, Iterator

from penstock.fluid.core import AttrType as AttrType

BLOCK: AttrType
BLOCKS: AttrType
BOOL: AttrType
BOOLS: AttrType
FLOAT: AttrType
FLOATS: AttrType
INT: AttrType
INTS: AttrType
LONG: AttrType
LONGS: AttrType
class OpDesc:
    Attr: type[Any]
    def HasField(self, name: str) -> bool: ...
    def IsInitialized(self) -> bool: ...
    Var: type[Any]
    def __init__(self, **fields: Any) -> None: ...
class OpProto:
    Attr: type[Any]
    def HasField(self, name: str) -> bool: ...
    def IsInitialized(self) -> bool: ...
    Var: type[Any]
    def __init__(self, **fields: Any) -> None: ...
STRING: AttrType
STRINGS: AttrType
__all__: list[str]
