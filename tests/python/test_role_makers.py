"""Role makers of fleet: what they read from the environment or from arguments, and their errors for invalid roles."""

import threading

import pytest
from penstock import _penstock
from penstock._src.fleet.file_group import FileGroup
from penstock.fluid.incubate.fleet.base import role_maker
from penstock.fluid.incubate.fleet.base.role_maker import (
    GeneralRoleMaker,
    PaddleCloudRoleMaker,
    Role,
    UserDefinedCollectiveRoleMaker,
    UserDefinedRoleMaker,
)

SERVERS, TRAINERS = "10.0.0.1:6174,10.0.0.2:6174", "10.0.0.1:6170,10.0.0.2:6170"
NAMES = (
    "TRAINING_ROLE",
    "PADDLE_TRAINING_ROLE",
    "PADDLE_PSERVERS_IP_PORT_LIST",
    "PADDLE_TRAINERS_NUM",
    "PADDLE_TRAINER_ID",
    "PADDLE_TRAINER_ENDPOINTS",
    "PADDLE_PSERVER_ID",
    "POD_IP",
    "PADDLE_PORT",
    "SYS_JOB_ID",
    "PENSTOCK_JOB_ID",
    "PADDLE_IS_BARRIER_ALL_ROLE",
)


@pytest.fixture
def environment(monkeypatch):

    def set_to(**values):
        for name in NAMES:
            monkeypatch.delenv(name, raising=False)
        for name, value in values.items():
            monkeypatch.setenv(name, value)

    set_to()
    return set_to


TRAINER = {
    "TRAINING_ROLE": "TRAINER",
    "PADDLE_PSERVERS_IP_PORT_LIST": SERVERS,
    "PADDLE_TRAINERS_NUM": "2",
    "PADDLE_TRAINER_ID": "1",
    "PADDLE_TRAINER_ENDPOINTS": TRAINERS,
}
SERVER = {
    "TRAINING_ROLE": "PSERVER",
    "PADDLE_PSERVERS_IP_PORT_LIST": SERVERS,
    "PADDLE_TRAINERS_NUM": "2",
    "POD_IP": "10.0.0.2",
    "PADDLE_PORT": "6174",
    "PADDLE_TRAINER_ENDPOINTS": TRAINERS,
}


@pytest.mark.parametrize("make", [PaddleCloudRoleMaker, GeneralRoleMaker])
def test_the_launchers_environment_defines_the_role(environment, make):
    environment(**TRAINER)
    trainer = make()
    assert (trainer.is_worker(), trainer.is_server(), trainer.is_first_worker()) == (True, False, False)
    assert (trainer.worker_index(), trainer.worker_num(), trainer.server_num()) == (1, 2, 2)
    assert trainer.get_pserver_endpoints() == SERVERS.split(",")
    assert trainer.get_trainer_endpoints() == TRAINERS.split(",")
    assert trainer.get_local_endpoint() == "10.0.0.2:6170"
    environment(**SERVER)
    server = make()
    assert (server.is_worker(), server.is_server(), server.is_first_worker()) == (False, True, False)
    assert (server.server_index(), server.worker_num(), server.get_local_endpoint()) == (1, 2, "10.0.0.2:6174")


def test_a_collective_role_maker_reads_its_rank(environment):
    environment(PADDLE_TRAINER_ENDPOINTS=TRAINERS, PADDLE_TRAINER_ID="0")
    rank = PaddleCloudRoleMaker(is_collective=True)
    assert (rank.is_first_worker(), rank.worker_num(), rank.get_pserver_endpoints()) == (True, 2, [])
    environment(PADDLE_TRAINER_ENDPOINTS=TRAINERS, PADDLE_TRAINER_ID="2")
    with pytest.raises(ValueError, match="PADDLE_TRAINER_ID=2 is not a number below 2"):
        PaddleCloudRoleMaker(is_collective=True).generate_role()
    environment(PADDLE_TRAINING_ROLE="PSERVER")
    with pytest.raises(ValueError, match="trainers only, but PADDLE_TRAINING_ROLE=PSERVER"):
        PaddleCloudRoleMaker(is_collective=True).generate_role()


@pytest.mark.parametrize("make", [PaddleCloudRoleMaker, GeneralRoleMaker])
@pytest.mark.parametrize(
    "base, change, message",
    [
        (TRAINER, {"TRAINING_ROLE": "CHIEF"}, "TRAINING_ROLE=CHIEF; it must be TRAINER or PSERVER"),
        (TRAINER, {"TRAINING_ROLE": ""}, "TRAINING_ROLE is not set"),
        (TRAINER, {"PADDLE_TRAINER_ID": "2"}, "PADDLE_TRAINER_ID=2 is not a number below 2"),
        (TRAINER, {"PADDLE_TRAINER_ID": "first"}, 'PADDLE_TRAINER_ID is "first"; it takes an integer from 0'),
        (TRAINER, {"PADDLE_PSERVERS_IP_PORT_LIST": ""}, "PADDLE_PSERVERS_IP_PORT_LIST is not set"),
        (
            SERVER,
            {"PADDLE_PORT": "7000"},
            "POD_IP:PADDLE_PORT = 10.0.0.2:7000, which is not in PADDLE_PSERVERS_IP_PORT",
        ),
        (SERVER, {"POD_IP": ""}, "POD_IP is not set"),
    ],
)
def test_missing_environment_variables_are_reported(environment, make, base, change, message):
    environment(**{**base, **change})
    with pytest.raises(ValueError, match=message):
        make().generate_role()


