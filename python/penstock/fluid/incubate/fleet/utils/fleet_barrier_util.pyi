# Written by tools/dev/gen_stubs.py.
# mypy: disable-error-code="override"
from typing import Any, Callable, Iterable, Iterator

from penstock.fluid.incubate.fleet.utils.hdfs import HDFSClient as HDFSClient

def check_all_trainers_ready(ready_path: str, epoch: int) -> Any: ...
__all__: list[str]
