"""Processes of a job by ps-lite's numbers: 1 is the scheduler, 2 the pservers, 4 the workers, a sum of these several;
from 8 on, 8 + 2 n is pserver n, and 9 + 2 n worker n.

    nodes_of(4)        # Nodes(workers=True, servers=False, number=None)
"""

from __future__ import annotations

from typing import NamedTuple

from penstock._src.base.errors import program_error

_FIRST = 8  # the number of pserver 0


class Nodes(NamedTuple):
    """Which processes are meant."""

    workers: bool
    servers: bool
    number: int | None = None  # the one of its role; None: all

    def counts(self, role: str, number: int) -> bool:
        """Returns whether a process, "worker" or "server" of this number, is among them."""
        return (self.workers if role == "worker" else self.servers) and self.number in (None, number)


def nodes_of(node_id: int) -> Nodes:
    """Reads a number; raises ProgramError E-kv-node."""
    if isinstance(node_id, bool) or not isinstance(node_id, int) or node_id < 1:
        raise program_error(
            "E-kv-node",
            f"kv.num_dead_node: node_id is {node_id!r}",
            "give a sum of 1 (scheduler), 2 (pservers) and 4 (workers), 8 + 2 n for pserver n, or 9 + 2 n for worker n",
        )
    if node_id < _FIRST:
        return Nodes(workers=bool(node_id & 4), servers=bool(node_id & 2))
    number, is_worker = divmod(node_id - _FIRST, 2)
    return Nodes(workers=bool(is_worker), servers=not is_worker, number=number)
