"""While, while_loop: ops that run again and again."""

import contextlib

from penstock.fluid.core import VarType
from penstock.fluid.framework import Variable
from penstock.fluid.layer_helper import LayerHelper
from penstock.fluid.layers import tensor
from penstock.fluid.layers.blocks import crossing_names, outer_vars

__all__ = ['While', 'while_loop']


class While:
    """The ops made inside block() run as long as the condition holds; they set its next value.

        i, n = layers.fill_constant([1], 'int64', 0), layers.fill_constant([1], 'int64', 10)
        more = layers.less_than(i, n)
        with layers.While(more).block():
            ...
            layers.increment(i)
            layers.less_than(i, n, cond=more)
    """
    BEFORE_WHILE_BLOCK, IN_WHILE_BLOCK, AFTER_WHILE_BLOCK = range(3)

    def __init__(self, cond, is_test=False, name=None):
        self.helper = LayerHelper('while', name=name)
        self.status = While.BEFORE_WHILE_BLOCK
        if not isinstance(cond, Variable) or cond.dtype != VarType.BOOL:
            raise TypeError('While: cond must be a Variable of bool')
        count = 1
        for extent in cond.shape:
            count *= extent
        if count != 1:
            raise TypeError('While: cond must hold one truth value, but its shape is %s' % (tuple(cond.shape),))
        self.cond_var = cond
        self.is_test = is_test

    @contextlib.contextmanager
    def _body(self):
        program = self.helper.main_program
        program._create_block()
        self.status = While.IN_WHILE_BLOCK
        try:
            yield
        except BaseException:
            program._rollback()
            raise
        body = program.current_block()
        program._rollback()
        self.status = While.AFTER_WHILE_BLOCK
        self._append_op(body)

    def block(self):
        return self._body()

    def _append_op(self, body):
        reads, writes = crossing_names(body, [self.cond_var.name])
        around = self.helper.main_program.current_block()
        outside, out = outer_vars(body, reads), outer_vars(body, writes)
        scopes = around.create_var(type=VarType.STEP_SCOPES)
        around.append_op('while', {
            'X': outside,
            'Condition': self.cond_var
        }, {
            'Out': out,
            'StepScopes': scopes
        }, {
            'sub_block': body,
            'is_test': self.is_test
        })


def while_loop(cond, body, loop_vars, is_test=False, name=None):
    """loop_vars = body(*loop_vars) as long as cond(*loop_vars) holds; the last loop_vars."""
    if not callable(cond) or not callable(body):
        raise TypeError('while_loop: cond and body must be callable')
    if not isinstance(loop_vars, (list, tuple)):
        raise TypeError('while_loop: loop_vars must be a list or tuple, not %s' % type(loop_vars).__name__)
    if len(loop_vars) == 0:
        raise ValueError('while_loop: loop_vars is empty')
    more = cond(*loop_vars)
    if not isinstance(more, Variable):
        raise TypeError('while_loop: cond must return a Variable, not %s' % type(more).__name__)
    with While(more, is_test, name).block():
        results = body(*loop_vars)
        if not isinstance(results, (list, tuple)):
            results = [results]
        if len(results) != len(loop_vars):
            raise ValueError('while_loop: body returns %d variables; there are %d loop_vars' %
                             (len(results), len(loop_vars)))
        still = cond(*results)
        _assign_all(results, loop_vars)
        tensor.assign(still, more)
    return loop_vars


def _assign_all(sources, targets):
    """Into the loop's variables, which may be nested lists; an array is written in place."""
    for source, target in zip(sources, targets):
        if isinstance(target, (list, tuple)):
            _assign_all(source, target)
        elif source.type != VarType.LOD_TENSOR_ARRAY:
            tensor.assign(source, target)
