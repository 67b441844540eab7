"""Tables of a distributed job that are on the pservers; trainers only request single rows."""

import weakref

import numpy

from penstock.fluid.core import Scope
from penstock.fluid.framework import Program

_LOOKUP = 'distributed_lookup_table'
_LOCAL = ('lookup_table', 'lookup_table_v2')
_WHERE = ('table_names', 'height_sections', 'endpoints', 'trainer_id')

_known = {}    # {table: places of its slices}, from the trainer programs of this process
_asking = weakref.WeakKeyDictionary()    # {program: (content id, tables, the program that requests rows)}


def remote_lookups(program):
    """Returns {name of a table: an op that requests its rows}; empty for all programs except a trainer's."""
    return {op.input('W')[0]: op for block in program.blocks for op in block.ops if op.type == _LOOKUP}


def note_tables(program):
    """Records the places of the tables of a trainer's program, for other programs of this process."""
    for name, op in remote_lookups(program).items():
        _known[name] = {attr: op.attr(attr) for attr in _WHERE}
    _asking.clear()


def asking_program(program, scope):
    """Returns the program, or, if it looks up rows in tables that this trainer does not have, a program that requests
    the rows from the pservers.

    Test programs that were cloned before transpile() need this.
    """
    if not _known:
        return program
    content, tables, asking = _asking.get(program, (None, (), None))
    if content != program.desc.content_id:
        content, tables = program.desc.content_id, _tables_looked_up(program)
        asking = _ask(program, tables) if tables else None
        _asking[program] = content, tables, asking
    for table in tables:
        held = scope.find_var(table)
        if held is None or not held._has_no_rows():
            return program
    return asking or program


def _tables_looked_up(program):
    """Returns the trainer's tables in which a program without updates looks up rows."""
    ops = [op for block in program.blocks for op in block.ops]
    if any(op.type == kind + '_grad' for op in ops for kind in _LOCAL):
        return ()
    return tuple({op.input('W')[0]: None for op in ops if op.type in _LOCAL and op.input('W')[0] in _known})


def _ask(program, tables):
    asking = program.clone()
    for block in asking.blocks:
        for index, op in enumerate(list(block.ops)):
            if op.type not in _LOCAL or op.input('W')[0] not in tables:
                continue
            kind, table, ids, rows = op.type, op.input('W')[0], op.input('Ids'), op.output('Out')
            attrs = dict(_known[table], padding_idx=op.attr('padding_idx'), lookup_table_version=kind,
                         dtype=int(block._var_recursive(table).dtype))
            block._remove_op(index)
            block._insert_op(index, _LOOKUP, {'Ids': ids, 'W': table}, {'Outputs': rows}, attrs)
    return asking


def whole_table(executor, var, lookup):
    """Fetches the whole table `var` from the pservers, in its state after this trainer's last step."""
    asking = Program()
    block = asking.global_block()
    table = block.create_var(name=var.name, shape=var.shape, dtype=var.dtype, type=var.type, persistable=True)
    ids = block.create_var(name='ids', shape=[var.shape[0]], dtype='int64', is_data=True)
    rows = block.create_var(name='rows', shape=var.shape, dtype=var.dtype, persistable=True)
    slices = {name: lookup.attr(name) for name in _WHERE}
    block.append_op('fake_init', outputs={'Out': table}, attrs={'shape': list(var.shape), 'dtype': int(var.dtype)})
    block.append_op(_LOOKUP, {'Ids': ids, 'W': table}, {'Outputs': rows}, dict(
        slices, dtype=int(var.dtype), lookup_table_version='lookup_table_v2'))
    scope = Scope()
    executor.run(asking, feed={'ids': numpy.arange(var.shape[0], dtype='int64')}, scope=scope)
    return scope.find_var('rows')


def look_up_at_hand(program):
    """Replaces each request for rows of a table by a lookup in the table itself, for programs that run without
    pservers.
    """
    for block in program.blocks:
        for index, op in reversed(list(enumerate(block.ops))):
            if op.type != _LOOKUP:
                continue
            kind, padding = op.attr('lookup_table_version'), op.attr('padding_idx')
            table, pairs = op.input('W'), list(zip(op.input('Ids'), op.output('Outputs')))
            block._remove_op(index)
            for ids, rows in reversed(pairs):
                block._insert_op(index, kind, {'Ids': ids, 'W': table}, {'Out': rows}, {'padding_idx': padding})
