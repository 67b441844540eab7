"""The end-of-job receipt: a table of the bytes sent and received, and of the waits, of each role of this machine.

Roles write receipt.<kind>.<number>.json into the log folder (executor/observe/receipt.h).
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Any

    from penstock._src.launch.plan import Role


_COLUMNS = (
    "role",
    "steps",
    "seconds",
    "sent",
    "received",
    "exposed s",
    "waited most for",
    "resent",
    "repeats",
    "compressed",
    "staleness",
)


def path_of(log_dir: str, role: Role) -> str:
    return os.path.join(log_dir, f"receipt.{role.kind}.{role.index}.json")


def read_receipts(log_dir: str, roles: tuple[Role, ...]) -> Iterator[dict[str, Any]]:
    """Returns the receipts by role; missing and unreadable receipts are skipped."""
    for role in roles:
        try:
            with open(path_of(log_dir, role)) as file:
                receipt = json.load(file)
            _row(receipt, {})
        except (OSError, ValueError, LookupError, TypeError, AttributeError):
            continue
        yield receipt


def table(receipts: Iterable[dict[str, Any]], pservers: Sequence[str]) -> list[str]:
    """Returns the lines of the table, a row per receipt; no lines without receipts. `pservers`: addresses, in order."""
    names = {f"pserver {address}": f"pserver {i}" for i, address in enumerate(pservers)}
    receipts = list(receipts)
    if not receipts:
        return []
    lines = [_COLUMNS, *(_row(receipt, names) for receipt in receipts)]
    if any("rows_entered" in receipt for receipt in receipts):
        of_tables = ["rows of tables", *map(_rows, receipts)]
        lines = [(*line, cell) for line, cell in zip(lines, of_tables)]
    if any("rows_cold" in receipt for receipt in receipts):
        on_disk = ["rows on disk", *map(_cold_rows, receipts)]
        lines = [(*line, cell) for line, cell in zip(lines, on_disk)]
    if any("lookups_ahead" in receipt for receipt in receipts):
        ahead = ["lookups ahead", *map(_lookups, receipts)]
        lines = [(*line, cell) for line, cell in zip(lines, ahead)]
    widths = [max(map(len, column)) for column in zip(*lines)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in lines]


def _row(receipt: dict[str, Any], names: dict[str, str]) -> tuple[str, ...]:
    most = max(receipt["peers"], key=lambda peer: peer["waited_s"], default=None)
    waited = "-"
    if most is not None and most["waits"] > 0:
        waited = f"{names.get(most['name'], most['name'])}: {most['waited_s']:.2f} s"
    return (
        receipt["role"],
        str(receipt["steps"]),
        f"{receipt['seconds']:.1f}",
        _size(receipt["bytes_out"]),
        _size(receipt["bytes_in"]),
        f"{receipt['exposed_s']:.2f}",
        waited,
        str(receipt["resent"]),
        str(receipt["repeats"]),
        _compressed(receipt),
        _staleness(receipt["staleness"]),
    )


def _compressed(receipt: dict[str, Any]) -> str:
    """Returns "1.2 MB for 4.8 MB": the size of compressed gradients, and their size as float32."""
    whole = receipt["compressed_from_bytes"]
    return f"{_size(receipt['compressed_bytes'])} for {_size(whole)}" if whole > 0 else "-"


def _rows(receipt: dict[str, Any]) -> str:
    """Returns "120 made, 30 evicted, 80 dropped": rows made and evicted, rows of gradients that came too early."""
    if "rows_entered" not in receipt:
        return "-"
    return f"{receipt['rows_entered']} made, {receipt['rows_evicted']} evicted, {receipt['rows_rejected']} dropped"


def _cold_rows(receipt: dict[str, Any]) -> str:
    """Returns "80 of 120 in 3.1 MB, 45 of 900 read": rows on disk of all rows; ids whose row was read from there."""
    if "rows_cold" not in receipt:
        return "-"
    cold, size = receipt["rows_cold"], _size(receipt["rows_cold_bytes"])
    read = f"{receipt['rows_fetched']} of {receipt['rows_asked']} read"
    return f"{cold} of {cold + receipt['rows_hot']} in {size}, {read}"


def _staleness(counts: list[int]) -> str:
    """Returns "0: 12, 1: 3": {number of updates between pull and application: number of gradients}."""
    last = len(counts) - 1
    return ", ".join(f"{b}{'+' if b == last else ''}: {n}" for b, n in enumerate(counts) if n > 0) or "-"


def _size(count: int) -> str:
    value, unit = float(count), "B"
    for larger in ("kB", "MB", "GB", "TB"):
        if value < 1000:
            break
        value, unit = value / 1000, larger
    return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"


def _lookups(receipt: dict[str, Any]) -> str:
    if "lookups_ahead" not in receipt:
        return "-"
    unused = f", {receipt['lookups_ahead_unused']} in vain" if receipt["lookups_ahead_unused"] else ""
    return f"{receipt['lookups_ahead']}, {receipt['lookups_hidden_s']:.2f} s hidden{unused}"
