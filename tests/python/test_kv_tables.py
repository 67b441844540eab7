"""penstock.kv.Table: rows by 64-bit id in one process and on pservers, which give the same values."""

import subprocess
import sys
import textwrap

import numpy as np
import penstock
import pytest
from dmlc_processes import Dmlc
from penstock import kv as keyed
from penstock._src.kv import newest

IDS = [3, 2**40, -7, 12345678901]


def optimizer(name, **args):
    return keyed.optimizer.create(name, **args)


@pytest.fixture
def store():
    return keyed.create("local")


def test_initial_rows_follow_from_seed_name_and_id(store):
    one = keyed.Table("one", 64, seed=3).lookup(IDS)
    assert one.dtype == "float32" and one.shape == (4, 64)
    assert (abs(one) <= 0.05).all() and one.std() > 0.02
    assert len({row.tobytes() for row in one}) == 4
    assert (keyed.Table("one", 64, store=keyed.create("local"), seed=3).lookup(IDS) == one).all()
    assert not (keyed.Table("one", 64, store=keyed.create("local"), seed=4).lookup(IDS) == one).any()
    assert not (keyed.Table("two", 64, store=store, seed=3).lookup(IDS) == one).any()
    wide = keyed.Table("normal", 1000, store=store, initial=("normal", 5, 2), dtype="float64").lookup(range(20))
    assert wide.dtype == "float64" and abs(wide.mean() - 5) < 0.1 and abs(wide.std() - 2) < 0.1
    assert (keyed.Table("same", 2, store=store, initial=0.25).lookup([[1, 2], [3, 4]]) == 0.25).all()


