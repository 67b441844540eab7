"""The summary that the flight recordings of a job give, on hand-made recordings."""

import mmap
import os
import random

import pytest
from penstock._src.launch.cause import explain_failure, explain_hang
from penstock._src.launch.flight import Event, Flight, Recording
from penstock._src.launch.receipts import table

SERVER = "pserver 127.0.0.1:6170"


def trainer(index, *events, state=""):
    return Recording(f"trainer {index}", events, "", state)


def pserver(index, *events, state=""):
    return Recording(f"pserver {index}", events, f"127.0.0.1:{6170 + index}", state)


def ended(step, at, peer=""):
    return Event(at, "step ended", step, peer)


def test_the_awaited_trainer_is_named_with_its_last_event():
    recordings = [
        pserver(
            0,
            ended(11, 9.0, "trainer 1"),
            ended(12, 9.5, "trainer 0"),
            Event(40.0, "waits for", 12, "trainer 1", "fc_0.w_0"),
        ),
        trainer(0, ended(12, 9.5), Event(9.6, "wait begun", 13), Event(39.0, "waits for", 13, SERVER, "fc_0.w_0")),
        trainer(1, ended(11, 9.0), Event(10.0, "push sent", 12, SERVER, "fc_0.w_0@GRAD", 400)),
    ]
    assert explain_hang(recordings, 44.0) == (
        "trainer 1 stopped contributing at step 12 (last event: fc_0.w_0@GRAD sent to pserver 0 34.0 s ago); "
        "pserver 0 and trainer 0 wait for it"
    )


def test_the_slowest_role_is_found_without_reported_waits():
    recordings = [
        pserver(0, ended(4, 1.0, "trainer 0"), ended(4, 1.0, "trainer 1"), ended(5, 2.0, "trainer 0")),
        trainer(0, ended(5, 2.0), Event(2.1, "wait begun", 6)),
        trainer(1, ended(4, 1.0)),
    ]
    assert explain_hang(recordings, 5.0) == (
        "trainer 1 stopped contributing at step 5 (last event: step 4 ended 4.0 s ago); "
        "pserver 0 and trainer 0 wait for it"
    )


def test_a_stopped_process_is_reported_as_stopped():
    recordings = [
        pserver(0, ended(5, 2.0, "trainer 0"), Event(4.0, "waits for", 5, "trainer 1", "w")),
        trainer(0, ended(5, 2.0), Event(2.1, "wait begun", 6), Event(4.0, "waits for", 6, SERVER, "w")),
        trainer(1, ended(4, 1.0), Event(1.1, "wait begun", 5), state="is stopped by a signal"),
    ]
    assert explain_hang(recordings, 5.0).startswith("trainer 1 is stopped by a signal at step 5 (last event: step 4")


def test_a_trainer_that_never_came_is_named():
    recordings = [
        pserver(0, Event(1.0, "peer came", 0, "trainer 0"), Event(12.0, "waits for", 0, "trainer 1")),
        trainer(
            0, Event(1.0, "peer came", 0, SERVER), Event(1.1, "wait begun", 0), Event(10.0, "waits for", 0, SERVER, "w")
        ),
        trainer(1),
    ]
    assert explain_hang(recordings, 20.0) == "trainer 1 has not begun to train; pserver 0 and trainer 0 wait for it"


def test_a_pserver_that_does_nothing_is_named():
    recordings = [
        pserver(0, ended(3, 1.0, "trainer 0"), Event(1.0, "block run", 2, "", "w")),
        trainer(0, ended(3, 1.0), Event(1.1, "wait begun", 4), Event(9.0, "waits for", 4, SERVER, "w")),
    ]
    assert explain_hang(recordings, 11.0) == (
        "pserver 0 stopped contributing at step 4 (last event: w updated 10.0 s ago); trainer 0 waits for it"
    )


def test_roles_that_wait_for_each_other_are_all_named():
    recordings = [
        pserver(0, Event(9.0, "waits for", 4, "trainer 0", "w")),
        trainer(0, Event(1.1, "wait begun", 4), Event(9.0, "waits for", 4, SERVER, "w")),
    ]
    assert explain_hang(recordings, 11.0) == (
        "every role waits for another: pserver 0 for trainer 0; trainer 0 for pserver 0"
    )


def test_a_role_whose_answer_was_lost_is_among_those_that_wait():
    recordings = [
        pserver(0, Event(9.0, "waits for", 4, "trainer 1", "w")),
        trainer(0, Event(1.1, "wait begun", 4), Event(9.0, "waits for", 4, SERVER, "w")),
        trainer(1, Event(1.1, "wait begun", 4)),
    ]
    assert explain_hang(recordings, 11.0) == (
        "every role waits for another: pserver 0 for trainer 1; trainer 0 for pserver 0; trainer 1 for an answer"
    )


