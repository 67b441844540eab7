"""Role makers of processes that mpirun has started."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

from penstock._src.base.errors import error_with_id, program_error
from penstock._src.fleet.roles import Role, RoleMakerBase

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from penstock._src.ir.typing import Array


class MPIRoleMaker(RoleMakerBase):
    """Base of role makers under MPI: processes by rank, and what they exchange. Your own role maker overrides
    generate_role(), which sets what RoleMakerBase names, and `_node_type_comm`, the communicator of the processes with
    the same role. Needs mpi4py.

    Raises:
        ImportError: mpi4py is not installed.

    Example:
        from penstock.fluid.incubate.fleet.base import role_maker

        class FirstRankServes(role_maker.MPIRoleMaker):
            def generate_role(self):
                kind = role_maker.Role
                self._role = kind.SERVER if self._get_rank() == 0 else kind.WORKER
                self._current_id = max(self._get_rank() - 1, 0)
                self._server_endpoints = ['%s:6174' % self._get_ips()[0]]
                self._worker_endpoints = self._get_ips()[1:]
                self._node_type_comm = self._comm.Split(self._role)
                self._role_is_generated = True
    """

    def __init__(self) -> None:
        super().__init__()
        try:
            from mpi4py import MPI  # type: ignore[import-not-found]  # an optional package
        except ImportError:
            raise error_with_id(
                ImportError,
                "E-fleet-mpi",
                f"{type(self).__name__} needs mpi4py, which is not installed; PaddleCloudRoleMaker works under our "
                "launcher",
            ) from None
        self.MPI: Any = MPI
        self._comm: Any = MPI.COMM_WORLD
        self._node_type_comm: Any = None
        self._ips: list[str] | None = None

    def _get_rank(self) -> int:
        return int(self._comm.Get_rank())

    def _get_size(self) -> int:
        return int(self._comm.Get_size())

    def _get_ips(self) -> list[str]:
        if self._ips is None:
            self._ips = list(self._comm.allgather(self.get_local_ip()))
        return self._ips

    def get_local_ip(self) -> str:
        """Returns the address of this machine.

        Returns:
            str: the IP address.
        """
        return socket.gethostbyname(socket.gethostname())

    def all_gather(self, input: object) -> list[Any]:  # of what the processes give
        """Gathers a value from each process, pservers and trainers.

        Args:
            input (object): this process's; anything that pickles.

        Returns:
            list: one value for each process, by rank.
        """
        self._generated()
        return list(self._comm.allgather(input))

    # Without a look at the role, because generate_role() may call them.
    def _all_gather(self, obj: object) -> list[Any]:
        return list(self._comm.allgather(obj))

    def _barrier_all(self) -> None:
        self._comm.barrier()

    def _worker_gather(self, obj: object) -> list[Any] | None:
        return list(self._node_type_comm.allgather(obj)) if self.is_worker() else None

    def barrier_all(self) -> None:
        """Waits until all processes have called it."""
        self._generated()
        self._comm.barrier()

    def all_reduce_worker(self, input: Array | Sequence[float], output: Array | list[float], mode: str = "sum") -> None:
        """Reduces numbers over all trainers. On a pserver it does nothing.

        Args:
            input (numpy.ndarray): numbers.
            output (numpy.ndarray): the same shape and type; receives the result.
            mode (str): 'sum', 'min' or 'max'.

        Raises:
            ValueError: `mode` is something else.
        """
        operations = {"sum": self.MPI.SUM, "max": self.MPI.MAX, "min": self.MPI.MIN}
        if mode not in operations:
            raise ValueError(f"fleet: mode must be one of sum, max, min, not {mode!r}")
        if self.is_worker():
            self._node_type_comm.Allreduce(input, output, op=operations[mode])

    def barrier_worker(self) -> None:
        """Waits until all trainers have called it. On a pserver it does nothing."""
        if self.is_worker():
            self._node_type_comm.barrier()

    def _exchange(self, parts: list[bytes]) -> list[bytes]:
        return list(self._node_type_comm.alltoall(parts))

    def _finalize(self) -> None:
        self.MPI.Finalize()


class MPISymetricRoleMaker(MPIRoleMaker):
    """The role of a process that mpirun has started, with two processes per machine: even ranks are pservers, odd ranks
    are trainers. Needs mpi4py.

    Raises:
        ImportError: mpi4py is not installed.
        ValueError: (at the first query of the role) the number of processes is odd.

    Example:
        from penstock.fluid.incubate.fleet.base import role_maker
        try:
            role = role_maker.MPISymetricRoleMaker()    # under mpirun -np 4
        except ImportError:
            role = role_maker.UserDefinedRoleMaker(0, role_maker.Role.WORKER, 2, ['127.0.0.1:6174'])
    """

    _PORTS = range(60001, 64001)

    def generate_role(self) -> None:
        """Derives the role from MPI's rank. A second call does nothing.

        Raises:
            ValueError: the number of processes is odd.
        """
        if self._role_is_generated:
            return
        rank, size = self._get_rank(), self._get_size()
        if size % 2 != 0:
            raise program_error(
                "E-fleet-mpi", f"MPISymetricRoleMaker: the number of processes must be even, not {size}"
            )
        hosts = self._get_ips()
        self._server_endpoints = self._with_ports(hosts[::2])
        self._worker_endpoints = hosts[1::2]
        self._trainers_num = size // 2
        self._role = Role.SERVER if rank % 2 == 0 else Role.WORKER
        self._current_id = rank // 2
        self._node_type_comm = self._comm.Split(rank % 2)
        self._role_is_generated = True

    def _with_ports(self, hosts: list[str]) -> list[str]:
        """Returns addresses with ports that are equal in every process and different on one host."""
        first = self._PORTS[len(hosts) * 97 % (len(self._PORTS) - len(hosts))]
        return [f"{host}:{first + hosts[:i].count(host)}" for i, host in enumerate(hosts)]
