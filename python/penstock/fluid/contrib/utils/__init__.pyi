# Written by tools/dev/gen_stubs.py.
# mypy: disable-error-code="override"
from typing import Any, Callable, Iterable, Iterator

from penstock.fluid.contrib.utils import hdfs_utils as hdfs_utils
from penstock.fluid.contrib.utils.hdfs_utils import multi_download as multi_download
from penstock.fluid.contrib.utils.hdfs_utils import multi_upload as multi_upload
from penstock.fluid.incubate.fleet.utils.hdfs import HDFSClient as HDFSClient

def absent(module: Any, why: Any) -> Any: ...
__all__: list[str]
