"""Re-executes the script with the Python of the project's .venv, which has the needed packages:

import project_python  # before the other imports
"""

import os
import pathlib
import sys

_VENV = pathlib.Path(__file__).resolve().parents[3] / ".venv"

if (_VENV / "bin/python").exists() and pathlib.Path(sys.prefix) != _VENV:
    os.execv(_VENV / "bin/python", [str(_VENV / "bin/python"), *sys.argv])
