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

from penstock import _bad_arguments
from penstock.fluid import (annotations, average, backward, clip, communicator, compiler, contrib, core,
                            data_feed_desc, data_feeder, dataset, debugger, default_scope_funcs, device_worker,
                            distribute_lookup_table, dygraph, evaluator, executor, framework, graphviz, incubate,
                            initializer, input, install_check, io, layer_helper, layer_helper_base, layers, lod_tensor,
                            log_helper, metrics, net_drawer, nets, op, optimizer, parallel_executor, param_attr,
                            profiler, reader, regularizer, trainer_desc, trainer_factory, transpiler, unique_name,
                            wrapped_decorator)
from penstock.fluid import _predictor    # noqa: F401, isort: skip
from penstock.fluid._not_built import getattr_of
from penstock.fluid.backward import gradients
from penstock.fluid.compiler import BuildStrategy, CompiledProgram, ExecutionStrategy
from penstock.fluid.core import (CPUPlace, CUDAPinnedPlace, CUDAPlace, LoDTensor, LoDTensorArray, Scope,
                                 is_compiled_with_cuda)
from penstock.fluid.data import data
from penstock.fluid.data_feed_desc import DataFeedDesc
from penstock.fluid.data_feeder import DataFeeder
from penstock.fluid.dataset import DatasetFactory, InMemoryDataset, QueueDataset
from penstock.fluid.dygraph import disable_dygraph, disable_imperative, enable_dygraph, enable_imperative
from penstock.fluid.executor import Executor, global_scope, scope_guard
from penstock.fluid.framework import (ComplexVariable, Parameter, Program, Variable, cpu_places, cuda_pinned_places,
                                      cuda_places, default_main_program, default_startup_program, device_guard,
                                      get_flags, in_dygraph_mode, load_op_library, name_scope, program_guard,
                                      require_version, set_flags)
from penstock.fluid.initializer import NumpyArrayInitializer
from penstock.fluid.input import embedding, one_hot
from penstock.fluid.io import load, load_program_state, save, set_program_state
from penstock.fluid.lod_tensor import create_lod_tensor, create_random_int_lodtensor
from penstock.fluid.param_attr import ParamAttr, WeightNormParamAttr
from penstock.fluid.parallel_executor import ParallelExecutor
from penstock.fluid.transpiler import (DistributeTranspiler, DistributeTranspilerConfig, memory_optimize,
                                       release_memory)

__all__ = [
    'BuildStrategy', 'CPUPlace', 'CUDAPinnedPlace', 'CUDAPlace', 'CompiledProgram', 'ComplexVariable', 'DataFeedDesc',
    'DataFeeder',
    'DatasetFactory', 'DistributeTranspiler', 'DistributeTranspilerConfig', 'ExecutionStrategy', 'Executor',
    'InMemoryDataset', 'LoDTensor', 'LoDTensorArray', 'NumpyArrayInitializer', 'ParallelExecutor', 'ParamAttr',
    'Parameter', 'Program', 'QueueDataset', 'Scope', 'Tensor', 'Variable', 'WeightNormParamAttr', 'annotations',
    'average', 'backward', 'clip', 'communicator', 'compiler', 'contrib', 'core', 'cpu_places', 'create_lod_tensor',
    'create_random_int_lodtensor', 'cuda_pinned_places', 'cuda_places', 'data', 'data_feed_desc', 'data_feeder',
    'dataset', 'debugger', 'default_main_program', 'default_scope_funcs', 'default_startup_program', 'device_guard',
    'device_worker', 'disable_dygraph', 'disable_imperative', 'distribute_lookup_table', 'dygraph', 'embedding',
    'enable_dygraph', 'enable_imperative', 'evaluator', 'executor', 'framework', 'get_flags', 'global_scope',
    'gradients', 'graphviz', 'in_dygraph_mode', 'incubate', 'initializer', 'input', 'install_check', 'io',
    'is_compiled_with_cuda', 'layer_helper', 'layer_helper_base', 'layers', 'load', 'load_op_library',
    'load_program_state', 'lod_tensor', 'log_helper', 'memory_optimize', 'metrics', 'name_scope', 'net_drawer', 'nets',
    'one_hot', 'op', 'optimizer', 'parallel_executor', 'param_attr', 'profiler', 'program_guard', 'reader',
    'regularizer', 'release_memory', 'require_version', 'save', 'scope_guard', 'set_flags', 'set_program_state',
    'trainer_desc', 'trainer_factory', 'transpiler', 'unique_name', 'wrapped_decorator',
]

Tensor = LoDTensor    # both names are Fluid's

__getattr__ = getattr_of(__name__)

_bad_arguments.guard_package(__name__)
