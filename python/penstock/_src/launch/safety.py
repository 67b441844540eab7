"""Options for security, transport and the folder in which pservers write. They become environment variables."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace


# option -> (variable, whether it names a file or folder)
_VARIABLES = {
    "tls_cert": ("PENSTOCK_TLS_CERT", True),
    "tls_key": ("PENSTOCK_TLS_KEY", True),
    "tls_ca": ("PENSTOCK_TLS_CA", True),
    "tls_mutual": ("PENSTOCK_TLS_MUTUAL", False),
    "transport": ("PENSTOCK_TRANSPORT", False),
    "checkpoint_dir": ("PENSTOCK_CHECKPOINT_DIR", True),
}


def add_safety_options(parser: ArgumentParser) -> None:
    """Adds the options to an argparse.ArgumentParser."""
    group = parser.add_argument_group(
        "safety", "each option can also be set by the environment variable in parentheses"
    )
    group.add_argument(
        "--tls_cert",
        metavar="FILE",
        help="PEM file of the pservers' certificate, for the hosts of their addresses; with "
        "--tls_mutual also of the trainers' (PENSTOCK_TLS_CERT)",
    )
    group.add_argument("--tls_key", metavar="FILE", help="PEM file of the certificate's key (PENSTOCK_TLS_KEY)")
    group.add_argument(
        "--tls_ca",
        metavar="FILE",
        help="PEM file of the authorities that sign certificates; with it trainers use TLS (PENSTOCK_TLS_CA)",
    )
    group.add_argument(
        "--tls_mutual",
        action="store_const",
        const="1",
        help="pservers check the trainers' certificates too (PENSTOCK_TLS_MUTUAL=1)",
    )
    group.add_argument(
        "--transport",
        choices=["auto", "tcp"],
        help="auto (default): processes of one host and user use unix sockets and shared memory, "
        "others TCP; tcp: all use TCP (PENSTOCK_TRANSPORT)",
    )
    group.add_argument(
        "--checkpoint_dir",
        metavar="DIR",
        help="the only folder in which pservers save tables and checkpoints (PENSTOCK_CHECKPOINT_DIR; default: the "
        "folder in which they are started)",
    )


def safety_environment(options: Namespace) -> dict[str, str]:
    """Returns {variable: value} of the given options for the roles' environment, with absolute paths."""
    given = {}
    for option, (variable, is_path) in _VARIABLES.items():
        value = getattr(options, option, None)
        if value:
            given[variable] = os.path.abspath(value) if is_path else value
    return given
