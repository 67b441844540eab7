"""penstock.work.Shares in real processes: every example once an epoch, also if a trainer or a connection is lost."""

import json
import pathlib
import re
import signal
import subprocess
import sys
import textwrap

import numpy as np
import penstock.work
import pytest
from penstock import ProgramError, StateError
from penstock._src.launch.job import free_ports
from penstock._src.work.messages import Hello, MessageError, hello_message, read_answer, read_hello, read_request
from penstock._src.work.portions import Portions
from rank_processes import Ranks

SCRIPT = """
    import json, os, signal, sys, time
    import numpy as np
    import penstock.work
    from penstock._src.work import client

    rank, job = int(os.environ["PADDLE_TRAINER_ID"]), json.loads(sys.argv[1])
    shares = penstock.work.Shares(**{**job["arguments"], **job.get("own", {}).get(str(rank), {})})
    got = []

    def note(epoch, indices):
        got.append([epoch, [int(at) for at in indices]])
        open(f"met.{rank}", "w").close()
        if rank == job.get("leads", rank):
            if len(got) == 6:  # of its first round, or more: it has helped
                # If it waited later, the others could take what is left of the round, and trainer 1 would get nothing.
                while rank == 0 == job.get("dies") and not os.path.exists("met.1"):
                    time.sleep(0.005)
                open("sixth", "w").close()
        else:
            while not os.path.exists("sixth"):  # the others keep their first portion until then
                time.sleep(0.005)
        if rank == job.get("dies") and len(got) == 6 and "PENSTOCK_ROLE_RESTART_COUNT" not in os.environ:
            os.kill(os.getpid(), signal.SIGKILL)
        if rank == job.get("breaks"):
            shares._ask.__self__._channel._socket.shutdown(2)

    for epoch in range(job["epochs"]):
        if shares._staleness == 0:
            for round in shares.rounds(epoch):
                before = len(got)
                for indices in round:
                    note(epoch, indices)
                assert round.examples == sum(len(one) for _, one in got[before:])
        else:
            for indices in shares.batches(epoch):
                note(epoch, indices)
    print(json.dumps(got))
"""


def run(folder, workers, epochs=2, environment=None, **job):
    """What each process has got, as [(epoch, indices)], or None of one that was killed."""
    address = f"127.0.0.1:{free_ports(1)[0]}"
    given = json.dumps({"epochs": epochs, **job})
    environment = {"PENSTOCK_WORK_ENDPOINT": address, **(environment or {})}
    with Ranks(folder, SCRIPT, workers, given, environment=environment) as ranks:
        ends = ranks.ends()
    for rank, (code, _, err) in enumerate(ends):
        assert code == (-signal.SIGKILL if rank == job.get("dies") else 0), err
    return [json.loads(out) if out else None for _, out, _ in ends]


def by_epoch(got, epochs):
    """The sorted indices that all processes together have got, by epoch."""
    return [
        sorted(at for one in got if one is not None for number, indices in one if number == epoch for at in indices)
        for epoch in range(epochs)
    ]


@pytest.mark.parametrize("staleness", [0, 2])
def test_every_example_comes_to_one_trainer_once_an_epoch(tmp_path, staleness):
    arguments = {"size": 101, "batch_size": 8, "portions": 4, "staleness": staleness}
    got = run(tmp_path, 3, arguments=arguments)
    assert by_epoch(got, 2) == [list(range(101))] * 2


@pytest.mark.parametrize("staleness", [0, None])
def test_the_death_of_a_trainer_loses_no_example(tmp_path, staleness):
    arguments = {"size": 96, "batch_size": 8, "portions": 4, "staleness": staleness}
    got = run(tmp_path, 3, arguments=arguments, dies=2, leads=2)
    assert got[2] is None and by_epoch(got, 2)[1] == list(range(96))
    if staleness == 0:  # it had passed nothing on
        assert by_epoch(got, 2)[0] == list(range(96))
    else:  # only the portion that it had in work is given to others
        assert len(by_epoch(got, 2)[0]) == 96 - 5 * 2 == len(set(by_epoch(got, 2)[0]))


