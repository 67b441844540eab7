"""The error for bad input, and helpers for lists and addresses, which the launcher's modules share."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any


SECONDS_MAX = 1e6  # of options in seconds


class JobError(Exception):
    """The command line and the environment do not describe a valid job; the message names the values."""

    def __init__(self, message: str, id: str = "E-launch-job") -> None:
        super().__init__(message)
        self.id = id

    def line(self) -> Any:
        """Returns the message with the id behind it, once."""
        return str(self) if f"[{self.id}]" in str(self) else f"{self}   [{self.id}]"


def split(text: str) -> list[str]:
    """Returns the parts of a comma-separated list, without spaces and without empty parts."""
    return [part.strip() for part in text.split(",") if part.strip()]


def is_loopback(host: str) -> bool:
    """Returns whether data that is sent to the host stays on this machine."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
