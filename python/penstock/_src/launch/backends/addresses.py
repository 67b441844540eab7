"""The address and port at which the processes of a job find their scheduler."""

from __future__ import annotations

import fcntl
import socket
import struct
from typing import TYPE_CHECKING

from penstock._src.launch.errors import JobError, is_loopback

if TYPE_CHECKING:
    from collections.abc import Mapping


PORTS = range(9091, 9999)  # MXNet's launcher searches these
_SIOCGIFADDR = 0x8915

# The sockets of free_port. They stay bound, and never listen, while this process lives.
_reserved: list[socket.socket] = []


def _address_of_interface(name: str) -> str:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            answer = fcntl.ioctl(probe.fileno(), _SIOCGIFADDR, struct.pack("256s", name.encode()[:15]))
        except OSError as error:
            known = ", ".join(name for _, name in socket.if_nameindex())
            raise JobError(
                f"DMLC_INTERFACE is {name!r}, which has no IPv4 address: {error.strerror or error}; the interfaces of "
                f"this machine are {known}",
                "E-launch-address",
            ) from error
    return socket.inet_ntoa(answer[20:24])


def _outgoing_address() -> str:
    """Returns the address of the interface that leads out of this machine; "" if none does."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("10.255.255.255", 1))  # a datagram socket, which sends nothing here
            return str(probe.getsockname()[0])
        except OSError:
            return ""


def own_address(environment: Mapping[str, str]) -> str:
    """Returns this machine's address for the other machines of a job.

    It is DMLC_NODE_HOST, the address of DMLC_INTERFACE, the one that this machine's name has, or that of the interface
    which leads out, in this order; a loopback address is only returned as DMLC_NODE_HOST. Raises JobError.
    """
    if given := environment.get("DMLC_NODE_HOST"):
        return given
    if interface := environment.get("DMLC_INTERFACE"):
        return _address_of_interface(interface)
    try:
        named = socket.gethostbyname(socket.gethostname())
    except OSError:
        named = "127.0.0.1"
    address = _outgoing_address() if is_loopback(named) else named
    if not address or is_loopback(address):
        raise JobError(
            f"the address of this machine is not known to others: its name {socket.gethostname()} has none; set "
            "DMLC_NODE_HOST or DMLC_INTERFACE",
            "E-launch-address",
        )
    return address


def free_port() -> int:
    """Returns the first unused port of PORTS, which no other launcher gets until this process ends.

    The probe is bound without SO_REUSEADDR, so it fails where another launcher's is; then the option is set, so that
    the scheduler can bind the port.
    """
    for port in PORTS:
        holder = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            holder.bind(("", port))
        except OSError:
            holder.close()
            continue
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        _reserved.append(holder)
        return port
    raise JobError(f"all ports from {PORTS[0]} to {PORTS[-1]} are in use", "E-launch-address")
