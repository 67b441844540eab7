"""fluid.contrib.utils: many files of a Hadoop file system at once. What Fluid has here for tables on pservers is not
part of Penstock."""

from penstock.fluid._absent import absent
from penstock.fluid.contrib.utils.hdfs_utils import HDFSClient, multi_download, multi_upload

__all__ = ['HDFSClient', 'multi_download', 'multi_upload']

_, __getattr__ = absent('fluid.contrib.utils', 'tables on pservers are saved and loaded by fluid.io')
