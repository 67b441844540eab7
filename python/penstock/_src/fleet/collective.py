"""The fleet for jobs of equal ranks, based on the transpiler's collective modes.

Users import penstock.fluid.incubate.fleet.collective, whose docstring has an example.
"""

from __future__ import annotations

import contextlib
import warnings
from typing import TYPE_CHECKING

from penstock._src.base.argument_texts import MINIMIZE
from penstock._src.base.doc_texts import with_texts
from penstock._src.base.errors import program_error, state_error
from penstock._src.base.same_arguments import arguments_of
from penstock._src.executor.compiler import CompiledProgram
from penstock._src.executor.executor import Executor
from penstock._src.executor.parallel_executor import ParallelExecutor
from penstock._src.fleet.base import DistributedOptimizer, Fleet
from penstock._src.fleet.checkpoints import Checkpoints
from penstock._src.fleet.collective_strategy import DistributedStrategy, settle
from penstock._src.fleet.mode import Mode
from penstock._src.io import inference_model, model_files
from penstock._src.ir import framework
from penstock._src.ir.program import Program
from penstock._src.mixed_precision import decorator
from penstock._src.optimizer.base import Optimizer
from penstock._src.optimizer.wrappers import RecomputeOptimizer
from penstock._src.transpile.config import DistributeTranspilerConfig
from penstock._src.transpile.distribute_transpiler import DistributeTranspiler

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any, NoReturn

    from penstock._src.fleet.base import AnyOptimizer
    from penstock._src.ir.operator import Operator
    from penstock._src.ir.variable import Variable
    from penstock._src.mixed_precision.decorator import OptimizerWithMixedPrecision


class Collective(Checkpoints, Fleet):
    """The fleet of ranks that all-reduce gradients or average parameters. The only instance is `fleet`.

    Example:
        from penstock.fluid.incubate.fleet.base import role_maker
        from penstock.fluid.incubate.fleet.collective import fleet
        fleet.init(role_maker.UserDefinedCollectiveRoleMaker(0, ['127.0.0.1:6170']))
        loss = fluid.layers.mean(fluid.layers.fc(fluid.data('x', [None, 4]), 1))
        fleet.distributed_optimizer(fluid.optimizer.SGD(0.1)).minimize(loss)
    """

    def __init__(self) -> None:
        super().__init__(Mode.COLLECTIVE)
        self.startup_program: Program | None = None
        self._origin_program: Program | None = None
        self._transpiled_program: Program | None = None
        self.main_program: CompiledProgram | Program | None = None

    def init_worker(self) -> None:
        """Only gives a warning: ranks have no pservers."""
        _of_servers("init_worker")

    def run_worker(self, main_programs: object = None, scopes: object = None) -> None:
        """Only gives a warning: ranks have no pservers.

        Args:
            main_programs (object | None): ignored; accepted for compatibility with Fluid.
            scopes (object | None): ignored; accepted for compatibility with Fluid.
        """
        _of_servers("run_worker")

    def init_server(self, model_dir: str | None = None) -> None:
        """Only gives a warning: ranks have no pservers.

        Args:
            model_dir (str | None): ignored; accepted for compatibility with Fluid.
        """
        _of_servers("init_server")

    def run_server(self) -> None:
        """Only gives a warning: ranks have no pservers."""
        _of_servers("run_server")

    def stop_worker(self) -> None:
        """Only gives a warning: ranks have no pservers."""
        _of_servers("stop_worker")

    def distributed_optimizer(  # type: ignore[override]  # each fleet has its own strategies
        self, optimizer: AnyOptimizer, strategy: DistributedStrategy | None = None
    ) -> CollectiveOptimizer:
        """Wraps an optimizer; its minimize() then also creates this rank's programs.

        Args:
            optimizer (Optimizer): updates the parameters.
            strategy (DistributedStrategy): how ranks work together; None: DistributedStrategy(), with which the
                executor all-reduces gradients.

        Returns:
            CollectiveOptimizer: the wrapped optimizer, whose minimize() creates the programs.
        """
        made = self._optimizer = CollectiveOptimizer(optimizer, strategy)
        return made

    def save_inference_model(
        self,
        executor: Executor,
        dirname: str,
        feeded_var_names: Sequence[str] | None = None,
        target_vars: Sequence[Variable] | None = None,
        main_program: Program | None = None,
        export_for_deployment: bool = True,
    ) -> None:
        """Saves the part of the program that computes the targets, and its parameters. One rank is enough.

        Args:
            executor (Executor): any executor.
            dirname (str): the folder.
            feeded_var_names (list of str): the names of the variables that will be fed.
            target_vars (list of Variable): the variables that will be computed.
            main_program (Program): the program; None: the program before it was distributed.
            export_for_deployment (bool): False: save the whole program.
        """
        program = self._program_to_save("save_inference_model", executor, main_program)
        inference_model.save_inference_model(
            dirname, feeded_var_names or [], target_vars or [], executor, program, None, None, export_for_deployment
        )

    def save_persistables(
        self, executor: Executor, dirname: str, main_program: Program | None = None, filename: str | None = None
    ) -> None:
        """Saves parameters, optimizer state and learning rates. One rank is enough.

        Args:
            executor (Executor): any executor.
            dirname (str): the folder.
            main_program (Program): the program; None: the program before it was distributed.
            filename (str): one file for all variables; None: a file per variable.
        """
        program = self._program_to_save("save_persistables", executor, main_program)
        model_files.save_persistables(executor, dirname, program, filename)

    def _program_to_save(self, function: str, executor: object, program: Program | None) -> Program:
        if isinstance(executor, ParallelExecutor) or not isinstance(executor, Executor):
            raise TypeError(f"fleet.{function} takes an Executor, not {type(executor).__name__}")
        program = self._origin_program if program is None else program
        if isinstance(program, CompiledProgram) or not isinstance(program, Program):
            raise TypeError(f"fleet.{function} takes a Program, not {type(program).__name__}")
        return program


