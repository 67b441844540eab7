"""check_all_trainers_ready: a barrier of trainers that uses files of a Hadoop file system."""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.fleet.barrier import check_all_trainers_ready
    from penstock.fluid.incubate.fleet.utils.hdfs import HDFSClient as HDFSClient

__all__ = ['check_all_trainers_ready']

facade.make(__name__)
