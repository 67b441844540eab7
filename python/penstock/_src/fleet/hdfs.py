"""HDFSClient: access to a Hadoop file system through its command-line client.

client = HDFSClient('/opt/hadoop', {'fs.default.name': 'hdfs://10.0.0.1:9000', 'hadoop.job.ugi': 'user,password'})
client.download('/data/train', 'train')
"""

from __future__ import annotations

import logging
import os
import subprocess
from typing import TYPE_CHECKING

from penstock._src.base.errors import program_error
from penstock._src.fleet.base import part_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any


_log = logging.getLogger("penstock.fluid.incubate.fleet.utils.hdfs")
_COLUMNS = 8  # columns of a line of `hadoop fs -ls`


class HDFSClient:
    """Runs `HADOOP_HOME/bin/hadoop fs`. A failed command is logged, and the result of the method shows the failure.

    Args:
        hadoop_home (str): the folder in which Hadoop is installed.
        configs (dict): settings that are passed to each command with -D.

    Example:
        from penstock.fluid.incubate.fleet.utils.hdfs import HDFSClient
        client = HDFSClient('/opt/hadoop', {'fs.default.name': 'hdfs://10.0.0.1:9000'})
    """

    def __init__(self, hadoop_home: str, configs: Mapping[str, str]) -> None:
        self.pre_commands = [os.path.join(hadoop_home, "bin", "hadoop"), "fs"]
        self.pre_commands += ["-D{}={}".format(*each) for each in configs.items()]

    def _run(self, *arguments: Any, retry_times: int = 0) -> tuple[bool, str]:
        """Runs a command; returns (whether it succeeded, its output)."""
        for _ in range(retry_times + 1):
            try:
                done = subprocess.run(self.pre_commands + list(arguments), capture_output=True, text=True)
            except OSError as error:
                raise program_error(
                    "E-fleet-hdfs", f"HDFSClient: {self.pre_commands[0]} cannot be run: {error}"
                ) from None
            if done.returncode == 0:
                return True, done.stdout
        return False, done.stderr

    def _do(self, *arguments: Any, retry_times: int = 0) -> bool:
        """Runs a command; returns whether it succeeded, and logs a failure."""
        good, text = self._run(*arguments, retry_times=retry_times)
        if not good:
            _log.error("hadoop fs %s: %s", " ".join(arguments), text.strip())
        return good

    def cat(self, hdfs_path: str | None = None) -> str:
        """Reads a file.

        Args:
            hdfs_path (str): the file.

        Returns:
            str: the text without leading and trailing whitespace; '' if the file does not exist.
        """
        good, text = self._run("-cat", hdfs_path, retry_times=1)
        return text.strip() if good else ""

    def is_exist(self, hdfs_path: str | None = None) -> bool:
        """Returns whether a file or folder exists.

        Args:
            hdfs_path (str): the path.

        Returns:
            bool: True if it does.
        """
        return self._run("-test", "-e", hdfs_path, retry_times=1)[0]

    def is_dir(self, hdfs_path: str | None = None) -> bool:
        """Returns whether a path is a folder.

        Args:
            hdfs_path (str): the path.

        Returns:
            bool: True if it is.
        """
        return self._run("-test", "-d", hdfs_path, retry_times=1)[0]

    def is_file(self, hdfs_path: str | None = None) -> bool:
        """Returns whether a path is a file.

        Args:
            hdfs_path (str): the path.

        Returns:
            bool: True if it exists and is not a folder.
        """
        return self.is_exist(hdfs_path) and not self.is_dir(hdfs_path)

    def delete(self, hdfs_path: str) -> bool:
        """Deletes a file, or a folder with its contents.

        Args:
            hdfs_path (str): the path.

        Returns:
            bool: True if the path does not exist afterwards.
        """
        if not self.is_exist(hdfs_path):
            return True
        return self._do(*(["-rm", "-r"] if self.is_dir(hdfs_path) else ["-rm"]), hdfs_path)

    def rename(self, hdfs_src_path: str, hdfs_dst_path: str, overwrite: bool = False) -> bool:
        """Renames a file or a folder.

        Args:
            hdfs_src_path (str): its path.
            hdfs_dst_path (str): its new path.
            overwrite (bool): True: first delete an existing file or folder at the new path; False: fail if one exists.

        Returns:
            bool: True if the file or folder was renamed.
        """
        if self.is_exist(hdfs_dst_path):
            if not overwrite:
                _log.error("hadoop fs -mv: %s is there", hdfs_dst_path)
                return False
            self.delete(hdfs_dst_path)
        return self._do("-mv", hdfs_src_path, hdfs_dst_path, retry_times=1)

    @staticmethod
    def make_local_dirs(local_path: str) -> None:
        """Creates a folder and its parents on this machine.

        Args:
            local_path (str): the folder.
        """
        os.makedirs(local_path, exist_ok=True)

    def makedirs(self, hdfs_path: str) -> bool:
        """Creates a folder and its parents.

        Args:
            hdfs_path (str): the folder.

        Returns:
            bool: True if the command succeeded.
        """
        return self._do("-mkdir", "-p", hdfs_path, retry_times=1)

    def _listed(self, command: str, hdfs_path: str) -> list[tuple[bool, str]]:
        """Returns [(whether it is a folder, path)]."""
        good, text = self._run(command, hdfs_path, retry_times=1)
        rows = [line.split(None, _COLUMNS - 1) for line in text.splitlines()] if good else []
        return [(row[0].startswith("d"), row[-1]) for row in rows if len(row) == _COLUMNS]

    def ls(self, hdfs_path: str) -> list[str]:
        """Lists the contents of a folder.

        Args:
            hdfs_path (str): the folder.

        Returns:
            list[str]: the paths.
        """
        return [path for _, path in self._listed("-ls", hdfs_path)]

    def lsr(self, hdfs_path: str, excludes: Sequence[str] = ()) -> list[str]:
        """Lists all files in a folder and its subfolders.

        Args:
            hdfs_path (str): the folder.
            excludes (list[str]): paths to skip.

        Returns:
            list[str]: the paths.
        """
        return [path for folder, path in self._listed("-lsr", hdfs_path) if not folder and path not in excludes]

    @staticmethod
    def split_files(files: Sequence[str], trainer_id: int, trainers: int) -> list[str]:
        """Returns a trainer's part of a list of files. Parts consist of neighbouring files and have equal lengths.

        Args:
            files (list[str]): the files of all trainers.
            trainer_id (int): the number of the trainer.
            trainers (int): the number of trainers.

        Returns:
            list[str]: the part.
        """
        return part_of(files, trainer_id, trainers)

    def download(
        self, hdfs_path: str, local_path: str, multi_processes: int = 5, overwrite: bool = False, retry_times: int = 5
    ) -> list[str]:
        """Copies the contents of a folder to this machine.

        Args:
            hdfs_path (str): the folder.
            local_path (str): the folder on this machine; created if it does not exist.
            multi_processes (int): has no effect, because one command copies everything.
            overwrite (bool): has no effect.
            retry_times (int): number of retries of a failed copy.

        Returns:
            list[str]: the paths of the copies, sorted.
        """
        self.make_local_dirs(local_path)
        for path in self.ls(hdfs_path):
            self._do("-get", path, local_path, retry_times=retry_times)
        return sorted(os.path.join(folder, name) for folder, _, names in os.walk(local_path) for name in names)

    def upload(
        self, hdfs_path: str, local_path: str, multi_processes: int = 5, overwrite: bool = False, retry_times: int = 5
    ) -> bool:
        """Copies a file, or the contents of a folder, into a folder of the file system.

        Args:
            hdfs_path (str): the folder of the file system.
            local_path (str): the file or folder on this machine.
            multi_processes (int): has no effect.
            overwrite (bool): first delete an existing file or folder at the path.
            retry_times (int): number of retries of a failed copy.

        Returns:
            bool: True if all copies succeeded.
        """
        files = [local_path]
        if os.path.isdir(local_path):
            files = [os.path.join(local_path, name) for name in sorted(os.listdir(local_path))]
        if overwrite and self.is_exist(hdfs_path):
            self.delete(hdfs_path)
            self.makedirs(hdfs_path)
        return all([self._do("-put", file, hdfs_path, retry_times=retry_times) for file in files])  # noqa: C419

    def upload_dir(self, dest_dir: str, local_dir: str, overwrite: bool = False) -> bool:
        """Copies a folder into another folder.

        Args:
            dest_dir (str): the folder of the file system.
            local_dir (str): the folder on this machine.
            overwrite (bool): first delete an existing folder with the same name.

        Returns:
            bool: True if the command succeeded.
        """
        there = dest_dir.rstrip("/") + "/" + os.path.basename(local_dir.rstrip("/"))
        if overwrite and self.is_exist(there):
            self.delete(there)
        if not self.is_exist(dest_dir):
            self.makedirs(dest_dir)
        return self._do("-put", local_dir.rstrip("/"), dest_dir)
