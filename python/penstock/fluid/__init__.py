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
    from penstock._penstock import LoDTensor, LoDTensorArray, Scope
    from penstock._src.base.flags import get_flags, set_flags
    from penstock._src.data.feeder import DataFeeder
    from penstock._src.dataset.data_feed_desc import DataFeedDesc
    from penstock._src.dataset.dataset import DatasetFactory, QueueDataset
    from penstock._src.dataset.in_memory import InMemoryDataset
    from penstock._src.executor.build_options import BuildStrategy, ExecutionStrategy
    from penstock._src.executor.compiler import CompiledProgram
    from penstock._src.executor.executor import Executor
    from penstock._src.executor.parallel_executor import ParallelExecutor
    from penstock._src.executor.scopes import global_scope, scope_guard
    from penstock._src.imperative.framework_names import ComplexVariable
    from penstock._src.imperative.package import disable_dygraph, disable_imperative, enable_dygraph
    from penstock._src.imperative.package import enable_imperative
    from penstock._src.io.program_state import load, load_program_state, save, set_program_state
    from penstock._src.ir.core import Tensor
    from penstock._src.ir.fluid_version import in_dygraph_mode, load_op_library, require_version
    from penstock._src.ir.framework import default_main_program, default_startup_program, device_guard, name_scope
    from penstock._src.ir.framework import program_guard
    from penstock._src.ir.lod_tensor import create_lod_tensor, create_random_int_lodtensor
    from penstock._src.ir.places import cpu_places, cuda_pinned_places, cuda_places
    from penstock._src.ir.program import Program
    from penstock._src.ir.types import CPUPlace, CUDAPinnedPlace, CUDAPlace, is_compiled_with_cuda
    from penstock._src.ir.variable import Parameter, Variable
    from penstock._src.layers.input import embedding, one_hot
    from penstock._src.optimizer.backward import gradients
    from penstock._src.parameters.initializer import NumpyArrayInitializer
    from penstock._src.parameters.param_attr import ParamAttr, WeightNormParamAttr
    from penstock._src.transpile.config import DistributeTranspilerConfig
    from penstock._src.transpile.distribute_transpiler import DistributeTranspiler
    from penstock._src.transpile.memory_optimization import memory_optimize, release_memory
    from penstock.fluid import annotations, average, backward, clip, communicator, compiler, contrib, core
    from penstock.fluid import data_feed_desc, data_feeder, dataset, debugger, default_scope_funcs, device_worker
    from penstock.fluid import distribute_lookup_table, dygraph, evaluator, executor, framework, graphviz, incubate
    from penstock.fluid import initializer, input, install_check, io, layer_helper, layer_helper_base, layers
    from penstock.fluid import lod_tensor, log_helper, metrics, net_drawer, nets, op, optimizer, parallel_executor
    from penstock.fluid import param_attr, profiler, proto as proto, reader, regularizer, trainer_desc
    from penstock.fluid import trainer_factory, transpiler, unique_name, wrapped_decorator
    from penstock.fluid.data import data

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
