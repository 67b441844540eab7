"""Utilities for Fleet scripts: fleet_util, fs, hdfs, fleet_barrier_util, utils, http_server."""
