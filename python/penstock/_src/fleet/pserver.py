"""The fleet for jobs with pservers, based on DistributeTranspiler.

Users import penstock.fluid.incubate.fleet.parameter_server.distribute_transpiler, whose docstring has an example.
"""

from __future__ import annotations

import os
import warnings
from typing import TYPE_CHECKING

from penstock import _penstock
from penstock._src.base.argument_texts import MINIMIZE
from penstock._src.base.doc_texts import with_texts
from penstock._src.base.errors import program_error
from penstock._src.executor.compiler import CompiledProgram
from penstock._src.executor.executor import Executor
from penstock._src.executor.parallel_executor import ParallelExecutor
from penstock._src.fleet.base import DistributedOptimizer, Fleet
from penstock._src.fleet.mode import Mode
from penstock._src.fleet.strategies import (
    AsyncStrategy,
    DistributedStrategy,
    GeoStrategy,
    HalfAsyncStrategy,
    StrategyFactory,
    SyncStrategy,
)
from penstock._src.io import inference_model, model_files, pserver_held, pserver_values, var_files, var_records
from penstock._src.ir.framework import default_main_program, default_startup_program
from penstock._src.ir.program import Program
from penstock._src.optimizer.base import Optimizer
from penstock._src.transpile.communicator import Communicator
from penstock._src.transpile.config import DistributedMode, DistributeTranspilerConfig
from penstock._src.transpile.distribute_transpiler import DistributeTranspiler as OriginTranspiler
from penstock._src.transpile.geo_sgd_transpiler import GeoSgdTranspiler

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from typing import Any

    from penstock._src.fleet.base import AnyOptimizer
    from penstock._src.ir.operator import Operator
    from penstock._src.ir.variable import Variable


