# Written by tools/dev/gen_stubs.py.
# mypy: disable-error-code="override"
from typing import Any, Callable, Iterable, Iterator

from penstock.fluid.communicator import Communicator as Communicator
from penstock.fluid.compiler import CompiledProgram as CompiledProgram
from penstock.fluid.executor import Executor as Executor
from penstock.fluid.framework import Program as Program
from penstock.fluid.framework import Variable as Variable
from penstock.fluid.framework import default_main_program as default_main_program
from penstock.fluid.framework import default_startup_program as default_startup_program
from penstock.fluid.incubate.fleet.base.fleet_base import DistributedOptimizer as DistributedOptimizer
from penstock.fluid.incubate.fleet.base.fleet_base import Fleet as Fleet
from penstock.fluid.incubate.fleet.base.mode import Mode as Mode
from penstock.fluid.incubate.fleet.parameter_server.distribute_transpiler import distributed_strategy as distributed_strategy
from penstock.fluid.incubate.fleet.parameter_server.distribute_transpiler.distributed_strategy import AsyncStrategy as AsyncStrategy
from penstock.fluid.incubate.fleet.parameter_server.distribute_transpiler.distributed_strategy import DistributedStrategy as DistributedStrategy
from penstock.fluid.incubate.fleet.parameter_server.distribute_transpiler.distributed_strategy import GeoStrategy as GeoStrategy
from penstock.fluid.incubate.fleet.parameter_server.distribute_transpiler.distributed_strategy import HalfAsyncStrategy as HalfAsyncStrategy
from penstock.fluid.incubate.fleet.parameter_server.distribute_transpiler.distributed_strategy import StrategyFactory as StrategyFactory
from penstock.fluid.incubate.fleet.parameter_server.distribute_transpiler.distributed_strategy import SyncStrategy as SyncStrategy
from penstock.fluid.incubate.fleet.parameter_server.distribute_transpiler.distributed_strategy import TrainerRuntimeConfig as TrainerRuntimeConfig
from penstock.fluid.optimizer import Optimizer as Optimizer
from penstock.fluid.parallel_executor import ParallelExecutor as ParallelExecutor
from penstock.fluid.transpiler.distribute_transpiler import DistributeTranspiler as OriginTranspiler
from penstock.fluid.transpiler.distribute_transpiler import DistributeTranspilerConfig as DistributeTranspilerConfig
from penstock.fluid.transpiler.distribute_transpiler import DistributedMode as DistributedMode
from penstock.fluid.transpiler.distribute_transpiler import ServerRuntimeConfig as ServerRuntimeConfig

class DistributedTranspiler(Fleet):
    def __init__(self) -> None: ...
    def barrier_worker(self) -> Any: ...
    def distributed_optimizer(self, optimizer: Any, strategy: Any = ...) -> Any: ...
    def init_server(self, model_dir: str | None = ...) -> Any: ...
    def init_worker(self) -> Any: ...
    def run_server(self) -> Any: ...
    def save_inference_model(self, executor: Executor, dirname: str, feeded_var_names: Any, target_vars: Any, main_program: Program | None = ..., export_for_deployment: bool = ...) -> Any: ...
    def save_persistables(self, executor: Executor, dirname: str, main_program: Program | None = ...) -> Any: ...
    def stop_worker(self) -> Any: ...
class TranspilerOptimizer(DistributedOptimizer):
    def __init__(self, optimizer: Any, strategy: Any = ...) -> None: ...
    def minimize(self, loss: Variable, scopes: None = ..., startup_program: Program | None = ..., parameter_list: list[Any] | None = ..., no_grad_set: set[Any] | None = ...) -> tuple[Any, ...]: ...
fleet: Any
__all__: list[str]
