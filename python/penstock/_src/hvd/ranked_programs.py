"""Programs of an elastic job: their ops state ranks, and change with each round.

keep(main, startup, job)     # programs that exchange gradients among the ranks of the job
renumber_all(job)            # the ranks are others now
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

import numpy

if TYPE_CHECKING:
    from typing import Any

    from penstock._src.hvd.job import Job
    from penstock._src.ir.program import Program


_kept: weakref.WeakSet[Program] = weakref.WeakSet()


def keep(main: Program, startup: Program, job: Job) -> None:
    """Records the programs. In a round after the first, the startup program no longer exchanges initial values: the
    ranks that have run it before do not run it again, and the state of the job replaces these values."""
    if not job.new:
        _remove_broadcasts(startup)
    for program in (main, startup):
        _kept.add(program)
        renumber(program, job.addresses, job.rank)


def renumber_all(job: Job) -> None:
    for program in list(_kept):
        renumber(program, job.addresses, job.rank)


def renumber(program: Program, addresses: list[str], rank: int) -> None:
    """Sets what the ops of a program state about ranks: the number of ranks by which gradients are divided, and the
    rings that its startup program makes."""
    desc, count = program.desc, len(addresses)
    others = [address for at, address in enumerate(addresses) if at != rank]
    facts: dict[str, dict[str, Any]] = {
        "scale": {"scale": float(numpy.float32(1.0 / count))},
        "c_gen_nccl_id": {"rank": rank, "endpoint": addresses[rank], "other_endpoints": others},
        "c_comm_init": {"rank": rank, "nranks": count},
    }
    for block in range(desc.num_blocks()):
        for op in desc.ops(block):
            kind = desc.op_type(block, op)
            if kind == "scale" and desc.op_made_by(block, op) != "scale_loss_gradient":
                continue
            for name, value in facts.get(kind, {}).items():
                if desc.op_attrs(block, op).get(name) != value:  # a change makes the program another one
                    desc.set_op_attr(block, op, name, value)


def _remove_broadcasts(startup: Program) -> None:
    block = startup.global_block()
    made = [startup.desc.op_made_by(0, op) for op in startup.desc.ops(0)]
    for index in reversed([at for at, name in enumerate(made) if name == "broadcast_params"]):
        block._remove_op(index)
