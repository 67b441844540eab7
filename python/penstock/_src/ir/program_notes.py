"""ProgramNotes: what the transpiler, the executor and Fleet note of a program. It is not part of the program."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from penstock._penstock import ProgramDesc
    from penstock._src.executor.compiler import CompiledProgram
    from penstock._src.ir.program import Program
    from penstock._src.transpile.distribute_transpiler import DistributeTranspiler
    from penstock._src.transpile.vars_distributed import VarsDistributed


class ProgramNotes:
    """The notes of a program. Those without a value do not exist until they are made."""

    # For Executor.run.
    _before_run: Callable[[], object] | None = None  # it calls this first
    _then: Sequence[Program] = ()  # it runs these afterwards: startup programs of other programs of a job
    _served_with: Sequence[Program] = ()  # a pserver's programs that it serves with this one
    # ({pserver: the transpiler whose program has served them all}, the transpiler of this program, its pserver)
    _serves: tuple[dict[str, DistributeTranspiler], DistributeTranspiler, str] | None = None
    _compiled_for_trainers: CompiledProgram
    _trainers_known: tuple[int, tuple[list[str], int] | None]  # content_id, the trainers and the number of this one

    # Of transpile().
    _transpile_source: tuple[ProgramDesc, int]  # what the program was before, content_id of what it is since
    _transpilers: list[DistributeTranspiler]  # of the programs that share this startup program
    _source_main: Program
    _placed_by: DistributeTranspiler  # of a trainer's program: can place it on other pservers
    _sharded_tables: list[str]
    _pservers: list[str]
    _fleet_transpiled: bool

    # Of Fluid's names, for its scripts.
    _distributed_lookup_table: str | None
    _distributed_lookup_tables: list[str]
    _endpoints: list[str]
    _hierarchical_allreduce_inter_nranks: int
    _is_chief: bool
    _is_distributed: bool
    _nccl_comm_num: int
    _origin_program: Program
    _parameters_on_pservers: VarsDistributed
    _pipeline_opt: dict[str, Any]
    _ps_endpoint: str
    _trainer_id: int
    _trainers_endpoints: list[str]
    _use_hierarchical_allreduce: bool
