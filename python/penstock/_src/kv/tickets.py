"""Tickets: what push and pull return at once, to wait for later."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence


class Pending(Protocol):
    """A request that is on its way: `wait` returns when it is done, and raises its error."""

    def done(self) -> bool: ...

    def wait(self) -> object: ...


class Done:
    """A request that was done at once."""

    def done(self) -> bool:
        return True

    def wait(self) -> None:
        pass


DONE = Done()


class Ticket:
    """A push or pull in progress.

    An array that was given as `out` must not be read, and is not complete, before wait() has returned, here or of the
    store. An array that was pushed may be changed at once.

    Args:
        pending (list): the requests.
        after (list): calls that complete the result.

    Example:
        kv = penstock.kv.create('local')
        kv.init('w', np.zeros(2))
        out = np.empty(2)
        ticket = kv.pull('w', out=out)
        ticket.wait()
        assert ticket.done() and (out == 0).all()
    """

    def __init__(self, pending: Sequence[Pending], after: Sequence[Callable[[], None]] = ()) -> None:
        self._pending = list(pending)
        self._after = list(after)
        self._error: BaseException | None = None
        self._told = False

    def done(self) -> bool:
        """Tells whether the request is complete, with or without an error.

        Returns:
            bool: whether wait() would return at once.
        """
        return all(one.done() for one in self._pending)

    def wait(self) -> None:
        """Waits until the request is complete.

        Raises:
            penstock.ProgramError: the request was refused; the pserver's words say why.
            penstock.PeerError: another process of the job is gone.
        """
        while self._pending and self._error is None:
            try:
                self._pending[0].wait()
                del self._pending[0]
            except Exception as error:
                self._error = error
                self._pending.clear()
                self._after.clear()
        if self._error is not None:
            self._told = True
            raise self._error
        while self._after:
            self._after.pop(0)()

    def is_told(self) -> bool:
        """Tells whether wait() has raised the request's error.

        Returns:
            bool: whether the error needs no further mention.
        """
        return self._told
