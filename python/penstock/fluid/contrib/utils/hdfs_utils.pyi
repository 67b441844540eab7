# Written by tools/dev/gen_stubs.py.
# mypy: disable-error-code="override"
from typing import Any, Callable, Iterable, Iterator

from penstock.fluid.incubate.fleet.utils.hdfs import HDFSClient as HDFSClient

def multi_download(client: Any, hdfs_path: str, local_path: str, trainer_id: int, trainers: int, multi_processes: int = ...) -> list[str]: ...
def multi_upload(client: Any, hdfs_path: str, local_path: str, multi_processes: int = ..., overwrite: bool = ..., sync: bool = ...) -> Any: ...
__all__: list[str]
