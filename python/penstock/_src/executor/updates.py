"""The update ops that a run needs, if its fetch_list holds results of minimize."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

from penstock._src.ir.program import OpRole

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from penstock._src.ir.operator import Operator
    from penstock._src.ir.program import Program


def _is_update(op: Operator) -> bool:
    return bool(op._role & OpRole.Optimize)


def updates_to_keep(program: Program, updates: Sequence[Operator], use_prune: bool) -> list[Operator] | None:
    """Returns the update ops that a run needs besides its fetches, or None if nothing can be removed."""
    for op in updates:
        if not _is_update(op):
            raise TypeError(f"fetch_list holds the op {op.type}, which is not the update of an optimizer")
    updates = [op for op in updates if op.block.idx == 0]  # ops inside a branch run with it
    every = [op for op in program.global_block().ops if _is_update(op)]
    named = {op._id for op in updates}
    if not use_prune and (not named or all(op._id in named for op in every if op.input("Param"))):
        return None
    return updates or every


class PrunedPrograms:
    """The parts of programs that runs with results of minimize, or with use_prune, need."""

    def __init__(self, prune: Callable[[Program, list[str], list[str], list[Operator]], Program]) -> None:
        """`prune` is Executor._prune_program."""
        self._prune = prune
        self._known: weakref.WeakKeyDictionary[Program, dict[Any, tuple[int | None, Program | None]]] = (
            weakref.WeakKeyDictionary()
        )

    def of(
        self, program: Program, feeds: list[str], fetches: list[str], updates: list[Operator], use_prune: bool
    ) -> Program:
        """Returns the part of the program that the fetches and the updates need; the program itself if it has no other
        updates."""
        key = (use_prune, tuple(feeds), tuple(fetches), tuple(op._id for op in updates))
        known = self._known.setdefault(program, {})
        content, pruned = known.get(key, (None, None))
        if content != program.desc.content_id:
            content = program.desc.content_id
            kept = updates_to_keep(program, updates, use_prune)
            pruned = None if kept is None else self._prune(program, feeds, fetches, kept)
            known[key] = content, None if pruned is program else pruned  # itself would be kept forever
        return pruned or program
