"""Assigns slices to pservers: classes for DistributeTranspilerConfig.split_method.

Users import penstock.fluid.transpiler.ps_dispatcher, whose docstring has an example.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock import _penstock
from penstock._src.base.doc_texts import with_texts
from penstock._src.base.errors import program_error
from penstock._src.ir.types import dtype_size
from penstock._src.transpile.vars_distributed import VarStruct

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from penstock._penstock import TranspileConfig
    from penstock._src.ir.variable import Variable


class PSDispatcher:
    """Base of the dispatchers, which assign slices to pservers; a subclass overrides `dispatch`.

    `transpile` creates one object from the addresses, calls `dispatch` with the slices of each gradient, then `reset`,
    then `dispatch` once with the slices of all parameters. The last results are the placement.

    Args:
        pserver_endpoints (list[str]): addresses of the pservers.

    Raises:
        penstock.ProgramError: there is no pserver.

    Example:
        class ByRank(fluid.transpiler.PSDispatcher):
            def dispatch(self, varlist):
                return [self.eps[len(var.shape) % len(self.eps)] for var in varlist]
        config = fluid.DistributeTranspilerConfig()
        config.split_method = ByRank
    """

    def __init__(self, pserver_endpoints: Sequence[str]) -> None:
        self._eps = list(pserver_endpoints)
        if not self._eps:
            raise program_error("E-plan-no-pserver", "plan: the list of pservers is empty")
        self._step = 0

    @property
    def eps(self) -> list[str]:
        """Addresses of the pservers."""
        return self._eps

    def reset(self) -> None:
        """Makes the next dispatch start from the first pserver again."""
        self._step = 0

    def dispatch(self, varlist: Sequence[Any]) -> list[str]:
        """Chooses a pserver for each variable.

        Args:
            varlist (list): variables, with name, shape and dtype.

        Returns:
            list[str]: an address for each variable, in its order.

        Raises:
            NotImplementedError: the class does not override it.
        """
        raise NotImplementedError(f"{type(self).__name__} has no dispatch(varlist)")


_DISPATCH = {
    "chooses": """Chooses a pserver for each variable.

        Args:
            varlist (list): variables.

        Returns:
            list[str]: an address for each variable, in its order.
        """,
    "dispatcher": """Args:
    pserver_endpoints (list[str]): addresses of the pservers.

Example:
    config = fluid.DistributeTranspilerConfig()
    config.split_method = fluid.transpiler.{path}""",
}


@with_texts(_DISPATCH, path="RoundRobin")
class RoundRobin(PSDispatcher):
    """Assigns slices to the pservers in turn.

    {dispatcher}
    """

    @with_texts(_DISPATCH)
    def dispatch(self, varlist: Sequence[Any]) -> list[str]:
        """{chooses}"""
        chosen = [self._eps[(self._step + i) % len(self._eps)] for i in range(len(varlist))]
        self._step += len(varlist)
        return chosen


@with_texts(_DISPATCH, path="HashName")
class HashName(PSDispatcher):
    """Assigns each slice to the pserver that the FNV-1a hash of its name selects, the same in every process.

    {dispatcher}
    """

    @with_texts(_DISPATCH)
    def dispatch(self, varlist: Sequence[Any]) -> list[str]:
        """{chooses}"""
        return [self._eps[_penstock.pserver_of_name(var.name, len(self._eps))] for var in varlist]


@with_texts(_DISPATCH, path="ps_dispatcher.SizeBalanced")
class SizeBalanced(PSDispatcher):
    """Assigns the largest slices first, each to the pserver that has the fewest bytes.

    {dispatcher}
    """

    @with_texts(_DISPATCH)
    def dispatch(self, varlist: Sequence[Any]) -> list[str]:
        """{chooses}"""
        sizes = [_bytes_of(var) for var in varlist]
        return [self._eps[i] for i in _penstock.balance_sizes(sizes, len(self._eps))]


def _bytes_of(var: Variable) -> int:
    size = dtype_size(var.dtype)
    for extent in var.shape:
        size *= extent
    return size


_BUILT = (RoundRobin, HashName, SizeBalanced)


def choose(split_method: str | type[PSDispatcher] | None, config: TranspileConfig) -> None:
    """Sets the native config's placement, or its dispatcher, from a class or the name of a class of this module."""
    if split_method is None:
        return
    if isinstance(split_method, str):
        config.placement = split_method
        return
    check(split_method)
    if split_method in _BUILT:
        config.placement = split_method.__name__
    else:
        config.dispatcher = lambda endpoints: _Asked(split_method, endpoints)


def check(split_method: type[Any] | None) -> None:
    """Raises unless `split_method` is None or a direct or indirect subclass of PSDispatcher."""
    if split_method is None:
        return
    if isinstance(split_method, PSDispatcher):
        raise program_error(
            "E-plan-dispatcher",
            f"plan: split_method must be a class, not an object of it: give {type(split_method).__name__}",
        )
    if not (isinstance(split_method, type) and issubclass(split_method, PSDispatcher)):
        raise program_error(
            "E-plan-dispatcher", f"plan: split_method must be a subclass of PSDispatcher, not {split_method!r}"
        )


class _Asked:
    """Wraps the user's dispatcher for the transpiler: takes pieces, returns checked addresses."""

    def __init__(self, split_method: type[PSDispatcher], endpoints: Sequence[str]) -> None:
        self._name = split_method.__name__
        self._dispatcher = split_method(endpoints)

    def dispatch(self, pieces: list[tuple[str, Sequence[int], str, bool]]) -> list[str]:
        answer = self._dispatcher.dispatch([VarStruct.of_piece(*piece) for piece in pieces])
        if not isinstance(answer, (list, tuple)):
            raise program_error(
                "E-plan-dispatcher", f"plan: {self._name}.dispatch must return a list of endpoints, not {answer!r}"
            )
        for endpoint, piece in zip(answer, pieces):
            if not isinstance(endpoint, str):
                raise program_error(
                    "E-plan-dispatcher",
                    f"plan: {self._name}.dispatch returned {endpoint!r} for {piece[0]}; it must be an endpoint",
                )
        return list(answer)

    def reset(self) -> None:
        self._dispatcher.reset()
