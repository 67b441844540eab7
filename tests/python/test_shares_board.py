"""The decisions of penstock.work (board.py), with workers on a virtual clock: every example is done once an epoch, in
every mode, whichever workers are slow or die, and a slow worker's portions go to others."""

import heapq
import random

import pytest
from penstock._src.work.board import Board
from penstock._src.work.messages import Request
from penstock._src.work.pace import Pace
from penstock._src.work.portions import Portions, order_of
from penstock._src.work.record import Record


class Run:
    """Workers that go through epochs. Each works on one portion at a time; `seconds` is that of an example."""

    def __init__(self, portions, staleness=0, helpers=None, keeps=False, seconds=None, deaths=(), epochs=2):
        self.portions, self.staleness, self.epochs = portions, staleness, epochs
        self.board = Board(portions, staleness, helpers, keeps)
        self.seconds = seconds or [1.0] * portions.workers
        self.deaths = dict(deaths)  # worker: after how many portions its first process dies
        self.keeps = keeps
        self.counted = [0] * (epochs * portions.rounds * portions.batch_size * portions.workers)
        self.local = [[] for _ in self.seconds]  # portions whose results only this worker has
        self.done, self.by, self.ends = [], {}, []
        self.at = [(0, 0)] * portions.workers  # epoch, round
        self.dead, self.taken = set(), [0] * portions.workers
        self.events, self.now, self.number = [], 0.0, 0

    def later(self, seconds, what, worker):
        self.number += 1
        heapq.heappush(self.events, (self.now + seconds, self.number, what, worker))

    def run(self):
        living = range(self.portions.workers)
        for worker in living:
            self.board.begin(worker, 0, 0)
            self.board.take(worker, 0, self.now)
        self.passing = set()  # workers that wait for the exchange of a round
        for _ in range(200_000):
            answers = self.board.answers(self.now)
            for worker, portion in answers:
                self.answer(worker, portion)
            if answers:
                continue
            gone = set() if self.keeps else self.dead
            if self.staleness == 0 and self.passing and self.passing >= set(living) - gone - self.ended():
                for worker in sorted(self.passing):
                    self.done += self.local[worker]
                    self.local[worker] = []
                    self.go_on(worker)
                self.passing = set()
                continue
            if not self.events:
                break
            self.now, _, what, worker = heapq.heappop(self.events)
            if what == "asks" and worker not in self.dead:
                if self.staleness != 0:
                    self.done += self.local[worker]
                    self.local[worker] = []
                self.board.take(worker, self.at[worker][1], self.now)
            elif what == "back":
                self.dead.discard(worker)
                self.board.begin(worker, *self.at[worker])
                self.board.take(worker, self.at[worker][1], self.now)
        assert not self.board.waits(), "a worker waits for ever"
        return self

    def ended(self):
        return {worker for worker, (epoch, _) in enumerate(self.at) if epoch == self.epochs}

    def answer(self, worker, portion):
        if portion is None:
            if self.staleness == 0:
                self.passing.add(worker)
            else:
                self.at[worker] = (self.at[worker][0], self.portions.rounds - 1)
                self.go_on(worker)
            return
        self.taken[worker] += 1
        if self.deaths.get(worker) == self.taken[worker]:
            self.deaths.pop(worker)
            self.dead.add(worker)
            self.local[worker] = []
            self.board.lose(worker)
            if self.keeps:
                self.later(5.0, "back", worker)
            return
        self.by[portion] = worker
        self.local[worker].append(portion)
        self.later(self.portions.examples(portion) * self.seconds[worker], "asks", worker)

    def go_on(self, worker):
        epoch, round = self.at[worker]
        round += 1
        if round == self.portions.rounds:
            self.board.end(worker, epoch)
            epoch, round = epoch + 1, 0
            self.ends.append(self.now)
            if epoch < self.epochs:
                self.board.begin(worker, epoch, 0)
        self.at[worker] = (epoch, round)
        if epoch < self.epochs:
            self.board.take(worker, round, self.now)

    def examples_done(self):
        """By epoch, the sorted positions of all examples that are done."""
        found = [[] for _ in range(self.epochs)]
        for portion in self.done:
            found[portion[0] // self.portions.rounds] += range(*self.portions.bounds(portion))
        return [sorted(one) for one in found]


class LostBoards:
    """A Board that dies with worker 0. The next one goes on from the records of the others, and hears again what they
    had asked without an answer."""

    def __init__(self, portions, helpers):
        self.make = lambda: Board(portions, 0, helpers, True)
        self.rounds, self.board = portions.rounds, self.make()
        self.records = [Record() for _ in range(portions.workers)]
        self.open, self.losses = {}, 0

    def begin(self, worker, epoch, first):
        if self.board is None:
            assert worker == 0
            self.board = self.make()
            self.board.resume(dict(enumerate(self.records[1:], 1)), epoch * self.rounds + first)
            for rank, (request, now) in self.open.items():
                self.board.take(rank, request.round, now)
        self.board.begin(worker, epoch, first)
        self.records[worker].note(Request(0, "begin", epoch, first), None, self.rounds)

    def take(self, worker, round, now):
        self.open[worker] = Request(0, "take", round=round), now
        if self.board is not None:
            self.board.take(worker, round, now)

    def answers(self, now):
        given = [] if self.board is None else self.board.answers(now)
        for worker, portion in given:
            request, _ = self.open.pop(worker)
            self.records[worker].note(request, portion, self.rounds)
        return given

    def end(self, worker, epoch):
        self.board.end(worker, epoch)
        self.records[worker].note(Request(0, "end", epoch), None, self.rounds)

    def lose(self, worker):
        self.losses += worker == 0
        if worker == 0:
            self.board, self.records[0] = None, Record()
            self.open.pop(0, None)
        elif self.board is not None:
            self.board.lose(worker)

    def waits(self):
        return self.board is None or self.board.waits()


def all_of(run):
    return [list(range(run.portions.size))] * run.epochs


@pytest.mark.parametrize("size, batch, per_batch, workers", [(96, 8, 4, 3), (97, 8, 3, 3), (5, 4, 8, 3), (1, 4, 2, 4)])
def test_portions_divide_an_epoch(size, batch, per_batch, workers):
    portions = Portions(size, batch, per_batch, workers)
    named = [
        (round, owner, number)
        for round in range(2 * portions.rounds)
        for owner in range(workers)
        for number in range(portions.count(round, owner))
    ]
    positions = [at for portion in named for at in range(*portions.bounds(portion))]
    assert positions == 2 * list(range(size))
    assert all(portions.examples(one) > 0 and portions.is_portion(one) for one in named)
    assert sum(portions.round_size(round) for round in range(portions.rounds)) == size
    assert not portions.is_portion((0, workers, 0)) and not portions.is_portion((0, 0, per_batch))
    assert not portions.is_portion((-1, 0, 0)) and not portions.is_portion((0, 0, -1))


def test_an_order_is_that_of_its_epoch():
    assert list(order_of(4, False, 3, 1)) == [0, 1, 2, 3]
    first, second = order_of(50, True, 3, 0), order_of(50, True, 3, 1)
    assert sorted(first) == sorted(second) == list(range(50)) and list(first) != list(second)
    assert list(first) == list(order_of(50, True, 3, 0))


@pytest.mark.parametrize("staleness", [0, 1, 3, None])
@pytest.mark.parametrize("size", [1, 50, 192, 200])
def test_every_example_is_done_once_an_epoch(staleness, size):
    run = Run(Portions(size, 8, 4, 3), staleness, seconds=[1.0, 1.0, 3.0]).run()
    assert run.examples_done() == all_of(run)


def test_seeds_of_sizes_speeds_groups_and_deaths():
    handed = deaths = 0
    for seed in range(150):
        chance = random.Random(seed)
        workers = chance.randint(1, 5)
        portions = Portions(chance.randint(1, 150), chance.randint(1, 9), chance.randint(1, 5), workers)
        keeps = chance.random() < 0.5
        dying = {chance.randrange(workers): chance.randint(1, 9)} if workers > 1 and chance.random() < 0.6 else {}
        run = Run(
            portions,
            staleness=chance.choice([0, 0, 1, 2, None]),
            helpers=chance.choice([None, None, 0, 1, 2]),
            keeps=keeps,
            seconds=[chance.choice([1.0, 1.0, 1.5, 3.0, 20.0]) for _ in range(workers)],
            deaths=dying,
            epochs=3,
        ).run()
        died = len(dying) > len(run.deaths)
        deaths += died
        handed += sum(owner != run.by[portion] for portion in run.by for owner in [portion[1]])
        found, wanted = run.examples_done(), all_of(run)
        if died and run.staleness == 0 and not keeps:
            # A death after the last exchange of the others leaves what it had; no later round can take it.
            found, wanted = found[:-1], wanted[:-1]
        assert found == wanted, (seed, portions)
    assert handed > 300 and deaths > 20


def test_seeds_of_deaths_of_the_worker_that_divides_the_work():
    losses = handed = 0
    for seed in range(150):
        chance = random.Random(seed)
        workers = chance.randint(2, 5)
        portions = Portions(chance.randint(1, 150), chance.randint(1, 9), chance.randint(1, 5), workers)
        run = Run(
            portions,
            keeps=True,
            seconds=[chance.choice([1.0, 1.5, 3.0, 20.0]) for _ in range(workers)],
            deaths={0: chance.randint(1, 12)},
            epochs=3,
        )
        run.board = LostBoards(portions, chance.choice([None, 0, 1]))
        run.run()
        losses += run.board.losses
        handed += sum(portion[1] != run.by[portion] for portion in run.by)
        assert run.examples_done() == all_of(run), (seed, portions)
    assert losses > 100 and handed > 100


def test_a_slow_worker_hands_examples_over():
    portions = Portions(4 * 4 * 16, 16, 16, 4)
    usual = Run(portions, epochs=4).run().now
    alone = Run(portions, helpers=0, seconds=[3.0, 1.0, 1.0, 1.0], epochs=4).run().now
    run = Run(portions, seconds=[3.0, 1.0, 1.0, 1.0], epochs=4).run()
    assert alone == 3 * usual and run.now <= 1.3 * usual
    assert {owner for (_, owner, _), worker in run.by.items() if owner != worker} == {0}


def test_without_slow_workers_each_has_its_own_batch():
    run = Run(Portions(192, 8, 4, 3)).run()
    assert all(portion[1] == worker for portion, worker in run.by.items())


def test_only_the_next_workers_help():
    run = Run(Portions(480, 16, 16, 5), helpers=1, seconds=[9.0, 1.0, 1.0, 1.0, 1.0]).run()
    helped = {(portion[1], worker) for portion, worker in run.by.items() if portion[1] != worker}
    assert (0, 1) in helped and all((worker - owner) % 5 == 1 for owner, worker in helped)


@pytest.mark.parametrize("staleness", [1, 2])
def test_no_worker_is_further_ahead_than_the_staleness(staleness):
    portions = Portions(480, 4, 2, 3)
    board = Board(portions, staleness, None, False)
    for worker in range(3):
        board.begin(worker, 0, 0)
    board.take(2, 0, 0.0)
    (_, held), *_ = board.answers(0.0)  # worker 2 keeps it
    assert held == (0, 2, 0)
    highest = 0
    for step in range(40):
        for worker in (0, 1):
            board.take(worker, 0, float(step))
        given = [portion for _, portion in board.answers(float(step)) if portion is not None]
        highest = max([highest, *(portion[0] for portion in given)])
        if not given:
            break
    assert highest == staleness and board.waits() and board.holders() == [2]
    board.lose(2)
    assert held in [portion for _, portion in board.answers(40.0)]


def test_with_keeps_a_new_process_gets_what_the_old_one_had():
    portions = Portions(16, 4, 2, 2)
    board = Board(portions, 0, None, True)
    for worker in range(2):
        board.begin(worker, 0, 0)
        board.take(worker, 0, 0.0)
    mine = dict(board.answers(0.0))
    board.lose(1)
    got = []
    while (portion := take(board, 0, 0)) is not None:
        got.append(portion)
    assert got == [(0, 0, 1), (0, 1, 1)]  # its own, and the other that worker 1 had not begun
    board.begin(1, 0, 0)
    assert take(board, 1, 0) == mine[1] == (0, 1, 0) and take(board, 1, 0) is None
    board.take(0, 1, 1.0)
    assert dict(board.answers(1.0)) == {0: (1, 0, 0)}
    board.lose(1)
    board.begin(1, 0, 1)  # its gradients of round 0 had arrived
    assert take(board, 1, 1)[0] == 1


def take(board, worker, round):
    board.take(worker, round, 0.5)
    return dict(board.answers(0.5)).get(worker)


def test_a_worker_that_is_late_is_expected_twice_as_late():
    pace = Pace()
    pace.begin(2, 10.0)
    pace.end(12.0)
    assert pace.per_example == 1.0
    pace.begin(2, 12.0)
    assert pace.free_at(13.0) == 14.0 and pace.free_at(15.0) == 18.0 and pace.free_at(20.0) == 28.0
    assert pace.count_until(21.0, 2, 13.0) == 3 and pace.count_until(13.5, 2, 13.0) == 0
    pace.drop()
    assert pace.free_at(15.0) == 15.0