def test_recordings_without_events_give_no_cause():
    assert explain_hang([], 1.0) == ""
    assert explain_failure([trainer(0), pserver(0)], "trainer 0", "exited with code 1") == ""


def test_waits_are_judged_before_the_failure_was_noticed():
    recordings = [
        pserver(0, ended(2, 1.0, "trainer 0"), ended(1, 0.5, "trainer 1"), Event(3.0, "peer left", 2, "trainer 1")),
        trainer(0, ended(2, 1.0), Event(1.1, "wait begun", 3), Event(3.1, "wait ended", 3)),
        trainer(1, ended(1, 0.5), Event(0.9, "push taken", 2, SERVER, "w@GRAD")),
    ]
    assert explain_failure(recordings, "trainer 1", "was killed by SIGKILL") == (
        "trainer 1 was killed by SIGKILL at step 2 (last event: w@GRAD taken by pserver 0 2.1 s before); "
        "pserver 0 and trainer 0 wait for it"
    )


def test_arbitrary_recorder_bytes_are_read_without_an_error():
    flight = Flight()
    assert flight.read("trainer 0").events == () and flight.progress() is None
    memory = mmap.mmap(flight.descriptor, 0)
    with pytest.raises(OSError):
        os.truncate(flight.descriptor, 0)
    for seed in range(20):
        noise = random.Random(seed)
        memory[:] = noise.randbytes(len(memory))
        flight.read("trainer 0")
        memory[:8] = b"PNSFLT01"
        memory[8:32] = bytes.fromhex("0010000030000000000200000002030000001000") + bytes(4)
        memory[40:48] = noise.choice([5, 5000, 2**64 - 1]).to_bytes(8, "little")
        for number in range(4096):  # some of them are complete
            memory[512 + number * 48 : 520 + number * 48] = (number + 1).to_bytes(8, "little")
            memory[552 + number * 48 : 560 + number * 48] = noise.choice([1, 2, 999]).to_bytes(8, "little")
        flight.read("trainer 0")
        flight.progress()


def test_a_receipts_table_has_a_row_for_each_role():
    receipt = {
        "role": "trainer 0",
        "steps": 50,
        "seconds": 12.34,
        "bytes_out": 1_200_000,
        "bytes_in": 900,
        "compressed_bytes": 250,
        "compressed_from_bytes": 4_000,
        "exposed_s": 3.1,
        "resent": 0,
        "repeats": 2,
        "staleness": [3, 1, *[0] * 14, 2],
        "peers": [{"name": SERVER, "waited_s": 1.9, "waits": 4}],
    }
    lines = table([receipt], ["127.0.0.1:6170"])
    assert lines[0].split()[:3] == ["role", "steps", "seconds"]
    assert lines[1].split("  ") and "pserver 0: 1.90 s" in lines[1] and "0: 3, 1: 1, 16+: 2" in lines[1]
    assert "1.2 MB" in lines[1] and "900 B" in lines[1] and "250 B for 4.0 kB" in lines[1]
    plain = table([dict(receipt, compressed_bytes=0, compressed_from_bytes=0)], [])
    assert plain[0].endswith("compressed  staleness") and " for " not in plain[1]
    with_rows = table([receipt, dict(receipt, rows_entered=5, rows_evicted=2, rows_rejected=7)], [])
    assert with_rows[0].endswith("  rows of tables")
    assert with_rows[1].endswith("  -") and with_rows[2].endswith("  5 made, 2 evicted, 7 dropped")
    numbers = {"rows_hot": 20, "rows_cold": 30, "rows_cold_bytes": 4000, "rows_fetched": 9, "rows_asked": 70}
    on_disk = table([receipt, dict(receipt, **numbers)], [])
    assert on_disk[0].endswith("  rows on disk") and on_disk[1].endswith("  -")
    assert on_disk[2].endswith("  30 of 50 in 4.0 kB, 9 of 70 read")
    looked = dict(receipt, lookups_ahead=8, lookups_ahead_unused=1, lookups_hidden_s=0.25)
    ahead = table([receipt, looked, dict(looked, lookups_ahead_unused=0)], [])
    assert ahead[0].endswith("  lookups ahead") and ahead[1].endswith("  -")
    assert ahead[2].endswith("  8, 0.25 s hidden, 1 in vain") and ahead[3].endswith("  8, 0.25 s hidden")
    assert table([], []) == []
