"""hvd.elastic.run: training that goes on when ranks are lost or come back."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from penstock._penstock import PeerError
from penstock._src.base.doc_texts import with_texts
from penstock._src.hvd import membership
from penstock._src.hvd.job import the_job
from penstock._src.hvd.texts import ARRAYS

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    from penstock._src.hvd.elastic_state import State

    R = TypeVar("R")


class HostsUpdatedInterrupt(RuntimeError):
    """Ranks wait to join the job. `State.commit` and `State.check_host_updates` raise it on all ranks, and `run`
    catches it.

    Args:
        skip_sync (bool): `run` does not call State.sync in the next round.

    Example:
        import penstock.hvd as hvd
        assert not hvd.elastic.HostsUpdatedInterrupt().skip_sync
    """

    def __init__(self, skip_sync: bool = False) -> None:
        super().__init__("ranks wait to join the job")
        self.skip_sync = skip_sync


@with_texts(ARRAYS)
def run(func: Callable[..., R]) -> Callable[..., R]:
    """Decorates a training function so that it survives the loss of ranks. Its first argument is a State.

    The function begins with `state.sync()`, which gives all ranks the same state. If a rank is lost, the others get
    HorovodInternalError in their next exchange. Each returns to its last commit, joins the ranks of the next round,
    in which hvd.rank() and hvd.size() may be others, runs the callbacks of `register_reset_callbacks`, and calls the
    function again. Programs of `DistributedOptimizer` follow the number of ranks.

    The launcher restarts lost ranks (--max_role_restart) or goes on without them (--min_workers). Without these options
    errors pass through. Between `init` and the function, ranks must not exchange anything, except that they run the
    startup program: a rank that comes later would do so alone.

    Args:
        func (callable): takes the state and any other arguments. It continues from what the state says.

    Returns:
        callable: takes the same arguments, and returns what `func` returns.

    Raises:
        penstock.StateError: (the result) `init` has not been called (E-hvd-init).
        penstock.PeerError: (the result) a rank is lost, and the limits of the launcher are reached (E-elastic-end); or
            a rank is lost in a job that is not elastic.

    {example}
        state = hvd.elastic.ObjectState(batch=0, weights=np.zeros(3, 'float32'))

        @hvd.elastic.run
        def train(state):
            while state.batch < 10:
                state.weights += hvd.allreduce(np.ones(3, 'float32'))
                state.batch += 1
                state.commit()

        train(state)
    """

    @functools.wraps(func)
    def elastic(state: State, *args: Any, **kwargs: Any) -> R:
        syncs, again, why = True, False, ""
        while True:
            job = the_job("elastic.run")
            try:
                if again:
                    membership.join_next_round(job, why)
                    state.on_reset()
                if syncs:
                    state.sync()
                    membership.note_state()
                return func(state, *args, **kwargs)
            except HostsUpdatedInterrupt as interrupt:
                syncs, again, why = not interrupt.skip_sync, True, ""
            except PeerError as error:
                if job.round is None or getattr(error, "id", "") in ("E-elastic-end", "E-elastic-launcher"):
                    raise
                syncs, again, why = True, True, str(error)
                state.restore()

    return elastic
