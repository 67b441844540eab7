"""What scripts of fleets use beside it: fleet_util, fs, hdfs, fleet_barrier_util."""
