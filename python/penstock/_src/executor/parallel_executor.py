"""ParallelExecutor, which older scripts for Fluid use: a CompiledProgram with an Executor."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock._src.base import devices
from penstock._src.base.errors import state_error
from penstock._src.executor import executor
from penstock._src.executor.build_options import BuildStrategy, ExecutionStrategy
from penstock._src.executor.compiler import CompiledProgram
from penstock._src.executor.scopes import global_scope
from penstock._src.ir import framework
from penstock._src.ir.types import CPUPlace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any

    from penstock._penstock import Scope
    from penstock._src.ir.program import Program
    from penstock._src.ir.typing import Feed
    from penstock._src.ir.variable import Variable


class ParallelExecutor:
    """Runs one program on several places of this process, as many as CPU_NUM sets (default 1), or together with other
    trainers.

    Args:
        use_cuda (bool): run on GPUs, which is not supported: True raises an error, or, with PENSTOCK_CUDA_FALLBACK=1 in
            the environment, means the CPU.
        loss_name (str | None): the loss; required if the program has a backward pass.
        main_program (Program | None): the program to run; None: the default main program.
        share_vars_from (ParallelExecutor | None): an executor that has run; has no effect, because variables are always
            those of the scope.
        exec_strategy (ExecutionStrategy | None): how Fluid schedules ops; has no effect.
        build_strategy (BuildStrategy | None): as in CompiledProgram.with_data_parallel.
        num_trainers (int): replaces `num_trainers` of `build_strategy`, unless it is 1.
        trainer_id (int): replaces `trainer_id` of `build_strategy`, unless it is 0.
        scope (Scope | None): holds the variables; None: the global scope.

    Raises:
        NotImplementedError: `use_cuda` is true and the fallback is not set.
        TypeError: `share_vars_from` is not a ParallelExecutor.

    Example:
        loss = fluid.layers.mean(fluid.layers.fc(fluid.data('x', [None, 4]), 1))
        fluid.Executor().run(fluid.default_startup_program())
        exe = fluid.ParallelExecutor(use_cuda=False, loss_name=loss.name)
        value, = exe.run([loss.name], feed={'x': np.ones((2, 4), 'float32')})
    """

    def __init__(
        self,
        use_cuda: bool,
        loss_name: str | None = None,
        main_program: Program | None = None,
        share_vars_from: ParallelExecutor | None = None,
        exec_strategy: ExecutionStrategy | None = None,
        build_strategy: BuildStrategy | None = None,
        num_trainers: int = 1,
        trainer_id: int = 0,
        scope: Scope | None = None,
    ) -> None:
        if use_cuda:
            devices.use_cpu_for("ParallelExecutor with use_cuda")
        if share_vars_from is not None and not isinstance(share_vars_from, ParallelExecutor):
            raise TypeError(f"ParallelExecutor: share_vars_from must be a ParallelExecutor, not {share_vars_from!r}")
        build_strategy = build_strategy or BuildStrategy()
        if num_trainers != 1:
            build_strategy.num_trainers = num_trainers
        if trainer_id != 0:
            build_strategy.trainer_id = trainer_id
        program = framework.default_main_program() if main_program is None else main_program
        shared = None if share_vars_from is None else share_vars_from._compiled
        self._compiled: CompiledProgram = CompiledProgram(program).with_data_parallel(
            loss_name=loss_name, build_strategy=build_strategy, exec_strategy=exec_strategy, share_vars_from=shared
        )
        self._scope = global_scope() if scope is None else scope
        self._executor = executor.Executor(CPUPlace())
        self._dropped = True

    @property
    def device_count(self) -> int:
        """The number of places of this process that run the program."""
        return self._compiled._place_count()

    def batches(self, feeds: Callable[[], Iterable[dict[str, Any]]]) -> Iterator[dict[str, Any]]:
        """Yields this trainer's feeds until the feeds of all trainers have ended, like CompiledProgram.batches.

        Args:
            feeds (callable): returns an iterator of dicts, as run() takes them.

        Returns:
            Iterator[dict]: the feeds.
        """
        return self._compiled.batches(feeds)

    def run(
        self,
        fetch_list: Sequence[Variable | str],
        feed: Feed | Sequence[Feed] | None = None,
        feed_dict: Feed | Sequence[Feed] | None = None,
        return_numpy: bool = True,
    ) -> list[Any]:  # as Executor.run
        """Runs the program once, like Executor.run.

        Args:
            fetch_list (list): the variables to return, or their names.
            feed (dict | list | None): {name: array}, split evenly among the places, or a list with such a dict for each
                place.
            feed_dict (dict | None): an older name of `feed`.
            return_numpy (bool): True: return arrays; False: return LoDTensors.

        Returns:
            list: the value of each entry of `fetch_list`.
        """
        self._dropped = False
        return self._executor.run(
            self._compiled,
            feed=feed_dict if feed is None else feed,
            fetch_list=fetch_list,
            scope=self._scope,
            return_numpy=return_numpy,
        )

    def drop_local_exe_scopes(self) -> None:
        """Has no effect: Fluid frees the scopes of each device here, but Penstock plans the memory of temporaries for
        the whole step.

        Raises:
            RuntimeError: called before the first run, as in Fluid.
        """
        if not self._compiled._has_run:
            raise state_error("E-compile-unrun", "ParallelExecutor: drop_local_exe_scopes comes after the first run")
        self._dropped = True

    def _need_create_local_exe_scopes(self) -> bool:
        """Returns whether Fluid would create scopes for each device in the next run."""
        return self._dropped
