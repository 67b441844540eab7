"""Strategies: how trainers and pservers work together, and the settings of each.

strategy = StrategyFactory.create_async_strategy()
fleet.distributed_optimizer(optimizer, strategy).minimize(loss)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock._src.base.doc_texts import with_texts
from penstock._src.base.errors import not_built
from penstock._src.executor.build_options import BuildStrategy, ExecutionStrategy
from penstock._src.fleet.runtime_config import TrainerRuntimeConfig, cpu_num
from penstock._src.transpile.config import DistributedMode, DistributeTranspilerConfig
from penstock._src.transpile.server_config import ServerRuntimeConfig

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, TypeVar

    T = TypeVar("T")


def _set_fields(config: T, kind: type[T], given: object) -> T:
    """Sets the fields of a given dict in the configuration and returns it, or returns the given configuration."""
    if isinstance(given, kind):
        return given
    if not isinstance(given, dict):
        raise TypeError(f"a dict or a {kind.__name__} is required, not {given!r}")
    for name, value in given.items():
        if not hasattr(config, name):
            raise ValueError(f"{kind.__name__} doesn't have key: {name}")
        setattr(config, name, value)
    return config


_CONFIGS = {
    "not_a_config": """Raises:
    TypeError: `config` is neither a configuration nor a dict.
    ValueError: the option is unknown.""",
    "not_a_field": """Raises:
    TypeError: `config` is neither a configuration nor a dict.
    ValueError: the field is unknown.""",
}


class DistributedStrategy:
    """The settings of all parts of a job. StrategyFactory creates usable strategies. Each setter accepts a
    configuration or a dict of its fields, and keeps the fields that define the strategy.

    Example:
        from penstock.fluid.incubate.fleet.parameter_server.distribute_transpiler import StrategyFactory
        strategy = StrategyFactory.create_async_strategy()
        strategy.set_program_config({'slice_var_up': False})
        assert not strategy.get_program_config().slice_var_up
    """

    _MODE: int | None = None
    _PROGRAM: Mapping[str, bool] = {}  # fields of the program configuration that define this strategy
    _WAITS = False  # whether the threads of a trainer have common steps

    def __init__(self) -> None:
        self._program_config = DistributeTranspilerConfig()
        self._trainer_runtime_config = TrainerRuntimeConfig()
        self._server_runtime_config = ServerRuntimeConfig()
        self._execute_strategy = ExecutionStrategy()
        self._build_strategy = BuildStrategy()
        self._execute_strategy.num_threads = int(cpu_num())
        if int(cpu_num()) > 1:
            self._build_strategy.reduce_strategy = BuildStrategy.ReduceStrategy.Reduce
        self.debug_opt: Mapping[Any, Any] | None = None
        if self._MODE is not None:
            self.check_program_config()
            self.check_trainer_runtime_config()
            self.check_build_strategy()
            self.check_execute_strategy()

    def _require_kind(self) -> None:
        if self._MODE is None:
            raise not_built("DistributedStrategy is only the base class of strategies; use StrategyFactory")

    def set_debug_opt(self, opt_info: Mapping[Any, Any] | None) -> None:
        """Accepts the debug options of Fluid's trainers; they have no effect.

        Args:
            opt_info (dict | None): stored for get_debug_opt().
        """
        self.debug_opt = opt_info

    def get_debug_opt(self) -> dict[Any, Any]:
        """Returns the argument of set_debug_opt().

        Returns:
            dict: empty if nothing was set.
        """
        return dict(self.debug_opt) if isinstance(self.debug_opt, dict) else {}

    def get_program_config(self) -> DistributeTranspilerConfig:
        """Returns the transpiler's configuration.

        Returns:
            DistributeTranspilerConfig: the strategy's configuration; change it with set_program_config().
        """
        return self._program_config

    @with_texts(_CONFIGS)
    def set_program_config(self, config: DistributeTranspilerConfig | Mapping[str, int]) -> None:
        """Sets the transpiler's configuration, except the fields that define the strategy.

        Args:
            config (DistributeTranspilerConfig | dict): the configuration, or some of its fields.

        {not_a_field}
        """
        self._program_config = _set_fields(self._program_config, DistributeTranspilerConfig, config)
        self.check_program_config()

    def check_program_config(self) -> None:
        """Sets the fields of the program configuration that define this strategy."""
        self._require_kind()
        self._program_config.sync_mode = False
        self._program_config.runtime_split_send_recv = True
        for name, value in self._PROGRAM.items():
            setattr(self._program_config, name, value)

    def get_trainer_runtime_config(self) -> TrainerRuntimeConfig:
        """Returns the settings of the trainers' communicator.

        Returns:
            TrainerRuntimeConfig: the strategy's settings.
        """
        return self._trainer_runtime_config

    def set_trainer_runtime_config(self, config: Mapping[str, int | str] | TrainerRuntimeConfig) -> None:
        """Sets the settings of the trainers' communicator.

        Args:
            config (TrainerRuntimeConfig | dict): the settings, or some of its runtime_configs.

        Raises:
            TypeError: `config` is neither a configuration nor a dict.
            ValueError: the setting is unknown.
        """
        if isinstance(config, TrainerRuntimeConfig):
            self._trainer_runtime_config = config
        elif isinstance(config, dict):
            known = self._trainer_runtime_config.runtime_configs
            for name, value in config.items():
                if name not in known:
                    raise ValueError(f"TrainerRuntimeConfig doesn't have key: {name}")
                known[name] = value
        else:
            raise TypeError(f"a dict or a TrainerRuntimeConfig is required, not {config!r}")
        self.check_trainer_runtime_config()

    def check_trainer_runtime_config(self) -> None:
        """Sets the communicator's mode to that of this strategy."""
        self._require_kind()
        self._trainer_runtime_config.mode = self._MODE

    def get_server_runtime_config(self) -> ServerRuntimeConfig:
        """Returns the settings of the pservers.

        Returns:
            ServerRuntimeConfig: the strategy's settings.
        """
        return self._server_runtime_config

    @with_texts(_CONFIGS)
    def set_server_runtime_config(self, config: Mapping[str, int] | ServerRuntimeConfig) -> None:
        """Sets the pservers' settings.

        Args:
            config (ServerRuntimeConfig | dict): the settings, or some of its fields.

        {not_a_field}
        """
        self._server_runtime_config = _set_fields(self._server_runtime_config, ServerRuntimeConfig, config)
        self.check_server_runtime_config()

    def check_server_runtime_config(self) -> None:
        """Does nothing: every strategy allows all settings of pservers."""
        self._require_kind()

    def get_execute_strategy(self) -> ExecutionStrategy:
        """Returns the options with which a trainer runs its program.

        Returns:
            ExecutionStrategy: the strategy's options.
        """
        return self._execute_strategy

    @with_texts(_CONFIGS)
    def set_execute_strategy(self, config: ExecutionStrategy | Mapping[str, int]) -> None:
        """Sets the options with which a trainer runs its program.

        Args:
            config (ExecutionStrategy | dict): the options, or some of them.

        {not_a_config}
        """
        self._execute_strategy = _set_fields(self._execute_strategy, ExecutionStrategy, config)
        self.check_execute_strategy()

    def check_execute_strategy(self) -> None:
        """Sets use_thread_barrier if the threads of a trainer have common steps."""
        self._require_kind()
        if self._WAITS:
            self._execute_strategy.use_thread_barrier = True

    def get_build_strategy(self) -> BuildStrategy:
        """Returns the options with which a trainer's program is built.

        Returns:
            BuildStrategy: the strategy's options.
        """
        return self._build_strategy

    @with_texts(_CONFIGS)
    def set_build_strategy(self, config: BuildStrategy | Mapping[str, int]) -> None:
        """Sets the options with which a trainer's program is built.

        Args:
            config (BuildStrategy | dict): the options, or some of them.

        {not_a_config}
        """
        self._build_strategy = _set_fields(self._build_strategy, BuildStrategy, config)
        self.check_build_strategy()

    def check_build_strategy(self) -> None:
        """Sets options so that trainers do not sum gradients among themselves."""
        self._require_kind()
        self._build_strategy.async_mode = True


