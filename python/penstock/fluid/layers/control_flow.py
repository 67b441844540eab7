"""Comparisons, counters, and layers whose ops run in blocks of their own."""

import functools

from penstock.fluid._not_built import getattr_of
from penstock.fluid.core import VarType, to_dtype
from penstock.fluid.framework import Variable
from penstock.fluid.layer_helper import LayerHelper, require_variables
from penstock.fluid.layers import arithmetic, arrays, dynamic_rnn, if_else, loops, static_rnn, tensor
from penstock.fluid.layers.arrays import *
from penstock.fluid.layers.arrays import array_to_lod_tensor, lod_rank_table, lod_tensor_to_array, max_sequence_len
from penstock.fluid.layers.arrays import merge_lod_tensor, shrink_memory, split_lod_tensor
from penstock.fluid.layers.blocks import ConditionalBlock
from penstock.fluid.layers.dynamic_rnn import DynamicRNN
from penstock.fluid.layers.if_else import IfElse
from penstock.fluid.layers.loops import *
from penstock.fluid.layers.static_rnn import StaticRNN, StaticRNNMemoryLink

__all__ = ([
    'Print', 'Switch', 'case', 'cond', 'equal', 'greater_equal', 'greater_than', 'increment', 'is_empty', 'less_equal',
    'less_than', 'not_equal', 'switch_case'
] + arrays.__all__ + dynamic_rnn.__all__ + if_else.__all__ + loops.__all__ + static_rnn.__all__)


def increment(x, value=1.0, in_place=True):
    """x + value, of one element; in place it is a counter."""
    helper = LayerHelper('increment').takes(x=x)
    out = x if in_place else helper.create_variable_for_type_inference(x.dtype)
    helper.append_op('increment', {'X': x}, {'Out': out}, {'step': float(value)})
    return out


def _compare(op_type, x, y, cond, attrs=None):
    helper = LayerHelper(op_type)
    if cond is None:
        cond = helper.create_variable_for_type_inference('bool', stop_gradient=True)
    helper.append_op(op_type, {'X': x, 'Y': y}, {'Out': cond}, attrs)
    return cond


def less_than(x, y, force_cpu=None, cond=None):
    """Whether x < y, element by element; into `cond` if it is given."""
    return _compare('less_than', x, y, cond, {'force_cpu': force_cpu})


def _comparison(op_type):

    def layer(x, y, cond=None):
        return _compare(op_type, x, y, cond)

    layer.__name__ = op_type
    layer.__doc__ = 'The op %s, element by element; into `cond` if it is given.' % op_type
    return layer


less_equal = _comparison('less_equal')
greater_than = _comparison('greater_than')
greater_equal = _comparison('greater_equal')
equal = _comparison('equal')
not_equal = _comparison('not_equal')


def is_empty(x, cond=None):
    """Whether x has no elements; into `cond` if it is given."""
    helper = LayerHelper('is_empty')
    if cond is None:
        cond = helper.create_variable_for_type_inference('bool', stop_gradient=True)
    helper.append_op('is_empty', {'X': x}, {'Out': cond})
    return cond


def Print(input, first_n=-1, message=None, summarize=20, print_tensor_name=True, print_tensor_type=True,
          print_tensor_shape=True, print_tensor_lod=True, print_phase='both'):
    """The input again; it is printed when the op runs, and its gradient when that one does, each first_n times."""
    require_variables('Print', input=input)
    helper = LayerHelper('print_' + input.name).takes(input=input)
    out = helper.create_variable_for_type_inference(input.dtype)
    helper.append_op(
        'print', {'In': input}, {'Out': out}, {
            'first_n': first_n,
            'summarize': summarize,
            'message': message or '',
            'print_tensor_name': print_tensor_name,
            'print_tensor_type': print_tensor_type,
            'print_tensor_shape': print_tensor_shape,
            'print_tensor_lod': print_tensor_lod,
            'print_phase': print_phase.upper()
        })
    return out


class Switch:
    """The ops of the first case that holds run, else those of the default.

        with layers.Switch() as switch:
            with switch.case(step < warm_up):
                layers.assign(small, rate)
            with switch.default():
                layers.assign(large, rate)
    """

    def __init__(self, name=None):
        self.helper = LayerHelper('switch', name=name)
        self._inside = False
        self._none_so_far = None    # whether no case has held

    def __enter__(self):
        self._inside = True
        return self

    def __exit__(self, exc_type, exc_val, exc_tb):
        self._inside = False

    def case(self, condition):
        if not self._inside:
            raise ValueError('a case of a Switch stands inside `with Switch() as switch:`')
        if not isinstance(condition, Variable) or condition.dtype != VarType.BOOL:
            raise TypeError('the condition of a case must be a Variable of bool')
        none_before = self._none_so_far
        fails = arithmetic.logical_not(x=condition)
        if none_before is None:
            self._none_so_far = fails
            return ConditionalBlock([condition], is_scalar_condition=True)
        self._none_so_far = arithmetic.logical_and(x=none_before, y=fails)
        return ConditionalBlock([arithmetic.logical_and(x=none_before, y=condition)], is_scalar_condition=True)

    def default(self):
        if self._none_so_far is None:
            raise ValueError('the default of a Switch stands behind its cases, and there is none')
        return ConditionalBlock([self._none_so_far], is_scalar_condition=True)


