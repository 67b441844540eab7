"""The API of Fluid 1.8 on Penstock: build a program, minimize, transpile, run.

    import penstock.fluid as fluid

    x = fluid.data('x', [None, 13])
    y = fluid.data('y', [None, 1])
    loss = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(x, 1), y))
    fluid.optimizer.SGD(0.01).minimize(loss)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    exe.run(feed={'x': xs, 'y': ys}, fetch_list=[loss])
"""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._penstock import LoDTensor as LoDTensor, LoDTensorArray as LoDTensorArray, Scope as Scope
    from penstock._src.base.flags import get_flags as get_flags, set_flags as set_flags
    from penstock._src.data.feeder import DataFeeder as DataFeeder
    from penstock._src.dataset.data_feed_desc import DataFeedDesc as DataFeedDesc
    from penstock._src.dataset.dataset import DatasetFactory as DatasetFactory, QueueDataset as QueueDataset
    from penstock._src.dataset.in_memory import InMemoryDataset as InMemoryDataset
    from penstock._src.executor.build_options import BuildStrategy as BuildStrategy
    from penstock._src.executor.build_options import ExecutionStrategy as ExecutionStrategy
    from penstock._src.executor.compiler import CompiledProgram as CompiledProgram
    from penstock._src.executor.executor import Executor as Executor
    from penstock._src.executor.parallel_executor import ParallelExecutor as ParallelExecutor
    from penstock._src.executor.scopes import global_scope as global_scope, scope_guard as scope_guard
    from penstock._src.imperative.framework_names import ComplexVariable as ComplexVariable
    from penstock._src.imperative.package import disable_dygraph as disable_dygraph
    from penstock._src.imperative.package import disable_imperative as disable_imperative
    from penstock._src.imperative.package import enable_dygraph as enable_dygraph
    from penstock._src.imperative.package import enable_imperative as enable_imperative
    from penstock._src.io.program_state import load as load, load_program_state as load_program_state, save as save
    from penstock._src.io.program_state import set_program_state as set_program_state
    from penstock._src.ir.core import Tensor as Tensor
    from penstock._src.ir.fluid_version import in_dygraph_mode as in_dygraph_mode, load_op_library as load_op_library
    from penstock._src.ir.fluid_version import require_version as require_version
    from penstock._src.ir.framework import default_main_program as default_main_program
    from penstock._src.ir.framework import default_startup_program as default_startup_program
    from penstock._src.ir.framework import device_guard as device_guard, name_scope as name_scope
    from penstock._src.ir.framework import program_guard as program_guard
    from penstock._src.ir.lod_tensor import create_lod_tensor as create_lod_tensor
    from penstock._src.ir.lod_tensor import create_random_int_lodtensor as create_random_int_lodtensor
    from penstock._src.ir.places import cpu_places as cpu_places, cuda_pinned_places as cuda_pinned_places
    from penstock._src.ir.places import cuda_places as cuda_places
    from penstock._src.ir.program import Program as Program
    from penstock._src.ir.types import CPUPlace as CPUPlace, CUDAPinnedPlace as CUDAPinnedPlace
    from penstock._src.ir.types import CUDAPlace as CUDAPlace, is_compiled_with_cuda as is_compiled_with_cuda
    from penstock._src.ir.variable import Parameter as Parameter, Variable as Variable
    from penstock._src.layers.input import embedding as embedding, one_hot as one_hot
    from penstock._src.optimizer.backward import gradients as gradients
    from penstock._src.parameters.initializer import NumpyArrayInitializer as NumpyArrayInitializer
    from penstock._src.parameters.param_attr import ParamAttr as ParamAttr, WeightNormParamAttr as WeightNormParamAttr
    from penstock._src.transpile.config import DistributeTranspilerConfig as DistributeTranspilerConfig
    from penstock._src.transpile.distribute_transpiler import DistributeTranspiler as DistributeTranspiler
    from penstock._src.transpile.memory_optimization import memory_optimize as memory_optimize
    from penstock._src.transpile.memory_optimization import release_memory as release_memory
    from penstock.fluid import annotations as annotations, average as average, backward as backward, clip as clip
    from penstock.fluid import communicator as communicator, compiler as compiler, contrib as contrib, core as core
    from penstock.fluid import data_feed_desc as data_feed_desc, data_feeder as data_feeder, dataset as dataset
    from penstock.fluid import debugger as debugger, default_scope_funcs as default_scope_funcs
    from penstock.fluid import device_worker as device_worker, distribute_lookup_table as distribute_lookup_table
    from penstock.fluid import dygraph as dygraph, evaluator as evaluator, executor as executor
    from penstock.fluid import framework as framework, graphviz as graphviz, incubate as incubate
    from penstock.fluid import initializer as initializer, input as input, install_check as install_check, io as io
    from penstock.fluid import layer_helper as layer_helper, layer_helper_base as layer_helper_base, layers as layers
    from penstock.fluid import lod_tensor as lod_tensor, log_helper as log_helper, metrics as metrics
    from penstock.fluid import net_drawer as net_drawer, nets as nets, op as op, optimizer as optimizer
    from penstock.fluid import parallel_executor as parallel_executor, param_attr as param_attr, profiler as profiler
    from penstock.fluid import proto as proto, reader as reader, regularizer as regularizer
    from penstock.fluid import trainer_desc as trainer_desc, trainer_factory as trainer_factory
    from penstock.fluid import transpiler as transpiler, unique_name as unique_name
    from penstock.fluid import wrapped_decorator as wrapped_decorator
    from penstock.fluid.data import data as data

