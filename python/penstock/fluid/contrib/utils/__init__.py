"""fluid.contrib.utils: many files of a Hadoop file system at once, and tables of a job with pservers outside it."""

from penstock.fluid._not_built import getattr_of
from penstock.fluid.contrib.utils import hdfs_utils, lookup_table_utils
from penstock.fluid.contrib.utils.hdfs_utils import HDFSClient, multi_download, multi_upload
from penstock.fluid.contrib.utils.lookup_table_utils import (convert_dist_to_sparse_program,
                                                             load_persistables_for_increment,
                                                             load_persistables_for_inference)

__all__ = ['HDFSClient', 'convert_dist_to_sparse_program', 'load_persistables_for_increment',
           'load_persistables_for_inference', 'multi_download', 'multi_upload']

__getattr__ = getattr_of(__name__)