@pytest.mark.parametrize(
    "name, args",
    [
        ("sgd", {"learning_rate": 0.5, "wd": 0.01, "clip_gradient": 0.5}),
        ("sgd", {"learning_rate": 0.5, "momentum": 0.9}),
        ("adam", {"learning_rate": 0.1}),
        ("adam", {"learning_rate": 0.1, "wd": 0.1, "rescale_grad": 0.5}),
        ("adagrad", {"learning_rate": 0.1}),
        ("ftrl", {"learning_rate": 0.1, "lamda1": 0.01}),
        ("test", {}),
    ],
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_rows_are_updated_as_those_of_a_key(store, name, args, dtype):
    random = np.random.RandomState(1)
    table = keyed.Table("t", 3, optimizer(name, **args), dtype=dtype)
    store.init("key", keyed.RowSparse(np.arange(10), table.lookup(range(10)), (10, 3)))
    store.set_optimizer(optimizer(name, **args))
    for _ in range(5):
        ids = random.randint(0, 10, 6)
        gradients = random.normal(size=(6, 3)).astype(dtype)
        table.push(ids, gradients)
        store.push("key", keyed.RowSparse(ids, gradients, (10, 3)))
    expected = store.row_sparse_pull("key", row_ids=range(10)).values
    np.testing.assert_allclose(table.lookup(range(10)), expected, rtol=1e-5, atol=1e-6)
    assert table.rounds() == 5


def test_a_schedule_counts_the_pushes_of_the_table(store):
    schedule = keyed.lr_scheduler.FactorScheduler(step=2, factor=0.5, base_lr=1.0)
    table = keyed.Table("t", 1, optimizer("sgd", learning_rate=1.0, lr_scheduler=schedule), initial=0.0)
    store.init("w", np.zeros(1))
    for _ in range(10):
        store.push("w", np.ones(1))
    seen = [table.lookup([5])[0, 0]]
    for _ in range(4):
        table.push([5], np.ones((1, 1), "float32"))
        seen.append(table.lookup([5])[0, 0])
    assert np.diff(seen).tolist() == [-1.0, -1.0, -0.5, -0.5]


def test_repeats_are_added_and_shapes_kept(store):
    table = keyed.Table("t", 2, optimizer("sgd", learning_rate=1.0), initial=0.0)
    ids = np.array([[4, 9], [4, 4]], "int32")
    table.push(ids, np.arange(8, dtype="float64").reshape(2, 2, 2))
    assert table.lookup([4, 9]).tolist() == [[-10, -13], [-2, -3]]
    out = np.empty((2, 2, 2), "float64")
    ticket = table.lookup(ids, out=out)
    ticket.wait()
    assert ticket.done() and out[1].tolist() == [[-10, -13], [-10, -13]]
    assert table.lookup(np.empty((0, 3), "int64")).shape == (0, 3, 2)
    table.push([], np.empty((0, 2)))
    assert table.rounds() == 2 and table.lookup([4]).tolist() == [[-10, -13]]


def test_rows_enter_and_are_evicted_by_rules(store):
    sgd = optimizer("sgd", learning_rate=1.0)
    table = keyed.Table("t", 1, sgd, entry="count 2", evict="unseen 3", initial=0.0)
    one = np.ones((1, 1), "float32")
    table.push([7], one)
    assert table.lookup([7])[0, 0] == 0  # it has not entered
    table.push([7], one)
    assert table.lookup([7])[0, 0] == -1
    for _ in range(4):
        table.push([8], one)
    assert table.lookup([7, 8])[:, 0].tolist() == [0, -3]


def refused(id, call, *args, **named):
    with pytest.raises((penstock.ProgramError, penstock.StateError, NotImplementedError)) as caught:
        call(*args, **named)
    assert caught.value.id == id, caught.value


def test_wrong_tables_are_refused(store):
    refused("E-kv-table-optimizer", keyed.Table, "t", 2, "nag")
    refused("E-kv-table-optimizer", keyed.Table, "t", 2, optimizer("adam", lazy_update=False))
    refused("E-kv-optimizer-refused", keyed.Table, "t", 2, optimizer("adagrad", wd=0.1))
    refused("E-kv-table-start", keyed.Table, "t", 2, initial=("uniform", 2, 1))
    refused("E-kv-key-type", keyed.Table, "t", 2, dtype="int32")
    refused("E-text-syntax", keyed.Table, "t", 2, entry="often")
    with pytest.raises(TypeError, match="initial is"):
        keyed.Table("t", 2, initial=("uniform", 1))
    with pytest.raises(TypeError, match="width is 0"):
        keyed.Table("t", 0)
    with pytest.raises(TypeError, match="seed is -1"):
        keyed.Table("t", 1, seed=-1)
    with pytest.raises(TypeError, match="not int"):
        keyed.Table("t", 1, 3)
    with pytest.raises(TypeError, match="name must be"):
        keyed.Table(3, 1)
    table = keyed.Table("t", 2, store=store)
    refused("E-kv-key-again", keyed.Table, "t", 2)
    refused("E-kv-key-again", store.init, "t", np.ones(2))
    refused("E-kv-value", table.push, [1], np.ones((1, 3)))
    refused("E-kv-value", table.push, [1], np.ones((1, 2), "complex64"))
    refused("E-kv-value", table.lookup, [1], np.ones((1, 3)))
    with pytest.raises(TypeError, match="ids are integers"):
        table.lookup([1.5])


def test_a_table_needs_a_store(monkeypatch):
    monkeypatch.setattr(newest, "_newest", [])
    with pytest.raises(penstock.StateError, match="E-kv-no-store"):
        keyed.Table("t", 2)


# Two workers push parts of what one process pushes.
JOB = """
    import sys
    import numpy as np
    from penstock import kv as keyed

    def refused(id, call, *args, **named):
        try:
            call(*args, **named)
        except Exception as error:
            assert getattr(error, 'id', '') == id, error
        else:
            raise AssertionError(id)

    def batch(step):
        random = np.random.RandomState(step)
        return random.randint(-20, 20, 12) * (10**15 + 1), random.normal(size=(12, 3)).astype('float32')

    kv = keyed.create('{kind}')
    refused('E-kv-table-optimizer', keyed.Table, 'x', 3, 'nag')
    adam = keyed.optimizer.create('adam', learning_rate=0.1)
    table = keyed.Table('t', 3, adam, seed=5, entry='count 2', evict='unseen 6')
    plain = keyed.Table('plain', 3, keyed.optimizer.create('sgd', learning_rate=0.25), initial=1.0)
    kv.init('w', np.zeros(2, 'float32'))
    kv.set_optimizer(keyed.optimizer.create('lamb'))       # of keys; tables keep theirs
    kv.barrier()
    every = np.unique(np.concatenate([batch(step)[0] for step in range(20)] + [np.array([2**62 + 1])]))
    seen = []
    for step in range(20):
        ids, gradients = batch(step)
        mine = slice(kv.rank * 12 // kv.num_workers, (kv.rank + 1) * 12 // kv.num_workers)
        if step == 7:
            mine = slice(0, 12 if kv.rank == 0 else 0)     # one worker has nothing to push
        table.push(ids[mine], gradients[mine])
        plain.push(ids[mine], np.ones_like(gradients[mine]))
        if step % 3 == 0:
            seen.append(table.lookup(every).astype('float64'))
    kv.wait()
    kv.barrier()
    seen.append(table.lookup(every).astype('float64'))
    assert table.rounds() == 20
    if kv.rank == 0:
        refused('E-kv-twice', kv._backend._client.declare_table, 't', 'float32', 3, table._rows._facts.spec)
    kv.barrier()
    for one in seen:
        print(' '.join(f'{{number:.9g}}' for number in one.reshape(-1)[::7]))
    print(' '.join(f'{{number:.9g}}' for number in plain.lookup(every)[:, 1]))
"""


def numbers(text):
    return [np.array(line.split(), "float64") for line in text.splitlines()]


def in_one_process(tmp_path):
    script = JOB.format(kind="local").replace("if kv.rank == 0:", "if False:").replace("'lamb'", "'sgd'")
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], cwd=tmp_path, text=True, capture_output=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return numbers(done.stdout)