class DistributedTranspiler(Fleet):
    """The fleet of trainers and pservers. The only instance is `fleet`.

    Example:
        from penstock.fluid.incubate.fleet.base import role_maker
        from penstock.fluid.incubate.fleet.parameter_server.distribute_transpiler import fleet
        fleet.init(role_maker.UserDefinedRoleMaker(0, role_maker.Role.WORKER, 2, ['127.0.0.1:6174']))
        loss = fluid.layers.mean(fluid.layers.fc(fluid.data('x', [None, 4]), 1))
        fleet.distributed_optimizer(fluid.optimizer.SGD(0.1)).minimize(loss)
        assert 'send' in [op.type for op in fleet.main_program.global_block().ops]
    """

    def __init__(self) -> None:
        super().__init__(Mode.TRANSPILER)
        self._transpile_config: DistributedStrategy | None = None
        self._transpiler: OriginTranspiler | None = None
        self._origin_program: Program | None = None
        self.startup_program: Program | None = None
        self.main_program: Program | None = None
        self.vars_info: dict[str, dict[str, list[str]]] | None = None
        self._communicator: Communicator | None = None
        self._started_by_run = False

    def _minimized(self) -> tuple[OriginTranspiler, DistributedStrategy, Program, Program]:
        """Returns what minimize() has made: the transpiler, its strategy, the main and the startup program."""
        made = self._transpiler, self._transpile_config, self.main_program, self.startup_program
        transpiler, strategy, main, startup = made
        if transpiler is None or strategy is None or main is None or startup is None:
            raise program_error("E-fleet-order", "fleet.distributed_optimizer(...).minimize(loss) must be called first")
        return transpiler, strategy, main, startup

    def init_worker(self) -> None:
        """Starts the communicator of this trainer's program. The startup program waits for the pservers. Scripts for
        Fluid before 1.8 do not call this method; the startup program then starts the communicator.

        If trainers do not wait for each other's steps (all modes but sync), this method waits until all trainers that
        know each other's addresses have called it, so that they begin together.

        Raises:
            ValueError: minimize() was not called.
        """
        _, strategy, _, _ = self._minimized()
        if self._communicator is None or not self._communicator.is_running():
            self._start_communicator()
        elif not self._started_by_run:
            warnings.warn("fleet.init_worker: the communicator is already running", stacklevel=2)
        self._started_by_run = False
        if strategy.get_trainer_runtime_config().mode != DistributedMode.SYNC:
            self._role()._meet_workers()

    def _before_startup(self) -> None:
        """Called before each run of a trainer's startup program."""
        if self._communicator is None:
            self._start_communicator()
            self._started_by_run = True

    def _start_communicator(self) -> None:
        transpiler, strategy, main, _ = self._minimized()
        if len(transpiler._together) > 1:  # several programs run without a communicator
            return
        config = strategy.get_trainer_runtime_config()
        said: dict[str, Any] | None = None
        if config.mode == DistributedMode.GEO:
            said = {
                "push_vars": self.vars_info,
                "trainers": self.worker_num(),
                "push_nums": strategy.get_program_config().geo_sgd_need_push_nums,
            }
        elif config.mode == DistributedMode.SYNC:
            said = {"pserver_endpoints": self.server_endpoints(), "trainer_id": self.worker_index()}
        mode = DistributedMode.ASYNC if config.mode is None else config.mode
        self._communicator = Communicator(main, mode, said, config.get_communicator_flags())
        self._communicator.start()

    def init_server(self, model_dir: str | None = None) -> None:
        """Sets the initial values of this pserver's parameters, from the startup program or a saved model.

        Args:
            model_dir (str): a folder with a file per parameter, as written by save_persistables on trainers or on one
                machine. Optimizer state, learning-rate steps and tables with is_distributed are loaded if they have
                files; otherwise they have their initial values, with a warning for optimizer state.

        Raises:
            ValueError: minimize() was not called; the folder or a file is missing, or a file has another shape.
        """
        _, _, main, startup = self._minimized()
        self._running().run(startup)
        if model_dir:
            for one in pserver_held.programs_in(main, pserver_values.is_in_folder(model_dir)):
                pserver_values.load_folder(one, model_dir, pserver_held.MODEL_KINDS, strictly=False)

    def run_server(self) -> None:
        """Serves until every trainer has stopped.

        Raises:
            ValueError: minimize() was not called.
            penstock.PeerError: a trainer has ended without stop_worker().
        """
        _, _, main, _ = self._minimized()
        self._running().run(main)

    def barrier_worker(self) -> None:
        """Waits until all trainers have called it, and until the pservers have the gradients of their steps before.

        What a trainer saves after it therefore contains these steps. In geo-SGD, the changes since a trainer's last
        exchange stay with the trainer.
        """
        strategy, communicator = self._transpile_config, self._communicator
        if strategy is not None and communicator is not None and communicator.is_running():
            if strategy.get_trainer_runtime_config().mode == DistributedMode.ASYNC:
                _penstock.flush_communicator()
        super().barrier_worker()

    def stop_worker(self) -> None:
        """Sends waiting gradients, and reports to the pservers that this trainer has completed."""
        if self._communicator is not None:
            self._communicator.stop()
        self._role()._finalize()
        _penstock.complete_rpc()
        self._running().close()

    def distributed_optimizer(  # type: ignore[override]  # each fleet has its own strategies
        self, optimizer: AnyOptimizer, strategy: DistributeTranspilerConfig | DistributedStrategy | None = None
    ) -> TranspilerOptimizer:
        """Wraps an optimizer; its minimize() then also creates this process's programs.

        Args:
            optimizer (Optimizer): updates the parameters.
            strategy (DistributedStrategy|DistributeTranspilerConfig): how trainers and pservers work together; None:
                StrategyFactory.create_sync_strategy().

        Returns:
            TranspilerOptimizer: the wrapped optimizer, whose minimize() creates the programs.

        Raises:
            ValueError: fleet.init() was not called, or `optimizer` is not an optimizer.
            TypeError: `strategy` is not a strategy.
        """
        if not isinstance(optimizer, Optimizer):
            raise ValueError(f"distributed_optimizer takes an optimizer, not {optimizer!r}")
        if not self._is_initialized:
            raise program_error("E-fleet-order", "fleet.init(role_maker) must be called before distributed_optimizer")
        made = self._optimizer = TranspilerOptimizer(optimizer, strategy)
        return made

    def save_inference_model(
        self,
        executor: Executor,
        dirname: str,
        feeded_var_names: Sequence[str],
        target_vars: Sequence[Variable],
        main_program: Program | None = None,
        export_for_deployment: bool = True,
    ) -> None:
        """Saves the part of the program that computes the targets, with the parameters that this trainer has, and
        whole tables, as the pservers have them.

        Args:
            executor (Executor): fetches values that only the pservers have.
            dirname (str): the folder.
            feeded_var_names (list of str): the names of the variables that will be fed.
            target_vars (list of Variable): the variables that will be computed.
            main_program (Program): the program; None: the program before it was distributed.
            export_for_deployment (bool): False: save the whole program.
        """
        _require_executor("save_inference_model", executor)
        if main_program is not None:
            _require_program("save_inference_model", main_program)
            inference_model.save_inference_model(
                dirname, feeded_var_names, target_vars, executor, main_program, None, None, export_for_deployment
            )
            return
        self._minimized()
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "save_inference_model: program_only")
            inference_model.save_inference_model(
                dirname,
                feeded_var_names,
                target_vars,
                executor,
                self._origin_program,
                None,
                None,
                export_for_deployment,
                True,
            )
        model = "__model__" if export_for_deployment else "__model__.main_program"
        saved = Program.parse_from_string(var_records.read_file(os.path.join(dirname, model)))
        names = {var.name for var in saved.list_vars() if var_records.is_persistable(var)}
        var_files.save_vars(executor, dirname, saved, sorted(names))

    def save_persistables(self, executor: Executor, dirname: str, main_program: Program | None = None) -> None:
        """Saves all persistable variables, for init_server() and for runs on one machine.

        As fluid.io.save_persistables with the trainer's program: trainer 0 also saves what only the pservers have.

        Args:
            executor (Executor): sends the requests to the pservers.
            dirname (str): the folder; each variable has a file with its name.
            main_program (Program): a trainer's program; None: fleet.main_program.

        Raises:
            ValueError: the program is not a trainer's.
        """
        _require_executor("save_persistables", executor)
        if main_program is None:
            self._minimized()
            main_program = self.main_program
        program = _require_program("save_persistables", main_program)
        if not getattr(program, "_is_distributed", False):
            raise program_error(
                "E-fleet-program",
                "fleet.save_persistables: the program is not a trainer's; fluid.io.save_persistables saves it",
            )
        model_files.save_persistables(executor, dirname, program)

    def _transpile(self, given: DistributedStrategy | DistributeTranspilerConfig) -> None:
        """Creates this process's programs from the default programs."""
        strategy = _strategy_of(given)
        config = strategy.get_program_config()
        self._transpile_config = strategy
        self._origin_program = default_main_program().clone(for_test=False)
        geo = config.geo_sgd_mode
        transpiler = GeoSgdTranspiler(config) if geo else OriginTranspiler(config)
        transpiler._set_server_config(strategy.get_server_runtime_config())
        here: dict[str, Any] = (
            {} if self.is_worker() else {"current_endpoint": self.server_endpoints()[self.server_index()]}
        )
        # A pserver transpiles as trainer 0: its programs do not depend on the trainer.
        transpiler.transpile(
            trainer_id=self.worker_index() if self.is_worker() else 0,
            pservers=self.server_endpoints(to_string=True),
            trainers=self.worker_num(),
            sync_mode=config.sync_mode,
            **here,
        )
        self._transpiler, self._communicator = transpiler, None
        self.vars_info = transpiler._get_vars_info() if isinstance(transpiler, GeoSgdTranspiler) else None
        if self.is_worker():
            self.main_program = transpiler.get_trainer_program(wait_port=config.wait_port)
            self.startup_program = default_startup_program()
            self.startup_program._before_run = self._before_startup
        else:
            self.main_program, self.startup_program = transpiler.get_pserver_programs(here["current_endpoint"])


