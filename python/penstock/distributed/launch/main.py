"""The command: options, then the job, then its supervisor."""

import os
import sys

from penstock.distributed.launch.job import JobError, make_job
from penstock.distributed.launch.options import parse_options
from penstock.distributed.launch.supervisor import run_job

EXIT_BAD_INPUT = 2


def main(argv):
    """Runs the command line; returns the exit code: 0, 1 (a role failed), 2 (bad input) or 130 (interrupted)."""
    options = parse_options(argv)
    try:
        job = make_job(options, os.environ)
    except JobError as error:
        print(f"error: launch: {error}", file=sys.stderr)
        return EXIT_BAD_INPUT
    if options.print_config:
        for line in job.describe():
            print(line, flush=True)
    return run_job(job, grace_s=options.grace_s, echo=not options.quiet)
