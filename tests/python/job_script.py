"""What the scripts of jobs share that tests start as processes (test_jobs.Job). It imports no test, nor pytest."""

import os
import sys


def program_of(role, index, exe, transpiler):
    """A trainer's program. A pserver serves, and its process ends."""
    if role == 'trainer':
        return transpiler.get_trainer_program()
    main, startup = transpiler.get_pserver_programs(os.environ['ENDPOINTS'].split(',')[index])
    exe.run(startup)
    exe.run(main)
    sys.exit(0)
