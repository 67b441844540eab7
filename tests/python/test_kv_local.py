"""The store of one process returns what MXNet 1.9.1 returned for the same calls: the cases of corpus/kvstore of kinds
local and device, and those of servers, whose workers are devices here: servers add and update as one process does."""

import json

import conftest
import numpy as np
import pytest
from penstock import _penstock

SCHEDULES = {
    "FactorScheduler": "factor",
    "MultiFactorScheduler": "multi_factor",
    "PolyScheduler": "poly",
    "CosineScheduler": "cosine",
}
FOLDER = conftest.CORPUS / "kvstore" / "open"
CASES = sorted(path.stem for path in FOLDER.glob("*.json") if path.stem.startswith(("local", "device", "dist_")))


def optimizer_of(call):
    args = dict(call["args"])
    schedule = None
    if "lr_scheduler" in args:
        given = args.pop("lr_scheduler")
        kind, steps = SCHEDULES[given.pop("type")], []
        if kind == "multi_factor":
            steps = given.pop("step")
        schedule = _penstock.KvSchedule(kind, given, steps)
    names = args.pop("param_idx2name", {})
    made = _penstock.KvOptimizer(call["name"], {name: float(value) for name, value in args.items()}, schedule, names)
    if "lr_mult" in call:
        made.set_lr_mult(call["lr_mult"])
    if "wd_mult" in call:
        made.set_wd_mult(call["wd_mult"])
    return made


def listed(key, *of_keys):
    """Pairs a list of keys, or one key, with what belongs to each."""
    return list(zip(key, *of_keys)) if isinstance(key, list) else [(key, *of_keys)]


class Player:
    """Plays the calls of all workers in step: the value of a device is the sum of one worker's devices."""

    def __init__(self, case, arrays, folder):
        self.case, self.arrays, self.folder, self.got = case, arrays, folder, {}
        self.one = len(case["workers"]) == 1 and not case["kind"].startswith("dist")
        self.new_store(None, None)

    def new_store(self, at, calls):
        self.store = _penstock.KvLocal(device=not self.case["kind"].startswith("local"))

    def value(self, name):
        if isinstance(name, dict):
            return self.arrays[f"in:{name['rsp']}.rows"], self.arrays[f"in:{name['rsp']}.values"]
        return self.arrays[f"in:{name}"]

    def pushed(self, values):
        """What is pushed for one key: the devices' values, or one sum for each worker."""
        each = [[self.value(name) for name in (one if isinstance(one, list) else [one])] for one in values]
        if self.one:
            return each[0]
        if isinstance(each[0][0], tuple):
            return [device for devices in each for device in devices]
        return [np.add.reduce(devices, dtype=devices[0].dtype) for devices in each]

    def init(self, at, calls):
        for key, value in listed(calls[0]["key"], calls[0]["value"]):
            given = self.value(value)
            if isinstance(given, tuple):
                self.store.init_rows(str(key), value["shape"], *given)
            else:
                self.store.init(str(key), given)

    def push(self, at, calls):
        keys = calls[0]["key"]
        values = (
            zip(*(call["value"] for call in calls)) if isinstance(keys, list) else [[call["value"] for call in calls]]
        )
        of_key = {}
        for key, given in zip(keys if isinstance(keys, list) else [keys], values):
            of_key.setdefault(key, []).extend(self.pushed(given))
        for key, given in of_key.items():
            if isinstance(given[0], tuple):
                self.store.push_rows(str(key), given)
            else:
                self.store.push(str(key), given)

    def pull(self, at, calls):
        for rank, call in enumerate(calls):
            at_out = 0
            for key, shape in listed(call["key"], call["shape"]):
                for _ in range(call.get("devices", 1)):
                    out = np.empty(shape, call.get("dtype", "float32"))
                    self.store.pull(str(key), out)
                    self.got[f"r{rank}:{at}:{at_out}"] = out
                    at_out += 1

    def pushpull(self, at, calls):
        self.push(at, calls)
        self.pull(at, calls)

    def broadcast(self, at, calls):
        self.init(at, calls)
        self.pull(at, calls)

    def pushpull_in_place(self, at, calls):
        self.push(at, calls)
        for rank, call in enumerate(calls):
            for device, name in enumerate(call["value"]):
                out = np.empty_like(self.value(name))
                self.store.pull(str(call["key"]), out)
                self.got[f"r{rank}:{at}:{device}"] = out

    def row_sparse_pull(self, at, calls):
        for rank, call in enumerate(calls):
            rows, values = self.store.pull_rows(str(call["key"]), self.value(call["row_ids"]))
            self.got[f"r{rank}:{at}:rows"] = rows
            self.got[f"r{rank}:{at}:values"] = values.astype(call.get("dtype", "float32"))

    def set_optimizer(self, at, calls):
        self.store.set_optimizer(optimizer_of(calls[0]))

    def set_gradient_compression(self, at, calls):
        self.store.set_compression(calls[0]["params"]["threshold"])

    def barrier(self, at, calls):
        pass

    def save_optimizer_states(self, at, calls):
        self.store.save_states(str(self.folder / calls[0]["file"]), with_optimizer=calls[0]["dump_optimizer"])

    def load_optimizer_states(self, at, calls):
        self.store.load_states(str(self.folder / calls[0]["file"]))

    def play(self):
        for at, calls in enumerate(zip(*self.case["workers"])):
            if calls[0]["op"] != "describe":
                getattr(self, calls[0]["op"])(at, calls)
        return self.got


def in_step(case):
    """Whether the workers make the same calls, each of their rounds is one update, and no call fails."""
    if case["kind"].startswith("dist_async") and len(case["workers"]) > 1:
        return False
    shapes = [[(call["op"], str(call.get("key"))) for call in calls] for calls in case["workers"]]
    return all(one == shapes[0] for one in shapes) and not any("error" in call for call in case["workers"][0])


def plays(name):
    return in_step(json.loads((FOLDER / f"{name}.json").read_text()))


@pytest.mark.parametrize("name", [name for name in CASES if plays(name)])
def test_the_store_returns_the_values_of_the_corpus(name, corpus, tmp_path):
    case = json.loads((FOLDER / f"{name}.json").read_text())
    with np.load(FOLDER / f"{name}.npz") as arrays:
        arrays = dict(arrays)
    got = Player(case, arrays, tmp_path).play()
    kind = "want:" if case.get("defect") else "out:"
    expected = {key[len(kind) :]: value for key, value in arrays.items() if key.startswith(kind)}
    compared = 0
    for call, want in expected.items():
        if want.dtype.kind in "US":
            continue
        assert got[call].shape == want.shape
        if case.get("exact"):
            np.testing.assert_array_equal(got[call], want, err_msg=call)
        else:
            far = 1e-6 + 1e-5 * np.abs(want).max(initial=0)
            np.testing.assert_allclose(got[call], want, rtol=0, atol=far, err_msg=call)
        compared += 1
    assert compared > 0


def test_most_cases_are_played(corpus):
    assert sum(map(plays, CASES)) >= 100