def cond(pred, true_fn=None, false_fn=None, name=None):
    """What true_fn returns if pred holds, else what false_fn returns: Variables, or lists of them, alike in both."""
    if not isinstance(pred, Variable) or pred.dtype != VarType.BOOL:
        raise TypeError('cond: pred must be a Variable of bool')
    for what, function in (('true_fn', true_fn), ('false_fn', false_fn)):
        if function is not None and not callable(function):
            raise TypeError('cond: %s must be callable, not %s' % (what, type(function).__name__))
    helper = LayerHelper('cond', name=name)
    if_true = _run_if(pred, true_fn, helper)
    if_false = None if false_fn is None else _run_if(arithmetic.logical_not(pred), false_fn, helper)
    if if_true is None and if_false is None:
        return None
    if _form(if_true) != _form(if_false):
        raise ValueError('cond: true_fn returns %s and false_fn %s; they must return the same' %
                         (_form(if_true), _form(if_false)))
    mask = tensor.cast(pred, 'int32')
    return _map(lambda when_true, when_false: _select([when_false, when_true], mask), if_true, if_false)


def _run_if(pred, function, helper):
    """Runs the function's ops if pred holds; its results as variables of the block around."""
    if function is None:
        return None
    with ConditionalBlock([pred], is_scalar_condition=True).block():
        results = function()
        return None if results is None else _map(functools.partial(_to_block_around, helper), results)


def _to_block_around(helper, var):
    if not isinstance(var, Variable):
        raise TypeError('a branch must return Variables, not %s' % type(var).__name__)
    program = helper.main_program
    around = program.block(program.current_block().parent_idx)
    outside = around.create_var(dtype=var.dtype, shape=list(var.shape), type=var.type)
    tensor.assign(var, outside)
    return outside


def _select(inputs, mask):
    """inputs[mask]"""
    helper = LayerHelper('select_input')
    first = inputs[0]
    out = helper.create_variable(dtype=first.dtype, shape=list(first.shape), type=first.type)
    helper.append_op('select_input', {'X': inputs, 'Mask': mask}, {'Out': out})
    return out


def _map(function, first, *others):
    """The function over the Variables of equal lists, tuples and dicts."""
    if isinstance(first, (list, tuple)):
        return type(first)([_map(function, *each) for each in zip(first, *others)])
    if isinstance(first, dict):
        return {key: _map(function, value, *(other[key] for other in others)) for key, value in first.items()}
    return function(first, *others)


def _form(results):
    """'nothing', 'Variable', '[Variable, Variable]'"""
    if results is None:
        return 'nothing'
    if isinstance(results, (list, tuple)):
        return '[%s]' % ', '.join(_form(each) for each in results)
    if isinstance(results, dict):
        return '{%s}' % ', '.join('%s: %s' % (key, _form(results[key])) for key in sorted(results))
    return 'Variable'


def case(pred_fn_pairs, default=None, name=None):
    """What the function of the first predicate that holds returns; by default the last one's."""
    if not isinstance(pred_fn_pairs, (list, tuple)):
        raise TypeError('case: pred_fn_pairs must be a list, not %r' % (pred_fn_pairs,))
    pairs = list(pred_fn_pairs)
    if not pairs:
        raise TypeError('case: pred_fn_pairs must hold a pair')
    for pair in pairs:
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise TypeError('case: each of pred_fn_pairs must be a tuple (predicate, function), not %r' % (pair,))
        _require_function('case', pair[1])
    if default is None:
        default = pairs.pop()[1]
    otherwise = default
    for pred, function in reversed(pairs):
        otherwise = functools.partial(cond, pred, function, otherwise)
    return otherwise()


def switch_case(branch_index, branch_fns, default=None, name=None):
    """What the function at branch_index returns; by default that of the largest index."""
    if not isinstance(branch_index, Variable):
        raise TypeError('switch_case: branch_index must be a Variable, not %s' % type(branch_index).__name__)
    if branch_index.dtype not in (VarType.UINT8, VarType.INT32, VarType.INT64):
        raise TypeError('switch_case: branch_index must be uint8, int32 or int64, but %s is %s' %
                        (branch_index.name, branch_index.dtype.name))
    if branch_index.dtype != VarType.INT64:
        branch_index = tensor.cast(branch_index, 'int64')
    branches = _branches(branch_fns)
    if default is None:
        default = branches.pop()[1]
    otherwise = default
    for index, function in branches:
        otherwise = functools.partial(cond, equal(branch_index, _index_var(index)), function, otherwise)
    return otherwise()


def _branches(given):
    """(index, function), sorted, of a dict, of a list of functions, or of such pairs."""
    if not isinstance(given, (dict, list, tuple)):
        raise TypeError('switch_case: branch_fns must be a dict or a list, not %r' % (given,))
    pairs = given.items() if isinstance(given, dict) else [
        each if isinstance(each, tuple) and len(each) == 2 else (i, each) for i, each in enumerate(given)]
    branches = {}
    for index, function in pairs:
        if not isinstance(index, int):
            raise TypeError('switch_case: an index of branch_fns must be an int, not %r' % (index,))
        if index in branches:
            raise ValueError('switch_case: index %d stands twice in branch_fns' % index)
        _require_function('switch_case', function)
        branches[index] = function
    if not branches:
        raise ValueError('switch_case: branch_fns is empty')
    return sorted(branches.items())


def _require_function(layer, function):
    if not callable(function):
        raise TypeError('%s: a branch must be a function, not %r' % (layer, function))


def _index_var(index):
    return tensor.fill_constant([1], to_dtype('int64'), index)


__getattr__ = getattr_of(__name__)
