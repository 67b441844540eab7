"""Changes the number of pservers of a running job, between two steps. The trainers keep running.

penstock scale DIR --servers N
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import TYPE_CHECKING

from penstock._src.launch.logs import say
from penstock._src.launch.scale_files import Request, has_launcher

if TYPE_CHECKING:
    from collections.abc import Sequence


LOOK_S = 0.05
EXIT_REFUSED, EXIT_BAD_INPUT = 1, 2


def _count(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of pservers above 0")
    return int(text)


def main(argv: Sequence[str] | None = None) -> int:
    """Asks the launcher, waits for its answer and prints it. Returns the exit code: 0, 1 (it was refused) or 2."""
    parser = argparse.ArgumentParser(prog="penstock scale", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("dir", metavar="DIR", help="the log folder of the job (launch --log_dir)")
    parser.add_argument("--servers", type=_count, required=True, metavar="N", help="the new number of pservers")
    options = parser.parse_args(argv)
    no_launcher = f"error: scale: no launcher of a running job has the log folder {options.dir}   [E-scale-job]"
    if not has_launcher(options.dir):
        say(no_launcher)
        return EXIT_BAD_INPUT
    try:
        request = Request(options.dir, options.servers)
    except OSError as error:
        say(f"error: scale: {options.dir}: {error.strerror or error}   [E-scale-job]")
        return EXIT_BAD_INPUT
    answer = None
    while answer is None:
        time.sleep(LOOK_S)
        alive = has_launcher(options.dir)
        answer = request.answer()
        if answer is None and not alive:
            say(no_launcher.replace("no launcher of a running job has", "the job has ended, of the launcher with"))
            return EXIT_REFUSED
    line, failed = answer
    say(line, sys.stderr if failed else sys.stdout)
    return EXIT_REFUSED if failed else 0


if __name__ == "__main__":
    sys.exit(main())
