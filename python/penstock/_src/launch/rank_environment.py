"""The variables from which a role's process reads its place among the others, and its share of the machine.

torch_names(rank=1, ranks=4, local_rank=1, local=2, first="10.0.0.1:6070")
round_environment(role, 0, addresses, local_rank=0, local=1)      # of a round of elastic ranks
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock._src.launch.plan import Role


def torch_names(rank: int, ranks: int, local_rank: int, local: int, first: str) -> dict[str, str]:
    """Returns the variables from which scripts of other frameworks read their ranks."""
    host, _, port = first.rpartition(":")
    return {
        "RANK": str(rank),
        "WORLD_SIZE": str(ranks),
        "LOCAL_RANK": str(local_rank),
        "LOCAL_WORLD_SIZE": str(local),
        "MASTER_ADDR": host,
        "MASTER_PORT": port,
    }


def round_environment(role: Role, rank: int, addresses: Sequence[str], local_rank: int, local: int) -> dict[str, str]:
    """Returns the variables of the role's environment that state its rank, as they are in a round."""
    count, own = str(len(addresses)), addresses[rank]
    facts = {
        "PADDLE_TRAINERS_NUM": count,
        "PADDLE_NUM_TRAINERS": count,
        "PADDLE_TRAINERS": count,
        "PADDLE_TRAINER_ENDPOINTS": ",".join(addresses),
        "DISTRIBUTED_TRAINER_ENDPOINTS": ",".join(addresses),
        "PADDLE_TRAINER_IPS": ",".join(address.rpartition(":")[0] for address in addresses),
        "TRAINER_PORTS_NUM": str(local),
        "PADDLE_TRAINER_ID": str(rank),
        "PADDLE_CURRENT_ENDPOINT": own,
        **torch_names(rank, len(addresses), local_rank, local, addresses[0]),
    }
    return {name: value for name, value in facts.items() if name in role.environment}


def team_size(cores: int, roles: int) -> dict[str, str]:
    """Returns the variable that divides the cores among this machine's roles of one kind; pservers compute while
    trainers wait. If each process used all cores, their threads would wait for each other."""
    return {"OMP_NUM_THREADS": str(max(1, cores // roles))} if cores else {}


def names_of_hosts_and_ports(
    pservers: tuple[str, ...], trainers: tuple[str, ...], local_trainers: int
) -> dict[str, str]:
    """Returns the variables from which scripts for Fluid build the addresses of the pservers and trainers.

    They combine hosts with one port, so the port is set only if all pservers listen on the same port.
    """
    names = {
        "PADDLE_PSERVERS": ",".join(map(host_of, pservers)),
        "PADDLE_PSERVER_IPS": ",".join(map(host_of, pservers)),
        "PADDLE_TRAINER_IPS": ",".join(map(host_of, trainers)),
        "DISTRIBUTED_TRAINER_ENDPOINTS": ",".join(trainers),
        "TRAINER_PORTS_NUM": str(local_trainers),
    }
    ports = {address.rpartition(":")[2] for address in pservers}
    if len(ports) == 1:
        (port,) = ports
        names.update(PADDLE_PORT=port, PADDLE_PSERVER_PORT=port)
    return names


def host_of(address: str) -> str:
    return address.rpartition(":")[0]
