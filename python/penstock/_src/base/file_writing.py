"""Writes the files of a save so that they are one: after a crash, a folder has all of them or all previous ones.

    save_files('model', [('fc_0.w_0', [data]), ('fc_0.b_0', [more])])
    SavedFolder('model').read('fc_0.w_0')

A save of several files has three steps:

1. It writes each file beside its place, with the suffix .partial, and syncs it to disk.
2. It writes the list of digests: for each file its digest, and the name under which it waits.
3. It renames the files to their places.

Until step 2 the folder has the previous save. From then on it has the new one: a reader finds a file that is not
renamed yet under its other name, and the next save renames it. Writers of one folder take turns in steps 2 and 3. A
reader compares the digests, so a file of another save is an error. A file that is not in the list is not compared: a
user may add files, and Fluid writes no lists.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import itertools
import json
import os
import re
import warnings
from typing import TYPE_CHECKING

from penstock._src.base.call_site import stack_level
from penstock._src.base.errors import data_error

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


# The list of digests of a folder. A save of files that belong together in a shared folder has a list of its own.
DIGESTS = "__digests__"
DIGESTS_SUFFIX = ".digests"

_DIGEST_BYTES = 16
_NAMES_TRIED = 100
_PART_BYTES = 1 << 20
_NOT_SUPPORTED = (errno.EINVAL, errno.ENOTSUP, errno.ENOLCK, errno.EBADF, errno.ENOSYS)
_PARTIAL = re.compile(r"\.\d+-\d+\.partial$")
_NEVER_PARTIAL = ".0-0.partial"  # in the list, of a file that did not wait
_numbers = itertools.count()


def is_list(name: str) -> bool:
    """Returns whether a file in a folder of variables is its list of digests."""
    return name == DIGESTS


def is_partial(name: str) -> bool:
    """Returns whether a file is left of a save that was interrupted."""
    return _PARTIAL.search(name) is not None


def save_files(
    folder: str, files: Iterable[tuple[str, Iterable[bytes]]], list_name: str = DIGESTS, there: Iterable[str] = ()
) -> None:
    """Writes files as one save. The folder, the files and their names survive a crash of the machine.

    A single file has no list, unless the folder has one already.

    Args:
        folder (str): the folder; it is created if it does not exist.
        files (Iterable): (name in the folder, parts of the contents); drawn one at a time, so that the contents of one
            file are in memory.
        list_name (str): name of the list of digests.
        there (Iterable[str]): names of files of the save that are in the folder already.

    Raises:
        OSError: with the path.
    """
    os.makedirs(folder, exist_ok=True)
    listed = {
        name: [_digest_of_file(os.path.join(folder, name)), name + _NEVER_PARTIAL]
        for name in map(os.path.normpath, there)
    }
    written = []  # (name, name of the file that waits, digest)
    try:
        for name, parts in files:
            path = os.path.join(folder, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            if os.path.isdir(path):
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
            partial, digest = _write_beside(path, parts)
            written.append((os.path.normpath(name), os.path.relpath(partial, folder), digest))
        with alone_in(folder):
            known = _completed(folder, list_name)
            listed.update({name: [digest, partial] for name, partial, digest in written})
            if listed and (known is not None or len(listed) > 1):
                _replace_list(folder, list_name, dict(known or {}, **listed))
            renames, written = written, []  # from now on they are the save
            _rename(folder, [(name, partial) for name, partial, _ in renames])
    finally:
        for _, partial, _ in written:
            os.remove(os.path.join(folder, partial))


def save_file(path: str, data: bytes) -> None:
    """Writes one file that is no part of a save, such as a program or a profile, as save_files does.

    Args:
        path (str): the file. A device or pipe is written to.
        data (bytes): the contents.

    Raises:
        OSError: with the path.
    """
    path = os.fspath(path)
    if os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path):
        with open(path, "wb") as file:
            file.write(data)
        return
    folder, name = os.path.split(os.path.realpath(path) if os.path.islink(path) else path)
    save_files(folder or os.curdir, [(name, [data])])


def begin_list(folder: str) -> None:
    """Writes an empty list of digests to a folder, so that the following saves, even of single files, are listed."""
    os.makedirs(folder, exist_ok=True)
    _replace_list(folder, DIGESTS, {})


def digests_of(folder: str) -> dict[str, str]:
    """Returns {name: digest} of the files in the folder's list, or {} if it has none."""
    return {name: digest for name, (digest, _) in (_read_list(folder, DIGESTS) or {}).items()}


