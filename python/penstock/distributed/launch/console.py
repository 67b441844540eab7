"""The roles' output on the terminal of the launcher."""

import sys


class Echo:
    """Copies to the terminal the text that a role has written to its log since the last call.

    path    the log
    begin   the position in the log at which copying starts
    prefix  precedes each line, so that lines of several roles can be distinguished; "": the text is copied unchanged
    """

    def __init__(self, path, begin=0, prefix=""):
        self._log = open(path, "rb")  # closed with the process
        self._log.seek(begin)
        self._prefix = prefix
        self._rest = b""

    def pump(self, last=False):
        """Copies new text. With a prefix it copies only whole lines, except in the `last` call."""
        text = self._rest + self._log.read()
        self._rest = b""
        if self._prefix and not last:
            text, newline, self._rest = text.rpartition(b"\n")
            text += newline
        if not text:
            return
        shown = text.decode(errors="replace")
        if self._prefix:
            shown = "".join(f"{self._prefix}{line}\n" for line in shown.splitlines())
        sys.stdout.write(shown)
        sys.stdout.flush()
