"""Fluid's imperative mode, which is not part of Penstock: Penstock builds programs and runs them.

Its names can be imported, because scripts import them beside those for programs; a use of one raises an error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock._src.base import environment
from penstock._src.imperative import refused

if TYPE_CHECKING:
    from penstock._src.ir.typing import Place


def enable_dygraph(place: Place | None = None) -> None:
    """Raises NotImplementedError: there is no imperative mode.

    Args:
        place (Place | None): where Fluid would run ops.

    Raises:
        NotImplementedError: always.

    Example:
        try:
            fluid.enable_dygraph()
        except NotImplementedError as error:
            print(error)
    """
    raise refused.refusal("fluid.enable_dygraph")


def disable_dygraph() -> None:
    """Does nothing: Penstock always builds programs.

    Example:
        fluid.disable_dygraph()
        assert not fluid.in_dygraph_mode()
    """


def enabled() -> bool:
    """Returns False: Penstock always builds programs.

    Returns:
        bool: False.

    Example:
        assert not fluid.dygraph.enabled()
    """
    return False


enable_imperative, disable_imperative = enable_dygraph, disable_dygraph


class ParallelEnv:
    """This trainer's number and the addresses of all trainers, from the launcher's environment.

    Example:
        env = fluid.dygraph.ParallelEnv()
        print(env.local_rank, env.nranks)
    """

    def __init__(self) -> None:
        self._nranks = environment.value("PADDLE_TRAINERS_NUM", 1)
        self._local_rank = environment.value("PADDLE_TRAINER_ID", 0)
        self._dev_id = int(environment.text("FLAGS_selected_gpus", "0").split(",")[0])
        self._trainer_endpoints = environment.text("PADDLE_TRAINER_ENDPOINTS").split(",")
        self._current_endpoint = environment.text("PADDLE_CURRENT_ENDPOINT")

    @property
    def nranks(self) -> int:
        """The number of trainers."""
        return self._nranks

    @property
    def local_rank(self) -> int:
        """The number of this trainer."""
        return self._local_rank

    @property
    def dev_id(self) -> int:
        """The number of this trainer's GPU."""
        return self._dev_id

    @property
    def current_endpoint(self) -> str:
        """The address of this trainer."""
        return self._current_endpoint

    @property
    def trainer_endpoints(self) -> list[str]:
        """The addresses of all trainers."""
        return self._trainer_endpoints


Env = ParallelEnv

_MODES = dict(
    enable_dygraph=enable_dygraph,
    enable_imperative=enable_dygraph,
    disable_dygraph=disable_dygraph,
    disable_imperative=disable_dygraph,
    enabled=enabled,
)
refused.make_modules({"base": _MODES, "parallel": dict(ParallelEnv=ParallelEnv, Env=ParallelEnv)})


def __getattr__(name: str) -> object:
    found = None if name.startswith("__") else refused.name_of_package(name)
    if found is None:
        raise AttributeError(f"penstock.fluid.dygraph has no {name}")
    return found
