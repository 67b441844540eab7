"""File systems with Fluid's interface."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    pass


from penstock._src.base.doc_texts import with_texts
from penstock._src.base.errors import not_built

_FS = {
    "not_overridden": """Raises:
    NotImplementedError: the class does not override it."""
}


class FS:
    """The interface of a file system. LocalFS implements it.

    Example:
        from penstock.fluid.incubate.fleet.utils.fs import FS, LocalFS
        assert isinstance(LocalFS(), FS)
    """

    @with_texts(_FS)
    def list_dirs(self, fs_path: str) -> list[str]:
        """Lists the folders in a folder.

        Args:
            fs_path (str): the folder.

        Returns:
            list[str]: their names, sorted; empty if the folder does not exist.

        {not_overridden}
        """
        raise NotImplementedError

    @with_texts(_FS)
    def ls_dir(self, fs_path: str) -> list[str]:
        """Lists the contents of a folder.

        Args:
            fs_path (str): the folder.

        Returns:
            list[str]: the names, sorted; empty if the folder does not exist.

        {not_overridden}
        """
        raise NotImplementedError

    @with_texts(_FS)
    def stat(self, fs_path: str) -> bool:
        """Returns whether a file or folder exists.

        Args:
            fs_path (str): the path.

        Returns:
            bool: True if it does.

        {not_overridden}
        """
        raise NotImplementedError

    @with_texts(_FS)
    def upload(self, local_path: str, fs_path: str) -> None:
        """Copies a local file into the file system.

        Args:
            local_path (str): the local file.
            fs_path (str): the copy.

        {not_overridden}
        """
        raise NotImplementedError

    @with_texts(_FS)
    def download(self, fs_path: str, local_path: str) -> None:
        """Copies a file to this machine.

        Args:
            fs_path (str): the file.
            local_path (str): the copy.

        {not_overridden}
        """
        raise NotImplementedError

    @with_texts(_FS)
    def mkdir(self, fs_path: str) -> None:
        """Creates a folder and its parents.

        Args:
            fs_path (str): the folder.

        {not_overridden}
        """
        raise NotImplementedError

    @with_texts(_FS)
    def mv(self, fs_src_path: str, fs_dst_path: str) -> None:
        """Renames a file or a folder.

        Args:
            fs_src_path (str): its path.
            fs_dst_path (str): its new path.

        {not_overridden}
        """
        raise NotImplementedError

    @with_texts(_FS)
    def rmr(self, fs_path: str) -> None:
        """Deletes a folder with its contents.

        Args:
            fs_path (str): the folder.

        {not_overridden}
        """
        raise NotImplementedError

    @with_texts(_FS)
    def rm(self, fs_path: str) -> None:
        """Deletes a file.

        Args:
            fs_path (str): the file.

        {not_overridden}
        """
        raise NotImplementedError

    @with_texts(_FS)
    def delete(self, fs_path: str) -> None:
        """Deletes a file or a folder, if it exists.

        Args:
            fs_path (str): the path.

        {not_overridden}
        """
        raise NotImplementedError

    @with_texts(_FS)
    def need_upload_download(self) -> bool:
        """Returns whether programs cannot read and write this file system directly.

        Returns:
            bool: True if files have to be copied first.

        {not_overridden}
        """
        raise NotImplementedError


class LocalFS(FS):
    """The file system of this machine.

    Example:
        from penstock.fluid.incubate.fleet.utils.fs import LocalFS
        assert LocalFS().stat('/') and not LocalFS().need_upload_download()
    """

    def list_dirs(self, fs_path: str) -> list[str]:
        return [name for name in self.ls_dir(fs_path) if os.path.isdir(os.path.join(fs_path, name))]

    def ls_dir(self, fs_path: str) -> list[str]:
        return sorted(os.listdir(fs_path)) if self.stat(fs_path) else []

    def stat(self, fs_path: str) -> bool:
        return os.path.exists(fs_path)

    def mkdir(self, fs_path: str) -> None:
        os.makedirs(fs_path, exist_ok=True)

    def mv(self, fs_src_path: str, fs_dst_path: str) -> None:
        os.rename(fs_src_path, fs_dst_path)

    def rmr(self, fs_path: str) -> None:
        shutil.rmtree(fs_path)

    def rm(self, fs_path: str) -> None:
        os.remove(fs_path)

    def delete(self, fs_path: str) -> None:
        if os.path.isdir(fs_path):
            self.rmr(fs_path)
        elif self.stat(fs_path):
            self.rm(fs_path)

    def need_upload_download(self) -> bool:
        return False


class BDFS(FS):
    """Baidu's distributed file system. It needs a client that is not public, so its constructor raises an error.

    Args:
        hdfs_name (str | None): ignored; accepted for compatibility with Fluid.
        hdfs_ugi (str | None): ignored; accepted for compatibility with Fluid.
        time_out (int): ignored; accepted for compatibility with Fluid.
        sleep_inter (int): ignored; accepted for compatibility with Fluid.

    Raises:
        NotImplementedError: always.

    Example:
        from penstock.fluid.incubate.fleet.utils.fs import BDFS, LocalFS
        try:
            files = BDFS()
        except NotImplementedError:
            files = LocalFS()
    """

    def __init__(
        self,
        hdfs_name: str | None = None,
        hdfs_ugi: str | None = None,
        time_out: int = 20 * 60 * 1000,
        sleep_inter: int = 1000,
    ) -> None:
        raise not_built("BDFS needs a client that is not public; mount the file system, and use LocalFS()")
