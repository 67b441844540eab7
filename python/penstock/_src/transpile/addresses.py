"""Addresses of the processes of a job, as scripts give them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock._src.base import environment
from penstock._src.base.errors import program_error

if TYPE_CHECKING:
    from collections.abc import Sequence


def endpoints_if_counted(trainers: Sequence[str] | int | str) -> Sequence[str] | int | str:
    """Returns the trainers' addresses from the launcher's environment if the caller passes only their number."""
    listed = environment.listed("PADDLE_TRAINER_ENDPOINTS")
    return listed if isinstance(trainers, int) and len(listed) == trainers else trainers


def addresses_of(given: object, field: str = "pservers") -> list[str]:
    """Returns a comma-separated text, or a list, as a list."""
    listed = given.split(",") if isinstance(given, str) else given
    if not isinstance(listed, (list, tuple)) or not all(isinstance(address, str) for address in listed):
        raise program_error(
            "E-plan-config", f"plan: {field} must be addresses, comma-separated or in a list, not {given!r}"
        )
    return [address.strip() for address in listed]
