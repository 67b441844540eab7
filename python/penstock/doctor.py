"""Prints what this machine and this installation offer to a job, and what to do about what is missing or too small.

penstock doctor [--json]
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from typing import TYPE_CHECKING

from penstock._src.doctor import installation, machine
from penstock._src.doctor.findings import PROBLEM, lines

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command `penstock doctor`.

    Args:
        argv (list[str] | None): its arguments; None: those of the process.

    Returns:
        int: the exit code: 0, or 1 if something prevents jobs from running.

    Example:
        from penstock.doctor import main
        assert main(['--json']) in (0, 1)
    """
    parser = argparse.ArgumentParser(
        prog="penstock doctor", description=(__doc__ or "").split("\n")[0], epilog="Marks: - a note, ! a problem."
    )
    parser.add_argument("--json", action="store_true", help="print a list of objects: subject, found, level, advice")
    options = parser.parse_args(argv)
    found = [*installation.findings(), *machine.findings()]
    if options.json:
        print(json.dumps([dataclasses.asdict(one) for one in found], indent=1))
    else:
        print("\n".join(lines(found)))
    return int(any(one.level == PROBLEM for one in found))


if __name__ == "__main__":
    sys.exit(main())
