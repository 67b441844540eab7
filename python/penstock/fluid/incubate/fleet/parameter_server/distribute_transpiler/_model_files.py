"""Files of a model on a parameter server: each has the rows that are its own."""

import os

import numpy

from penstock.fluid import _var_files
from penstock.fluid.core import dtype_name
from penstock.fluid.executor import global_scope


def load_slices(dirname, overview, endpoint):
    """Puts the parameters' rows of server `endpoint` into the global scope, from files as save_persistables writes
    them.

    dirname   has a file of each whole parameter
    overview  a transpiler's vars_overview
    """
    if not os.path.isdir(dirname):
        raise ValueError('there is no folder %s' % dirname)
    scope, wholes = global_scope(), {}
    for one in overview.get_distributed_vars_by_ep(endpoint):
        path = _var_files.file_of(dirname, one.origin.name)
        if not os.path.exists(path):
            raise ValueError('%s has no file of parameter %s, whose rows pserver %s holds' %
                             (dirname, one.origin.name, endpoint))
        if path not in wholes:
            tensor = _var_files.read_single(path).get_tensor()
            _var_files.require_same(one.origin.name, one.origin, tensor.shape(), dtype_name(tensor._dtype()), path)
            wholes = {path: numpy.array(tensor)}    # slices of one parameter come together
        shape = one.slice.shape
        rows = wholes[path].reshape(-1)[one.offset:one.offset + int(numpy.prod(shape))].reshape(shape)
        scope.var(one.slice.name).get_tensor().set(rows, None)