@contextlib.contextmanager
def alone_in(folder: str) -> Iterator[None]:
    """Waits until no other process or thread is in such a with statement for the folder. File systems without locks do
    not wait."""
    opened = _open_folder(folder)
    try:
        if opened is not None:
            try:
                fcntl.flock(opened, fcntl.LOCK_EX)
            except OSError as error:
                if error.errno not in _NOT_SUPPORTED:
                    raise _with_path(error, folder) from error
        yield
    finally:
        if opened is not None:
            os.close(opened)


def sync_folder(folder: str) -> None:
    """Forces the names in the folder to disk. Does nothing if the folder cannot be opened or the file system does not
    support it."""
    opened = _open_folder(folder)
    if opened is None:
        return
    try:
        os.fsync(opened)
    except OSError as error:
        if error.errno not in _NOT_SUPPORTED:
            raise _with_path(error, folder) from error
    finally:
        os.close(opened)


class SavedFolder:
    """Reads files of a save, and compares them with its list of digests.

    Args:
        folder (str): the folder.
        list_name (str): name of the list.
    """

    def __init__(self, folder: str, list_name: str = DIGESTS) -> None:
        self.folder = folder
        self._list_name = list_name
        self._listed = _read_list(folder, list_name) or {}

    def read(self, name: str) -> bytes:
        """Returns the contents of a file.

        Raises:
            FileNotFoundError: there is no such file.
            penstock.DataError: E-save-mixed: the file is not the one of the last save.
        """
        path, inside = os.path.join(self.folder, name), os.path.normpath(name)
        for _ in range(2):  # again with the current list if another process has saved meanwhile
            data = _contents(path)
            entry = self._listed.get(inside)
            if entry is None or (data is not None and _digest(data) == entry[0]):
                break
            digest, partial = entry
            waiting = _contents(os.path.join(self.folder, partial))
            if waiting is not None and _digest(waiting) == digest:
                return waiting
            now = _read_list(self.folder, self._list_name) or {}
            if now == self._listed:
                data = _contents(path)  # renamed since it was read
                if data is not None and _digest(data) != digest:
                    self._require_rewritten(inside)
                break
            self._listed = now
        if data is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return data

    def _require_rewritten(self, name: str) -> None:
        """Raises DataError unless another program has saved the whole folder again: then most files differ from the
        list, and those that do not were written after it."""
        listed_at = _changed_at(os.path.join(self.folder, self._list_name))
        changed = 0
        same: list[str] = []
        untouched: list[str] = []
        for other, (digest, _) in self._listed.items():
            path = os.path.join(self.folder, other)
            changed_at = _changed_at(path)
            data = _contents(path)
            if changed_at is None or data is None:
                continue
            if _digest(data) != digest:
                changed += 1
            else:
                (untouched if listed_at is not None and changed_at <= listed_at else same).append(other)
        if untouched or len(same) >= changed:
            raise data_error(
                "E-save-mixed",
                f"{os.path.join(self.folder, name)} is not the file of the last save of this folder, but "
                f"{(untouched + same)[0]} is: the folder has files "
                "of different saves",
                "load another save; or, if you have replaced or changed the file yourself, delete "
                f"{os.path.join(self.folder, self._list_name)}",
            )
        warnings.warn(
            f"another program has written the files in {self.folder} since their list of digests, {self._list_name}; "
            "they are loaded "
            "without a comparison",
            stacklevel=stack_level(),
        )
        self._listed = {}


