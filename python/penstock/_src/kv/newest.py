"""The store that this process made last, for calls that are not given one."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

from penstock._src.base.errors import state_error

if TYPE_CHECKING:
    from penstock._src.kv.store import KVStore

_newest: list[weakref.ref[KVStore]] = []


def note(store: KVStore) -> KVStore:
    """Returns the store, which is the newest one from now on."""
    _newest[:] = [weakref.ref(store)]
    return store


def newest(call: str) -> KVStore:
    """Returns the newest store.

    Raises:
        StateError: E-kv-no-store: there is none, or its last user has let it go.
    """
    store = _newest[0]() if _newest else None
    if store is None:
        raise state_error(
            "E-kv-no-store", f"{call}: this process has no store", "call penstock.kv.create() first, or give one"
        )
    return store
