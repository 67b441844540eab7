"""The update ops that a run needs, if its fetch_list holds results of minimize."""

from penstock._src.ir.program import OpRole


def _is_update(op):
    return bool(op.attr("op_role") & OpRole.Optimize) if op.has_attr("op_role") else False


def updates_to_keep(program, updates, use_prune):
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
