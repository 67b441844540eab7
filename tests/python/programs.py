"""Programs as plain values, for comparing with Fluid's: what the corpus's own reader gives, sorted where Fluid has no
order of its own."""

import pbprog

FRAMEWORK_ATTRS = ('op_callstack',)


def read(data):
    """A program of serialized bytes."""
    return pbprog.loads(data)


def canonical_ops(program, block=0):
    """[(type, inputs, outputs, attrs)] with sorted slots and attributes."""
    out = []
    for op in program['blocks'][block]['ops']:
        attrs = {name: value for name, value in op['attrs'].items() if name not in FRAMEWORK_ATTRS}
        out.append((op['type'], sorted(op['inputs'].items()), sorted(op['outputs'].items()), sorted(attrs.items())))
    return out


def canonical_vars(program, block=0):
    return {name: {key: value for key, value in var.items()} for name, var in program['blocks'][block]['vars'].items()}


def assert_same(made, expected, variables=True):
    """Op for op, attributes included; then variable for variable."""
    ours, theirs = canonical_ops(made), canonical_ops(expected)
    for position, (a, b) in enumerate(zip(ours, theirs)):
        assert a == b, 'op %d (%s) differs' % (position, b[0])
    assert len(ours) == len(theirs)
    if variables:
        assert canonical_vars(made) == canonical_vars(expected)
