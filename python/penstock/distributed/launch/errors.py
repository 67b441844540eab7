"""What the launcher's modules share: bad input, lists, addresses of this machine."""

import ipaddress


class JobError(Exception):
    """The command line and the environment do not make a job; the message says which values disagree."""


def split(text):
    """The parts of a comma-separated list, without spaces and empty ones."""
    return [part.strip() for part in text.split(",") if part.strip()]


def is_loopback(host):
    """Whether what is sent to the host stays on this machine."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