class SyncStrategy(DistributedStrategy):
    """Trains in sync mode: all trainers take each step together, and parameters are updated with the mean of their
    gradients. Its programs are byte for byte those of DistributeTranspiler in sync mode.

    Example:
        from penstock.fluid.incubate.fleet.parameter_server.distribute_transpiler import SyncStrategy
        assert SyncStrategy().get_program_config().completely_not_async
    """

    _MODE = DistributedMode.SYNC
    _PROGRAM = {"half_async": True, "completely_not_async": True}
    _WAITS = True


class AsyncStrategy(DistributedStrategy):
    """Trains in async mode: no trainer waits for another, nor for its own gradients to arrive.

    Example:
        from penstock.fluid.incubate.fleet.parameter_server.distribute_transpiler import AsyncStrategy
        assert AsyncStrategy().get_program_config().runtime_split_send_recv
    """

    _MODE = DistributedMode.ASYNC


class HalfAsyncStrategy(DistributedStrategy):
    """Trains in half-async mode: no trainer waits for another; each waits for its own gradients.

    Example:
        from penstock.fluid.incubate.fleet.parameter_server.distribute_transpiler import HalfAsyncStrategy
        assert HalfAsyncStrategy().get_program_config().half_async
    """

    _MODE = DistributedMode.HALF_ASYNC
    _PROGRAM = {"half_async": True}
    _WAITS = True


class GeoStrategy(DistributedStrategy):
    """Trains by geo-SGD: each trainer updates its own parameters and exchanges the changes after every
    `update_frequency` steps.

    Args:
        update_frequency (int): steps between two exchanges.

    Example:
        from penstock.fluid.incubate.fleet.parameter_server.distribute_transpiler import GeoStrategy
        assert GeoStrategy(5).get_program_config().geo_sgd_need_push_nums == 5
    """

    _MODE = DistributedMode.GEO
    _PROGRAM = {"geo_sgd_mode": True}

    def __init__(self, update_frequency: int = 100) -> None:
        super().__init__()
        self.set_program_config({"geo_sgd_need_push_nums": update_frequency})


class StrategyFactory:
    """Creates strategies.

    Example:
        from penstock.fluid.incubate.fleet.parameter_server.distribute_transpiler import StrategyFactory
        assert StrategyFactory.create_geo_strategy(5).get_program_config().geo_sgd_need_push_nums == 5
    """

    @staticmethod
    def create_sync_strategy() -> SyncStrategy:
        """Creates a strategy of sync mode.

        Returns:
            SyncStrategy: the strategy.
        """
        return SyncStrategy()

    @staticmethod
    def create_half_async_strategy() -> HalfAsyncStrategy:
        """Creates a strategy of half-async mode.

        Returns:
            HalfAsyncStrategy: the strategy.
        """
        return HalfAsyncStrategy()

    @staticmethod
    def create_async_strategy() -> AsyncStrategy:
        """Creates a strategy of async mode.

        Returns:
            AsyncStrategy: the strategy.
        """
        return AsyncStrategy()

    @staticmethod
    def create_geo_strategy(update_frequency: int = 100) -> GeoStrategy:
        """Creates a strategy of geo-SGD.

        Args:
            update_frequency (int): steps between two exchanges.

        Returns:
            GeoStrategy: the strategy.
        """
        return GeoStrategy(update_frequency)
