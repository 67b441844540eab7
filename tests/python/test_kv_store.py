"""penstock.kv in one process: keys, lists, devices, types, tickets, and the errors of wrong calls."""

import numpy as np
import penstock
import pytest
from penstock import kv as keyed
from penstock._src.kv import keys, kinds, sums


@pytest.fixture
def store():
    return keyed.create("local")


@pytest.mark.parametrize(
    "name, over, is_async",
    [
        ("local", "process", False),
        ("Device", "process", False),
        ("dist", "servers", False),
        ("dist_sync", "servers", False),
        ("dist_async", "servers", True),
        ("dist_device_sync", "servers", False),
        ("dist_sync_device", "servers", False),
        ("dist_async_device", "servers", True),
        ("DIST_DEVICE_ASYNC", "servers", True),
        ("dist_sync_mpi", "ranks", False),
        ("dist_mpi_sync", "ranks", False),
        ("nccl", "ranks", False),
        ("horovod", "ranks", False),
    ],
)
def test_types_go_by_words_in_any_order(name, over, is_async):
    kind = kinds.kind_of(name)
    assert (kind.name, kind.over, kind.is_async) == (name.lower(), over, is_async)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "foo",
        "byteps",
        "dist_",
        "dist_sync_async",
        "dist_sync_sync",
        "dist_async_mpi",
        "sync",
        "distsync",
        "sync_dist",
    ],
)
def test_other_types_are_refused(name):
    with pytest.raises(penstock.ProgramError, match="E-kv-type"):
        keyed.create(name)


def test_the_error_of_a_type_lists_the_types():
    with pytest.raises(penstock.ProgramError, match="did you mean dist_sync?.*\n.*types: local, device"):
        keyed.create("dist_synch")
    with pytest.raises(TypeError, match="int"):
        keyed.create(3)


def test_calls_of_a_key_take_effect_in_order_and_keep_no_memory(store):
    value = np.zeros(3, "float32")
    store.init("w", value)
    value += 7
    assert (store.pull("w") == 0).all()
    store.push("w", value)
    value += 1
    out = store.pull("w")
    out += 100
    assert (store.pull("w") == 7).all() and (value == 8).all()


def test_pull_casts_and_fills_arrays_of_any_layout(store):
    store.init(1, np.arange(6, dtype="float32").reshape(2, 3))
    outs = [np.empty((2, 3), "float64"), np.empty((3, 2), "float32").T, np.empty((2, 3), "int32")]
    ticket = store.pull(1, out=outs)
    store.wait()
    assert ticket.done() and all((out == [[0, 1, 2], [3, 4, 5]]).all() for out in outs)


@pytest.mark.parametrize(
    "dtype", ["float16", "float32", "float64", "int8", "uint8", "int16", "int32", "int64"]
)  # as pservers: test_key_client
def test_the_types_of_keys_are_those_of_pservers(store, dtype):
    one = np.array([[1, 2], [3, 100]], dtype)
    store.init(["w", "t"], [np.zeros((2, 2), dtype), keyed.RowSparse([], np.zeros((0, 2), dtype), (2, 2))])
    store.push("w", [one, one])
    store.push("t", keyed.RowSparse([0, 1], one, (2, 2)))
    got = store.pull("w")
    assert got.dtype == dtype and (got == one + one).all()  # integers wrap
    assert (store.row_sparse_pull("t", row_ids=[0, 1]).values == one).all()


