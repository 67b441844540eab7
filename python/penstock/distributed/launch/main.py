"""The launcher's entry points: `main` takes the arguments of a command line, `command` those of the process."""

from penstock._src.launch.main import command as command
from penstock._src.launch.main import main as main
