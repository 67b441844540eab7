"""Which role caused the failure of a job, from the failures of all roles."""

import pytest
from penstock._src.launch.blame import find_cause, named_in
from penstock._src.launch.outcome import ENDED, OWN, REACTED, Failure

PSERVERS = ["127.0.0.1:6170", "127.0.0.1:6171"]
P0, P1 = (f"pserver {address}" for address in PSERVERS)


def failed(role, note="", kind=REACTED, stopped=False, outcome="exited with code 1"):
    return Failure(0, f"{role} (pid 7)", outcome, kind, role=role, outcome=outcome, note=note, stopped=stopped)


def gone(who, seen_by, how="its connection broke"):
    return f"{who} is gone: {how} (step 60, seen by {seen_by})"


def test_a_role_that_failed_by_itself_is_the_cause():
    cause = find_cause(
        [failed("pserver 0", gone("trainer 1", P0)), failed("trainer 1", kind=OWN, outcome="was killed by SIGKILL")],
        PSERVERS,
        2,
    )
    assert (cause.role, cause.words, cause.sentence) == ("trainer 1", "was killed by SIGKILL", "")


@pytest.mark.parametrize("own_note", ["", gone(P0, "trainer 1")])
def test_a_stopped_role_is_named_whether_or_not_it_reacts_later(own_note):
    kind = REACTED if own_note else ENDED
    cause = find_cause(
        [
            failed("pserver 0", gone("trainer 1", P0, "its connection broke after a silence of 13 s")),
            failed("pserver 1", gone("trainer 1", P1)),
            failed("trainer 0", gone("trainer 1", P0)),
            failed("trainer 1", own_note, kind, stopped=True),
        ],
        PSERVERS,
        2,
    )
    assert (cause.role, cause.words) == ("trainer 1", "was stopped by a signal")
    assert cause.failure.role == "trainer 1"


def test_a_stopped_pserver_is_named():
    cause = find_cause(
        [
            failed("trainer 0", gone(P1, "trainer 0")),
            failed("pserver 0", gone(P1, "trainer 0")),
            failed("trainer 1", gone(P1, "trainer 1")),
            failed("pserver 1", "", ENDED, stopped=True),
        ],
        PSERVERS,
        2,
    )
    assert (cause.role, cause.words) == ("pserver 1", "was stopped by a signal")


def test_two_roles_that_name_each_other_have_lost_their_connection():
    cause = find_cause(
        [
            failed("pserver 0", gone("trainer 1", P0)),
            failed("trainer 1", gone(P0, "trainer 1")),
            failed("trainer 0", gone("trainer 1", P0)),
            failed("pserver 1", gone(P0, "trainer 1")),
        ],
        PSERVERS,
        2,
    )
    assert cause.sentence == "the connection between pserver 0 and trainer 1 broke"


def test_a_role_whose_network_is_down_is_named_with_all_that_lost_it():
    cause = find_cause(
        [
            failed("pserver 0", gone("trainer 1", P0)),
            failed("pserver 1", gone("trainer 1", P1)),
            failed("trainer 0", gone("trainer 1", P0)),
            failed("trainer 1", gone(P0, "trainer 1")),
        ],
        PSERVERS,
        2,
    )
    assert (cause.role, cause.words) == ("trainer 1", "lost its connections to pserver 0 and pserver 1")


def test_ranks_that_name_each_other_have_lost_their_connection():
    broke = "is gone: its connection ended before it had done its part in a sum"
    cause = find_cause([failed("trainer 0", f"rank 1 {broke}"), failed("trainer 1", f"rank 0 {broke}")], [], 2)
    assert cause.sentence == "the connection between trainer 0 and trainer 1 broke"


def test_a_role_that_never_came_is_named_by_those_that_waited():
    note = f"trainer 1 did not start within 900 s (seen by {P0})"
    failures = [failed("pserver 0", note), failed("trainer 0", note), failed("trainer 1", "", ENDED)]
    cause = find_cause(failures, PSERVERS, 2)
    assert cause.sentence == note and cause.failure.role == "trainer 1"


def test_a_role_that_ended_well_too_early_is_named():
    cause = find_cause([failed(role, gone("trainer 1", P0)) for role in ("pserver 0", "trainer 0")], PSERVERS, 2)
    assert cause.sentence.startswith("trainer 1 is gone") and cause.failure.role == "pserver 0"


def test_reactions_without_a_named_role_blame_the_first():
    cause = find_cause([failed("trainer 0", "trainer 7 is gone"), failed("pserver 0", "something")], PSERVERS, 2)
    assert (cause.role, cause.words) == ("trainer 0", "exited with code 1")
    assert find_cause([], PSERVERS, 2) is None


def test_role_names_are_parsed_in_order():
    note = f"rank 0 (127.0.0.1:6070) and {P1}, trainer 3: pserver 10.0.0.9:1 and trainer x; {P1}"
    assert named_in(note, PSERVERS) == ["trainer 0", "pserver 1", "trainer 3"]
