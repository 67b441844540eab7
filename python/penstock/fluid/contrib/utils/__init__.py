"""fluid.contrib.utils: transfers of many files to and from a Hadoop file system. Fluid's functions for tables on
pservers are not part of Penstock."""

from penstock.fluid._absent import absent
from penstock.fluid.contrib.utils.hdfs_utils import HDFSClient, multi_download, multi_upload

__all__ = ['HDFSClient', 'multi_download', 'multi_upload']

_, __getattr__ = absent('fluid.contrib.utils', 'tables on pservers are saved and loaded by fluid.io')