def _strategy_of(given: DistributedStrategy | DistributeTranspilerConfig) -> DistributedStrategy:
    """Returns the given strategy, or the strategy that a given configuration describes."""
    if isinstance(given, DistributedStrategy):
        return given
    strategy: DistributedStrategy
    if given.geo_sgd_mode:
        strategy = GeoStrategy(given.geo_sgd_need_push_nums)
    elif given.sync_mode:
        strategy = SyncStrategy()
    elif given.runtime_split_send_recv and not given.half_async:
        strategy = AsyncStrategy()
    else:
        strategy = HalfAsyncStrategy()
    strategy.set_program_config(given)
    return strategy


def _require_executor(function: str, executor: object) -> None:
    if isinstance(executor, ParallelExecutor) or not isinstance(executor, Executor):
        raise TypeError(f"fleet.{function} takes an Executor, not {type(executor).__name__}")


def _require_program(function: str, program: object) -> Program:
    if isinstance(program, CompiledProgram) or not isinstance(program, Program):
        raise TypeError(f"fleet.{function} takes a Program, not {type(program).__name__}")
    return program


fleet = DistributedTranspiler()


class TranspilerOptimizer(DistributedOptimizer):
    """The optimizer that fleet.distributed_optimizer() returns; its minimize() also creates this process's programs.

    Args:
        optimizer (Optimizer): computes the updates.
        strategy (DistributedStrategy | DistributeTranspilerConfig | None): how trainers and pservers work
            together; None: StrategyFactory.create_sync_strategy().

    Raises:
        TypeError: `strategy` has another type, or `optimizer` is not an optimizer.

    Example:
        from penstock.fluid.incubate.fleet.base import role_maker
        from penstock.fluid.incubate.fleet.parameter_server.distribute_transpiler import TranspilerOptimizer, fleet
        fleet.init(role_maker.UserDefinedRoleMaker(0, role_maker.Role.WORKER, 1, ['127.0.0.1:6174']))
        loss = fluid.layers.mean(fluid.layers.fc(fluid.data('x', [None, 4]), 1))
        TranspilerOptimizer(fluid.optimizer.SGD(0.1)).minimize(loss)
        assert 'send' in [op.type for op in fleet.main_program.global_block().ops]
    """

    _strategy: DistributedStrategy | DistributeTranspilerConfig

    def __init__(
        self, optimizer: AnyOptimizer, strategy: DistributeTranspilerConfig | DistributedStrategy | None = None
    ) -> None:
        super().__init__(optimizer, strategy)
        if strategy is None:
            self._strategy = StrategyFactory.create_sync_strategy()
        elif not isinstance(strategy, (DistributedStrategy, DistributeTranspilerConfig)):
            raise TypeError(
                f"strategy must be one of StrategyFactory, or a DistributeTranspilerConfig, not {strategy!r}"
            )

    @with_texts(MINIMIZE)
    def minimize(  # type: ignore[override]  # as in Fluid
        self,
        loss: Variable,
        scopes: Sequence[Any] | None = None,
        startup_program: Program | None = None,
        parameter_list: Sequence[Variable | str] | None = None,
        no_grad_set: Collection[Variable | str] | None = None,
    ) -> tuple[list[Operator], Sequence[Sequence[Variable]]]:
        """Adds gradients and updates, then creates this process's fleet.main_program and fleet.startup_program.

        Args:
            loss (Variable): the loss to minimize, in the default main program.
            scopes (None): must be None.
            {startup_program}
            {parameter_list}
            {no_grad_set}

        {updates_and_pairs}

        Raises:
            TypeError: several losses or programs are given.
            penstock.ProgramError: an earlier call has transpiled the program (E-fleet-twice).
        """
        if isinstance(loss, (list, tuple)) or isinstance(startup_program, (list, tuple)):
            raise TypeError("minimize takes one loss and one startup program")
        program = default_main_program()
        if getattr(program, "_fleet_transpiled", False):
            raise program_error(
                "E-fleet-twice",
                "fleet: an earlier minimize() has transpiled this program",
                "let the other optimizers minimize first, without fleet, and only the last by distributed_optimizer()",
            )
        made = self._optimizer.minimize(loss, startup_program, parameter_list, no_grad_set)
        fleet._transpile(self._strategy)
        program._fleet_transpiled = True
        return made
