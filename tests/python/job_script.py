"""Shared by scripts that tests start as processes of jobs (test_jobs.Job). Imports no test and no pytest."""

import os
import sys


def program_of(role, index, exe, transpiler):
    """Returns a trainer's program. On a pserver, serves and then ends the process."""
    if role == "trainer":
        return transpiler.get_trainer_program()
    main, startup = transpiler.get_pserver_programs(os.environ["ENDPOINTS"].split(",")[index])
    exe.run(startup)
    exe.run(main)
    sys.exit(0)
