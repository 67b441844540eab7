"""IfElse: one block for the rows where a condition holds, another for the others."""

import contextlib

from penstock.fluid import unique_name
from penstock.fluid.framework import Variable
from penstock.fluid.layer_helper import LayerHelper
from penstock.fluid.layers import arrays, tensor
from penstock.fluid.layers.blocks import ConditionalBlock

__all__ = ['IfElse']


class IfElse:
    """Splits rows by a condition of one truth value each, and puts what becomes of them together again.

        either = layers.IfElse(layers.less_than(y, limit))
        with either.true_block():
            either.output(layers.scale(either.input(x), -1.0))
        with either.false_block():
            either.output(either.input(x))
        out, = either()
    """
    OUT_IF_ELSE_BLOCKS, IN_IF_ELSE_TRUE_BLOCKS, IN_IF_ELSE_FALSE_BLOCKS = range(3)

    def __init__(self, cond, name=None):
        if not isinstance(cond, Variable):
            raise TypeError('IfElse: cond must be a Variable, not %s' % type(cond).__name__)
        self.helper = LayerHelper('ifelse', name=name)
        self.cond = cond
        self.input_table = {}
        self.status = IfElse.OUT_IF_ELSE_BLOCKS
        self.output_table = ([], [])    # of the false block, of the true one

    def input(self, x):
        """The rows of x that the block at hand is for."""
        if self.status == IfElse.OUT_IF_ELSE_BLOCKS:
            raise ValueError('input stands inside true_block or false_block')
        if x.name not in self.input_table:
            around = self._around()
            held, others = (around.create_var(
                name=unique_name.generate('ifelse_input' + self.helper.name), dtype=x.dtype)
                            for _ in range(2))
            around.append_op('split_lod_tensor', {'X': x, 'Mask': self.cond}, {
                'OutTrue': held,
                'OutFalse': others
            }, {'level': 0})
            self.input_table[x.name] = (held, others)
        held, others = self.input_table[x.name]
        return held if self.status == IfElse.IN_IF_ELSE_TRUE_BLOCKS else others

    def true_block(self):
        return self._branch(IfElse.IN_IF_ELSE_TRUE_BLOCKS)

    def false_block(self):
        return self._branch(IfElse.IN_IF_ELSE_FALSE_BLOCKS)

    @contextlib.contextmanager
    def _branch(self, status):
        self.status = status
        try:
            with ConditionalBlock([self.cond]).block():
                yield
                if not self._outputs():
                    raise ValueError('a block of an IfElse must call output')
        finally:
            self.status = IfElse.OUT_IF_ELSE_BLOCKS

    def _outputs(self):
        return self.output_table[1 if self.status == IfElse.IN_IF_ELSE_TRUE_BLOCKS else 0]

    def output(self, *outs):
        """What the block gives, as many from each of the two."""
        if self.status == IfElse.OUT_IF_ELSE_BLOCKS:
            raise ValueError('output stands inside true_block or false_block')
        around = self._around()
        for each in outs:
            if not isinstance(each, Variable):
                raise TypeError('output takes Variables, not %s' % type(each).__name__)
            outside = around.create_var(
                name=unique_name.generate('_'.join([self.helper.name, 'output'])),
                dtype=each.dtype)
            self._outputs().append(outside)
            tensor.assign(each, outside)

    def __call__(self):
        if self.status != IfElse.OUT_IF_ELSE_BLOCKS:
            raise ValueError('an IfElse gives its outputs behind its blocks')
        others, held = self.output_table
        if not others and not held:
            raise ValueError('an IfElse needs a true_block or a false_block before it gives outputs')
        if len(others) != len(held) and others and held:
            raise ValueError('true_block has %d outputs and false_block %d; they must have as many' %
                             (len(held), len(others)))
        if not others or not held:
            return others or held
        return [arrays.merge_lod_tensor(in_true=yes, in_false=no, mask=self.cond, x=self.cond, level=0)
                for no, yes in zip(others, held)]

    def _around(self):
        program = self.helper.main_program
        return program.block(program.current_block().parent_idx)
