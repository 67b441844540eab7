"""Servers and schedulers: a process that has one of these roles serves while it imports mxnet, and ends."""

from __future__ import annotations

import sys

from penstock._src.base import environment
from penstock.compat.mxnet import kvstore

__all__ = ["KVStoreServer"]


class KVStoreServer:
    """A server, in MXNet's words: run() serves and ends the process.

    Args:
        kvstore (KVStore | None): accepted for MXNet's scripts.

    Example:
        import penstock.compat.mxnet as mx
        server = mx.kvstore_server.KVStoreServer(None)
    """

    def __init__(self, kvstore: object = None) -> None:
        self.kvstore = kvstore

    def run(self) -> None:
        """Serves until all workers have completed; then the process ends."""
        kvstore.create("dist")


def serve_if_asked() -> None:
    """Serves and ends the process if the environment makes it a server or scheduler of MXNet's launcher."""
    if environment.text("DMLC_ROLE") in ("server", "scheduler"):
        KVStoreServer().run()
        sys.exit(0)
