"""Role makers, which determine the role of this process in the job and the addresses of the other processes."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from penstock._src.base import environment
from penstock._src.base.doc_texts import with_texts
from penstock._src.base.errors import not_built, program_error
from penstock._src.fleet.file_group import FileGroup
from penstock._src.fleet.roles import Role, RoleMakerBase

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


def _required(name: str, what: str) -> str:
    given = environment.text(name)
    if not given:
        raise program_error(
            "E-fleet-environment",
            f"fleet: the environment variable {name} is not set; it states {what}. The launcher sets it: "
            "python -m penstock.distributed.launch",
        )
    return given


def _number(name: str, what: str, below: int | None = None) -> int:
    text, number = _required(name, what), environment.value(name)
    if not isinstance(number, int) or (below is not None and number >= below):
        raise program_error(
            "E-fleet-environment", f"fleet: {name}={text} is not a number below {below}; it states {what}"
        )
    return number


def _this_server(servers: list[str]) -> int:
    """Returns the number of this pserver by its address in the environment."""
    here = "{}:{}".format(_required("POD_IP", "this server's host"), _required("PADDLE_PORT", "its port"))
    if here not in servers:
        raise program_error(
            "E-fleet-environment",
            f"fleet: this pserver is POD_IP:PADDLE_PORT = {here}, which is not in "
            f"PADDLE_PSERVERS_IP_PORT_LIST={','.join(servers)}",
        )
    return servers.index(here)


_ROLE = {
    "reads_role": """Reads the role from the environment. A second call does nothing.

