"""fluid.contrib.utils: many files of a Hadoop file system at once, and tables of a job with pservers outside it."""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.contrib.hdfs_utils import multi_download, multi_upload
    from penstock._src.contrib.lookup_table_utils import convert_dist_to_sparse_program
    from penstock._src.contrib.lookup_table_utils import load_persistables_for_increment
    from penstock._src.contrib.lookup_table_utils import load_persistables_for_inference
    from penstock._src.fleet.hdfs import HDFSClient
    from penstock.fluid.contrib.utils import hdfs_utils as hdfs_utils, lookup_table_utils as lookup_table_utils

__all__ = [
    'HDFSClient', 'convert_dist_to_sparse_program', 'load_persistables_for_increment',
    'load_persistables_for_inference', 'multi_download', 'multi_upload',
]

facade.make(__name__)