def test_a_servers_number_may_be_given(environment):
    environment(**dict(SERVER, PADDLE_PSERVER_ID="0", POD_IP=""))
    assert GeneralRoleMaker().server_index() == 0
    environment(**dict(SERVER, PADDLE_PSERVER_ID="5"))
    with pytest.raises(ValueError, match="PADDLE_PSERVER_ID=5 is not a number below 2"):
        GeneralRoleMaker().generate_role()


def test_user_defined_role_makers_use_their_arguments(environment):
    worker = UserDefinedRoleMaker(current_id=1, role=Role.WORKER, worker_num=2, server_endpoints=SERVERS.split(","))
    assert (worker.is_worker(), worker.worker_index(), worker.server_num()) == (True, 1, 2)
    rank = UserDefinedCollectiveRoleMaker(1, TRAINERS.split(","))
    assert (rank.is_worker(), rank.is_server(), rank.worker_num(), rank.is_first_worker()) == (True, False, 2, False)
    assert rank.to_string().startswith("role: 1, current_id: 1, worker_endpoints: [")


@pytest.mark.parametrize(
    "arguments, error, message",
    [
        ({"server_endpoints": SERVERS}, TypeError, "must be a list of addresses, not '10"),
        ({"server_endpoints": []}, ValueError, "server_endpoints is empty"),
        ({"server_endpoints": ["a:1", "a:1"]}, ValueError, "server_endpoints has a:1 twice"),
        ({"server_endpoints": ["a:1", 5]}, TypeError, "not 5"),
        ({"role": 7}, TypeError, "role must be Role.WORKER or Role.SERVER, not 7"),
        ({"current_id": "first"}, TypeError, "current_id must be an int, not 'first'"),
        ({"current_id": -1}, ValueError, "current_id is -1, but must be from 0"),
        ({"current_id": 2, "role": Role.SERVER}, ValueError, "must be from 0 to 1, the last of server_endpoints"),
        ({"worker_num": 0}, ValueError, "worker_num must be at least 1, not 0"),
        ({"worker_num": None}, TypeError, "worker_num must be an int, not None"),
    ],
)
def test_invalid_user_defined_roles_are_refused(environment, arguments, error, message):
    with pytest.raises(error, match=message):
        UserDefinedRoleMaker(**{"worker_num": 2, "server_endpoints": SERVERS.split(","), **arguments})


def test_a_rank_beyond_the_last_is_refused(environment):
    with pytest.raises(ValueError, match="must be from 0 to 1, the last of worker_endpoints"):
        UserDefinedCollectiveRoleMaker(2, TRAINERS.split(","))


def test_trainers_without_peer_addresses_cannot_exchange(environment):
    environment(**dict(TRAINER, PADDLE_TRAINER_ENDPOINTS=""))
    trainer = PaddleCloudRoleMaker()
    with pytest.warns(UserWarning, match="PADDLE_TRAINER_ENDPOINTS is not set"):
        trainer.barrier_worker()
    with pytest.raises(_penstock.StateError, match="all_reduce_worker needs the addresses of all 2 trainers"):
        trainer.all_reduce_worker([1], [0])
    with pytest.raises(_penstock.StateError, match="E-fleet-workers"):
        trainer.all_gather(1)
    with pytest.raises(NotImplementedError, match="no barrier of pservers and trainers"):
        trainer.barrier_all()


def test_a_single_trainer_exchanges_with_itself(environment):
    alone = UserDefinedRoleMaker(0, Role.WORKER, 1, ["a:1"])
    alone.barrier_worker()
    output = [0, 0]
    alone.all_reduce_worker([3, 4.5], output)
    assert output == [3, 4.5] and alone.all_gather(7) == [7] and alone._exchange([b"x"]) == [b"x"]
    with pytest.raises(_penstock.ProgramError, match="mode must be one of sum, min, max, not .mean."):
        alone.all_reduce_worker([1], [0], "mean")
    with pytest.raises(_penstock.ProgramError, match="output has 1 elements, but input has 2"):
        alone.all_reduce_worker([1, 2], [0])
    server = UserDefinedRoleMaker(0, Role.SERVER, 1, ["a:1"])
    server.all_reduce_worker([1], output)
    server.barrier_worker()
    assert output == [3, 4.5]


def test_custom_role_makers_are_supported(environment):

    class Mine(role_maker.RoleMakerBase):
        def generate_role(self):
            self._role, self._current_id, self._trainers_num = Role.SERVER, 1, 3
            self._server_endpoints = ["a:1", "a:2"]
            self._role_is_generated = True

    mine = Mine()
    assert (mine.is_server(), mine.server_index(), mine.worker_num(), mine.server_num()) == (True, 1, 3, 2)
    with pytest.raises(NotImplementedError, match="RoleMakerBase does not define generate_role"):
        role_maker.RoleMakerBase().is_worker()