def test_lists_of_keys_return_lists(store):
    store.init(["a", "b"], [np.zeros(1), np.ones(2)])
    assert [one.shape for one in store.pull(["a", "b"])] == [(1,), (2,)]
    assert store.pull(["b"])[0].dtype == "float64"


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda kv: kv.init(3, np.zeros(2)), penstock.ProgramError, "E-kv-key-again"),
        (lambda kv: kv.init([4, 4], [np.zeros(2)] * 2), penstock.ProgramError, "E-kv-key-again"),
        (lambda kv: kv.init("a", np.zeros(2)), penstock.ProgramError, "E-kv-key-kinds"),
        (lambda kv: kv.init(1.5, np.zeros(2)), TypeError, "a key is an int or a str"),
        (lambda kv: kv.init(4, np.zeros(2, "bool")), penstock.ProgramError, "E-kv-value"),
        (lambda kv: kv.init(4, "text"), TypeError, "not str"),
        (lambda kv: kv.init(4, [np.zeros(2), np.zeros(2)]), ValueError, "takes one value, not 2"),
        (lambda kv: kv.push(9, np.zeros(2)), penstock.ProgramError, "E-kv-key"),
        (lambda kv: kv.push(3, np.zeros(3)), penstock.ProgramError, "E-kv-value"),
        (lambda kv: kv.push(3, np.zeros(2, "complex64")), penstock.ProgramError, "E-kv-value"),
        (lambda kv: kv.push(3, []), ValueError, "empty"),
        (lambda kv: kv.push([3, 3], [np.zeros(2)]), ValueError, "2 keys"),
        (lambda kv: kv.push([3], np.zeros(2)), TypeError, "ndarray"),
        (lambda kv: kv.push(3, keyed.RowSparse([0], np.zeros(1), [2])), penstock.ProgramError, "E-kv-rows"),
        (lambda kv: kv.push(7, np.zeros((4, 1))), penstock.ProgramError, "E-kv-rows"),
        (lambda kv: kv.push(8, np.zeros(1)), penstock.ProgramError, "E-kv-value"),
        (lambda kv: kv.pull(9), penstock.ProgramError, "E-kv-key"),
        (lambda kv: kv.pull(7), penstock.ProgramError, "E-kv-rows"),
        (lambda kv: kv.pull(3, out=np.empty(3)), penstock.ProgramError, "E-kv-value"),
        (lambda kv: kv.pull(3, out=1.0), TypeError, "out is an array"),
        (lambda kv: kv.pull(3, out=np.broadcast_to(np.zeros(1), 2)), TypeError, "read-only"),
        (lambda kv: kv.row_sparse_pull(7), TypeError, "row_ids"),
        (lambda kv: kv.row_sparse_pull(3, row_ids=[0]), penstock.ProgramError, "E-kv-rows"),
        (lambda kv: kv.row_sparse_pull(7, row_ids=[4]), ValueError, "row 4 is not in 7"),
        (lambda kv: kv.row_sparse_pull(7, row_ids=[-1]), ValueError, "row -1"),
        (lambda kv: kv.set_optimizer("sgd"), TypeError, "not str"),
        (lambda kv: kv.set_gradient_compression({"type": "2bit"}), penstock.ProgramError, "E-kv-compression"),
        (lambda kv: kv.set_gradient_compression({"type": "1bit"}), penstock.ProgramError, "E-kv-compression"),
        (lambda kv: kv.save_optimizer_states("x"), penstock.StateError, "E-kv-no-optimizer"),
        (lambda kv: kv.load_optimizer_states("x"), penstock.StateError, "E-kv-no-optimizer"),
        (lambda kv: kv.is_capable("speed"), ValueError, "optimizer"),
        (lambda kv: kv.rounds(9), penstock.ProgramError, "E-kv-key"),
        (lambda kv: kv.num_dead_node(0), penstock.ProgramError, "E-kv-node"),
        (lambda kv: keyed.RowSparse([5], np.zeros((1, 1)), (4, 1)), ValueError, "row 5"),
        (lambda kv: keyed.RowSparse([1], np.zeros((2, 1)), (4, 1)), ValueError, "1 rows"),
    ],
)
def test_wrong_calls_are_refused_and_change_nothing(store, call, error, words):
    store.init([3, 7, 8], [np.full(2, 5.0), keyed.RowSparse([1], np.ones((1, 1)), (4, 1)), np.zeros(1, "int64")])
    with pytest.raises(error, match=words):
        call(store)
    assert (store.pull(3) == 5).all() and store.pull(8) == 0
    assert (store.row_sparse_pull(7, row_ids=[0, 1]).values == [[0], [1]]).all()


def test_rows_come_ascending_and_once(store):
    store.init("t", keyed.RowSparse([2, 0], np.array([[2.0], [7.0]]), (5, 1)))
    rows = store.row_sparse_pull("t", row_ids=[[2, 0], [2, 1]])
    assert rows.rows.tolist() == [0, 1, 2] and rows.values.ravel().tolist() == [7, 0, 2]
    several = store.row_sparse_pull("t", row_ids=[np.array([0]), np.array([], "int64")])
    assert [one.rows.tolist() for one in several] == [[0], []]