def test_a_connection_that_breaks_repeats_and_loses_nothing(tmp_path):
    arguments = {"size": 96, "batch_size": 8, "portions": 4}
    got = run(tmp_path, 2, arguments=arguments, breaks=1, leads=1)
    assert by_epoch(got, 2) == [list(range(96))] * 2 and len(got[1]) >= 6


def test_trainers_with_different_settings_are_refused(tmp_path):
    own = {"1": {"seed": 3}}
    address = f"127.0.0.1:{free_ports(1)[0]}"
    job = json.dumps({"epochs": 1, "arguments": {"size": 8, "batch_size": 2}, "own": own})
    with Ranks(tmp_path, SCRIPT, 2, job, environment={"PENSTOCK_WORK_ENDPOINT": address}) as ranks:
        _, err = ranks.processes[1].communicate(timeout=60)
    assert "E-work-settings" in err and "seed is 0 in trainer 0 and 3 in trainer 1" in err


def test_a_process_with_another_token_is_refused(tmp_path):
    address = f"127.0.0.1:{free_ports(1)[0]}"
    job = json.dumps({"epochs": 1, "arguments": {"size": 8, "batch_size": 2}})

    def own(rank):
        return {"PENSTOCK_JOB_TOKEN": "another"} if rank == 1 else {}

    environment = {"PENSTOCK_WORK_ENDPOINT": address}
    with Ranks(tmp_path, SCRIPT, 2, job, environment=environment, environment_of=own) as ranks:
        _, err = ranks.processes[1].communicate(timeout=60)
    assert "E-work-token" in err


def test_without_trainer_0_there_is_an_error_in_time(monkeypatch):
    monkeypatch.setenv("PENSTOCK_START_S", "0.1")
    with pytest.raises(ConnectionError, match="trainer 0, which divides the work, has not come.*E-work-gone"):
        penstock.work.Shares(8, 2, rank=1, workers=2, address=f"127.0.0.1:{free_ports(1)[0]}")


def test_the_death_of_trainer_0_is_noticed_at_once(tmp_path):
    arguments = {"size": 96, "batch_size": 8, "portions": 4}
    job = json.dumps({"epochs": 1, "arguments": arguments, "dies": 0, "leads": 0})
    environment = {"PENSTOCK_WORK_ENDPOINT": f"127.0.0.1:{free_ports(1)[0]}", "PENSTOCK_RECONNECT_S": "1000"}
    with Ranks(tmp_path, SCRIPT, 2, job, environment=environment) as ranks:
        (first, _, _), (second, _, err) = ranks.ends()
    assert first == -signal.SIGKILL and second == 1
    assert re.search("trainer 0, which divides the work, has ended .*E-work-gone", err), err


def test_trainer_0_that_is_started_again_learns_who_has_what(tmp_path):
    arguments = {"size": 96, "batch_size": 8, "portions": 4}
    job = json.dumps({"epochs": 2, "arguments": arguments, "dies": 0, "leads": 0})
    environment = {"PENSTOCK_WORK_ENDPOINT": f"127.0.0.1:{free_ports(1)[0]}", "PENSTOCK_ON_TRAINER_LOSS": "wait"}
    with Ranks(tmp_path, SCRIPT, 3, job, environment=environment) as ranks:
        assert ranks.start_again(0) == -signal.SIGKILL
        got = [json.loads(out) for out in ranks.end_well()]
    assert by_epoch(got, 2) == [list(range(96))] * 2