def _digest_of_file(path: str) -> str:
    with open(path, "rb") as file:
        digest = hashlib.blake2b(digest_size=_DIGEST_BYTES)
        while part := file.read(_PART_BYTES):
            digest.update(part)
    return digest.hexdigest()


def _write_beside(path: str, parts: Iterable[bytes]) -> tuple[str, str]:
    """Writes a new file beside `path`, and syncs it. Returns (its path, its digest)."""
    file, partial = _create_beside(path)
    digest = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    try:
        with open(file, "wb") as out:
            for part in parts:
                digest.update(part)
                out.write(part)
            out.flush()
            os.fsync(out.fileno())
    except BaseException as error:
        os.remove(partial)
        if isinstance(error, OSError):
            raise _with_path(error, path) from error
        raise
    return partial, digest.hexdigest()


def _create_beside(path: str) -> tuple[int, str]:
    """Returns (descriptor, path) of a new file beside `path`. Existing files and links are never opened."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    for _ in range(_NAMES_TRIED):
        partial = f"{path}.{os.getpid()}-{next(_numbers)}.partial"  # several trainers may save to one folder
        try:
            return os.open(partial, flags, 0o666), partial
        except FileExistsError:
            pass
    raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), partial)


def _rename(folder: str, renames: list[tuple[str, str]]) -> None:
    for name, partial in renames:
        os.replace(os.path.join(folder, partial), os.path.join(folder, name))
    for below in sorted({os.path.dirname(os.path.join(folder, name)) for name, _ in renames}):
        sync_folder(below)


def _replace_list(folder: str, list_name: str, listed: dict[str, list[str] | tuple[str, str]]) -> None:
    path = os.path.join(folder, list_name)
    partial, _ = _write_beside(path, [json.dumps({"version": 1, "files": listed}, indent=0).encode()])
    for below in sorted({os.path.dirname(os.path.join(folder, one)) for _, one in listed.values()} - {folder}):
        sync_folder(below)  # the names of what the list mentions
    os.replace(partial, path)
    sync_folder(folder)


def _completed(folder: str, list_name: str) -> dict[str, tuple[str, str]] | None:
    """Returns the list, or None, after completing the save that wrote it if that was interrupted."""
    listed = _read_list(folder, list_name)
    waiting = []
    for name, (digest, partial) in (listed or {}).items():
        data = _contents(os.path.join(folder, partial))
        if data is not None and _digest(data) == digest:
            waiting.append((name, partial))
    _rename(folder, waiting)
    return listed


def _read_list(folder: str, list_name: str) -> dict[str, tuple[str, str]] | None:
    """Returns {name: [digest, name of the file that may wait]}, or None if there is no list."""
    path = os.path.join(folder, list_name)
    data = _contents(path)
    if data is None:
        return None
    try:
        files = json.loads(data)["files"]
        listed = {name: (str(digest), str(partial)) for name, (digest, partial) in files.items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise data_error(
            "E-save-list", f"{path} is no list of digests: {error}", "delete it to load the files without a comparison"
        ) from None
    for name, (_, partial) in listed.items():  # a folder may come from another person
        outside = os.path.isabs(name) or name.split(os.sep)[0] == os.pardir or name != os.path.normpath(name)
        if outside or not partial.startswith(name + ".") or not _PARTIAL.fullmatch(partial[len(name) :]):
            raise data_error(
                "E-save-list",
                f"{path} is no list of digests: it names the files {name!r} and {partial!r}",
                "delete it to load the files without a comparison",
            )
    return listed


def _contents(path: str) -> bytes | None:
    """Returns the bytes of a file, or None if it does not exist."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _with_path(error, path) from error


def _digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=_DIGEST_BYTES).hexdigest()


def _changed_at(path: str) -> int | None:
    try:
        return os.stat(path).st_mtime_ns
    except FileNotFoundError:
        return None


def _open_folder(folder: str) -> int | None:
    try:
        return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except PermissionError:
        return None


def _with_path(error: OSError, path: str) -> OSError:
    """Returns an error of the operating system with a path: that of a full disk has none."""
    return error if error.filename is not None else OSError(error.errno, error.strerror, path)
