"""The types of stores: the words in the name that a script gives to create().

kind = kind_of("dist_device_sync")       # over servers, synchronous, on devices
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from penstock._src.base.errors import program_error, suggestion

if TYPE_CHECKING:
    from typing import Literal

    Over = Literal["process", "servers", "ranks"]

KNOWN = (
    "local",
    "device",
    "dist",
    "dist_sync",
    "dist_async",
    "dist_sync_device",
    "dist_async_device",
    "dist_sync_mpi",
    "nccl",
    "horovod",
)
_ALONE: dict[str, Over] = {"local": "process", "device": "process", "nccl": "ranks", "horovod": "ranks"}


@dataclasses.dataclass(frozen=True)
class Kind:
    """What the name of a store's type means."""

    name: str
    over: Over  # who holds the values: this process, the pservers, or every rank
    is_async: bool
    on_device: bool  # the values of several devices are added from left to right


def kind_of(name: object) -> Kind:
    """Returns the Kind of a name. The words after `dist` may stand in any order.

    Raises:
        TypeError: the name is not a text.
        ProgramError: E-kv-type: there is no such type.
    """
    if not isinstance(name, str):
        raise TypeError(f"kv.create: the type of a store is a str, not {type(name).__name__}")
    name = name.lower()
    if name in _ALONE:
        return Kind(name, _ALONE[name], False, name != "local")
    words = name.split("_")
    rest = set(words[1:])
    is_of_servers = words[0] == "dist" and len(rest) == len(words) - 1 and rest <= {"sync", "async", "device"}
    if is_of_servers and not {"sync", "async"} <= rest:
        return Kind(name, "servers", "async" in rest, "device" in rest)
    if words[0] == "dist" and len(rest) == len(words) - 1 and "mpi" in rest and rest <= {"sync", "device", "mpi"}:
        return Kind(name, "ranks", False, True)
    raise program_error(
        "E-kv-type",
        f"kv.create: there is no type of store {name!r}{suggestion(name, KNOWN)}",
        f"types: {', '.join(KNOWN)}; the words after dist may stand in any order",
    )
