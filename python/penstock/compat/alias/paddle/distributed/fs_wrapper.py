"""paddle.distributed.fs_wrapper: local files and HDFS behind one interface."""

from penstock.fluid.incubate.fleet.utils.fs import BDFS, FS, LocalFS

__all__ = ["BDFS", "FS", "LocalFS"]
