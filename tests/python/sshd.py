"""An sshd of our own on loopback: host keys and configuration in a folder, an unprivileged port."""

import contextlib
import getpass
import os
import pathlib
import shutil
import subprocess
import time

SSHD = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
WAIT_S = 60


class Sshd:
    """`options`: how the launcher's ssh reaches it, without a file of the user's."""

    def __init__(self, folder, port, address="127.0.0.1", prefix=(), environment=None):
        self.folder, self.port, self.address = folder, port, address
        folder.mkdir(parents=True)
        keys = {name: folder / name for name in ("host_key", "user_key")}
        for path in keys.values():
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", path], check=True, timeout=WAIT_S)
        authorized = folder / "authorized_keys"
        shutil.copy(f"{keys['user_key']}.pub", authorized)
        config = folder / "sshd_config"
        sets = " ".join(f'{name}="{value}"' for name, value in (environment or {}).items())
        config.write_text(
            f"ListenAddress {address}:{port}\nHostKey {keys['host_key']}\nAuthorizedKeysFile {authorized}\n"
            "StrictModes no\nUsePAM no\nPasswordAuthentication no\nPermitRootLogin prohibit-password\n"
            f"PidFile none\nLogLevel VERBOSE\n{f'SetEnv {sets}' if sets else ''}\n"
        )
        self.log = folder / "sshd.log"
        if os.geteuid() == 0:
            pathlib.Path("/run/sshd").mkdir(exist_ok=True)  # sshd's own folder
        self.process = subprocess.Popen(
            [*prefix, SSHD, "-D", "-f", config, "-E", self.log], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        deadline = time.monotonic() + WAIT_S
        while not (self.log.exists() and "Server listening" in self.log.read_text()):
            assert self.process.poll() is None and time.monotonic() < deadline, self.log.read_text()
            time.sleep(0.01)
        self.host = f"{getpass.getuser()}@{address}:{port}"
        self.options = [
            f"--ssh_option=IdentityFile={keys['user_key']}",
            f"--ssh_option=UserKnownHostsFile={folder / 'known_hosts'}",
            "--ssh_option=IdentitiesOnly=yes",
            "--ssh_option=BatchMode=yes",
        ]

    def connections(self):
        """Returns how many connections sshd has accepted."""
        return self.log.read_text().count("Accepted publickey")

    def close(self):
        self.process.terminate()
        self.process.wait(WAIT_S)


@contextlib.contextmanager
def sshd(*arguments, **keywords):
    server = Sshd(*arguments, **keywords)
    try:
        yield server
    finally:
        server.close()
