"""Programs of mode nccl2, whose gradients the runner adds up over the trainers, wherever they run: a CompiledProgram
without num_trainers, Executor.run and train_from_dataset join the trainers of the transpiled program."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock import _penstock
from penstock._src.base.errors import state_error

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock._penstock import Scope
    from penstock._src.executor.compiler import CompiledProgram
    from penstock._src.ir.program import Program


_make_compiled: Callable[[Program], CompiledProgram] | None = None  # compile_by() sets it


def trainers_of(program: Program) -> tuple[list[str], int] | None:
    """Returns the addresses of the trainers that train a program of mode nccl2 together, and the number of this one.

    Args:
        program (Program): any program.

    Returns:
        tuple[list[str], int] | None: None if the program trains nothing, exchanges its gradients itself or was not
            transpiled for mode nccl2.

    Raises:
        penstock.StateError: neither the program nor the environment states the number of this trainer
            (E-ranks-unknown).
    """
    content = program.desc.content_id
    known = getattr(program, "_trainers_known", None)
    if known is None or known[0] != content:
        addresses = _penstock.trainers_to_join(program.desc)
        known = program._trainers_known = content, (addresses, _number_in(program, addresses)) if addresses else None
    return known[1]


def _number_in(program: Program, addresses: list[str]) -> int:
    number = getattr(program, "_trainer_id", None)
    if number is None:
        job = _penstock.job_of_environment()
        number = job[1] if job is not None and list(job[0]) == addresses else None
    if number is None:
        raise state_error(
            "E-ranks-unknown",
            f"the program was transpiled for the {len(addresses)} trainers {', '.join(addresses)}, but nothing says "
            "which of them this process is; start it by penstock.distributed.launch, or set num_trainers and "
            "trainer_id of BuildStrategy",
        )
    return number


def compile_by(make: Callable[[Program], CompiledProgram]) -> None:
    """Sets the function that makes the CompiledProgram of a program. compiler.py calls it, because it imports this
    module."""
    global _make_compiled
    _make_compiled = make


def compiled_of(program: Program) -> CompiledProgram | None:
    """Returns the CompiledProgram that a plain run of the program stands for; None if the program runs as it is."""
    if trainers_of(program) is None:
        return None
    compiled = getattr(program, "_compiled_for_trainers", None)
    if compiled is None and _make_compiled is not None:
        compiled = program._compiled_for_trainers = _make_compiled(program)
    return compiled


def program_to_run(program: Program, scope: Scope, run: Callable[[Program], object]) -> Program:
    """Returns the program that adds up gradients in place of a program of mode nccl2, and other programs as they are.
    `run` runs a program in the scope."""
    compiled = compiled_of(program)
    return program if compiled is None else compiled._to_run(scope, run)
