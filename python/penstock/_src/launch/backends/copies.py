"""--sync-dst-dir: the copy of the launcher's folder to each host, over the connection that is there already."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import tempfile
from typing import TYPE_CHECKING, cast

from penstock._src.launch.backends.connection import ssh_options
from penstock._src.launch.errors import JobError

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable
    from subprocess import Popen

    from penstock._src.launch.backends.hosts import Host


def copy_commands(host: Host, options: Namespace, control: str, folder: str, rsync: bool) -> list[list[str]]:
    """Returns the commands that copy the current folder to `folder` of a host, each reading the output of the one
    before."""
    ssh = ["ssh", *ssh_options(host, options, control), "-o", "ControlMaster=no"]
    if rsync:
        name = f"[{host.name}]" if ":" in host.name else host.name
        return [["rsync", "-az", "--protect-args", f"--rsh={shlex.join(ssh)}", f"{os.getcwd()}/", f"{name}:{folder}"]]
    return [["tar", "-czf", "-", "-C", os.getcwd(), "."], [*ssh, host.name, f"tar -xzf - -C {shlex.quote(folder)}"]]


class Copy:
    """The copy to one host, as it runs."""

    def __init__(self, host: Host, options: Namespace, control: str, folder: str, rsync: bool) -> None:
        self._host = host
        self._folder = folder
        self._errors = tempfile.TemporaryFile()
        self._processes: list[Popen[bytes]] = []
        before = subprocess.DEVNULL
        for command in (commands := copy_commands(host, options, control, folder, rsync)):
            last = command is commands[-1]
            process = subprocess.Popen(
                command, stdin=before, stdout=None if last else subprocess.PIPE, stderr=self._errors
            )
            if before != subprocess.DEVNULL:
                before.close()  # type: ignore[attr-defined]
            before = cast(int, process.stdout)
            self._processes.append(process)

    def is_over(self) -> bool:
        """Returns whether the copy is there; raises JobError if it failed."""
        codes = [process.poll() for process in self._processes]
        if any(code is None for code in codes):
            return False
        if any(codes):
            self._errors.seek(0)
            why = self._errors.read().decode(errors="replace").strip().splitlines()
            raise JobError(
                f"the copy to {self._host.text}:{self._folder} failed: {' '.join(why[-2:]) or f'exit code {codes}'}",
                "E-launch-copy",
            )
        return True

    def end(self) -> None:
        for process in self._processes:
            if process.poll() is None:
                process.kill()
            process.wait()


def has_rsync() -> bool:
    return shutil.which("rsync") is not None


def wait_for_copies(copies: list[Copy], pump: Callable[[], bool]) -> bool:
    """Returns whether all copies are there; False if `pump`, called meanwhile, says that the job is to end. Raises
    JobError."""
    try:
        while not all(copy.is_over() for copy in copies):
            if not pump():
                return False
        return True
    finally:
        for copy in copies:
            copy.end()
