# Written by tools/dev/gen_stubs.py.
# mypy: disable-error-code="override"
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from numpy import dtype
from numpy.typing import NDArray

from penstock.fluid import annotations as annotations
from penstock.fluid import average as average
from penstock.fluid import backward as backward
from penstock.fluid import clip as clip
from penstock.fluid import communicator as communicator
from penstock.fluid import compiler as compiler
from penstock.fluid import contrib as contrib
from penstock.fluid import core as core
from penstock.fluid import data_feed_desc as data_feed_desc
from penstock.fluid import data_feeder as data_feeder
from penstock.fluid import dataset as dataset
from penstock.fluid import debugger as debugger
from penstock.fluid import default_scope_funcs as default_scope_funcs
from penstock.fluid import device_worker as device_worker
from penstock.fluid import distribute_lookup_table as distribute_lookup_table
from penstock.fluid import dygraph as dygraph
from penstock.fluid import evaluator as evaluator
from penstock.fluid import executor as executor
from penstock.fluid import framework as framework
from penstock.fluid import graphviz as graphviz
from penstock.fluid import incubate as incubate
from penstock.fluid import initializer as initializer
from penstock.fluid import input as input
from penstock.fluid import install_check as install_check
from penstock.fluid import io as io
from penstock.fluid import layer_helper as layer_helper
from penstock.fluid import layer_helper_base as layer_helper_base
from penstock.fluid import layers as layers
from penstock.fluid import lod_tensor as lod_tensor
from penstock.fluid import log_helper as log_helper
from penstock.fluid import metrics as metrics
from penstock.fluid import net_drawer as net_drawer
from penstock.fluid import nets as nets
from penstock.fluid import op as op
from penstock.fluid import optimizer as optimizer
from penstock.fluid import parallel_executor as parallel_executor
from penstock.fluid import param_attr as param_attr
from penstock.fluid import profiler as profiler
from penstock.fluid import proto as proto
from penstock.fluid import reader as reader
from penstock.fluid import regularizer as regularizer
from penstock.fluid import trainer_desc as trainer_desc
from penstock.fluid import trainer_factory as trainer_factory
from penstock.fluid import transpiler as transpiler
from penstock.fluid import unique_name as unique_name
from penstock.fluid import wrapped_decorator as wrapped_decorator
from penstock.fluid.backward import gradients as gradients
from penstock.fluid.compiler import BuildStrategy as BuildStrategy
from penstock.fluid.compiler import CompiledProgram as CompiledProgram
from penstock.fluid.compiler import ExecutionStrategy as ExecutionStrategy
from penstock.fluid.core import CPUPlace as CPUPlace
from penstock.fluid.core import CUDAPinnedPlace as CUDAPinnedPlace
from penstock.fluid.core import CUDAPlace as CUDAPlace
from penstock.fluid.core import is_compiled_with_cuda as is_compiled_with_cuda
from penstock.fluid.data import data as data
from penstock.fluid.data_feed_desc import DataFeedDesc as DataFeedDesc
from penstock.fluid.data_feeder import DataFeeder as DataFeeder
from penstock.fluid.dataset import DatasetFactory as DatasetFactory
from penstock.fluid.dataset import InMemoryDataset as InMemoryDataset
from penstock.fluid.dataset import QueueDataset as QueueDataset
from penstock.fluid.dygraph import disable_dygraph as disable_dygraph
from penstock.fluid.dygraph import disable_dygraph as disable_imperative
from penstock.fluid.dygraph import enable_dygraph as enable_dygraph
from penstock.fluid.dygraph import enable_dygraph as enable_imperative
from penstock.fluid.executor import Executor as Executor
from penstock.fluid.executor import global_scope as global_scope
from penstock.fluid.executor import scope_guard as scope_guard
from penstock.fluid.framework import ComplexVariable as ComplexVariable
from penstock.fluid.framework import Parameter as Parameter
from penstock.fluid.framework import Program as Program
from penstock.fluid.framework import Variable as Variable
from penstock.fluid.framework import cpu_places as cpu_places
from penstock.fluid.framework import cuda_pinned_places as cuda_pinned_places
from penstock.fluid.framework import cuda_places as cuda_places
from penstock.fluid.framework import default_main_program as default_main_program
from penstock.fluid.framework import default_startup_program as default_startup_program
from penstock.fluid.framework import device_guard as device_guard
from penstock.fluid.framework import get_flags as get_flags
from penstock.fluid.framework import in_dygraph_mode as in_dygraph_mode
from penstock.fluid.framework import load_op_library as load_op_library
from penstock.fluid.framework import name_scope as name_scope
from penstock.fluid.framework import program_guard as program_guard
from penstock.fluid.framework import require_version as require_version
from penstock.fluid.framework import set_flags as set_flags
from penstock.fluid.initializer import NumpyArrayInitializer as NumpyArrayInitializer
from penstock.fluid.input import embedding as embedding
from penstock.fluid.input import one_hot as one_hot
from penstock.fluid.io import load as load
from penstock.fluid.io import load_program_state as load_program_state
from penstock.fluid.io import save as save
from penstock.fluid.io import set_program_state as set_program_state
from penstock.fluid.lod_tensor import create_lod_tensor as create_lod_tensor
from penstock.fluid.lod_tensor import create_random_int_lodtensor as create_random_int_lodtensor
from penstock.fluid.parallel_executor import ParallelExecutor as ParallelExecutor
from penstock.fluid.param_attr import ParamAttr as ParamAttr
from penstock.fluid.param_attr import WeightNormParamAttr as WeightNormParamAttr
from penstock.fluid.transpiler.distribute_transpiler import DistributeTranspiler as DistributeTranspiler
from penstock.fluid.transpiler.distribute_transpiler import DistributeTranspilerConfig as DistributeTranspilerConfig
from penstock.fluid.transpiler.memory_optimization_transpiler import memory_optimize as memory_optimize
from penstock.fluid.transpiler.memory_optimization_transpiler import release_memory as release_memory

class LoDTensor:
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def __getattr__(self, name: str) -> Any: ...
class LoDTensorArray:
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def __getattr__(self, name: str) -> Any: ...
class Scope:
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def __getattr__(self, name: str) -> Any: ...
class Tensor:
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def __getattr__(self, name: str) -> Any: ...
__all__: list[str]
