"""Operators of Variables: x + y, x * 2.0, -x, x < y add the ops that Fluid adds."""

from penstock.fluid import unique_name
from penstock.fluid.core import VarType
from penstock.fluid.framework import Variable
from penstock.fluid.layers import tensor

_INTEGERS = (VarType.BOOL, VarType.INT16, VarType.INT32, VarType.INT64, VarType.UINT8, VarType.INT8)


def _new_temporary(var, dtype):
    block = var.block.program.current_block()
    return block, block.create_var(name=unique_name.generate('tmp'), dtype=dtype)


def _scaled(var, scale, bias):
    block, out = _new_temporary(var, var.dtype)
    block.append_op('scale', {'X': var}, {'Out': out}, {'scale': scale, 'bias': bias})
    return out


def _filled_like(var, value):
    """A constant to stand beside `var` where no `scale` can express the operation."""
    block, out = _new_temporary(var, var.dtype)
    if var.shape and var.shape[0] == -1:
        batch = next(i for i, extent in enumerate(var.shape) if extent == -1)
        block.append_op('fill_constant_batch_size_like', {'Input': var}, {'Out': out}, {
            'shape': [1 if extent == -1 and i != batch else extent for i, extent in enumerate(var.shape)],
            'value': value,
            'input_dim_idx': batch,
            'output_dim_idx': batch,
            'dtype': int(var.dtype)
        })
    else:
        block.append_op('fill_constant', None, {'Out': out}, {'shape': [1], 'value': value, 'dtype': int(var.dtype)})
    out.stop_gradient = True
    return out


def _astype(self, dtype):
    return tensor.cast(self, dtype)


def _binary(op_type, reverse=False, scalar=None, compares=False):

    def method(self, other):
        if isinstance(other, (int, float)) and not isinstance(other, bool):
            if isinstance(other, float) and self.dtype in _INTEGERS:
                self = self.astype('float32')
            if scalar is not None:
                return scalar(self, float(other))
            other = _filled_like(self, float(other))
        elif not isinstance(other, Variable):
            return NotImplemented
        if self.dtype != other.dtype:
            other = other.astype(self.dtype)
        left, right = (other, self) if reverse else (self, other)
        axis = 0 if right.shape and right.shape[0] == -1 else -1
        block, out = _new_temporary(self, VarType.BOOL if compares else self.dtype)
        block.append_op(op_type, {'X': left, 'Y': right}, {'Out': out}, {'axis': axis})
        return out

    return method


def patch_variable():
    """Called once, when the layers exist."""
    methods = {
        '__add__': _binary('elementwise_add', scalar=lambda x, a: _scaled(x, 1.0, a)),
        '__radd__': _binary('elementwise_add', scalar=lambda x, a: _scaled(x, 1.0, a)),
        '__sub__': _binary('elementwise_sub', scalar=lambda x, a: _scaled(x, 1.0, -a)),
        '__rsub__': _binary('elementwise_sub', reverse=True, scalar=lambda x, a: _scaled(x, -1.0, a)),
        '__mul__': _binary('elementwise_mul', scalar=lambda x, a: _scaled(x, a, 0.0)),
        '__rmul__': _binary('elementwise_mul', scalar=lambda x, a: _scaled(x, a, 0.0)),
        '__truediv__': _binary('elementwise_div', scalar=lambda x, a: _scaled(x, 1.0 / a, 0.0)),
        '__rtruediv__': _binary('elementwise_div', reverse=True),
        '__pow__': _binary('elementwise_pow'),
        '__rpow__': _binary('elementwise_pow', reverse=True),
        '__neg__': lambda self: _scaled(self, -1.0, 0.0),
        '__eq__': _binary('equal', compares=True),
        '__ne__': _binary('not_equal', compares=True),
        '__lt__': _binary('less_than', compares=True),
        '__le__': _binary('less_equal', compares=True),
        '__gt__': _binary('greater_than', compares=True),
        '__ge__': _binary('greater_equal', compares=True),
        # A handle is found in dicts and sets by being itself.
        '__hash__': object.__hash__,
        'astype': _astype,
    }
    for name, method in methods.items():
        setattr(Variable, name, method)
