"""Processes of trainers at the desk of trainer 0 (penstock.work): replaced ones, repeated requests, connections that
break, and a trainer 0 that was started again."""

import pytest
from penstock._src.work.board import Board
from penstock._src.work.desk import Desk
from penstock._src.work.messages import Hello, Request
from penstock._src.work.portions import Portions
from penstock._src.work.record import Record


def hello(rank, process, asked=0, record=None):
    return Hello(rank, 0, {"size": 8}, process, "", asked, record or Record())


def make_desk(keeps=False, resumes=False):
    return Desk(Board(Portions(8, 2, 2, 2), 0, None, keeps), {"size": 8}, 2, 10.0, resumes)


def test_a_process_that_was_replaced_is_refused():
    desk, sent = make_desk(), []
    assert desk.admit(hello(1, "first"), sent.append) is None
    assert desk.hear(1, Request(1, "begin"), 0.0) is None and sent[-1]["number"] == 1
    assert desk.admit(hello(1, "second"), sent.append) is None
    assert desk.admit(hello(1, "first", asked=1), sent.append)[0] == "E-work-fenced"
    assert desk.hear(1, Request(1, "take"), 0.0) == ("E-work-order", "trainer 1 has begun no epoch")


def test_a_request_that_comes_twice_has_one_answer_twice():
    desk, sent = make_desk(), []
    desk.admit(hello(1, "first"), sent.append)
    for request in (Request(1, "begin"), Request(2, "take"), Request(2, "take")):
        assert desk.hear(1, request, 0.0) is None
        desk.deliver(0.0)
    assert [message["portion"] for message in sent] == [None, [0, 1, 0], [0, 1, 0]]
    assert sent[1] == sent[2] and desk.board.holders() == [1]


@pytest.mark.parametrize("returns", [True, False])
def test_a_connection_may_be_out_of_reach_for_some_time(returns):
    desk, sent = make_desk(), []
    desk.admit(hello(1, "first"), sent.append)
    desk.hear(1, Request(1, "begin"), 0.0)
    desk.hear(1, Request(2, "take"), 0.0)
    desk.deliver(0.0)
    desk.disconnect(1, desk._peers[1].send, 1.0)
    desk.look(9.0)
    assert desk.board.holders() == [1]
    if returns:
        assert desk.admit(hello(1, "first", asked=1), sent.append) is None
        desk.hear(1, Request(2, "take"), 10.0)
        assert sent[-1] == sent[-2] and sent[-1]["portion"] == [0, 1, 0]
    desk.look(12.0)
    assert desk.board.holders() == ([1] if returns else [])


def test_trainer_0_that_was_started_again_says_so():
    assert make_desk().admit(hello(1, "first", asked=5), print)[0] == "E-work-gone"


@pytest.mark.parametrize(
    ("first", "left"), [(0, [[0, 0, 0], [0, 0, 1], None]), (1, [[1, 0, 0], [1, 0, 1], [1, 1, 1], [1, 1, 0], None])]
)
def test_a_desk_goes_on_from_the_records_of_the_others(first, left):
    """Trainer 1 works on the second of its portions of round 0, and has finished the first; or it has finished both,
    and trainer 0 had nothing left to do in that round."""
    held = [(0, 1, 0), (0, 1, 1)][: 1 + first]
    record = Record(0, 0, True, False, None if first else (0, 1, 1), [(0, portion) for portion in held])
    desk, sent, own = make_desk(True, True), [], []
    desk.admit(hello(0, "own"), own.append)
    assert desk.awaits(0.0) and desk.awaits(9.0) and desk.missing() == [1]
    assert desk.admit(hello(1, "first", 3, record), sent.append) is None and not desk.awaits(9.0)
    assert desk.hear(0, Request(1, "begin", first=first), 9.0) is None and not desk.has_to_resume()
    for number in range(len(left)):
        if first == 0 and number == 2:  # trainer 1 has finished its portion: there is no more
            desk.hear(1, Request(4, "take"), 10.0)
        desk.hear(0, Request(number + 2, "take", round=first), 10.0)
        desk.deliver(10.0)
    assert [message["portion"] for message in own[1:]] == left
    if first == 1:
        desk.hear(1, Request(4, "take"), 10.0)
        desk.deliver(10.0)
    assert sent == [{"event": "answer", "number": 4, "portion": None}]


def test_a_desk_goes_on_without_those_who_do_not_come():
    desk, own = make_desk(True, True), []
    desk.admit(hello(0, "own"), own.append)
    assert desk.awaits(0.0) and not desk.awaits(10.0)
    desk.hear(0, Request(1, "begin"), 10.0)
    for number in range(2, 7):
        desk.hear(0, Request(number, "take"), 10.0)
        desk.deliver(10.0)
    assert [message["portion"] for message in own[1:]] == [[0, 0, 0], [0, 0, 1], [0, 1, 1], [0, 1, 0], None]
    assert desk.admit(hello(1, "first", 3), print)[0] == "E-work-gone"


def test_a_record_of_portions_that_do_not_exist_is_refused():
    desk = make_desk(True, True)
    assert desk.admit(hello(1, "first", 3, Record(0, 0, True, False, (0, 1, 9))), print)[0] == "E-work-gone"


def test_epochs_of_different_first_rounds_are_refused():
    desk = make_desk()
    for rank in (0, 1):
        desk.admit(hello(rank, "process"), lambda message: None)
    assert desk.hear(0, Request(1, "begin", first=1), 0.0) is None
    assert desk.hear(1, Request(1, "begin", first=0), 0.0)[0] == "E-work-settings"
