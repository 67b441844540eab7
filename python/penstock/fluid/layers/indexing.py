"""x[1], x[:, 2:4], x[i]: parts of a Variable, cut out by one slice op."""

import numbers

from penstock.fluid import unique_name
from penstock.fluid.framework import Variable

_TO_THE_END = 10000000    # ends beyond an extent mean the extent


def subscript(var, item):
    """The part that `item` names: a number, a slice, or a tuple of them for the leading axes. An axis with a number
    goes; the last one of an axis is kept as one element. Numbers may be Variables of one element."""
    axes, starts, ends, numbered = [], [], [], []
    for axis, one in enumerate(item if isinstance(item, tuple) else (item,)):
        if isinstance(one, slice):
            bounds = _bounds(var, one)
            if bounds is None:
                continue
            start, end = bounds
        else:
            start, end = _number(var, one), _number_after(var, one)
            numbered.append(axis)
        axes.append(axis)
        starts.append(start)
        ends.append(end)
    if not axes:
        return var
    if len(var.shape) <= axes[-1]:
        raise IndexError('%s has %d axes, but axis %d is asked for' % (var.name, len(var.shape), axes[-1]))
    attrs = {'axes': axes, 'decrease_axis': numbered}
    attrs['infer_flags'] = [-1 if Variable in map(type, pair) else 1 for pair in zip(starts, ends)]
    inputs = {'Input': var}
    for name, numbers_ in (('starts', starts), ('ends', ends)):
        attrs[name] = [-1 if isinstance(one, Variable) else one for one in numbers_]
        if any(isinstance(one, Variable) for one in numbers_):
            inputs[name.capitalize() + 'TensorList'] = [_tensor(var.block, one) for one in numbers_]
    out = var.block.create_var(name=unique_name.generate(var.name + '_slice'), dtype=var.dtype)
    var.block.append_op('slice', inputs, {'Out': out}, attrs)
    return out


def _bounds(var, part):
    """(start, end) of a slice; None for a whole axis."""
    if part.step not in (None, 1):
        raise NotImplementedError('%s[%s:%s:%s]: steps other than 1 are not built; gather takes any rows' %
                                  (var.name, part.start, part.stop, part.step))
    if part.start is None and part.stop is None:
        return None
    start = 0 if part.start is None else _number(var, part.start)
    return start, _TO_THE_END if part.stop is None else _number(var, part.stop)


def _number(var, one):
    if isinstance(one, Variable):
        return one
    if isinstance(one, numbers.Integral) and not isinstance(one, bool):
        return int(one)
    raise TypeError('%s[%r]: a subscript must be an int, a slice or a Variable of one element' % (var.name, one))


def _number_after(var, one):
    """Where a part of one element ends."""
    if not isinstance(one, Variable):
        return _TO_THE_END if one == -1 else one + 1
    step = _constant(var.block, 1)
    end = var.block.create_var(dtype='int32')
    var.block.append_op('elementwise_add', {'X': one, 'Y': step}, {'Out': end}, {'axis': -1})
    return end


def _tensor(block, one):
    if not isinstance(one, Variable):
        return _constant(block, one)
    one.stop_gradient = True
    return one


def _constant(block, value):
    out = block.create_var(dtype='int32')
    block.append_op('fill_constant', None, {'Out': out}, {
        'shape': [1],
        'dtype': int(out.dtype),
        'value': float(value),
        'force_cpu': True
    })
    out.stop_gradient = True
    return out
