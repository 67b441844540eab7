"""The `penstock` command of an installed package: becomes the C++ tool that lies inside it."""

import os
import sys


def main():
    tool = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'bin', 'penstock')
    if not os.path.exists(tool):
        sys.exit('penstock: the tool is not in this installation (%s); reinstall with pip install .' % tool)
    os.execv(tool, [tool] + sys.argv[1:])
