"""The names of fluid.core that scripts use: places, types, kinds of variables, tensors, scopes, descs, the registry."""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._penstock import EOFException, LoDTensor, LoDTensorArray, ProgramDesc, Scope, SelectedRows
    from penstock._src.executor.passes import Pass, PassBuilder
    from penstock._src.inference.config import AnalysisConfig, NativeConfig
    from penstock._src.inference.paddle_tensor import PaddleBuf, PaddleDType, PaddlePlace, PaddleTensor
    from penstock._src.inference.paddle_tensor import ZeroCopyTensor, paddle_dtype_size
    from penstock._src.inference.passes import CpuPassStrategy, GpuPassStrategy, PaddlePassBuilder, PassStrategy
    from penstock._src.inference.predictor import AnalysisPredictor, NativePaddlePredictor, PaddlePredictor
    from penstock._src.inference.predictor import create_paddle_predictor, get_version
    from penstock._src.ir.attr_types import AttrType
    from penstock._src.ir.core import BackwardStrategy as BackwardStrategy, EnforceNotMet, Layer as Layer
    from penstock._src.ir.core import NCCLParallelContext as NCCLParallelContext
    from penstock._src.ir.core import ParallelStrategy as ParallelStrategy, Tensor as Tensor, Tracer as Tracer
    from penstock._src.ir.core import VarBase as VarBase
    from penstock._src.ir.core import __unittest_throw_exception__ as __unittest_throw_exception__
    from penstock._src.ir.core import _set_eager_deletion_mode as _set_eager_deletion_mode, kEmptyVarName
    from penstock._src.ir.core import kGradVarSuffix
    from penstock._src.ir.descs import BlockDesc, OpDesc
    from penstock._src.ir.graph import Graph as Graph, Node as Node
    from penstock._src.ir.graph_order import build_adjacency_list as build_adjacency_list, graph_num as graph_num
    from penstock._src.ir.graph_order import graph_safe_remove_nodes as graph_safe_remove_nodes
    from penstock._src.ir.graph_order import has_circle as has_circle, topology_sort as topology_sort
    from penstock._src.ir.registry import Place, _get_all_register_op_kernels as _get_all_register_op_kernels
    from penstock._src.ir.registry import empty_var_name, get_all_op_protos, get_grad_op_desc
    from penstock._src.ir.registry import get_op_attrs_default_value, globals, grad_var_suffix, has_grad_op_maker
    from penstock._src.ir.registry import has_infer_inplace, op_support_gpu
    from penstock._src.ir.tensors import from_dlpack, get_fetch_variable as get_fetch_variable
    from penstock._src.ir.tensors import set_feed_variable as set_feed_variable
    from penstock._src.ir.types import CPUPlace, CUDAPinnedPlace, CUDAPlace, VarDesc, VarType as VarType
    from penstock._src.ir.types import device_of as device_of, dtype_name as dtype_name, dtype_size as dtype_size
    from penstock._src.ir.types import get_cuda_device_count, is_compiled_with_cuda, op_proto_and_checker_maker
    from penstock._src.ir.types import require_decays as require_decays, require_finite as require_finite
    from penstock._src.ir.types import require_numbers as require_numbers, to_dtype as to_dtype
    from penstock._src.ir.types import to_extents as to_extents

__all__ = [
    'AnalysisConfig', 'AnalysisPredictor', 'AttrType', 'BlockDesc', 'CPUPlace', 'CUDAPinnedPlace', 'CUDAPlace',
    'CpuPassStrategy', 'EOFException', 'EnforceNotMet', 'GpuPassStrategy', 'LoDTensor', 'LoDTensorArray',
    'NativeConfig', 'NativePaddlePredictor', 'OpDesc', 'PaddleBuf', 'PaddleDType', 'PaddlePassBuilder', 'PaddlePlace',
    'PaddlePredictor', 'PaddleTensor', 'Pass', 'PassBuilder', 'PassStrategy', 'Place', 'ProgramDesc', 'Scope',
    'SelectedRows', 'VarDesc', 'ZeroCopyTensor', 'create_paddle_predictor', 'empty_var_name', 'from_dlpack',
    'get_all_op_protos', 'get_cuda_device_count', 'get_grad_op_desc', 'get_op_attrs_default_value', 'get_version',
    'globals', 'grad_var_suffix', 'has_grad_op_maker', 'has_infer_inplace', 'is_compiled_with_cuda', 'kEmptyVarName',
    'kGradVarSuffix', 'op_proto_and_checker_maker', 'op_support_gpu', 'paddle_dtype_size',
]

facade.make(__name__)
