"""Tables of a distributed job whose rows a trainer only asks for: their values are with the pservers."""

import numpy

from penstock.fluid.core import Scope
from penstock.fluid.framework import Program

_LOOKUP = 'distributed_lookup_table'


def remote_lookups(program):
    """{name of a table: an op that asks for its rows}; empty for any program but a trainer's."""
    return {op.input('W')[0]: op for block in program.blocks for op in block.ops if op.type == _LOOKUP}


def whole_table(executor, var, lookup):
    """The runtime value of table `var`, all rows as of this trainer's last step, as the servers give them."""
    asking = Program()
    block = asking.global_block()
    table = block.create_var(name=var.name, shape=var.shape, dtype=var.dtype, type=var.type, persistable=True)
    ids = block.create_var(name='ids', shape=[var.shape[0]], dtype='int64', is_data=True)
    rows = block.create_var(name='rows', shape=var.shape, dtype=var.dtype, persistable=True)
    slices = {name: lookup.attr(name) for name in ('table_names', 'height_sections', 'endpoints', 'trainer_id')}
    block.append_op('fake_init', outputs={'Out': table}, attrs={'shape': list(var.shape), 'dtype': int(var.dtype)})
    block.append_op(_LOOKUP, {'Ids': ids, 'W': table}, {'Outputs': rows}, dict(
        slices, dtype=int(var.dtype), lookup_table_version='lookup_table_v2'))
    scope = Scope()
    executor.run(asking, feed={'ids': numpy.arange(var.shape[0], dtype='int64')}, scope=scope)
    return scope.find_var('rows')


def look_up_at_hand(program):
    """Replaces each request for rows of a table by lookups in the table itself, for programs that run without servers.
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