def test_with_staleness_nobody_waits_for_another_trainer_0(tmp_path):
    arguments = {"size": 96, "batch_size": 8, "portions": 4, "staleness": 2}
    job = json.dumps({"epochs": 1, "arguments": arguments, "dies": 0, "leads": 0})
    environment = {"PENSTOCK_WORK_ENDPOINT": f"127.0.0.1:{free_ports(1)[0]}", "PENSTOCK_ON_TRAINER_LOSS": "wait"}
    with Ranks(tmp_path, SCRIPT, 2, job, environment=environment) as ranks:
        (_, _, _), (code, _, err) = ranks.ends()
    assert code == 1 and re.search("trainer 0, which divides the work, has ended .*E-work-gone", err), err


@pytest.mark.parametrize(
    "message",
    [
        {"event": "take"},
        {"event": "give", "number": 1, "epoch": 0, "first": 0, "round": 0},
        {"event": "take", "number": -1, "epoch": 0, "first": 0, "round": 0},
        {"event": "take", "number": True, "epoch": 0, "first": 0, "round": 0},
        {"event": "take", "number": 1 << 70, "epoch": 0, "first": 0, "round": 0},
    ],
)
def test_a_request_of_another_form_is_refused(message):
    with pytest.raises(MessageError):
        read_request(message)


def test_a_hello_and_an_answer_of_another_form_are_refused():
    right = hello_message(Hello(1, 0, {"size": 8}, "process", ""))
    assert read_hello(right, 2) == Hello(1, 0, {"size": 8}, "process", "")
    for record in (None, {}, {"worked": 3}, {"worked": [[0, [1, 2]]]}, {"worked": [], "epoch": "0", "round": 0}):
        with pytest.raises(MessageError):
            read_hello({**right, "record": record}, 2)
    for change in ({"rank": 2}, {"rank": 0}, {"facts": []}, {"facts": {"size": "8"}}, {"process": "x" * 300}):
        with pytest.raises(MessageError):
            read_hello({**right, **change}, 2)
    for portion in ([0, 2, 0], [0, 0], "0", [0, 0, 9], [-1, 0, 0]):
        with pytest.raises(MessageError):
            read_answer({"event": "answer", "number": 1, "portion": portion}, Portions(8, 2, 2, 2))


def test_several_trainers_need_an_address(monkeypatch):
    monkeypatch.delenv("PENSTOCK_WORK_ENDPOINT", raising=False)
    with pytest.raises(ProgramError, match="2 trainers.*E-work-address"):
        penstock.work.Shares(8, 2, rank=0, workers=2)
    with pytest.raises(ConnectionError, match="cannot listen on 192.0.2.1:1 .*E-work-address"):
        penstock.work.Shares(8, 2, rank=0, workers=2, address="192.0.2.1:1")
    monkeypatch.setenv("PENSTOCK_ELASTIC_FD", "3:4")
    with pytest.raises(ProgramError, match="E-work-elastic"):
        penstock.work.Shares(8, 2, rank=0, workers=2, address="127.0.0.1:1")


@pytest.mark.parametrize(
    "arguments, said",
    [
        ({"size": 0}, "size must be an integer of at least 1, not 0"),
        ({"batch_size": 1.5}, "batch_size must be an integer of at least 1, not 1.5"),
        ({"portions": True}, "portions must be"),
        ({"staleness": -1}, "staleness must be an integer of at least 0"),
        ({"helpers": "all"}, "helpers must be"),
        ({"rank": 1}, "rank 1 must be below the number of workers, 1"),
    ],
)
def test_wrong_arguments_are_refused(arguments, said):
    with pytest.raises(ValueError, match=said):
        penstock.work.Shares(**{"size": 8, "batch_size": 2, **arguments})


