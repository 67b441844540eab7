"""Files of tables sharded by id (is_distributed=True).

Pserver i of a job writes its rows to __lookup_table__/<table>_<i>, and what its optimizer keeps of them to
<table>_<i>.state: tensors, of which the first holds the names of the others, one per line. The first of these has the
table's name and holds the ids, in the order of the rows; 'crc32c' is the checksum of the rows' values; the others are
the rows of each state, and scalars.
"""

import os

import numpy

from penstock._errors import data_error
from penstock._penstock import RuntimeVariable
from penstock.fluid import _var_records
from penstock.fluid.core import VarType

TABLES_FOLDER = '__lookup_table__'
_STATE = '.state'
_CHECKSUM = 'crc32c'


class Shard:
    """Rows of a table.

    path    their file
    ids     int64 array: their ids
    columns {name: array of len(ids) rows}: the table, and the states that the file beside it holds
    scalars {name: array}: what else that file holds
    """

    def __init__(self, path, table):
        record = read_rows(path)
        rows = record.get_selected_rows()
        self.path = path
        self.ids = numpy.array(rows.rows(), 'int64')
        values = numpy.array(rows.get_tensor())
        self.columns, self.scalars = {table: values}, {}
        if not os.path.isfile(path + _STATE):
            return
        kept = read_named(path + _STATE)
        ids, checksum = kept.pop(table, None), kept.pop(_CHECKSUM, None)
        if not (numpy.array_equal(ids, self.ids) and checksum == [record._rows_crc32c()]):
            raise data_error('E-save-mixed', '%s is not of the same save as %s: the job ended while it saved' %
                             (path + _STATE, path),
                             'load another save; or delete the file, and the optimizer starts afresh')
        for name, value in kept.items():
            rowwise = value.shape == (len(self.ids),) + values.shape[1:]
            (self.columns if rowwise else self.scalars)[name] = value


def read_rows(path):
    """Returns the selected rows in a file that a pserver wrote."""
    return _var_records.parse(path, _var_records.read_file(path), 0, VarType.SELECTED_ROWS)[0]


def read_named(path):
    """Returns {name: array} of a file that a pserver wrote: the names, then the values in this order."""
    data, values = _var_records.read_file(path), []
    offset = 0
    while offset < len(data):
        record, offset = RuntimeVariable._from_file_bytes(data, offset, False, path)
        values.append(numpy.array(record.get_tensor()))
    return dict(zip(values[0].tobytes().decode().splitlines(), values[1:]))


def shard_files(dirname, table):
    """Returns the paths of a table's shards, in the order of the pservers."""
    paths = []
    while True:
        path = _var_records.file_of(os.path.join(dirname, TABLES_FOLDER), '%s_%d' % (table, len(paths)))
        if not os.path.isfile(path):
            return paths
        paths.append(path)


def shards_with(dirname, name):
    """Returns the Shards that hold a table, or a state of one; [] if there are none."""
    paths = shard_files(dirname, name)
    if paths:
        return [Shard(path, name) for path in paths]
    folder = os.path.join(dirname, TABLES_FOLDER)
    for file in sorted(os.listdir(folder)) if os.path.isdir(folder) else ():
        if not file.endswith('_0' + _STATE):
            continue
        names = list(read_named(os.path.join(folder, file)))
        if name in names[2:]:
            return [Shard(path, names[0]) for path in shard_files(dirname, names[0])]
    return []
