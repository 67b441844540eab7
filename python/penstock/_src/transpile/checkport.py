"""wait_server_ready, for scripts that wait for servers themselves. Programs of trainers wait without it."""

from __future__ import annotations

import socket
import threading
from typing import TYPE_CHECKING

from penstock._src.base import log

if TYPE_CHECKING:
    from collections.abc import Sequence


_PAUSE_S, _CONNECT_S = 3, 2


def wait_server_ready(endpoints: Sequence[str]) -> None:
    """Waits until every server accepts connections. Writes a line to the log in each round that finds one that does
    not.

    Args:
        endpoints (list[str]): 'host:port' of each server.

    Raises:
        TypeError: `endpoints` is one str.
        ValueError: an address is not 'host:port'.

    Example:
        import socket
        from penstock.fluid.transpiler.details.checkport import wait_server_ready
        with socket.create_server(('127.0.0.1', 0)) as server:
            wait_server_ready(['127.0.0.1:%d' % server.getsockname()[1]])
    """
    if isinstance(endpoints, str):
        raise TypeError(f"wait_server_ready takes a list of addresses, not the str {endpoints!r}")
    addresses = [_address(endpoint) for endpoint in endpoints]
    waiting = [address for address in addresses if not _accepts(address)]
    while waiting:
        log.info("wait_server_ready: no server yet at " + ", ".join(f"{host}:{port}" for host, port in waiting))
        _pause(_PAUSE_S)
        waiting = [address for address in addresses if not _accepts(address)]


def _pause(seconds: float) -> None:
    threading.Event().wait(seconds)


def _address(endpoint: str) -> tuple[str, int]:
    host, _, port = endpoint.rpartition(":")
    if not host or not port.isdigit():
        raise ValueError(f"wait_server_ready: an address is 'host:port', not {endpoint!r}")
    return host, int(port)


def _accepts(address: tuple[str, int]) -> bool:
    try:
        socket.create_connection(address, _CONNECT_S).close()
    except OSError:
        return False
    return True
