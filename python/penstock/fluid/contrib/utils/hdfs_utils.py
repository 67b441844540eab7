"""Transfers of many files of a Hadoop file system: downloads of a trainer's part of a folder, uploads of a folder."""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.contrib.hdfs_utils import multi_download, multi_upload
    from penstock._src.fleet.hdfs import HDFSClient

__all__ = ['HDFSClient', 'multi_download', 'multi_upload']

facade.make(__name__)
