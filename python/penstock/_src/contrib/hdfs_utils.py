"""Transfers of many files of a Hadoop file system: downloads of a trainer's part of a folder, uploads of a folder."""

from __future__ import annotations

import os
import posixpath

from penstock._src.fleet.hdfs import HDFSClient


def multi_download(
    client: HDFSClient, hdfs_path: str, local_path: str, trainer_id: int, trainers: int, multi_processes: int = 5
) -> list[str]:
    """Copies this trainer's part of the files below a folder to this machine: every trainers-th file.

    Args:
        client (HDFSClient): the file system.
        hdfs_path (str): the folder.
        local_path (str): the folder on this machine; created if it does not exist.
        trainer_id (int): the number of this trainer.
        trainers (int): the number of trainers.
        multi_processes (int): has no effect, because files are copied one after another.

    Returns:
        list[str]: the paths of the copies, which have the same relative paths below `local_path` as the originals below
        `hdfs_path`.

    Raises:
        TypeError: `client` is not an HDFSClient.
        ValueError: `trainer_id` is not a trainer of the job.

    Example:
        import os
        from penstock.fluid.contrib.utils import HDFSClient, multi_download
        if os.path.exists('/opt/hadoop/bin/hadoop'):
            client = HDFSClient('/opt/hadoop', {'fs.default.name': 'hdfs://10.0.0.1:9000'})
            files = multi_download(client, '/data/train', 'train', trainer_id=0, trainers=2)
    """
    _require_client("multi_download", client)
    if not 0 <= trainer_id < trainers:
        raise ValueError(f"multi_download: there is no trainer {trainer_id} of {trainers}")
    copies = []
    for path in sorted(client.lsr(hdfs_path))[trainer_id::trainers]:
        copies.append(os.path.join(local_path, *posixpath.relpath(path, hdfs_path).split("/")))
        client.make_local_dirs(os.path.dirname(copies[-1]))
        client._do("-get", path, copies[-1])
    return copies


def multi_upload(
    client: HDFSClient,
    hdfs_path: str,
    local_path: str,
    multi_processes: int = 5,
    overwrite: bool = False,
    sync: bool = True,
) -> None:
    """Copies the files below a folder of this machine into a folder of the file system.

    Args:
        client (HDFSClient): the file system.
        hdfs_path (str): the folder of the file system.
        local_path (str): the folder on this machine.
        multi_processes (int): has no effect, because files are copied one after another.
        overwrite (bool): replace existing files.
        sync (bool): has no effect: the function returns when all files are copied.

    Raises:
        TypeError: `client` is not an HDFSClient.

    Example:
        import os
        from penstock.fluid.contrib.utils import HDFSClient, multi_upload
        if os.path.exists('/opt/hadoop/bin/hadoop'):
            client = HDFSClient('/opt/hadoop', {'fs.default.name': 'hdfs://10.0.0.1:9000'})
            multi_upload(client, '/data/model', 'model', overwrite=True)
    """
    _require_client("multi_upload", client)
    for folder, _, names in sorted(os.walk(local_path)):
        inside = os.path.relpath(folder, local_path)
        target = hdfs_path if inside == os.curdir else posixpath.join(hdfs_path, *inside.split(os.sep))
        if names:
            client.makedirs(target)
        for name in sorted(names):
            there = posixpath.join(target, name)
            if overwrite and client.is_exist(there):
                client.delete(there)
            client._do("-put", os.path.join(folder, name), there)


def _require_client(function: str, client: HDFSClient | str) -> None:
    if not isinstance(client, HDFSClient):
        raise TypeError(f"{function} takes an HDFSClient, not {type(client).__name__}")