__all__ = [
    'BuildStrategy', 'CPUPlace', 'CUDAPinnedPlace', 'CUDAPlace', 'CompiledProgram', 'ComplexVariable', 'DataFeedDesc',
    'DataFeeder', 'DatasetFactory', 'DistributeTranspiler', 'DistributeTranspilerConfig', 'ExecutionStrategy',
    'Executor', 'InMemoryDataset', 'LoDTensor', 'LoDTensorArray', 'NumpyArrayInitializer', 'ParallelExecutor',
    'ParamAttr', 'Parameter', 'Program', 'QueueDataset', 'Scope', 'Tensor', 'Variable', 'WeightNormParamAttr',
    'annotations', 'average', 'backward', 'clip', 'communicator', 'compiler', 'contrib', 'core', 'cpu_places',
    'create_lod_tensor', 'create_random_int_lodtensor', 'cuda_pinned_places', 'cuda_places', 'data', 'data_feed_desc',
    'data_feeder', 'dataset', 'debugger', 'default_main_program', 'default_scope_funcs', 'default_startup_program',
    'device_guard', 'device_worker', 'disable_dygraph', 'disable_imperative', 'distribute_lookup_table', 'dygraph',
    'embedding', 'enable_dygraph', 'enable_imperative', 'evaluator', 'executor', 'framework', 'get_flags',
    'global_scope', 'gradients', 'graphviz', 'in_dygraph_mode', 'incubate', 'initializer', 'input', 'install_check',
    'io', 'is_compiled_with_cuda', 'layer_helper', 'layer_helper_base', 'layers', 'load', 'load_op_library',
    'load_program_state', 'lod_tensor', 'log_helper', 'memory_optimize', 'metrics', 'name_scope', 'net_drawer',
    'nets', 'one_hot', 'op', 'optimizer', 'parallel_executor', 'param_attr', 'profiler', 'program_guard', 'reader',
    'regularizer', 'release_memory', 'require_version', 'save', 'scope_guard', 'set_flags', 'set_program_state',
    'trainer_desc', 'trainer_factory', 'transpiler', 'unique_name', 'wrapped_decorator',
]

facade.make(__name__)
