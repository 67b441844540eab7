"""Utilities for Fleet scripts: fleet_util, fs, hdfs, fleet_barrier_util, utils, http_server."""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock.fluid.incubate.fleet.utils import hdfs as hdfs

__all__ = []

facade.make(__name__)
