"""Layers that exchange tensors between the ranks of a ring, as Fluid's collective transpilers and fleets use them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock._src.ir import unique_name
from penstock._src.layers.helper import LayerHelper

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from penstock._src.ir.variable import Variable

_REDUCTIONS = ("sum", "prod", "max", "min")


def _require_reduction(reduce_type: str) -> None:
    if reduce_type not in _REDUCTIONS:
        raise TypeError(f"reduce_type must be one of {', '.join(_REDUCTIONS)}, not {reduce_type!r}")


def _result(helper: LayerHelper, x: Variable, suffix: str, shape: Sequence[int] | None = None) -> Variable:
    """Creates a variable like x for the result of an op; its name begins with that of x."""
    return helper.create_variable(
        name=unique_name.generate(f"{x.name}.{suffix}"),
        shape=x.shape if shape is None else shape,
        dtype=x.dtype,
        type=x.type,
        persistable=x.persistable,
    )


def _allreduce(x: Variable, out: Variable | None = None, reduce_type: str = "sum", sync_mode: bool = False) -> Variable:
    """Reduces x over all ranks of the first ring."""
    _require_reduction(reduce_type)
    helper = LayerHelper("allreduce").takes(x=x)
    if out is None:
        out = _result(helper, x, "tmp")
        out.stop_gradient = True
    helper.append_op(
        "allreduce", {"X": x}, {"Out": out}, {"reduce_type": _REDUCTIONS.index(reduce_type), "sync_mode": sync_mode}
    )
    return out


def _broadcast(x: Variable, root: int, sync_mode: bool = False) -> Variable:
    """Broadcasts x of rank `root` to all ranks of the first ring."""
    helper = LayerHelper("broadcast").takes(x=x)
    helper.append_op("broadcast", {"X": x}, {"Out": x}, {"sync_mode": sync_mode, "root": root})
    return x


def _c_allreduce(
    x: Variable, out: Variable | None = None, reduce_type: str = "sum", ring_id: int = 0, use_calc_stream: bool = False
) -> Variable:
    """Reduces x over all ranks of a ring."""
    _require_reduction(reduce_type)
    op_type = "c_allreduce_" + reduce_type
    helper = LayerHelper("c_allreduce").takes(x=x)
    out = _result(helper, x, op_type) if out is None else out
    helper.append_op(op_type, {"X": x}, {"Out": out}, {"ring_id": ring_id, "use_calc_stream": use_calc_stream})
    return out


def _c_broadcast(x: Variable, root: int = 0, ring_id: int = 0, use_calc_stream: bool = False) -> Variable:
    """Broadcasts x of rank `root` to all ranks of a ring."""
    helper = LayerHelper("c_broadcast").takes(x=x)
    helper.append_op(
        "c_broadcast", {"X": x}, {"Out": x}, {"root": root, "ring_id": ring_id, "use_calc_stream": use_calc_stream}
    )
    return x


def _c_allgather(x: Variable, nranks: int, ring_id: int = 0, use_calc_stream: bool = False) -> Variable:
    """Concatenates the rows of x of all nranks ranks of a ring."""
    return _of_all_ranks("c_allgather", x, nranks, lambda rows: rows * nranks, ring_id, use_calc_stream)


def _c_reducescatter(x: Variable, nranks: int, ring_id: int = 0, use_calc_stream: bool = False) -> Variable:
    """Returns this rank's part of the rows of x, summed over all nranks ranks of a ring."""
    LayerHelper("c_reducescatter").takes(x=x)
    if x.shape[0] > 0 and x.shape[0] % nranks != 0:
        raise ValueError(f"c_reducescatter: the {x.shape[0]} rows of x are not a multiple of nranks, {nranks}")
    return _of_all_ranks("c_reducescatter", x, nranks, lambda rows: rows // nranks, ring_id, use_calc_stream)


def _of_all_ranks(
    op_type: str, x: Variable, nranks: int, rows_of: Callable[[int], int], ring_id: int, use_calc_stream: bool
) -> Variable:
    helper = LayerHelper(op_type).takes(x=x)
    shape = list(x.shape)
    if shape[0] > 0:
        shape[0] = rows_of(shape[0])
    out = _result(helper, x, op_type, shape)
    helper.append_op(
        op_type, {"X": x}, {"Out": out}, {"nranks": nranks, "ring_id": ring_id, "use_calc_stream": use_calc_stream}
    )
    return out


def _c_sync_calc_stream(x: Variable) -> Variable:
    """Returns x after all earlier computation has ended."""
    helper = LayerHelper("c_sync_calc_stream").takes(x=x)
    helper.append_op("c_sync_calc_stream", {"X": x}, {"Out": x})
    return x


def _c_sync_comm_stream(x: Variable, ring_id: int) -> Variable:
    """Returns x after all earlier exchanges of the ring have ended."""
    helper = LayerHelper("c_sync_comm_stream").takes(x=x)
    helper.append_op("c_sync_comm_stream", {"X": x}, {"Out": x}, {"ring_id": ring_id})
    return x
