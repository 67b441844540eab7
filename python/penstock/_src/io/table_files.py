"""Files of tables sharded by id (is_distributed=True).

Pserver i of a job writes its rows to __lookup_table__/<table>_<i>, and what its optimizer keeps of them to
<table>_<i>.state: tensors, of which the first holds the names of the others, one per line. The first of these has the
table's name and holds the ids, in the order of the rows; 'crc32c' is the checksum of the rows' values; the others are
the rows of each state, and scalars.
"""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

import numpy

from penstock._penstock import RuntimeVariable
from penstock._src.base.errors import data_error
from penstock._src.base.file_writing import SavedFolder
from penstock._src.io import var_records
from penstock._src.ir.types import VarType

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from penstock._src.ir.typing import Array


TABLES_FOLDER = "__lookup_table__"
_STATE = ".state"
_CHECKSUM = "crc32c"


class Shard:
    """Rows of a table.

    path    their file; if `saved`, a SavedFolder, is given, it compares the file with the folder's list of digests
    ids     int64 array: their ids
    columns {name: array of len(ids) rows}: the table, and the states that the file beside it holds
    scalars {name: array}: what else that file holds
    """

    def __init__(self, path: str, table: str, saved: SavedFolder | None = None) -> None:
        record = _rows_in(path, _read(path, saved))
        rows = record.get_selected_rows()
        self.path = path
        self.ids = numpy.array(rows.rows(), "int64")
        values = numpy.array(rows.get_tensor())
        self.columns: dict[str, Array] = {table: values}
        self.scalars: dict[str, Array] = {}
        if not os.path.isfile(path + _STATE):
            return
        kept = _named_in(path + _STATE, _read(path + _STATE, saved))
        ids, checksum = kept.pop(table, None), kept.pop(_CHECKSUM, None)
        same = ids is not None and checksum is not None and numpy.array_equal(ids, self.ids)
        if not same or checksum != [record._rows_crc32c()]:
            raise data_error(
                "E-save-mixed",
                f"{path + _STATE} is not of the same save as {path}: the job ended while it saved",
                "load another save; or delete the file, and the optimizer starts afresh",
            )
        for name, value in kept.items():
            rowwise = value.shape == (len(self.ids),) + values.shape[1:]
            (self.columns if rowwise else self.scalars)[name] = value


def read_rows(path: str) -> RuntimeVariable:
    """Returns the selected rows in a file that a pserver wrote."""
    return _rows_in(path, var_records.read_file(path))


def read_named(path: str) -> dict[str, Array]:
    """Returns {name: array} of a file that a pserver wrote: the names, then the values in this order."""
    return _named_in(path, var_records.read_file(path))


def _read(path: str, saved: SavedFolder | None) -> bytes:
    return var_records.read_file(path) if saved is None else saved.read(os.path.relpath(path, saved.folder))


def _rows_in(path: str, data: bytes) -> RuntimeVariable:
    return var_records.parse(path, data, 0, VarType.SELECTED_ROWS)[0]


def _named_in(path: str, data: bytes) -> dict[str, Array]:
    values, offset = [], 0
    while offset < len(data):
        record, offset = RuntimeVariable._from_file_bytes(data, offset, False, path)
        values.append(numpy.array(record.get_tensor()))
    return dict(zip(values[0].tobytes().decode().splitlines(), values[1:]))


def shard_files(dirname: str, table: str) -> list[str]:
    """Returns the paths of a table's shards, in the order of the pservers."""
    paths: list[str] = []
    while True:
        path = var_records.file_of(os.path.join(dirname, TABLES_FOLDER), f"{table}_{len(paths)}")
        if not os.path.isfile(path):
            return paths
        paths.append(path)


def is_saved(dirname: str, name: str) -> bool:
    """Returns whether a folder of save_persistables has a value of a variable, or rows of it."""
    return os.path.isfile(var_records.file_of(dirname, name)) or bool(shard_files(dirname, name))


@contextlib.contextmanager
def new_files(dirname: str, tables: Collection[str], servers: int) -> Iterator[list[str]]:
    """Finds the files that the pservers of a job write within the with statement, as far as they are on this disk, and
    deletes those that an earlier job with more pservers has left beside them.

    Yields:
        list[str]: after the with statement, the names of these files in the folder.
    """
    before = {path: _stamp(path) for table in tables for path in _with_states(shard_files(dirname, table))}
    names: list[str] = []
    yield names
    for table in tables:
        paths = shard_files(dirname, table)
        new = [path for path in _with_states(paths[:servers]) if _stamp(path) not in (None, before.get(path))]
        names += [os.path.relpath(path, dirname) for path in new]
        if set(paths[:servers]) <= set(new):
            for path in filter(os.path.isfile, _with_states(paths[servers:])):
                os.remove(path)


def _with_states(paths: list[str]) -> list[str]:
    return [file for path in paths for file in (path, path + _STATE)]


def _stamp(path: str) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return None
    return status.st_ino, status.st_mtime_ns


def shards_with(dirname: str, name: str) -> list[Shard]:
    """Returns the Shards that hold a table, or a state of one; [] if there are none."""
    paths, saved = shard_files(dirname, name), SavedFolder(dirname)
    if paths:
        return [Shard(path, name, saved) for path in paths]
    folder = os.path.join(dirname, TABLES_FOLDER)
    for file in sorted(os.listdir(folder)) if os.path.isdir(folder) else ():
        if not file.endswith("_0" + _STATE):
            continue
        names = list(read_named(os.path.join(folder, file)))
        if name in names[2:]:
            return [Shard(path, names[0], saved) for path in shard_files(dirname, names[0])]
    return []
