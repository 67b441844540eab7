"""Operator: a handle on an op of a block (framework.py says what a handle is)."""

# In the order of the wire form's numbers.
ATTR_KINDS = ('INT', 'FLOAT', 'STRING', 'INTS', 'FLOATS', 'STRINGS', 'BOOLEAN', 'BOOLEANS', 'BLOCK', 'LONG', 'BLOCKS',
              'LONGS')


class Operator:
    """An op of a block."""

    __slots__ = ('block', '_id', '_desc', '__weakref__')

    def __init__(self, block, op_id):
        self.block = block
        self._id = op_id
        self._desc = block.program.desc

    @property
    def type(self):
        return self._desc.op_type(self.block.idx, self._id)

    @property
    def idx(self):
        """Its position in the block, now."""
        return self._desc.op_position(self.block.idx, self._id)

    @property
    def location(self):
        """Where the user wrote it: 'train.py:12 in model'."""
        return self._desc.op_location(self.block.idx, self._id)

    def _inputs(self):
        return self._desc.op_inputs(self.block.idx, self._id)

    def _outputs(self):
        return self._desc.op_outputs(self.block.idx, self._id)

    def input(self, name):
        return self._inputs().get(name, [])

    def output(self, name):
        return self._outputs().get(name, [])

    @property
    def input_names(self):
        return list(self._inputs())

    @property
    def output_names(self):
        return list(self._outputs())

    @property
    def input_arg_names(self):
        return [name for names in self._inputs().values() for name in names]

    @property
    def output_arg_names(self):
        return [name for names in self._outputs().values() for name in names]

    def all_attrs(self):
        return self._desc.op_attrs(self.block.idx, self._id)

    @property
    def attr_names(self):
        return list(self.all_attrs())

    def has_attr(self, name):
        return name in self.all_attrs()

    def attr(self, name):
        attrs = self.all_attrs()
        if name not in attrs:
            raise ValueError('op %s has no attribute %s; it has %s' % (self.type, name, ', '.join(sorted(attrs))))
        return attrs[name]

    def attr_type(self, name):
        """'INT', 'FLOATS', ... ; None if there is no such attribute."""
        kind = self._desc.op_attr_kind(self.block.idx, self._id, name)
        return None if kind is None else ATTR_KINDS[kind]

    def _set_attr(self, name, value):
        self._desc.set_op_attr(self.block.idx, self._id, name, value)

    def _remove_attr(self, name):
        self._desc.remove_op_attr(self.block.idx, self._id, name)

    def _rename_input(self, old_name, new_name):
        self._desc.rename_in_op(self.block.idx, self._id, old_name, new_name, True, False)

    def _rename_output(self, old_name, new_name):
        self._desc.rename_in_op(self.block.idx, self._id, old_name, new_name, False, True)

    def to_string(self, throw_on_error=True):
        return self._desc.op_to_string(self.block.idx, self._id)

    def __str__(self):
        return self.to_string()

    def __repr__(self):
        return '<Operator %s>' % self.type
