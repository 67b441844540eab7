"""Saving and loading, in Fluid's formats: one file a variable, or one file of all in the order of their names."""

import os

from penstock.fluid import framework, layers
from penstock.fluid._not_built import getattr_of
from penstock.fluid.core import LoDTensor, VarType
from penstock.fluid.executor import global_scope
from penstock.fluid.framework import Parameter, Program, Variable

__all__ = [
    'load_inference_model', 'load_params', 'load_persistables', 'load_vars', 'save_inference_model', 'save_params',
    'save_persistables', 'save_vars',
]

_NEVER_SAVED = (VarType.FEED_MINIBATCH, VarType.FETCH_LIST, VarType.READER, VarType.RAW)


def is_parameter(var):
    return isinstance(var, Parameter)


def is_persistable(var):
    return var.persistable and var.type not in _NEVER_SAVED


def _chosen(main_program, vars, predicate):
    """The variables to save or load, by name; each once."""
    program = framework.default_main_program() if main_program is None else main_program
    if not isinstance(program, Program):
        raise TypeError('program should be of type Program, not %s' % type(program).__name__)
    if vars is None:
        if predicate is None:
            raise ValueError('vars and predicate are both None; give one of them')
        vars = [var for var in program.list_vars() if predicate(var)]
    vars = [var if isinstance(var, Variable) else program.global_block().var(var) for var in vars]
    return sorted({var.name: var for var in vars if var.type not in _NEVER_SAVED}.values(), key=lambda var: var.name)


def save_vars(executor, dirname, main_program=None, vars=None, predicate=None, filename=None):
    """Writes variables of the global scope. A variable that has no value yet is an error that names it."""
    chosen = _chosen(main_program, vars, predicate)
    records = []
    for var in chosen:
        held = global_scope().find_var(var.name)
        if held is None or not held.is_initialized():
            raise RuntimeError('variable %s has no value to save; run the start-up program first' % var.name)
        records.append(held.get_tensor()._to_file_bytes())
    os.makedirs(dirname, exist_ok=True)
    if filename is not None:
        _write(os.path.join(dirname, filename), b''.join(records))
        return
    for var, record in zip(chosen, records):
        path = os.path.join(dirname, var.name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        _write(path, record)


def _write(path, data):
    """The file holds what it held before, or all of `data`."""
    partial = path + '.partial'
    with open(partial, 'wb') as out:
        out.write(data)
    os.replace(partial, path)


def load_vars(executor, dirname, main_program=None, vars=None, predicate=None, filename=None):
    """Reads variables into the global scope. A shape other than the declared one is an error."""
    chosen = _chosen(main_program, vars, predicate)
    if filename is None:
        for var in chosen:
            tensor, _ = LoDTensor._from_file_bytes(_read(os.path.join(dirname, var.name)), 0)
            _put(var, tensor)
        return
    path = os.path.join(dirname, filename)
    data = _read(path)
    offset = 0
    for var in chosen:
        if offset >= len(data):
            raise ValueError('%s ends before variable %s: it holds fewer than the program asks for' % (path, var.name))
        tensor, offset = LoDTensor._from_file_bytes(data, offset)
        _put(var, tensor)


def _read(path):
    with open(path, 'rb') as file:
        return file.read()


def _put(var, tensor):
    if list(tensor.shape()) != list(var.shape):
        raise ValueError('variable %s is declared with shape %s, but the file holds %s' %
                         (var.name, list(var.shape), list(tensor.shape())))
    global_scope().var(var.name).get_tensor()._assign(tensor)


def save_params(executor, dirname, main_program=None, filename=None):
    save_vars(executor, dirname, main_program, None, is_parameter, filename)


def load_params(executor, dirname, main_program=None, filename=None):
    load_vars(executor, dirname, main_program, None, is_parameter, filename)


def save_persistables(executor, dirname, main_program=None, filename=None):
    """Parameters, optimizer state, learning rates. A trainer of a distributed job writes what it holds itself: all
    parameters, as received last."""
    save_vars(executor, dirname, main_program, None, is_persistable, filename)


def load_persistables(executor, dirname, main_program=None, filename=None):
    load_vars(executor, dirname, main_program, None, is_persistable, filename)


def save_inference_model(dirname, feeded_var_names, target_vars, executor, main_program=None, model_filename=None,
                         params_filename=None, export_for_deployment=True, program_only=False):
    """Writes the part of the program that computes `target_vars` from the feeds, and its parameters. Returns the names
    of what it will fetch."""
    program = framework.default_main_program() if main_program is None else main_program
    feeds = [feeded_var_names] if isinstance(feeded_var_names, str) else list(feeded_var_names)
    targets = [target_vars] if isinstance(target_vars, Variable) else list(target_vars)
    os.makedirs(dirname, exist_ok=True)
    program = program.clone()
    # Each target goes through a scale by 1, so that its name and the op that computes it survive any pruning.
    block = program.global_block()
    with framework.program_guard(program):
        ends = [
            layers.scale(block.var(target.name), 1.0, name='save_infer_model/scale_%d' % i)
            for i, target in enumerate(targets)
        ]
    for i in reversed(range(len(block.ops))):
        if block.ops[i].type in ('feed', 'fetch'):
            block._remove_op(i)
    program = program._prune(ends, feeds).clone(for_test=True)
    _prepend_feed_ops(program, feeds)
    _append_fetch_ops(program, [end.name for end in ends])
    with open(os.path.join(dirname, model_filename or '__model__'), 'wb') as out:
        out.write(program.desc.serialize_to_string())
    if not program_only:
        save_persistables(executor, dirname, program, params_filename)
    return [end.name for end in ends]


def _prepend_feed_ops(program, names):
    block = program.global_block()
    holder = block.create_var(name='feed', type=VarType.FEED_MINIBATCH, persistable=True)
    for i, name in enumerate(names):
        if not block.has_var(name):
            raise ValueError("The feeded_var_names[%d]: '%s' doesn't exist in pruned inference program. "
                             'Please check whether it is used to compute the targets.' % (i, name))
        block._insert_op(i, 'feed', {'X': holder}, {'Out': block.var(name)}, {'col': i})


def _append_fetch_ops(program, names):
    block = program.global_block()
    holder = block.create_var(name='fetch', type=VarType.FETCH_LIST, persistable=True)
    for i, name in enumerate(names):
        block.append_op('fetch', {'X': name}, {'Out': holder}, {'col': i})


def load_inference_model(dirname, executor, model_filename=None, params_filename=None, pserver_endpoints=None):
    """[program, names of its feeds, variables that it fetches] of a saved inference model; loads its parameters."""
    if pserver_endpoints is not None:
        raise NotImplementedError('load_inference_model: pserver_endpoints is not built')
    program = Program.parse_from_string(_read(os.path.join(dirname, model_filename or '__model__')))
    load_persistables(executor, dirname, program, params_filename)
    block = program.global_block()
    feeds = [(op.attr('col'), op.output('Out')[0]) for op in block.ops if op.type == 'feed']
    fetches = [(op.attr('col'), op.input('X')[0]) for op in block.ops if op.type == 'fetch']
    return [program, [name for _, name in sorted(feeds)], [block.var(name) for _, name in sorted(fetches)]]


__getattr__ = getattr_of(__name__)
