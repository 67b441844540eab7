"""The `penstock` command of an installed package: runs the C++ tool inside the package in its place. `plot`,
`doctor` and `scale` are Python."""

import os
import sys


def main():
    if sys.argv[1:2] == ["plot"]:
        from penstock import plot

        sys.exit(plot.main(sys.argv[2:]))
    if sys.argv[1:2] == ["doctor"]:
        from penstock import doctor

        sys.exit(doctor.main(sys.argv[2:]))
    if sys.argv[1:2] == ["scale"]:
        from penstock._src.launch import scale_command

        sys.exit(scale_command.main(sys.argv[2:]))
    tool = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "penstock")
    if not os.path.exists(tool):
        sys.exit(f"penstock: the tool is not in this installation ({tool}); reinstall with pip install .")
    os.execv(tool, [tool] + sys.argv[1:])