@pytest.mark.parametrize("servers, shards", [(1, 1), (2, 3)])
def test_workers_on_pservers_equal_one_process_with_the_joined_batch(tmp_path, servers, shards):
    expected = in_one_process(tmp_path)
    with Dmlc(
        tmp_path, JOB.format(kind="dist_sync"), workers=2, servers=servers, PENSTOCK_TABLE_SHARDS=str(shards)
    ) as job:
        ends = job.ends()
    assert [end[1] for end in ends] == [0] * len(ends), "\n".join(end[3] for end in ends)
    for end in ends:
        if end[0] != "worker":
            continue
        got = numbers(end[2])
        assert len(got) == len(expected)
        for one, other in zip(got, expected):
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


ASYNC = """
    import numpy as np
    from penstock import kv as keyed

    kv = keyed.create('dist_async')
    table = keyed.Table('t', 2, keyed.optimizer.create('sgd', learning_rate=1.0), initial=0.0)
    for step in range(50 + 10 * kv.rank):                  # workers need not push equally often
        table.push([step % 5, 2**50], np.ones((2, 2), 'float32'))
        if step % 10 == 0:
            assert table.lookup([2**50])[0, 0] <= -1 - step
    kv.wait()
    kv.barrier()
    print(table.lookup([0, 1, 2, 3, 4, 2**50])[:, 1].tolist())
"""


def test_no_push_is_lost_in_an_asynchronous_store(tmp_path):
    with Dmlc(tmp_path, ASYNC, workers=2, servers=2) as job:
        ends = job.ends()
    assert [end[1] for end in ends] == [0] * len(ends), "\n".join(end[3] for end in ends)
    said = [end[2].strip() for end in ends if end[0] == "worker"]
    assert said == ["[-22.0, -22.0, -22.0, -22.0, -22.0, -110.0]"] * 2


DIFFERS = """
    import numpy as np
    from penstock import kv as keyed

    kv = keyed.create('dist_sync')
    try:
        keyed.Table('t', 2 + kv.rank)
        table = keyed.Table('t2', 2)
        print('made')
    except Exception as error:
        print(getattr(error, 'id', error))
"""


def test_workers_that_make_different_tables_are_told(tmp_path):
    with Dmlc(tmp_path, DIFFERS, workers=2, servers=1) as job:
        ends = job.ends()
    said = [end[2].strip() for end in ends if end[0] == "worker"]
    assert "E-kv-differs" in said, "\n".join(end[3] for end in ends)
