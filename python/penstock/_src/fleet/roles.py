"""Role, and the base of the role makers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock._src.base.errors import not_built
from penstock._src.fleet.workers import Workers, fill

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock._src.ir.typing import Array


class Role:
    """The role of a process: WORKER (a trainer) or SERVER (a parameter server).

    Example:
        from penstock.fluid.incubate.fleet.base import role_maker
        role = role_maker.UserDefinedRoleMaker(0, role_maker.Role.WORKER, 2, ['127.0.0.1:6174'])
        assert role.is_worker()
    """

    WORKER = 1
    SERVER = 2


class RoleMakerBase:
    """Base of the role makers. Your own role maker overrides generate_role(), which sets `_role`, `_current_id`,
    `_trainers_num`, `_worker_endpoints` and `_server_endpoints`.

    Example:
        from penstock.fluid.incubate.fleet.base import role_maker
        role = role_maker.UserDefinedRoleMaker(current_id=1, role=role_maker.Role.WORKER, worker_num=2,
                                               server_endpoints=['127.0.0.1:6174'])
        assert role.is_worker() and role.worker_index() == 1 and role.worker_num() == 2
    """

    def __init__(self) -> None:
        self._worker_endpoints: list[str] = []
        self._server_endpoints: list[str] = []
        self._role_is_generated = False
        self._role: int | None = None
        self._current_id = -1
        self._trainers_num: int | None = None
        self._workers: Workers | None = None

    def generate_role(self) -> None:
        """Determines the role of this process. A second call does nothing.

        Raises:
            NotImplementedError: the class does not override it.
        """
        raise NotImplementedError(f"{type(self).__name__} does not define generate_role()")

    def _generated(self) -> RoleMakerBase:
        if not self._role_is_generated:
            self.generate_role()
        return self

    def is_worker(self) -> bool:
        """Tells whether this process is a trainer.

        Returns:
            bool: True if it is.
        """
        return self._generated()._role == Role.WORKER

    def is_server(self) -> bool:
        """Tells whether this process is a pserver.

        Returns:
            bool: True if it is.
        """
        return self._generated()._role == Role.SERVER

    def is_first_worker(self) -> bool:
        """Tells whether this process is trainer 0.

        Returns:
            bool: True if it is.
        """
        return self.is_worker() and self._current_id == 0

    def worker_num(self) -> int:
        """Returns the number of trainers of the job.

        Returns:
            int: the number.
        """
        self._generated()
        return len(self._worker_endpoints) if self._trainers_num is None else self._trainers_num

    def server_num(self) -> int:
        """Returns the number of pservers of the job.

        Returns:
            int: the number; 0 without pservers.
        """
        return len(self.get_pserver_endpoints())

    def worker_index(self) -> int:
        """Returns the number of this trainer; on a pserver, the pserver's.

        Returns:
            int: from 0.
        """
        return self._generated()._current_id

    def server_index(self) -> int:
        """Returns the number of this pserver; on a trainer, the trainer's.

        Returns:
            int: from 0.
        """
        return self._generated()._current_id

    def get_trainer_endpoints(self) -> list[str]:
        """Returns the addresses of all trainers, as far as they are known.

        Returns:
            list[str]: 'host:port' of each trainer.
        """
        return self._generated()._worker_endpoints

    def get_pserver_endpoints(self) -> list[str]:
        """Returns the addresses of all pservers.

        Returns:
            list[str]: 'host:port' of each pserver.
        """
        return self._generated()._server_endpoints

    def get_local_endpoint(self) -> str:
        """Returns the address of this process.

        Returns:
            str: 'host:port'.
        """
        of_kind = self.get_trainer_endpoints() if self.is_worker() else self.get_pserver_endpoints()
        return of_kind[self._current_id]

    def to_string(self) -> str:
        """Describes this process and the others in one line.

        Returns:
            str: the line.
        """
        return (
            f"role: {self._role}, current_id: {self._current_id}, worker_endpoints: {self._worker_endpoints}, "
            f"server_endpoints: {self._server_endpoints}"
        )

    def _all_workers(self) -> Workers:
        if self._workers is None:
            self._workers = Workers(self.get_trainer_endpoints(), self.worker_index(), self.worker_num())
        return self._workers

    def all_gather(self, input: float) -> list[float]:
        """Gathers a number from each trainer.

        Args:
            input (int | float): this trainer's.

        Returns:
            list: one number for each trainer.

        Raises:
            penstock.StateError: E-fleet-workers: the trainers do not know each other's addresses.
        """
        return self._all_workers().all_gather(input)

    def all_reduce_worker(self, input: Array | Sequence[float], output: Array | list[float], mode: str = "sum") -> None:
        """Reduces numbers over all trainers. On a server it does nothing.

        Args:
            input (list | numpy.ndarray): numbers, in one dimension.
            output (list | numpy.ndarray): receives the result; the same length.
            mode (str): 'sum', 'min' or 'max'.

        Raises:
            penstock.StateError: E-fleet-workers: the trainers do not know each other's addresses.
        """
        if self.is_worker():
            fill(output, self._all_workers().all_reduce(input, mode))

    def barrier_worker(self) -> None:
        """Waits until all trainers have called it. On a pserver it does nothing."""
        if self.is_worker():
            self._all_workers().barrier()

    def barrier_all(self) -> None:
        """Waits until all processes of the job have called it.

        Raises:
            NotImplementedError: this role maker does not support the barrier; GeneralRoleMaker(path=...) does.
        """
        raise not_built(
            f"{type(self).__name__} has no barrier of pservers and trainers; GeneralRoleMaker(path=...) has one"
        )

    def _exchange(self, parts: list[bytes]) -> list[bytes]:
        """Sends parts[i], bytes, to trainer i; returns the parts that this trainer received."""
        return self._all_workers().exchange(parts)

    def _meet_workers(self) -> None:
        """Waits until all trainers have called it, if they can meet."""
        if self.is_worker() and self._all_workers().know_each_other():
            self.barrier_worker()

    # Names that Fluid's own tools use.
    def _barrier_worker(self) -> None:
        self.barrier_worker()

    def _barrier_all(self) -> None:
        self.barrier_all()

    def _all_reduce(self, input: Array | Sequence[float], output: Array | list[float], mode: str = "sum") -> None:
        self.all_reduce_worker(input, output, mode)

    def _finalize(self) -> None:
        """Cleans up when the worker stops."""
