"""File systems, as Fluid's scripts ask them."""

import os
import shutil

__all__ = ['FS', 'LocalFS', 'BDFS']


class FS:
    """What a file system answers."""

    def list_dirs(self, fs_path):
        """The names of the folders in a folder."""
        raise NotImplementedError

    def ls_dir(self, fs_path):
        """The names of all that is in a folder."""
        raise NotImplementedError

    def stat(self, fs_path):
        """Whether something is there."""
        raise NotImplementedError

    def upload(self, local_path, fs_path):
        """Copies a local file."""
        raise NotImplementedError

    def download(self, fs_path, local_path):
        """Makes a local copy."""
        raise NotImplementedError

    def mkdir(self, fs_path):
        """Makes a folder, and those above it."""
        raise NotImplementedError

    def mv(self, fs_src_path, fs_dst_path):
        """Renames."""
        raise NotImplementedError

    def rmr(self, fs_path):
        """Deletes a folder and all in it."""
        raise NotImplementedError

    def rm(self, fs_path):
        """Deletes a file."""
        raise NotImplementedError

    def delete(self, fs_path):
        """Deletes a file or a folder, if it is there."""
        raise NotImplementedError

    def need_upload_download(self):
        """Whether programs cannot read and write there directly."""
        raise NotImplementedError


class LocalFS(FS):
    """The file system of this machine.

    Example:
        from penstock.fluid.incubate.fleet.utils.fs import LocalFS
        assert LocalFS().stat('/') and not LocalFS().need_upload_download()
    """

    def list_dirs(self, fs_path):
        return [name for name in self.ls_dir(fs_path) if os.path.isdir(os.path.join(fs_path, name))]

    def ls_dir(self, fs_path):
        return sorted(os.listdir(fs_path)) if self.stat(fs_path) else []

    def stat(self, fs_path):
        return os.path.exists(fs_path)

    def mkdir(self, fs_path):
        os.makedirs(fs_path, exist_ok=True)

    def mv(self, fs_src_path, fs_dst_path):
        os.rename(fs_src_path, fs_dst_path)

    def rmr(self, fs_path):
        shutil.rmtree(fs_path)

    def rm(self, fs_path):
        os.remove(fs_path)

    def delete(self, fs_path):
        if os.path.isdir(fs_path):
            self.rmr(fs_path)
        elif self.stat(fs_path):
            self.rm(fs_path)

    def need_upload_download(self):
        return False


class BDFS(FS):
    """Baidu's distributed file system, by its command-line client, which is not public: cannot be made."""

    def __init__(self, hdfs_name=None, hdfs_ugi=None, time_out=20 * 60 * 1000, sleep_inter=1000):
        raise NotImplementedError('BDFS needs a client that is not public; mount the file system, and use LocalFS()')