Raises:
    ValueError: a variable is missing or has an invalid value."""
}


class PaddleCloudRoleMaker(RoleMakerBase):
    """Reads the role from the launcher's environment variables.

    With pservers it reads TRAINING_ROLE, PADDLE_PSERVERS_IP_PORT_LIST, PADDLE_TRAINERS_NUM, PADDLE_TRAINER_ID (of a
    trainer), POD_IP and PADDLE_PORT (of a pserver); without, PADDLE_TRAINER_ENDPOINTS and PADDLE_TRAINER_ID.

    Args:
        is_collective (bool): whether the job has ranks and no pservers.

    Raises:
        ValueError: (at the first query of the role) a variable is missing or has an invalid value.

    Example:
        from penstock.fluid.incubate.fleet.base import role_maker
        role = role_maker.PaddleCloudRoleMaker(is_collective=True)
    """

    def __init__(self, is_collective: bool = False) -> None:
        super().__init__()
        self._is_collective = is_collective

    @with_texts(_ROLE)
    def generate_role(self) -> None:
        """{reads_role}"""
        if self._role_is_generated:
            return
        if self._is_collective:
            self._read_rank()
        else:
            self._read_role()
        self._role_is_generated = True

    def _read_rank(self) -> None:
        role = environment.text("PADDLE_TRAINING_ROLE", "TRAINER")
        if role != "TRAINER":
            raise program_error(
                "E-fleet-environment", f"fleet: a collective job has trainers only, but PADDLE_TRAINING_ROLE={role}"
            )
        _required("PADDLE_TRAINER_ENDPOINTS", "the addresses of all trainers")
        self._worker_endpoints = environment.listed("PADDLE_TRAINER_ENDPOINTS")
        self._trainers_num = len(self._worker_endpoints)
        self._role = Role.WORKER
        self._current_id = 0
        if self._trainers_num > 1:
            self._current_id = _number("PADDLE_TRAINER_ID", "which trainer this is", self._trainers_num)

    def _read_role(self) -> None:
        role = _required("TRAINING_ROLE", "what this process is, TRAINER or PSERVER")
        if role not in ("TRAINER", "PSERVER"):
            raise program_error("E-fleet-environment", f"fleet: TRAINING_ROLE={role}; it must be TRAINER or PSERVER")
        _required("PADDLE_PSERVERS_IP_PORT_LIST", "the addresses of all parameter servers")
        self._server_endpoints = environment.listed("PADDLE_PSERVERS_IP_PORT_LIST")
        self._trainers_num = _number("PADDLE_TRAINERS_NUM", "how many trainers there are")
        self._worker_endpoints = environment.listed("PADDLE_TRAINER_ENDPOINTS")
        if role == "TRAINER":
            self._role = Role.WORKER
            self._current_id = _number("PADDLE_TRAINER_ID", "which trainer this is", self._trainers_num)
            return
        self._role = Role.SERVER
        self._current_id = _this_server(self._server_endpoints)


class GeneralRoleMaker(RoleMakerBase):
    """Reads the role from the environment; pservers and trainers exchange numbers through files in a folder.

    It reads the environment variables PADDLE_PSERVERS_IP_PORT_LIST, PADDLE_TRAINER_ENDPOINTS, TRAINING_ROLE,
    PADDLE_TRAINER_ID (of a trainer), PADDLE_PSERVER_ID, or POD_IP and PADDLE_PORT (of a pserver), SYS_JOB_ID, and
    PADDLE_IS_BARRIER_ALL_ROLE: with 0, the process starts without waiting for the others.

    Args:
        **kwargs (object): `path` (str): a folder that all processes of the job share; without it there is no barrier of
            all processes. `init_timeout_seconds` (int, 3600): how long to wait for the other processes when the role is
            generated. `run_timeout_seconds` (int, 9999999): how long to wait for them later. `hdfs_name`, `hdfs_ugi`,
            `http_ip_port` (str): settings of Fluid's other stores; must be empty.

    Raises:
        NotImplementedError: a store other than a folder is requested.
        TypeError: an argument has another name.
        ValueError: (at the first query of the role) a variable is missing or has an invalid value.
        penstock.PeerError: E-fleet-files: the other processes do not respond in time.

    Example:
        from penstock.fluid.incubate.fleet.base import role_maker
        role = role_maker.GeneralRoleMaker(path='/tmp/job7')
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__()
        unknown = set(kwargs) - {
            "path",
            "hdfs_name",
            "hdfs_ugi",
            "http_ip_port",
            "init_timeout_seconds",
            "run_timeout_seconds",
        }
        if unknown:
            raise TypeError(f"GeneralRoleMaker has no argument {', '.join(sorted(unknown))}")
        for name in ("hdfs_name", "http_ip_port"):
            if kwargs.get(name):
                raise not_built(
                    f"GeneralRoleMaker: {name} is not built; give path, a folder that all processes of the job share"
                )
        self._path = kwargs.get("path", "").rstrip("/")
        self._init_timeout = kwargs.get("init_timeout_seconds", 3600)
        self._run_timeout = kwargs.get("run_timeout_seconds", 9999999)
        self._group: FileGroup | None = None

    @with_texts(_ROLE)
    def generate_role(self) -> None:
        """{reads_role}"""
        if self._role_is_generated:
            return
        for name, what in (
            ("PADDLE_PSERVERS_IP_PORT_LIST", "the addresses of all parameter servers"),
            ("PADDLE_TRAINER_ENDPOINTS", "the addresses of all trainers"),
        ):
            _required(name, what)
        self._server_endpoints = environment.listed("PADDLE_PSERVERS_IP_PORT_LIST")
        self._worker_endpoints = environment.listed("PADDLE_TRAINER_ENDPOINTS")
        self._trainers_num = len(self._worker_endpoints)
        role = _required("TRAINING_ROLE", "what this process is, TRAINER or PSERVER")
        if role == "TRAINER":
            self._role = Role.WORKER
            self._current_id = _number("PADDLE_TRAINER_ID", "which trainer this is", self._trainers_num)
            rank = self._current_id
        elif role == "PSERVER":
            self._role = Role.SERVER
            self._current_id = self._server_of_environment()
            rank = self._trainers_num + self._current_id
        else:
            raise program_error("E-fleet-environment", f"fleet: TRAINING_ROLE={role}; it must be TRAINER or PSERVER")
        self._role_is_generated = True
        if self._path:
            job = "-".join(filter(None, map(environment.text, ("SYS_JOB_ID", "PENSTOCK_JOB_ID")))) or "job"
            size = self._trainers_num + len(self._server_endpoints)
            self._group = FileGroup(os.path.join(self._path, job), rank, size, self._run_timeout)
            if environment.value("PADDLE_IS_BARRIER_ALL_ROLE", True):
                self._group.barrier(self._init_timeout)

    def _server_of_environment(self) -> int:
        if environment.text("PADDLE_PSERVER_ID"):
            return _number("PADDLE_PSERVER_ID", "which server this is", len(self._server_endpoints))
        return _this_server(self._server_endpoints)

    def _all(self) -> FileGroup:
        self._generated()
        if self._group is None:
            raise program_error(
                "E-fleet-path",
                "fleet: pservers and trainers exchange data through files: "
                "GeneralRoleMaker(path=...) needs a folder that all of them share",
            )
        return self._group

    def all_gather(self, input: float) -> list[float]:
        """Gathers a number from each process: all trainers, then all pservers.

        Args:
            input (int | float): the number of this process to gather.

        Returns:
            list: one number for each process.
        """
        return self._all().all_gather(input)

    def barrier_all(self) -> None:
        """Waits until all pservers and trainers have called it."""
        self._all().barrier()