def _of_servers(function: str) -> None:
    warnings.warn(f"fleet.{function} does nothing: the job has no parameter servers", stacklevel=2)


fleet = Collective()


class CollectiveOpBasedOptimizer(DistributedOptimizer):
    """Base class for your own optimizers for ranks; a subclass defines minimize().

    Args:
        optimizer (Optimizer): computes the updates.
        strategy (DistributedStrategy): how ranks work together.

    Raises:
        TypeError: `strategy` is not a DistributedStrategy, or `optimizer` is not an optimizer.

    Example:
        from penstock.fluid.incubate.fleet.collective import CollectiveOpBasedOptimizer, DistributedStrategy

        class Alone(CollectiveOpBasedOptimizer):
            def minimize(self, loss, *args):
                return self.apply_gradients(self.backward(loss))

        loss = fluid.layers.mean(fluid.layers.fc(fluid.data('x', [None, 4]), 1))
        Alone(fluid.optimizer.SGD(0.1), DistributedStrategy()).minimize(loss)
    """

    def __init__(self, optimizer: AnyOptimizer, strategy: DistributedStrategy | None = None) -> None:
        if not isinstance(strategy, DistributedStrategy):
            raise TypeError(f"strategy must be a DistributedStrategy, not {strategy!r}")
        super().__init__(optimizer, strategy)


