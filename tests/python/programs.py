"""Programs as plain values, for comparing with Fluid's: what the corpus's own reader gives, sorted where Fluid has no
order of its own."""

import re

import pytest

pbprog = pytest.importorskip('pbprog', reason='the corpus is not beside this checkout')

# Fluid numbers name scopes by how often its process entered them before; the corpus's processes made many programs.
SCOPE_NUMBER = re.compile(r'_\d+(?=/)')


def read(data):
    """A program of serialized bytes."""
    return pbprog.loads(data)


def canonical_ops(program, block=0):
    """[(type, inputs, outputs, attrs)] with sorted slots and attributes."""
    out = []
    for op in program['blocks'][block]['ops']:
        attrs = {name: value for name, value in op['attrs'].items() if name != 'op_callstack'}
        if 'op_namescope' in attrs:
            kind, scope = attrs['op_namescope']
            attrs['op_namescope'] = (kind, SCOPE_NUMBER.sub('', scope))
        out.append((op['type'], sorted(op['inputs'].items()), sorted(op['outputs'].items()), sorted(attrs.items())))
    return out


def canonical_vars(program, block=0):
    return {name: {key: value for key, value in var.items()} for name, var in program['blocks'][block]['vars'].items()}


def assert_same(made, expected, variables=True):
    """Op for op, attributes included; then variable for variable."""
    ours, theirs = canonical_ops(made), canonical_ops(expected)
    for position, (a, b) in enumerate(zip(ours, theirs)):
        assert a == b, 'op %d (%s) differs: %s' % (position, b[0], [(x, y) for x, y in zip(a, b) if x != y])
    assert len(ours) == len(theirs)
    if variables:
        assert canonical_vars(made) == canonical_vars(expected)