def _checked_endpoints(name: str, endpoints: object) -> list[str]:
    if not isinstance(endpoints, list):
        raise TypeError(f"{name} must be a list of addresses, not {endpoints!r}")
    for each in endpoints:
        if not isinstance(each, str):
            raise TypeError(f'{name} must hold addresses such as "10.0.0.1:6174", not {each!r}')
    if not endpoints:
        raise ValueError(f"{name} is empty")
    repeated = [each for i, each in enumerate(endpoints) if each in endpoints[:i]]
    if repeated:
        raise ValueError(f"{name} has {repeated[0]} twice")
    return endpoints


def _checked_id(current_id: object, below: int | None, whose: str) -> int:
    if not isinstance(current_id, int) or isinstance(current_id, bool):
        raise TypeError(f"current_id must be an int, not {current_id!r}")
    if current_id < 0 or below is not None and current_id >= below:
        raise ValueError(
            f"current_id is {current_id}, but must be from "
            f"0{('' if below is None else f' to {below - 1}, the last of {whose}')}"
        )
    return current_id


class UserDefinedRoleMaker(RoleMakerBase):
    """A role that the script states itself.

    Args:
        current_id (int): the number of this process among the processes of its role.
        role (int): Role.WORKER or Role.SERVER.
        worker_num (int): the number of trainers.
        server_endpoints (list of str): the addresses of all pservers.

    Raises:
        TypeError, ValueError: an argument is invalid.

    Example:
        from penstock.fluid.incubate.fleet.base import role_maker
        role = role_maker.UserDefinedRoleMaker(0, role_maker.Role.SERVER, 2, ['127.0.0.1:6174'])
        assert role.is_server()
    """

    def __init__(
        self,
        current_id: int = 0,
        role: int = Role.WORKER,
        worker_num: int = 0,
        server_endpoints: Sequence[str] | None = None,
    ) -> None:
        super().__init__()
        self._server_endpoints = _checked_endpoints("server_endpoints", server_endpoints)
        if role not in (Role.WORKER, Role.SERVER):
            raise TypeError(f"role must be Role.WORKER or Role.SERVER, not {role!r}")
        self._role = role
        if not isinstance(worker_num, int) or isinstance(worker_num, bool):
            raise TypeError(f"worker_num must be an int, not {worker_num!r}")
        if worker_num <= 0:
            raise ValueError(f"worker_num must be at least 1, not {worker_num}")
        below = len(self._server_endpoints) if role == Role.SERVER else None
        self._current_id = _checked_id(current_id, below, "server_endpoints")
        self._trainers_num = worker_num
        self._worker_endpoints = environment.listed("PADDLE_TRAINER_ENDPOINTS")

    def generate_role(self) -> None:
        self._role_is_generated = True


class UserDefinedCollectiveRoleMaker(RoleMakerBase):
    """The rank of a process in a job without pservers, stated by the script.

    Args:
        current_id (int): the rank of this process.
        worker_endpoints (list of str): the addresses of all ranks.

    Raises:
        TypeError, ValueError: an argument is invalid.

    Example:
        from penstock.fluid.incubate.fleet.base import role_maker
        role = role_maker.UserDefinedCollectiveRoleMaker(0, ['127.0.0.1:6170', '127.0.0.1:6171'])
        assert role.worker_num() == 2
    """

    def __init__(self, current_id: int = 0, worker_endpoints: Sequence[str] | None = None) -> None:
        super().__init__()
        self._worker_endpoints = _checked_endpoints("worker_endpoints", worker_endpoints)
        self._current_id = _checked_id(current_id, len(self._worker_endpoints), "worker_endpoints")
        self._role = Role.WORKER
        self._trainers_num = len(self._worker_endpoints)

    def generate_role(self) -> None:
        self._role_is_generated = True
