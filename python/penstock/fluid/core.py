"""The names of fluid.core that scripts use: places, types, kinds of variables, tensors, scopes, descs, the registry."""

from penstock._penstock import (EOFException, LoDTensor, LoDTensorArray, ProgramDesc, ProgramError, Scope,
                                SelectedRows)
from penstock.fluid import _value_docs
from penstock.fluid._basics import (CPUPlace, CUDAPinnedPlace, CUDAPlace, device_of, dtype_name, dtype_size,
                                    get_cuda_device_count, is_compiled_with_cuda, op_proto_and_checker_maker, _Place,
                                    require_decays, require_finite, require_numbers, to_dtype, to_extents, VAR_TYPES,
                                    VarDesc, VarType)
from penstock.fluid._descs import AttrType, BlockDesc, OpDesc
from penstock.fluid._graph_order import (build_adjacency_list, graph_num, graph_safe_remove_nodes,    # noqa: F401
                                         has_circle, topology_sort)
from penstock.fluid._ir_graph import Graph, Node
from penstock.fluid._registry import (EMPTY_VAR_NAME, GRAD_VAR_SUFFIX, Place, _get_all_register_op_kernels,
                                      empty_var_name, get_all_op_protos, get_grad_op_desc, get_op_attrs_default_value,
                                      globals, grad_var_suffix, has_grad_op_maker, has_infer_inplace, op_support_gpu)
from penstock.fluid._tensor_parts import from_dlpack, get_fetch_variable, set_feed_variable    # noqa: F401
from penstock.fluid.dygraph import _imperative

__all__ = [
    'AttrType', 'BlockDesc', 'CPUPlace', 'CUDAPinnedPlace', 'CUDAPlace', 'EOFException', 'EnforceNotMet', 'LoDTensor',
    'LoDTensorArray', 'OpDesc', 'Place', 'ProgramDesc', 'Scope', 'SelectedRows', 'VarDesc', 'empty_var_name',
    'from_dlpack', 'get_all_op_protos', 'get_cuda_device_count', 'get_grad_op_desc', 'get_op_attrs_default_value',
    'globals', 'grad_var_suffix', 'has_grad_op_maker', 'has_infer_inplace', 'is_compiled_with_cuda', 'kEmptyVarName',
    'kGradVarSuffix', 'op_proto_and_checker_maker', 'op_support_gpu',
]

EnforceNotMet = ProgramError    # Fluid's names
# Of imperative mode; static scripts name them in isinstance().
VarBase, Layer, Tracer, BackwardStrategy, ParallelStrategy, NCCLParallelContext = (
    _imperative.class_of('fluid.core.' + _name) for _name in
    ('VarBase', 'Layer', 'Tracer', 'BackwardStrategy', 'ParallelStrategy', 'NCCLParallelContext'))
Tensor = LoDTensor


def __unittest_throw_exception__():
    """Raises EnforceNotMet, for tests of callers."""
    raise ProgramError('this is a test exception')


def _set_eager_deletion_mode(threshold, fraction, fast):
    """Does nothing: a value is always freed after its last reader."""


kEmptyVarName, kGradVarSuffix = EMPTY_VAR_NAME, GRAD_VAR_SUFFIX

for _class, _doc in ((LoDTensor, _value_docs.LOD_TENSOR), (LoDTensorArray, _value_docs.LOD_TENSOR_ARRAY),
                     (SelectedRows, _value_docs.SELECTED_ROWS), (Scope, _value_docs.SCOPE),
                     (ProgramDesc, _value_docs.PROGRAM_DESC)):
    _class.__doc__ = _doc