def test_repeated_rows_of_a_push_are_added(store):
    store.init("t", keyed.RowSparse([], np.zeros((0, 2)), (4, 2)))
    store.set_optimizer(keyed.optimizer.create("test"))
    store.push("t", keyed.RowSparse([3, 1, 3], np.ones((3, 2)), (4, 2)))
    assert store.row_sparse_pull("t", row_ids=range(4)).values[:, 0].tolist() == [0, 1, 0, 2]


def test_an_updater_of_the_script_applies_sums(store):
    seen = []

    def update(key, total, stored):
        seen.append(key)
        stored += 2 * total

    store.init(5, np.ones(2))
    store._set_updater(update)
    store.push(5, [np.ones(2), np.ones(2)])
    assert (store.pull(5) == 5).all() and seen == [5]


def test_a_rate_that_is_changed_takes_effect_with_the_next_push(store):
    optimizer = keyed.optimizer.create("sgd", learning_rate=1.0)
    store.init("w", np.zeros(1))
    store.set_optimizer(optimizer)
    store.push("w", np.ones(1))
    optimizer.learning_rate = 0.25
    store.push("w", np.ones(1))
    optimizer.set_lr_mult({"w": 2})
    store.push("w", np.ones(1))
    assert store.pull("w") == -1.75


def test_values_have_memory_of_their_own_library(store):
    class Tensor:
        """A tensor of a library that exports its memory by DLPack."""

        def __init__(self, array):
            self._array = array

        def __dlpack__(self, **options):
            return self._array.__dlpack__(**options)

        def __dlpack_device__(self):
            return self._array.__dlpack_device__()

    store.init("w", Tensor(np.arange(3.0)))
    store.push("w", Tensor(np.full(3, 2.0)))
    assert (store.pull("w") == 2).all()


class Torch:
    """What this package uses of a tensor of PyTorch."""

    is_sparse = False

    def __init__(self, array, device="cpu"):
        self._array, self.device = array, device

    def __dlpack__(self, **_):
        raise BufferError("NumPy could not write into it")

    def detach(self):
        return self

    def numpy(self):
        return self._array


def test_tensors_of_pytorch_are_read_and_filled_in_place(store):
    store.init("w", Torch(np.arange(3.0)))
    array = np.zeros(3)
    store.pull("w", out=Torch(array)).wait()
    assert array.tolist() == [0, 1, 2]
    with pytest.raises(TypeError, match="give value.cpu"):
        store.push("w", Torch(array, "cuda:0"))


def test_sums_of_devices_keep_the_order_of_their_type():
    values = [np.float32(one).reshape(1) for one in (1e8, 3.0, -1e8, 5.0, 1.0, 1.0)]
    in_fours = values[0] + (((values[1] + values[2]) + values[3]) + values[4]) + values[5]
    assert sums.summed(values, in_fours=True) == in_fours
    assert sums.summed(values, in_fours=False) == 7 != in_fours
    assert sums.summed(values[:1], in_fours=True) is values[0]


def test_values_of_a_key_that_a_list_names_twice_are_joined():
    assert keys.by_key(keys.pairs([3, 5, 3], ["a", ["b", "c"], "d"], "push")) == [(3, ["a", "d"]), (5, ["b", "c"])]


def test_schedules_give_mxnets_rates():
    factor = keyed.lr_scheduler.FactorScheduler(2, 0.5, base_lr=1.0, stop_factor_lr=0.2)
    assert [factor(n) for n in range(1, 9)] == [1, 1, 0.5, 0.5, 0.25, 0.25, 0.2, 0.2]
    several = keyed.lr_scheduler.MultiFactorScheduler([2, 4], 0.25, base_lr=1.0)
    assert [several(n) for n in range(1, 6)] == [1, 1, 0.25, 0.25, 0.0625]
    warm = keyed.lr_scheduler.PolyScheduler(6, base_lr=1.0, warmup_steps=2, warmup_begin_lr=0.25)
    assert [warm(n) for n in (0, 1, 2, 4, 6, 9)] == [0.25, 0.625, 1, 0.25, 0, 0]
    cosine = keyed.lr_scheduler.CosineScheduler(4, base_lr=1.0, final_lr=0.5, warmup_mode="constant")
    assert [round(cosine(n), 12) for n in (0, 2, 4, 5)] == [1, 0.75, 0.5, 0.5]
    for wrong in (dict(step=0), dict(step=1, factor=2), dict(step=1, warmup_steps=-1), dict(step=1, warmup_begin_lr=1)):
        with pytest.raises(ValueError):
            keyed.lr_scheduler.FactorScheduler(**wrong)
