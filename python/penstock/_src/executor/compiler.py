"""CompiledProgram: a program with options of its run, for Fluid's scripts. The Executor compiles every program at its
first run, so a CompiledProgram adds only this: runs on several places, with a feed and a result for each, and the
exchange of gradients between trainers."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

from penstock import _penstock
from penstock._src.base import environment
from penstock._src.base.errors import not_built, program_error, state_error
from penstock._src.executor import data_parallel, joined_trainers, passes, uneven_batches
from penstock._src.executor.build_options import BuildStrategy, ExecutionStrategy
from penstock._src.ir import places as _places
from penstock._src.ir.graph import Graph
from penstock._src.ir.program import OpRole, Program
from penstock._src.ir.types import CPUPlace, device_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any

    from penstock._penstock import Scope
    from penstock._src.executor.data_parallel import PlacesOfProgram
    from penstock._src.ir.typing import Place


class CompiledProgram:
    """A program with Fluid's run options, for Executor.run.

    Args:
        program_or_graph (Program): the program.
        build_strategy (BuildStrategy | None): options.

    Raises:
        TypeError: `program_or_graph` is not a Program.

    Example:
        loss = fluid.layers.mean(fluid.layers.fc(fluid.data('x', [None, 4]), 1))
        compiled = fluid.CompiledProgram(fluid.default_main_program()).with_data_parallel(loss_name=loss.name)
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(fluid.default_startup_program())
        exe.run(compiled, feed={'x': np.ones((2, 4), 'float32')}, fetch_list=[loss])
    """

    def __init__(self, program_or_graph: Program | Graph, build_strategy: BuildStrategy | None = None) -> None:
        if not isinstance(program_or_graph, (Program, Graph)):
            raise TypeError(f"CompiledProgram takes a Program, not {type(program_or_graph).__name__}")
        # Fluid's scripts inspect a compiled Graph, which has no program; it cannot run.
        self._program = program_or_graph if isinstance(program_or_graph, Program) else None
        self._build_strategy = build_strategy or BuildStrategy()
        self._is_data_parallel = self._has_run = False
        # The program for several trainers, and its source.
        self._ranked: tuple[tuple[int, int], list[Program]] | None = None
        self._places: Sequence[CPUPlace] | None = None  # of this process
        self._placed: tuple[int, PlacesOfProgram | None] | None = None  # content, program for several
        self._begun_in: weakref.WeakSet[Scope] = weakref.WeakSet()
        self._share_vars_from: CompiledProgram | None = None
        self._compiled_for: tuple[Scope, type[Place]] | None = None  # set by _compile
        self._does_nothing = self._passes_applied = False
        self._with_backward: tuple[int, bool] | None = None  # the program's content, and whether it has a backward part
        self._live = True  # whether this trainer's examples count
        self._live_in: weakref.WeakKeyDictionary[Scope, bool] = weakref.WeakKeyDictionary()

    def with_data_parallel(
        self,
        loss_name: str | None = None,
        build_strategy: BuildStrategy | None = None,
        exec_strategy: ExecutionStrategy | None = None,
        share_vars_from: CompiledProgram | None = None,
        places: Place | Sequence[Place] | None = None,
    ) -> CompiledProgram:
        """Prepares the program for data parallel training.

        Each of `places` runs its part of the batch on a thread: each gradient is the mean over all places, and a
        fetched value is the concatenation of the values of all places. One place runs the whole batch with
        OMP_NUM_THREADS threads; several places share them. A program that exchanges parameters with pservers, or
        looks up rows of a table that they hold, or that reads values that its updates compute (dynamic loss scaling),
        always runs on one place, because a step of all places equals a step of one place with their joint batch.

        If `build_strategy` sets num_trainers, trainer_id and perhaps trainers_endpoints, several trainers each run the
        program on their part of the batch: the first run in a scope joins the trainers and sends the values of trainer
        0 to all of them, and in each run every gradient is the mean over all trainers. Without num_trainers, these are
        the trainers for which DistributeTranspiler transpiled the program in mode nccl2, if it did.

        With on_uneven of `build_strategy`, the places of a process weight their gradients by their numbers of examples,
        so the gradient is that of the mean over all examples. If a batch has fewer examples than places, the places
        without examples repeat the first example, which does not count ('join') or counts ('pad'), or the run raises an
        error ('error').

        Args:
            loss_name (str | None): the loss; required if the program has a backward pass.
            build_strategy (BuildStrategy | None): takes precedence over that of the constructor.
            exec_strategy (ExecutionStrategy | None): ignored; accepted for compatibility with Fluid.
            share_vars_from (CompiledProgram | None): a program that has run; has no effect, because variables are
                always those of the scope.
            places (list[Place] | Place | None): CPU places; None: the result of fluid.cpu_places(), as many as CPU_NUM.

        Returns:
            CompiledProgram: itself.

        Raises:
            RuntimeError: called twice.
            ValueError: `loss_name` is missing.
            TypeError: an argument has the wrong type.
            NotImplementedError: a place is on a GPU, and PENSTOCK_CUDA_FALLBACK is not set.
        """
        if self._is_data_parallel:
            raise state_error("E-compile-twice", "with_data_parallel was called already")
        if loss_name is None and self._has_backward():
            raise ValueError("with_data_parallel needs loss_name: the program has a backward part")
        arguments: tuple[tuple[object, type], ...] = (
            (build_strategy, BuildStrategy),
            (exec_strategy, ExecutionStrategy),
            (share_vars_from, CompiledProgram),
        )
        for value, kind in arguments:
            if value is not None and not isinstance(value, kind):
                raise TypeError(f"with_data_parallel takes a {kind.__name__}, not {value!r}")
        self._places = self._cpu_places(places)
        self._build_strategy = build_strategy or self._build_strategy
        self._share_vars_from = share_vars_from
        self._does_nothing = exec_strategy is not None and exec_strategy._dry_run
        self._is_data_parallel = True
        return self

    def batches(self, feeds: Callable[[], Iterable[dict[str, Any]]]) -> Iterator[dict[str, Any]]:
        """Yields this trainer's feeds until the feeds of all trainers have ended.

        With on_uneven, the gradient of each step is that of the mean over the examples of all trainers, whatever the
        sizes of their batches; the elements that layers.mean averages to the loss are counted as examples. A trainer
        whose feeds have ended

        * runs its last batch, or one example of zeros if it had no batch; this batch does not count ('join').
          Optimizers that update the rows of a sparse gradient update those of this batch, and the batch changes the
          running statistics of batch_norm, except with sync_batch_norm,
        * starts its feeds again from the beginning, and they count again ('pad'),
        * raises an error, and so do all other trainers ('error').

        Args:
            feeds (callable): returns an iterator of dicts, as Executor.run takes them.

        Returns:
            Iterator[dict]: the feeds.

        Raises:
            ValueError: on_uneven is '', or there are no feeds to pad with.
            penstock.ProgramError: trainers have different numbers of batches, with 'error' (E-uneven-data).
        """
        return uneven_batches.batches_of_compiled(self, feeds)

    def _on_uneven(self) -> str:
        """Returns on_uneven of the strategy, or else of the transpiler's config."""
        uneven_batches.check(self._build_strategy.on_uneven)
        return self._build_strategy.on_uneven or _penstock.on_uneven_of(self._require_program().desc)

    def _has_backward(self) -> bool:
        if self._program is None:
            return False
        known, content = self._with_backward, self._program.desc.content_id
        if known is None or known[0] != content:
            found = any(op._role & OpRole.Backward for op in self._program.global_block().ops)
            known = self._with_backward = content, found
        return known[1]

    @staticmethod
    def _cpu_places(places: Place | Sequence[Place] | None) -> list[CPUPlace] | None:
        """Returns places on the CPU; None if CPU_NUM decides at the first run."""
        if places is None:
            return None
        listed: list[object] = list(places) if isinstance(places, (list, tuple)) else [places]
        if not listed:
            raise ValueError("with_data_parallel: places is empty")
        return [device_of(place, "with_data_parallel") for place in listed]

    def _asked_places(self) -> int:
        """Returns the number of places of with_data_parallel, or else the value of CPU_NUM at the first call."""
        if self._places is None:
            self._places = _places.cpu_places()
        return len(self._places)

    def _place_count(self) -> int:
        """Returns the number of places of this process that run the program."""
        if self._program is None or not self._is_data_parallel or self._asked_places() == 1:
            return 1
        joint = data_parallel.asks_servers(self._program) or data_parallel.uses_updates(self._program)
        return 1 if joint else self._asked_places()

    def _apply_passes(self) -> None:
        """Applies the strategy's passes, before the first run."""
        builder = self._build_strategy._builder
        if builder is not None and not self._passes_applied and self._program is not None:
            self._program = passes.apply(self._program, builder)
            self._passes_applied = True

    def _on_places(self) -> PlacesOfProgram | None:
        """Returns the program for several places; None if it runs on one."""
        self._apply_passes()
        if self._program is None or not self._is_data_parallel or self._asked_places() == 1:
            return None
        content = self._program.desc.content_id
        if self._placed is None or self._placed[0] != content:
            self._placed = content, self._place() if self._place_count() > 1 else None
        return self._placed[1]

    def _place(self) -> PlacesOfProgram:
        program = self._runnable()
        count, (trainers, _) = self._asked_places(), self._trainers()
        if trainers != 1:
            raise not_built(
                f"with_data_parallel: {count} places of one process, and num_trainers={trainers}; a program runs "
                "either on several places of one process or by several trainers with one place each"
            )
        self._has_run = True
        return data_parallel.PlacesOfProgram(
            program, count, self._reduction(), self._build_strategy._syncs_batch_norm(), self._on_uneven()
        )

    def _require_shared(self) -> None:
        shared = self._share_vars_from
        if shared is not None and not shared._is_data_parallel:
            raise program_error(
                "E-compile-shared", "share_vars_from: with_data_parallel was not called for that program"
            )
        if shared is not None and not shared._has_run:
            raise program_error("E-compile-shared", "share_vars_from: that program has not run yet")

    def _compile(self, scope: Scope, place: Place) -> Program | None:
        """Performs the checks that Fluid performs before the first run. All calls must have the same scope and kind of
        place."""
        if self._compiled_for not in (None, (scope, type(place))):
            raise program_error(
                "E-compile-place", "a program that was compiled for one scope and place cannot be compiled for others"
            )
        self._require_shared()
        self._compiled_for = (scope, type(place))
        return self._program

    def _require_program(self) -> Program:
        if self._program is None:
            raise TypeError("CompiledProgram of a Graph: a Graph does not run here; give it the Program")
        return self._program

    def _runnable(self) -> Program:
        """Returns the program, after the checks that precede a run."""
        program = self._require_program()
        if self._build_strategy.gradient_scale_strategy == BuildStrategy.GradientScaleStrategy.Customized:
            raise not_built(
                "BuildStrategy: a gradient of the loss that the caller feeds is not built; "
                "fluid.gradients takes target_gradients"
            )
        self._require_shared()
        return program

    def _to_run(self, scope: Scope, run: Callable[..., Any]) -> Program:
        """Returns the program to run, after its options have been applied. `run` runs a program in the scope."""
        self._runnable()
        self._apply_passes()
        strategy, on_uneven = self._build_strategy, self._on_uneven()
        if strategy.num_trainers != 1 and not self._is_data_parallel:
            raise program_error(
                "E-compile-trainers",
                f"BuildStrategy.num_trainers is {strategy.num_trainers}: several trainers need with_data_parallel",
            )
        self._has_run = True
        trainers, rank = self._trainers()
        if trainers == 1 or not self._has_backward():
            return self._require_program()  # each trainer runs independently
        main, begin = self._for_ranks(rank)
        if scope not in self._begun_in:
            run(begin)
            self._begun_in.add(scope)
            self._live_in[scope] = True
        if on_uneven and self._live_in[scope] != self._live:
            uneven_batches.tell_live(scope, self._live)
            self._live_in[scope] = self._live
        return main

    def _trainers(self) -> tuple[int, int]:
        """Returns the number of trainers and the number of this one: those of the strategy, or else of a program that
        was transpiled for mode nccl2."""
        strategy = self._build_strategy
        if strategy.num_trainers != 1 or self._program is None:
            return strategy.num_trainers, strategy.trainer_id
        joined = joined_trainers.trainers_of(self._program)
        return (1, 0) if joined is None else (len(joined[0]), joined[1])

    def _for_ranks(self, rank: int) -> list[Program]:
        """Returns the program that sums gradients, and the one that runs before it, once per scope."""
        strategy, program = self._build_strategy, self._require_program()
        made_of = program.desc.content_id, rank
        if self._ranked is None or self._ranked[0] != made_of:
            rings = max(strategy.nccl_comm_num, getattr(program, "_nccl_comm_num", 1))
            made = _penstock.data_parallel(
                program.desc,
                self._addresses(),
                rank,
                rings,
                self._reduction(),
                sync_batch_norm=strategy._syncs_batch_norm(),
                group_ranks=self._group_ranks(),
            )
            self._ranked = made_of, [Program._of(desc) for desc in made]
        return self._ranked[1]

    def _reduction(self) -> str:
        strategy = self._build_strategy
        if strategy.gradient_scale_strategy == BuildStrategy.GradientScaleStrategy.One:
            if self._on_uneven():
                raise program_error(
                    "E-uneven-scale",
                    "BuildStrategy: on_uneven averages over all trainers' examples, but "
                    "GradientScaleStrategy.One does not average",
                )
            return "sum"
        return "shares" if self._on_uneven() else "mean"

    def _group_ranks(self) -> int:
        """Returns the number of trainers that first sum among themselves; 0: the trainers of one host."""
        strategy, program = self._build_strategy, self._program
        if strategy.use_hierarchical_allreduce:
            ranks = strategy.hierarchical_allreduce_inter_nranks
        elif program is not None and getattr(program, "_use_hierarchical_allreduce", False):
            ranks = program._hierarchical_allreduce_inter_nranks
        else:
            return 0
        return ranks if ranks > 1 else 0

    def _addresses(self) -> list[str]:
        """Returns the addresses of all trainers, from the strategy, the transpiled program or the launcher."""
        strategy = self._build_strategy
        if strategy.num_trainers == 1:
            joined = joined_trainers.trainers_of(self._require_program())
            return [] if joined is None else list(joined[0])
        addresses = (
            strategy.trainers_endpoints
            or getattr(self._program, "_trainers_endpoints", None)
            or environment.listed("PADDLE_TRAINER_ENDPOINTS")
        )
        if len(addresses) != strategy.num_trainers:
            raise program_error(
                "E-compile-trainers",
                f"BuildStrategy: num_trainers is {strategy.num_trainers}, but there are {len(addresses)} addresses "
                f"of trainers {list(addresses)}; set trainers_endpoints, transpile with mode nccl2, or start by "
                "penstock.distributed.launch",
            )
        return list(addresses)


joined_trainers.compile_by(lambda program: CompiledProgram(program).with_data_parallel(loss_name="", places=CPUPlace()))
