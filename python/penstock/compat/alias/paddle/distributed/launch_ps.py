"""python -m paddle.distributed.launch_ps: penstock.distributed.launch, which takes Fluid's options too."""

import sys

from penstock.distributed.launch.main import main

__all__ = ["launch", "main"]


def launch():
    """Runs the command line of this process, then ends it with the job's exit code."""
    sys.exit(main(sys.argv[1:]))


if __name__ == "__main__":
    launch()