def test_processes_exchange_values_through_files(tmp_path):
    results = {}

    def process(rank):
        group = FileGroup(str(tmp_path), rank, 3, timeout=60)
        results[rank] = group.all_gather(10 * rank), group.all_gather(0.5 + rank)
        group.barrier()

    threads = [threading.Thread(target=process, args=(rank,)) for rank in range(3)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert results == {rank: ([0, 10, 20], [0.5, 1.5, 2.5]) for rank in range(3)}


def test_a_missing_process_is_reported(tmp_path, environment):
    environment(**TRAINER)
    with pytest.raises(_penstock.PeerError, match="0 of 4 has not written .*round1/0 within 0 s.*E-fleet-files"):
        GeneralRoleMaker(path=str(tmp_path), init_timeout_seconds=0).generate_role()
    environment(**dict(TRAINER, PADDLE_IS_BARRIER_ALL_ROLE="0"))
    role = GeneralRoleMaker(path=str(tmp_path / "other"), run_timeout_seconds=0)
    role.generate_role()
    with pytest.raises(_penstock.PeerError, match="E-fleet-files"):
        role.barrier_all()


def test_unsupported_stores_are_refused(environment):
    with pytest.raises(NotImplementedError, match="hdfs_name is not built; give path"):
        GeneralRoleMaker(hdfs_name="afs://x")
    with pytest.raises(NotImplementedError, match="http_ip_port is not built"):
        GeneralRoleMaker(http_ip_port="127.0.0.1:80")
    with pytest.raises(TypeError, match="no argument paths"):
        GeneralRoleMaker(paths="x")
    environment(**TRAINER)
    with pytest.raises(_penstock.ProgramError, match="path=.... needs a folder"):
        GeneralRoleMaker().barrier_all()


class FakeComm:
    """Rank 2 of 4 processes on two machines."""

    rank, size, hosts = 2, 4, ["h1", "h1", "h2", "h2"]

    def Get_rank(self):
        return self.rank

    def Get_size(self):
        return self.size

    def allgather(self, value):
        return list(self.hosts)

    def Split(self, color):
        self.color = color
        return self


@pytest.fixture
def mpi(monkeypatch):
    """A stand-in for mpi4py, and its end."""
    import sys
    import types

    ends, module = [], types.ModuleType("mpi4py")
    module.MPI = types.SimpleNamespace(COMM_WORLD=FakeComm(), SUM=1, MAX=2, MIN=3, Finalize=lambda: ends.append(True))
    monkeypatch.setitem(sys.modules, "mpi4py", module)
    return ends


def test_custom_role_makers_are_supported_under_mpi(mpi, monkeypatch):

    class AllTrain(role_maker.MPIRoleMaker):
        def generate_role(self):
            self._role, self._current_id = role_maker.Role.WORKER, self._get_rank()
            self._worker_endpoints = self._get_ips()
            self._node_type_comm = self._comm.Split(0)
            self._role_is_generated = True

    monkeypatch.setattr(AllTrain, "get_local_ip", lambda self: "h2")
    role = AllTrain()
    assert role.is_worker() and (role.worker_index(), role.worker_num(), role._get_size()) == (2, 4, 4)
    assert role.all_gather(3) == role._all_gather(3) == role._worker_gather(3) == ["h1", "h1", "h2", "h2"]
    role._finalize()
    assert mpi == [True]
    with pytest.raises(NotImplementedError, match="MPIRoleMaker does not define generate_role"):
        role_maker.MPIRoleMaker().is_worker()


def test_mpi_ranks_alternate_between_servers_and_trainers(mpi, monkeypatch):
    monkeypatch.setattr(role_maker.MPISymetricRoleMaker, "get_local_ip", lambda self: "h2")
    role = role_maker.MPISymetricRoleMaker()
    assert (role.is_server(), role.server_index(), role.worker_num(), role.server_num()) == (True, 1, 2, 2)
    first, second = role.get_pserver_endpoints()
    assert first.startswith("h1:") and second.startswith("h2:") and role._comm.color == 0
    monkeypatch.setattr(FakeComm, "hosts", ["h1"] * 4)
    monkeypatch.setattr(FakeComm, "rank", 3)
    trainer = role_maker.MPISymetricRoleMaker()
    assert (trainer.is_worker(), trainer.worker_index()) == (True, 1)
    assert len(set(trainer.get_pserver_endpoints())) == 2, "servers of one machine have ports apart"
    monkeypatch.setattr(FakeComm, "size", 3)
    with pytest.raises(ValueError, match="the number of processes must be even, not 3"):
        role_maker.MPISymetricRoleMaker().generate_role()


def test_the_mpi_role_maker_requires_mpi4py(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "mpi4py", None)
    with pytest.raises(ImportError, match="needs mpi4py, which is not installed"):
        role_maker.MPISymetricRoleMaker()