class CollectiveOptimizer(DistributedOptimizer):
    """The optimizer that fleet.distributed_optimizer() returns; its minimize() also creates this rank's programs.

    Args:
        optimizer (Optimizer): computes the updates.
        strategy (DistributedStrategy | None): how ranks work together; None: DistributedStrategy().

    Raises:
        TypeError: `strategy` is not a DistributedStrategy, or `optimizer` is not an optimizer.
        ValueError: `strategy.recompute_checkpoints` is not a list.

    Example:
        from penstock.fluid.incubate.fleet.base import role_maker
        from penstock.fluid.incubate.fleet.collective import CollectiveOptimizer, fleet
        fleet.init(role_maker.UserDefinedCollectiveRoleMaker(0, ['127.0.0.1:6170']))
        loss = fluid.layers.mean(fluid.layers.fc(fluid.data('x', [None, 4]), 1))
        CollectiveOptimizer(fluid.optimizer.SGD(0.1)).minimize(loss)
    """

    _strategy: DistributedStrategy

    def __init__(self, optimizer: AnyOptimizer, strategy: DistributedStrategy | None = None) -> None:
        strategy = DistributedStrategy() if strategy is None else strategy
        if not isinstance(strategy, DistributedStrategy):
            raise TypeError(f"strategy must be a DistributedStrategy, not {strategy!r}")
        super().__init__(optimizer, strategy)
        # Between backward() and apply_gradients(): what backward() called, the startup program, the loss's name.
        self._begun: tuple[AnyOptimizer, Program, str] | None = None
        if not isinstance(strategy.recompute_checkpoints, list):
            raise ValueError(
                f"DistributedStrategy.recompute_checkpoints must be a list, not {strategy.recompute_checkpoints!r}"
            )
        self.print_config = False

    @with_texts(MINIMIZE)
    @arguments_of(Optimizer.minimize)
    def minimize(  # type: ignore[override]  # as in Fluid
        self, loss: Variable, startup_program: Program | None = None, *rest: Any, **named: Any
    ) -> tuple[list[Operator], Sequence[Sequence[Variable]]]:
        """Adds gradients and updates, then creates this rank's programs: fleet.main_program and fleet.startup_program.

        Args:
            loss (Variable): the loss to minimize.
            startup_program (Program): receives the initial values; None: the default one.
            parameter_list (list): the parameters to update; None: all trainable ones.
            no_grad_set (set): variables that get no gradient.

        {updates_and_pairs}

        {of_settings}
        """
        with self._acting_on(loss, startup_program) as (acting, startup):
            made = acting.minimize(loss, startup, *rest, **named)
        self._distribute(loss.block.program, startup, loss.name)
        return made

    @with_texts(MINIMIZE)
    @arguments_of(Optimizer.backward)
    def backward(
        self, loss: Variable, startup_program: Program | None = None, *rest: Any, **named: Any
    ) -> Sequence[Sequence[Variable]]:
        """Adds the backward pass, then creates this rank's programs: the gradients are those of all ranks.

        A program may change them before apply_gradients(), or compute its own update from them. Local SGD averages
        parameters after the update, so there apply_gradients() creates the programs.

        Args:
            {loss}
            startup_program (Program | None): the startup program; None: the default one.
            {parameters_and_callbacks}

        {pairs}

        {of_settings}
        """
        with self._acting_on(loss, startup_program) as (acting, startup):
            pairs = acting.backward(loss, startup, *rest, **named)
        self._begun = acting, startup, loss.name
        if self._averages_parameters():
            loss.block.program._before_run = _require_update
        else:
            self._distribute(loss.block.program, startup, loss.name)
        return pairs

    @with_texts(MINIMIZE)
    def apply_gradients(self, params_grads: Sequence[Any]) -> list[Operator]:
        """Adds the updates; creates this rank's programs, unless backward() has.

        {from_pairs}
        """
        acting, startup, loss = self._begun or (self._optimizer, framework.default_startup_program(), None)
        made = acting.apply_gradients(params_grads)
        main = framework.default_main_program()
        if loss is None:
            settle(self._strategy)
            self._distribute(main, startup, params_grads[0][1].name)
        elif self._averages_parameters():
            main._before_run = None
            self._distribute(main, startup, loss)
        else:
            fleet._origin_program = main.clone(for_test=False)  # with the optimizer's state
        self._begun = None
        return made

    def _averages_parameters(self) -> bool:
        return self._strategy.mode == "collective" and self._strategy.collective_mode == "local_sgd"

    def _distribute(self, main: Program, startup: Program, loss: str) -> None:
        """Makes this rank's programs; `loss` is the loss's name."""
        fleet.startup_program = startup
        fleet._origin_program = main.clone(for_test=False)
        fleet._transpiled_program = main
        fleet.main_program = self._program_of_rank(loss, startup, main)

    @contextlib.contextmanager
    def _acting_on(self, loss: Variable, startup_program: Program | None) -> Iterator[tuple[AnyOptimizer, Program]]:
        """Makes the loss's program and the startup program the default ones; yields the optimizer that acts, and the
        startup program."""
        settle(self._strategy)
        startup = framework.default_startup_program() if startup_program is None else startup_program
        with framework.program_guard(loss.block.program, startup):
            yield self._acting(), startup

    def _acting(self) -> AnyOptimizer:
        """Returns the optimizer with recomputation and mixed precision, if the strategy asks for them."""
        acting = self._recomputing(self._strategy)
        return _in_mixed_precision(acting, self._strategy) if self._strategy.use_amp else acting

    def _recomputing(self, strategy: DistributedStrategy) -> AnyOptimizer:
        if not strategy.forward_recompute:
            return self._optimizer
        if not strategy.recompute_checkpoints:
            raise program_error(
                "E-fleet-strategy", "DistributedStrategy: forward_recompute needs recompute_checkpoints"
            )
        recomputing = RecomputeOptimizer(self._optimizer)  # type: ignore[arg-type]  # it refuses others
        recomputing._set_checkpoints(strategy.recompute_checkpoints)
        return recomputing

    def _program_of_rank(self, loss: str, startup: Program, main: Program) -> CompiledProgram | Program:
        ranks = fleet.worker_num()
        if ranks == 1:
            return main
        strategy, addresses = self._strategy, fleet.worker_endpoints()
        if len({address.rpartition(":")[0] for address in addresses}) == 1:  # on one host, groups make no difference
            strategy.nccl_comm_num = 1
            strategy.use_hierarchical_allreduce = False
        config = DistributeTranspilerConfig()
        config.mode, config.collective_mode = strategy.mode, strategy.collective_mode
        config.nccl_comm_num = strategy.nccl_comm_num
        config.use_hierarchical_allreduce = strategy.use_hierarchical_allreduce
        config.hierarchical_allreduce_inter_nranks = strategy.hierarchical_allreduce_inter_nranks
        rank = fleet.worker_index()
        DistributeTranspiler(config).transpile(
            rank, program=main, trainers=",".join(addresses), startup_program=startup, current_endpoint=addresses[rank]
        )
        if strategy.mode == "collective":
            return main
        strategy.num_trainers, strategy.trainer_id, strategy.trainers_endpoints = ranks, rank, addresses
        return CompiledProgram(main).with_data_parallel(
            loss_name=loss, build_strategy=strategy, exec_strategy=strategy.exec_strategy
        )


def _in_mixed_precision(optimizer: AnyOptimizer, strategy: DistributedStrategy) -> OptimizerWithMixedPrecision:
    if isinstance(optimizer, decorator.OptimizerWithMixedPrecision):
        raise program_error(
            "E-fleet-strategy", "DistributedStrategy.use_amp: the optimizer is in mixed precision already"
        )
    return decorator.decorate(optimizer, init_loss_scaling=strategy.amp_loss_scaling, use_dynamic_loss_scaling=True)


def _require_update() -> NoReturn:
    raise state_error(
        "E-fleet-update",
        "fleet: local SGD averages parameters after the update; call apply_gradients() "
        "of the same optimizer after backward()",
    )
