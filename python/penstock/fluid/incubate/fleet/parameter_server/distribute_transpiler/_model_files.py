"""Files of a model in a job with pservers. A folder holds one file for each whole variable, parameters and optimizer
state alike, like the files of a single machine; each pserver loads its own rows."""

import os
import warnings

import numpy

from penstock import _penstock
from penstock._penstock import RuntimeVariable, Scope
from penstock.fluid import _var_files
from penstock.fluid._file_writing import save_files
from penstock.fluid.core import dtype_name
from penstock.fluid.executor import global_scope
from penstock.fluid.framework import Program

# Folder inside the folder of a save, in which pservers write their slices.
_STATE_FOLDER = '__pserver_state__'


def save_state(executor, dirname, program):
    """Makes the pservers write their parameters and optimizer state, and joins the slices to one file per variable.

    program  the program of trainer 0, whose parameters are already in the folder
    """
    slices = {}
    for one in program._parameters_on_pservers.distributed_vars:
        slices.setdefault(one.origin.name, []).append(one)
    folder = os.path.join(dirname, _STATE_FOLDER)
    notice = Program()
    for one in (each for parts in slices.values() for each in parts):
        notice.global_block().append_op('checkpoint_notify', attrs={
            'epmap': [one.endpoint], 'dir': folder, 'lookup_table': one.slice.name})
    try:
        executor.run(notice)
    except (_penstock.ProgramError, _penstock.StateError) as error:
        if error.id not in ('E-server-save-path', 'E-server-save-exists'):
            raise
        warnings.warn('fleet.save_persistables: the pservers save no optimizer state: %s' % error)
        return
    if not os.path.isdir(folder):
        warnings.warn('fleet.save_persistables: the pservers have saved their state to their own disks, in %s; collect '
                      'their files there before fleet.init_server loads them' % folder)
        return
    save_files(dirname, ((name, [_bytes_of(value)]) for parts in slices.values()
                         for name, value in _joined(folder, sorted(parts, key=lambda one: one.block_id)).items()))
    _remove(folder, slices)


def _joined(folder, parts):
    """Returns {name: array} of a parameter and its state, from the files of its slices."""
    values = {}
    for one in parts:
        for name, value in _read_slice(_slice_file(folder, one)).items():
            sliced = one.is_slice and value.shape == one.slice.shape
            values.setdefault(one.origin.name if name == one.slice.name else name, []).append((sliced, value))
    return {name: numpy.concatenate([value for _, value in found]) if found[0][0] else found[0][1]
            for name, found in values.items()}


def _slice_file(folder, one):
    return os.path.join(folder, one.slice.name + '_0')


def _read_slice(path):
    """Returns {name: array} of a file that a pserver wrote, which holds the names, then the values in this order."""
    data, values = _var_files.read_file(path), []
    offset = 0
    while offset < len(data):
        record, offset = RuntimeVariable._from_file_bytes(data, offset, False, path)
        values.append(numpy.array(record.get_tensor()))
    return dict(zip(values[0].tobytes().decode().splitlines(), values[1:]))


def _bytes_of(array):
    scope = Scope()
    scope.var('value').get_tensor().set(numpy.ascontiguousarray(array), None)
    return scope.find_var('value')._to_file_bytes()


def _remove(folder, slices):
    for one in (each for parts in slices.values() for each in parts):
        os.remove(_slice_file(folder, one))
    for here, _, _ in os.walk(folder, topdown=False):
        if not os.listdir(here):
            os.rmdir(here)


def load_slices(dirname, overview, endpoint):
    """Loads the parameters' rows of pserver `endpoint` into the global scope, from the files of save_persistables.

    dirname   the folder, with a file for each whole parameter
    overview  vars_overview of the transpiler
    """
    if not os.path.isdir(dirname):
        raise ValueError('there is no folder %s' % dirname)
    wholes = {}
    for one in overview.get_distributed_vars_by_ep(endpoint):
        path = _var_files.file_of(dirname, one.origin.name)
        if not os.path.exists(path):
            raise ValueError('%s has no file of parameter %s, whose rows pserver %s holds' %
                             (dirname, one.origin.name, endpoint))
        if path not in wholes:
            tensor = _var_files.read_single(path).get_tensor()
            _var_files.require_same(one.origin.name, one.origin, tensor.shape(), dtype_name(tensor._dtype()), path)
            wholes = {path: numpy.array(tensor)}    # slices of one parameter are adjacent
        _set(one.slice.name, _rows_of(wholes[path], one))


def load_state(dirname, overview, endpoint, program):
    """Loads the optimizer state of pserver `endpoint` and its learning-rate steps into the global scope. Variables
    without a file keep their initial values.

    program  the program of the pserver
    """
    slices = {one.slice.name: one for one in overview.get_distributed_vars_by_ep(endpoint)}
    for block in program.blocks[1:]:
        kept = {name for op in block.ops for name in set(op.input_arg_names).intersection(op.output_arg_names)}
        params = [slices[name] for name in kept if name in slices]
        for name in sorted(kept - slices.keys()):
            path = _var_files.file_of(dirname, name)
            held = global_scope().find_var(name)
            if held is None or not held.is_initialized() or not os.path.isfile(path):
                continue
            value, here = numpy.array(_var_files.read_single(path).get_tensor()), held.get_tensor().shape()
            if params and params[0].is_slice and tuple(here) == params[0].slice.shape:
                if value.shape != params[0].origin.shape:
                    raise ValueError('%s holds %s of shape %s, but parameter %s is %s' %
                                     (path, name, value.shape, params[0].origin.name, params[0].origin.shape))
                value = _rows_of(value, params[0])
            if value.shape != tuple(here):
                raise ValueError('%s holds %s of shape %s, but pserver %s has %s' %
                                 (path, name, value.shape, endpoint, tuple(here)))
            _set(name, value)


def load_tables(dirname, tables, number):
    """Loads pserver `number`'s rows of tables sharded by id into the global scope, for tables that have a file."""
    for table in tables:
        path = _var_files.file_of(os.path.join(dirname, _var_files.TABLES_FOLDER), '%s_%d' % (table, number))
        if os.path.isfile(path):
            global_scope().var(table)._assign(read_rows(path))


def read_rows(path):
    """Returns the selected rows in a file that a pserver wrote."""
    return RuntimeVariable._from_file_bytes(_var_files.read_file(path), 0, True, path)[0]


def _rows_of(whole, one):
    """Returns the rows of a slice."""
    shape = one.slice.shape
    return whole.reshape(-1)[one.offset:one.offset + int(numpy.prod(shape))].reshape(shape)


def _set(name, value):
    global_scope().var(name).get_tensor().set(numpy.ascontiguousarray(value), None)
