# Written by tools/dev/gen_stubs.py.
# mypy: disable-error-code="override"
from typing import Any, Callable, Iterable, Iterator

from penstock.fluid.contrib.utils import hdfs_utils as hdfs_utils
from penstock.fluid.contrib.utils import lookup_table_utils as lookup_table_utils
from penstock.fluid.contrib.utils.hdfs_utils import multi_download as multi_download
from penstock.fluid.contrib.utils.hdfs_utils import multi_upload as multi_upload
from penstock.fluid.contrib.utils.lookup_table_utils import convert_dist_to_sparse_program as convert_dist_to_sparse_program
from penstock.fluid.contrib.utils.lookup_table_utils import load_persistables_for_increment as load_persistables_for_increment
from penstock.fluid.contrib.utils.lookup_table_utils import load_persistables_for_inference as load_persistables_for_inference
from penstock.fluid.incubate.fleet.utils.hdfs import HDFSClient as HDFSClient

__all__: list[str]