def test_epochs_go_forward_in_the_mode_of_the_object():
    shares = penstock.work.Shares(10, 4, portions=3, shuffle=False)
    assert len(shares) == 3
    rounds = [(one.number, one.size, [list(part) for part in one], one.weight) for one in shares.rounds(0)]
    assert [at for *_, parts, _ in rounds for part in parts for at in part] == list(range(10))
    assert [one[:2] for one in rounds] == [(0, 4), (1, 4), (2, 2)] and {one[-1] for one in rounds} == {1.0}
    assert [one.number for one in shares.rounds(1, first=2)] == [2]
    with pytest.raises(StateError, match="epoch 1 cannot follow epoch 1.*E-work-order"):
        shares.rounds(1)
    with pytest.raises(ValueError, match="first is 4, and an epoch has 3 rounds"):
        shares.rounds(2, first=4)
    with pytest.raises(StateError, match=r"use rounds\(epoch\).*E-work-order"):
        shares.batches(2)
    loose = penstock.work.Shares(10, 4, staleness=None, seed=1)
    assert sorted(at for part in loose.batches(0) for at in part) == list(range(10))
    with pytest.raises(StateError, match=r"use batches\(epoch\).*E-work-order"):
        loose.rounds(1)


# Trains by rounds in three processes, the last of which is slow: the others have finished what there is of the first
# round before it has finished a portion.
TRAIN = """
    import json, os, sys, time
    import numpy as np
    import penstock.hvd as hvd
    import penstock.work

    hvd.init()
    random = np.random.RandomState(0)
    x, y = random.rand(96, 5), random.rand(96)
    w, examples, waits = np.zeros(5), 0, hvd.rank() == 2
    folder = os.path.dirname(sys.argv[0])
    shares = penstock.work.Shares(96, 8, portions=8)
    for epoch in range(2):
        for round in shares.rounds(epoch):
            gradient, count = np.zeros(5), 0
            for indices in round:
                gradient += (x[indices] @ w - y[indices]) @ x[indices]
                count += 1
                while waits and len(os.listdir(folder)) < 23 + 1:
                    time.sleep(0.005)
                open(os.path.join(folder, f"{hvd.rank()}.{epoch}.{round.number}.{count}"), "w").close()
            if (epoch, round.number) == (0, 0):
                first = round.examples
            examples, waits = examples + round.examples, False
            mean = gradient / max(round.examples, 1)
            w -= 0.1 * hvd.allreduce(mean * round.weight, op=hvd.Average)
    print(json.dumps([w.tolist(), examples, first]))
"""


def test_weighted_gradients_of_rounds_train_as_one_machine(tmp_path):
    environment = {"PENSTOCK_WORK_ENDPOINT": f"127.0.0.1:{free_ports(1)[0]}"}
    with Ranks(tmp_path, TRAIN, 3, environment=environment) as ranks:
        ends = [json.loads(out) for out in ranks.end_well()]
    random = np.random.RandomState(0)
    x, y, w = random.rand(96, 5), random.rand(96), np.zeros(5)
    for epoch in range(2):
        order = np.random.RandomState(epoch).permutation(96)
        for batch in order.reshape(4, 24):
            w -= 0.1 * (x[batch] @ w - y[batch]) @ x[batch] / 24
    for found, _, _ in ends:
        np.testing.assert_allclose(found, w, rtol=1e-12)
    assert sum(examples for _, examples, _ in ends) == 2 * 96
    assert ends[2][2] <= 1  # the others have taken over all portions of its first round but the one that it has begun


def test_the_launcher_says_where_trainer_0_listens(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(
        textwrap.dedent(
            """
            import os, sys
            import penstock.work
            shares = penstock.work.Shares(20, 4, staleness=1)
            name = os.path.join(sys.argv[1], os.environ["PADDLE_TRAINER_ID"])
            with open(name, "w") as file:
                file.write(" ".join(str(at) for part in shares.batches(0) for at in part))
            """
        )
    )
    command = [sys.executable, "-m", "penstock.distributed.launch", "--worker_num", "2", "--log_dir", tmp_path / "log"]
    done = subprocess.run(
        [*command, script, tmp_path], capture_output=True, text=True, timeout=120, check=False, cwd=tmp_path
    )
    assert done.returncode == 0, done.stdout + done.stderr
    texts = [pathlib.Path(tmp_path, name).read_text() for name in "01"]
    assert sorted(int(at) for text in texts for at in text.split()) == list(range(20))
