"""python -m penstock.compat SCRIPT|-m MODULE|-c CODE [ARGUMENT...]: the command line of Python, with `paddle` meaning
Penstock.

The process becomes that Python: its output, its traceback and its exit code are those of `python SCRIPT`.
"""

import os
import shutil
import subprocess
import sys

from penstock.compat import environment, path

USAGE = """\
usage: python -m penstock.compat SCRIPT [ARGUMENT...]
       python -m penstock.compat -m MODULE [ARGUMENT...]
       python -m penstock.compat --path

Runs a script or a module in which `import paddle` means Penstock; so it does in the Python processes that it starts.
Options of Python itself, such as -u or -c CODE, may stand before the script.

  --path    print the folder that does the same when it is on PYTHONPATH
"""


def search_path(variables):
    """Returns PATH with this interpreter's folder first, because pipe commands of scripts call `python`. Returns PATH
    unchanged if `python` already is this interpreter."""
    folder, old = os.path.dirname(os.path.abspath(sys.executable)), variables.get("PATH", os.defpath)
    there = shutil.which("python", path=folder)
    if there is None or shutil.which("python", path=old) == there:
        return old
    return os.pathsep.join([folder, old])


def main(arguments):
    """Runs the command line; returns exit code 2 if the command line is invalid."""
    if arguments == ["--path"]:
        print(path())
        return 0
    if arguments in (["-h"], ["--help"]):
        print(USAGE, end="")
        return 0
    if not arguments:
        print(USAGE, end="", file=sys.stderr)
        return 2
    if sys.flags.ignore_environment:
        print(
            "error: compat: Python ignores PYTHONPATH under -E and -I, so `paddle` cannot be found   "
            "[E-compat-environment]",
            file=sys.stderr,
        )
        return 2
    variables = environment(os.environ)
    variables["PATH"] = search_path(variables)
    if getattr(sys.stdout, "write_through", False):  # -u, which Python does not show otherwise
        variables["PYTHONUNBUFFERED"] = "1"
    sys.stdout.flush()
    sys.stderr.flush()
    command = [sys.executable, *subprocess._args_from_interpreter_flags(), *arguments]
    os.execve(sys.executable, command, variables)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
