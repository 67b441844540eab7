"""check_all_trainers_ready: a barrier of trainers that uses files of a Hadoop file system."""

from __future__ import annotations

import os
import time

from penstock._src.base import environment
from penstock._src.fleet.hdfs import HDFSClient
from penstock._src.fleet.pserver import fleet

_LOOK_S = 10


def check_all_trainers_ready(ready_path: str, epoch: int) -> None:
    """Waits until all trainers have called it for an epoch. fleet.barrier_worker() does the same without Hadoop.

    Args:
        ready_path (str): a folder of the file system given by HADOOP_HOME, FS_NAME and FS_UGI.
        epoch (int): a number that no earlier call has used.

    Raises:
        KeyError: HADOOP_HOME is not set.

    Example:
        from penstock.fluid.incubate.fleet.utils.fleet_barrier_util import check_all_trainers_ready
        try:
            check_all_trainers_ready('/jobs/7/ready', epoch=3)
        except KeyError as error:
            assert str(error) == "'HADOOP_HOME'"
    """
    home = environment.text("HADOOP_HOME", None)
    if home is None:
        raise KeyError("HADOOP_HOME")
    settings = {"fs.default.name": environment.text("FS_NAME"), "hadoop.job.ugi": environment.text("FS_UGI")}
    client = HDFSClient(home, {name: value for name, value in settings.items() if value})
    name = f"ready.{epoch}.{fleet.worker_index()}.done"
    with open(name, "w"):
        pass
    if not client.is_dir(ready_path):
        client.makedirs(ready_path)
    client.upload(ready_path, name, retry_times=0)
    mark = f"ready.{epoch}."
    while sum(os.path.basename(path).startswith(mark) for path in client.ls(ready_path)) < fleet.worker_num():
        time.sleep(_LOOK_S)
