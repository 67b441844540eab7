"""Arrays of tensors, and sequences cut into steps by a rank table."""

from penstock.fluid import unique_name
from penstock.fluid.core import VarType, to_dtype
from penstock.fluid.framework import Variable
from penstock.fluid.layer_helper import LayerHelper

__all__ = [
    'array_length', 'array_read', 'array_write', 'create_array', 'reorder_lod_tensor_by_rank', 'tensor_array_to_tensor',
]


def require_array(layer, array):
    if not isinstance(array, Variable) or array.type != VarType.LOD_TENSOR_ARRAY:
        raise TypeError('%s: the array must be a Variable of type LOD_TENSOR_ARRAY' % layer)


def create_array(dtype):
    """An array without elements."""
    helper = LayerHelper('array')
    return _array(helper, helper.name + '.out', dtype)


def _array(helper, name, dtype):
    return helper.create_variable(name=name, type=VarType.LOD_TENSOR_ARRAY, dtype=to_dtype(dtype))


def array_write(x, i, array=None):
    """Sets element i of the array, of a new one without it; the array."""
    helper = LayerHelper('array_write').takes(x=x)
    if array is None:
        array = _array(helper, helper.name + '.out', x.dtype)
    require_array('array_write', array)
    helper.append_op('write_to_array', {'X': x, 'I': i}, {'Out': array})
    return array


def array_read(array, i):
    """Element i of the array."""
    helper = LayerHelper('array_read')
    require_array('array_read', array)
    out = helper.create_variable_for_type_inference(array.dtype)
    helper.append_op('read_from_array', {'X': array, 'I': i}, {'Out': out})
    return out


def array_length(array):
    """How many elements the array has, an int64."""
    helper = LayerHelper('array_length')
    require_array('array_length', array)
    out = helper.create_variable_for_type_inference('int64', stop_gradient=True)
    helper.append_op('lod_array_length', {'X': array}, {'Out': out})
    return out


def tensor_array_to_tensor(input, axis=1, name=None, use_stack=False):
    """(The elements joined along an extent, how far each reaches along it); stacked along a new one with use_stack."""
    helper = LayerHelper('tensor_array_to_tensor', name=name).takes(input=input)
    require_array('tensor_array_to_tensor', input)
    out = helper.create_variable_for_type_inference(input.dtype)
    index = helper.create_variable_for_type_inference('int32')
    helper.append_op('tensor_array_to_tensor', {'X': input}, {
        'Out': out,
        'OutIndex': index
    }, {
        'axis': axis,
        'use_stack': use_stack
    })
    return out, index


def lod_rank_table(x, level=0):
    """The sequences of x, the longest first."""
    helper = LayerHelper('lod_rank_table')
    table = helper.create_variable(type=VarType.LOD_RANK_TABLE, name=unique_name.generate('lod_rank_table'))
    helper.append_op('lod_rank_table', {'X': x}, {'Out': table}, {'level': level})
    return table


def max_sequence_len(rank_table):
    """The length of the longest sequence, an int64."""
    helper = LayerHelper('max_seqence_len')
    out = helper.create_variable_for_type_inference('int64')
    helper.append_op('max_sequence_len', {'RankTable': rank_table}, {'Out': out})
    return out


def lod_tensor_to_array(x, table):
    """Element t holds element t of each sequence that has one, in the table's order."""
    helper = LayerHelper('lod_tensor_to_array').takes(x=x)
    array = _array(helper, unique_name.generate('lod_tensor_to_array'), x.dtype)
    helper.append_op('lod_tensor_to_array', {'X': x, 'RankTable': table}, {'Out': array})
    return array


def array_to_lod_tensor(x, table):
    """The opposite of lod_tensor_to_array."""
    helper = LayerHelper('array_to_lod_tensor').takes(x=x)
    out = helper.create_variable_for_type_inference(x.dtype)
    helper.append_op('array_to_lod_tensor', {'X': x, 'RankTable': table}, {'Out': out})
    return out


def shrink_memory(x, i, table):
    """The rows of x that take part in step i."""
    helper = LayerHelper('shrink_memory').takes(x=x)
    out = helper.create_variable_for_type_inference(x.dtype)
    helper.append_op('shrink_rnn_memory', {'X': x, 'I': i, 'RankTable': table}, {'Out': out})
    return out


def reorder_lod_tensor_by_rank(x, rank_table):
    """The sequences of x in the table's order."""
    if not isinstance(rank_table, Variable) or rank_table.type != VarType.LOD_RANK_TABLE:
        raise TypeError('reorder_lod_tensor_by_rank: rank_table must be a Variable of type LOD_RANK_TABLE')
    helper = LayerHelper('reorder_lod_tensor_by_rank').takes(x=x)
    out = helper.create_variable_for_type_inference(x.dtype)
    helper.append_op('reorder_lod_tensor_by_rank', {'X': x, 'RankTable': rank_table}, {'Out': out})
    return out


def split_lod_tensor(input, mask, level=0):
    """(The parts of input where the mask holds, the others)."""
    helper = LayerHelper('split_lod_tensor').takes(input=input)
    held, others = (helper.create_variable_for_type_inference(input.dtype) for _ in range(2))
    helper.append_op('split_lod_tensor', {'X': input, 'Mask': mask}, {
        'OutTrue': held,
        'OutFalse': others
    }, {'level': level})
    return held, others


def merge_lod_tensor(in_true, in_false, x, mask, level=0):
    """The opposite of split_lod_tensor, of x."""
    helper = LayerHelper('merge_lod_tensor').takes(in_true=in_true)
    out = helper.create_variable_for_type_inference(in_true.dtype)
    helper.append_op('merge_lod_tensor', {
        'X': x,
        'Mask': mask,
        'InTrue': in_true,
        'InFalse': in_false
    }, {'Out': out}, {'level': level})
    return out
