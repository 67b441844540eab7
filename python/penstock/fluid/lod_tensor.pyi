# Written by tools/dev/gen_stubs.py.
# mypy: disable-error-code="override"
from typing import Any, Callable, Iterable, Iterator

def create_lod_tensor(data: Any, recursive_seq_lens: list[list[int]], place: Any) -> Any: ...
def create_random_int_lodtensor(recursive_seq_lens: list[list[int]], base_shape: list[int], place: Any, low: int, high: int) -> Any: ...
__all__: list[str]
