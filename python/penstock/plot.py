"""Plots the progress lines of a log: loss, examples per second, and the share of time in communication, by step.

    penstock plot mylog/workerlog.0 [--out progress.png]

Writes a PNG with matplotlib; without matplotlib, or with --text, prints bars.
"""

from __future__ import annotations

import argparse
import re
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Any

__all__ = ["main", "read_progress"]

_LINE = re.compile(r"step (\d+): (?:loss (\S+), )?([0-9.]+) examples/s, ([0-9.]+) s of ([0-9.]+) s in communication")
_BAR = 40
_TITLES = (("loss", "loss"), ("examples", "examples/s"), ("waited", "share of time in communication"))


def read_progress(lines: Iterable[str]) -> list[dict[str, Any]]:
    """Reads progress lines and skips all others.

    Args:
        lines (Iterable[str]): the lines of a log.

    Returns:
        list[dict]: for each progress line 'step', 'loss' (None if it has none), 'examples' per second, and 'waited',
            the share of time in communication.

    Example:
        from penstock.plot import read_progress
        found = read_progress(['step 10: loss 0.5, 64 examples/s, 1.00 s of 4.00 s in communication'])
        assert found == [{'step': 10, 'loss': 0.5, 'examples': 64.0, 'waited': 0.25}]
    """
    found = []
    for match in filter(None, map(_LINE.search, lines)):
        step, loss, examples, waited, seconds = match.groups()
        found.append(
            {
                "step": int(step),
                "loss": None if loss is None else float(loss),
                "examples": float(examples),
                "waited": float(waited) / float(seconds) if float(seconds) else 0.0,
            }
        )
    return found


def _bars(found: list[dict[str, Any]]) -> Iterator[str]:
    """Returns the lines of a table for each curve."""
    for key, title in _TITLES:
        values = [(one["step"], one[key]) for one in found if one[key] is not None and one[key] == one[key]]
        if not values:
            continue
        top = max(max(value for _, value in values), 1e-30)
        yield title
        for step, value in values:
            yield f"  {step:8d}  {value:<12.6g} {'#' * max(0, min(_BAR, round(_BAR * value / top)))}"


def _draw(found: list[dict[str, Any]], path: str) -> bool:
    """Writes the PNG; returns False without matplotlib."""
    try:
        import matplotlib
    except ImportError:
        return False
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(len(_TITLES), 1, sharex=True, figsize=(8, 8))
    for axis, (key, title) in zip(axes, _TITLES):
        values = [(one["step"], one[key]) for one in found if one[key] is not None]
        axis.plot([step for step, _ in values], [value for _, value in values])
        axis.set_ylabel(title)
        axis.grid(True)
    axes[-1].set_xlabel("step")
    figure.tight_layout()
    figure.savefig(path)
    return True


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command `penstock plot`.

    Args:
        argv (list[str] | None): its arguments; None: those of the process.

    Returns:
        int: the exit code: 0, or 2 for a file that cannot be read or has no progress line.

    Example:
        from penstock.plot import main
        with open('log', 'w') as file:
            file.write('step 10: loss 0.5, 64 examples/s, 1.00 s of 4.00 s in communication')
        assert main(['log', '--text']) == 0
    """
    parser = argparse.ArgumentParser(prog="penstock plot", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("log", help="a file with the output of a trainer, such as mylog/workerlog.0")
    parser.add_argument("--out", default="progress.png", metavar="FILE", help="the picture (default: %(default)s)")
    parser.add_argument("--text", action="store_true", help="print bars")
    options = parser.parse_args(argv)
    try:
        with open(options.log, errors="replace") as file:
            found = read_progress(file)
    except OSError as error:
        print(f"error: plot: {options.log}: {error.strerror or error}", file=sys.stderr)
        return 2
    if not found:
        print(
            f"error: plot: {options.log} has no progress line; start the job with --progress SECONDS", file=sys.stderr
        )
        return 2
    if not options.text and _draw(found, options.out):
        print(f"wrote {options.out}")
    else:
        print("\n".join(_bars(found)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
