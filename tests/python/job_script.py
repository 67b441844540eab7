"""Shared by scripts that tests start as processes of jobs (test_jobs.Job, fleet_jobs.launch). Imports no test and no
pytest."""

import os
import sys


def environment(**more):
    """The environment of a process that can import this module."""
    path = os.pathsep.join(filter(None, [os.path.dirname(__file__), os.environ.get("PYTHONPATH")]))
    return {**os.environ, "PYTHONPATH": path, **more}


def _serve(exe, transpiler, endpoint):
    main, startup = transpiler.get_pserver_programs(endpoint)
    exe.run(startup)
    exe.run(main)
    sys.exit(0)


def program_of(role, index, exe, transpiler):
    """Returns a trainer's program. On a pserver, serves and then ends the process."""
    if role != "trainer":
        _serve(exe, transpiler, os.environ["ENDPOINTS"].split(",")[index])
    return transpiler.get_trainer_program()


def launched_program_of(exe, transpiler):
    """As `program_of`, in a process of the launcher."""
    if os.environ["TRAINING_ROLE"] == "PSERVER":
        _serve(exe, transpiler, os.environ["PADDLE_CURRENT_ENDPOINT"])
    return transpiler.get_trainer_program()


def start_worker(fleet, exe):
    """Runs the startup program of a fleet's worker. On a server, serves and then ends the process."""
    if fleet.is_server():
        fleet.init_server()
        fleet.run_server()
        sys.exit(0)
    fleet.init_worker()
    exe.run(fleet.startup_program)
