"""What layers share that make ops in blocks of their own."""

from penstock.fluid.core import VarType
from penstock.fluid.framework import Variable
from penstock.fluid.layer_helper import LayerHelper

__all__ = ['ConditionalBlock', 'crossing_names', 'outer_vars']


def crossing_names(block, written=()):
    """(names that the ops of a block read before they write them, names that they write); each once, in order."""
    reads, writes = {}, dict.fromkeys(written)
    for op in block.ops:
        reads.update((name, None) for name in op.input_arg_names if name not in writes)
        writes.update((name, None) for name in op.output_arg_names)
    return list(reads), list(writes)


def outer_vars(block, names):
    """Those of the names that a block further out declares."""
    around = block.program.block(block.parent_idx)
    found = (around._find_var_recursive(name) for name in names)
    return [var for var in found if var is not None]


class ConditionalBlock:
    """Ops made inside block() run only if the condition holds.

    inputs               the variables that decide
    is_scalar_condition  whether that is one truth value; else the block runs if none of them is empty
    """

    def __init__(self, inputs, is_scalar_condition=False, name=None):
        for each in inputs:
            if not isinstance(each, Variable):
                raise TypeError('a condition must be a Variable, not %s' % type(each).__name__)
        self.inputs = inputs
        self.is_scalar_condition = is_scalar_condition
        self.helper = LayerHelper('conditional_block', name=name)

    def block(self):
        return self

    def __enter__(self):
        self._program = self.helper.main_program
        self._program._create_block()

    def __exit__(self, exc_type, exc_val, exc_tb):
        inside = self._program.current_block()
        self._program._rollback()
        if exc_type is None:
            self._append_op(inside)

    def _append_op(self, inside):
        """In the block around: what the block reads from there, and what it writes there."""
        around = self._program.current_block()
        reads, writes = crossing_names(inside)
        outside = outer_vars(inside, reads)
        out = outer_vars(inside, writes)
        scope = around.create_var(type=VarType.STEP_SCOPES)
        around.append_op(
            'conditional_block', {
                'Cond': self.inputs,
                'Input': outside
            }, {
                'Out': out,
                'Scope': [scope]
            }, {
                'sub_block': inside,
                'is_scalar_condition': self.is_scalar_condition
            })
