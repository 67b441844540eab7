"""Ends the roles' process groups if the launcher dies without saying that it is done.

Reads process group numbers, a line each, from standard input; "done" ends it. The end of input without "done" means
that the launcher was killed. It has its own session, so what kills the launcher's does not reach it.
"""

import os
import signal
import sys


def main():
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    groups = []
    for line in sys.stdin:
        if line.strip() == "done":
            return
        groups.append(int(line))
    for group in groups:
        try:
            os.killpg(group, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass


if __name__ == "__main__":
    main()
