"""A run of a program on several places: what it is fed in parts, and its values, joined or one of each place."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock import _penstock
from penstock._src.executor import data_parallel, process_end, progress, remote_params
from penstock._src.executor.causes import causes_in_python
from penstock._src.executor.feeds import dict_of, feeds_of, parts_of, uncast
from penstock._src.executor.fetches import returned, split_fetches

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from penstock._penstock import Scope
    from penstock._src.executor.data_parallel import PlacesOfProgram
    from penstock._src.ir.program import Program
    from penstock._src.ir.typing import Feed
    from penstock._src.ir.variable import Variable


def run_on_places(
    executor: _penstock.Executor,
    program: Program,
    placed: PlacesOfProgram,
    feed: Feed | Sequence[Feed] | None,
    fetch_list: Sequence[Variable | str] | None,
    scope: Scope,
    return_numpy: bool,
    apart: bool,
) -> list[Any]:  # as Executor.run
    """Runs the program on its places as Executor.run does; `apart`: each value is a list with that of each place."""
    if program._before_run is not None:
        program._before_run()
    executor.require_open()
    block = program.global_block()
    listed = isinstance(feed, (list, tuple))
    given = [dict_of(one) for one in feed] if isinstance(feed, (list, tuple)) else [dict_of(feed)]
    whole = [feeds_of(block, one) for one in given]
    names, _ = split_fetches(fetch_list)
    feeds = parts_of(placed, whole, listed)
    process_end.this_thread.ran = True
    with causes_in_python():
        try:
            by_place = placed.run(scope, feeds, names)
        except _penstock.ProgramError as error:
            given_as_is = [
                uncast(block, one, cast) if error.id.startswith("E-shape-") else None for one, cast in zip(given, whole)
            ]
            if not any(given_as_is):
                raise
            whole = [one or cast for one, cast in zip(given_as_is, whole)]
            by_place = placed.run(scope, parts_of(placed, whole, listed), names)
    remote_params.note_run(program, scope)
    progress.note_run(program, sum(feeds, []), names, by_place[0])
    values = [list(of_name) for of_name in zip(*by_place)]
    if apart:
        return [[returned(value, return_numpy) for value in of_name] for of_name in values]
    return [returned(data_parallel.merge(of_name), return_numpy) for of_name in values]
