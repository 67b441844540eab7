"""BuildStrategy and ExecutionStrategy: the options of a CompiledProgram."""

from __future__ import annotations

import copy
import enum
from typing import TYPE_CHECKING

from penstock._src.base.errors import state_error, suggestion
from penstock._src.executor import passes

if TYPE_CHECKING:
    from penstock._src.executor.passes import PassBuilder


class _Options:
    """Accepts the options that a subclass declares, and checks their types. Most options concern several devices, or
    how Fluid schedules ops, and have no effect."""

    _DEFAULTS: dict[str, object] = {}
    _builder: PassBuilder | None = None

    def __init_subclass__(cls) -> None:
        cls._DEFAULTS = {**cls._DEFAULTS, **{name: vars(cls)[name] for name in vars(cls).get("__annotations__", ())}}

    def __init__(self) -> None:
        for name, value in self._DEFAULTS.items():
            object.__setattr__(self, name, copy.copy(value))

    def _set(self, name: str, value: object) -> None:
        kind = type(self).__name__
        if name not in self._DEFAULTS:
            raise AttributeError(f"{kind} has no option {name}{suggestion(name, self._DEFAULTS)}")
        default = self._DEFAULTS[name]
        if default is None or isinstance(default, bool):
            fits = value is default or value in (False, True)
        else:
            fits = isinstance(value, type(default))
        if not fits:
            raise TypeError(f"{kind}.{name} is {default!r} by default, so it cannot be {value!r}")
        object.__setattr__(self, name, bool(value) if isinstance(default, bool) else value)

    if not TYPE_CHECKING:  # with this method, checkers would accept names that are no options

        def __setattr__(self, name: str, value: object) -> None:
            self._set(name, value)


class BuildStrategy(_Options):
    """Fluid's options for building a program for several devices or trainers.

    Most options concern several devices of a process, or how Fluid schedules ops, and have no effect. These do:
    `num_trainers`, `trainer_id` and `trainers_endpoints` (the trainers that exchange gradients), `nccl_comm_num`
    (rings), `use_hierarchical_allreduce` and `hierarchical_allreduce_inter_nranks` (ranks of one machine sum first),
    `gradient_scale_strategy`, `sync_batch_norm`, and `on_uneven`, which Fluid does not have: '', 'join', 'pad' or
    'error' decides what trainers do if their batches differ in size or number; see CompiledProgram.batches.

    Raises:
        AttributeError: an option has another name.
        TypeError: a value has another type.

    Example:
        strategy = fluid.BuildStrategy()
        strategy.num_trainers, strategy.trainer_id = 2, 0
        strategy.on_uneven = 'join'
    """

    class ReduceStrategy(enum.IntEnum):
        AllReduce = 0
        Reduce = 1

    class GradientScaleStrategy(enum.IntEnum):
        CoeffNumDevice = 0
        One = 1
        Customized = 2

    async_mode: bool = False
    cache_runtime_context: bool = False
    debug_graphviz_path: str = ""
    enable_auto_fusion: bool = False
    enable_backward_optimizer_op_deps: bool = True
    enable_inplace: bool = True
    enable_sequential_execution: bool = False
    fuse_all_optimizer_ops: bool = False
    fuse_all_reduce_ops: bool = True
    fuse_bn_act_ops: bool = False
    fuse_broadcast_ops: bool = True
    fuse_elewise_add_act_ops: bool = False
    fuse_relu_depthwise_conv: bool = False
    gradient_scale_strategy: GradientScaleStrategy = GradientScaleStrategy.CoeffNumDevice
    hierarchical_allreduce_inter_nranks: int = 0
    is_distribution: bool = False
    memory_optimize: bool | None = None
    mkldnn_enabled_op_types: set[str] = set()
    nccl_comm_num: int = 1
    on_uneven: str = ""
    num_trainers: int = 1
    reduce_strategy: ReduceStrategy = ReduceStrategy.AllReduce
    remove_unnecessary_lock: bool = True
    sync_batch_norm: bool = False
    trainer_id: int = 0
    trainers_endpoints: list[str] = []
    use_hierarchical_allreduce: bool = False

    # Options that other passes would result from; Fluid does not let them change once the passes exist.
    _FIXED_WITH_PASSES = frozenset(
        [
            "debug_graphviz_path",
            "enable_auto_fusion",
            "enable_sequential_execution",
            "fuse_all_optimizer_ops",
            "fuse_bn_act_ops",
            "fuse_broadcast_ops",
            "fuse_elewise_add_act_ops",
            "fuse_relu_depthwise_conv",
            "gradient_scale_strategy",
            "reduce_strategy",
            "remove_unnecessary_lock",
            "sync_batch_norm",
        ]
    )

    def _set(self, name: str, value: object) -> None:
        if self._builder is not None and name in self._FIXED_WITH_PASSES:
            raise state_error(
                "E-pass-finalized", f"BuildStrategy.{name} cannot change after _finalize_strategy_and_create_passes()"
            )
        super()._set(name, value)

    def _finalize_strategy_and_create_passes(self) -> PassBuilder:
        """Returns the passes that the options stand for, which the caller may change until the program first runs.

        Returns:
            PassBuilder: the same one at each call.

        Example:
            strategy = fluid.BuildStrategy()
            builder = strategy._finalize_strategy_and_create_passes()
            builder.append_pass('multi_batch_merge_pass').set('num_repeats', 2)
        """
        builder = self._builder or passes.builder_of(self)
        object.__setattr__(self, "_builder", builder)
        return builder

    def _syncs_batch_norm(self) -> bool:
        return self.sync_batch_norm or (self._builder is not None and passes.syncs_batch_norm(self._builder))


class ExecutionStrategy(_Options):
    """Fluid's options for the scheduling of ops. They are accepted and have no effect.

    Example:
        strategy = fluid.ExecutionStrategy()
        strategy.num_threads = 2
    """

    allow_op_delay: bool = False
    num_iteration_per_drop_scope: int = 100
    num_iteration_per_run: int = 1
    num_threads: int = 0
    use_cuda: bool = False
    use_experimental_executor: bool = True
    use_thread_barrier: bool = False
    _dry_run: bool = False  # runs do nothing
