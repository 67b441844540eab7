"""Where ops are created: the name scopes that have been entered, and the device that device_guard has set."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock._penstock import NameScopes, OpContext

if TYPE_CHECKING:
    pass


_name_scopes = NameScopes()
_device = ""


def name_scopes() -> NameScopes:
    """Returns the entered name scopes, which are C++ state, because optimizers enter scopes there too."""
    return _name_scopes


def switch_device(device: str) -> str:
    """Sets the device of the ops that are created from now on; returns the one before it."""
    global _device
    outer, _device = _device, device
    return outer


def fill_context(context: OpContext) -> None:
    """Sets the name scope and the device of a program's OpContext."""
    context.name_scope = _name_scopes.path
    context.device = _device
