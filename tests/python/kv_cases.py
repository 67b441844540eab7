"""Runs cases of the corpus of key-value stores: fixed sequences of calls, and what MXNet 1.9.1 returned for them.

    case = Case(path)                                   # <name>.json with <name>.npz beside it
    got = run_calls(case, rank, make_store, folder)     # {"<call>:<out>": array}
    assert case.differences(rank, got) == []

corpus/kvstore/README.md describes the calls. Imports no test.
"""

import json
import os

import numpy as np
from penstock import kv as keyed


class Case:
    """A case and its arrays."""

    def __init__(self, path):
        self.name = path.name[: -len(".json")]
        self.facts = json.loads(path.read_text())
        with np.load(path.with_name(self.name + ".npz")) as arrays:
            self.arrays = dict(arrays)
        self.kind = self.facts["kind"]
        self.is_training = self.name.startswith("train.")
        self.workers = self.facts["workers"] if self.is_training else len(self.facts["workers"])
        self.servers = self.facts["servers"]
        self.bound = int(self.facts.get("env", {}).get("MXNET_KVSTORE_BIGARRAY_BOUND", 1_000_000))

    def expected(self, rank):
        """{call: array}: MXNet's values, or for a defect those that a user expects."""
        head = f"{'want' if self.facts.get('defect') else 'out'}:r{rank}:"
        found = {name[len(head) :]: one for name, one in self.arrays.items() if name.startswith(head)}
        if self.is_training:
            return {call: one for call, one in found.items() if call.startswith(("loss", "final", "first"))}
        return found

    def differences(self, rank, got):
        """A text for each returned value that is missing or different."""
        exact, found = self.facts.get("exact", False), []
        for call, want in self.expected(rank).items():
            far = self._allowed(call)
            reason = "missing" if call not in got else _difference(np.asarray(got[call]), want, exact, far)
            if reason:
                found.append(f"{self.name} r{rank}:{call}: {reason}")
        return found

    def _allowed(self, call):
        """By how much MXNet's own training differs from exact arithmetic: the corpus states it. Gluon's loss is off by
        1.4e-6 from the first step on, which adds up in a bias."""
        if not self.is_training or self.facts.get("defect"):
            return 1e-6
        return 1e-6 + self.facts["model_loss" if call == "loss" else "model_weights"]


def _difference(got, want, exact, far_max):
    """As check.py of the corpus compares."""
    if want.dtype.kind in "US":
        both_fail = str(want).endswith(("Error", "Exception")) and str(got) != "no error"
        return None if str(got) == str(want) or both_fail else f"got {got}, not {want}"
    if got.shape != want.shape:
        return f"shape {got.shape}, not {want.shape}"
    if exact:
        return None if got.dtype == want.dtype and np.array_equal(got, want) else f"not equal: {got} {want}"
    far = np.abs(got.astype("f8") - want).max() if want.size else 0.0
    top = np.abs(want.astype("f8")).max() if want.size else 0.0
    return None if far <= far_max + 1e-5 * top else f"off by {far}, of {top}"


def run_calls(case, rank, make_store, folder):
    """Makes the calls of a rank. Returns {"<call>:<out>": array}."""
    run = _Run(case, make_store, folder)
    for number, call in enumerate(case.facts["workers"][rank]):
        if "error" not in call:
            run.one(number, call)
            continue
        try:
            run.one(number, call)
            found = "no error"
        except Exception as error:
            found = type(error).__name__
        run.got = {name: one for name, one in run.got.items() if name.partition(":")[0] != str(number)}
        run.got[str(number)] = found
    return run.got


class _Run:
    def __init__(self, case, make_store, folder):
        self.arrays, self.kind, self.make_store, self.folder = case.arrays, case.kind, make_store, folder
        self.store = make_store(case.kind)
        self.got = {}

    def array(self, given):
        """A fresh value each time: a pushed array is not used again."""
        if isinstance(given, list):
            return [self.array(one) for one in given]
        if isinstance(given, dict):
            rows, values = (self.arrays[f"in:{given['rsp']}.{part}"].copy() for part in ("rows", "values"))
            return keyed.RowSparse(rows, values, given["shape"])
        return self.arrays["in:" + given].copy()

    def outs(self, call):
        """Arrays for what is pulled, as out= takes them, and in one list."""
        dtype, devices = call.get("dtype", "float32"), call.get("devices", 1)
        several = isinstance(call["key"], list)
        shapes = call["shape"] if several else [call["shape"]]
        each = [[np.full(shape, 77, dtype) for _ in range(devices)] for shape in shapes]
        given = [outs if devices > 1 else outs[0] for outs in each]
        return given if several else given[0], [out for outs in each for out in outs]

    def keep(self, number, outs):
        for place, out in enumerate(outs):
            self.got[f"{number}:{place}"] = out

    def one(self, number, call):
        getattr(self, "do_" + call["op"])(number, call)

    def do_init(self, number, call):
        self.store.init(call["key"], self.array(call["value"]))

    def do_push(self, number, call):
        self.store.push(call["key"], self.array(call["value"]), priority=call.get("priority", 0))

    def do_pull(self, number, call):
        given, outs = self.outs(call)
        self.store.pull(call["key"], given, priority=call.get("priority", 0)).wait()
        self.keep(number, outs)

    def do_pushpull(self, number, call):
        given, outs = self.outs(call)
        self.store.pushpull(call["key"], self.array(call["value"]), given).wait()
        self.keep(number, outs)

    def do_broadcast(self, number, call):
        given, outs = self.outs(call)
        self.store.broadcast(call["key"], self.array(call["value"]), given).wait()
        self.keep(number, outs)

    def do_pushpull_in_place(self, number, call):
        values = self.array(call["value"])
        self.store.pushpull(call["key"], values).wait()
        self.keep(number, values if isinstance(values, list) else [values])

    def do_row_sparse_pull(self, number, call):
        shape = call["shape"]
        out = keyed.RowSparse([], np.zeros([0, *shape[1:]], call.get("dtype", "float32")), shape)
        self.store.row_sparse_pull(call["key"], out=out, row_ids=self.array(call["row_ids"]))
        self.got[f"{number}:rows"], self.got[f"{number}:values"] = out.rows, out.values

    def do_set_optimizer(self, number, call):
        self.store.set_optimizer(optimizer_of(call))

    def do_set_gradient_compression(self, number, call):
        self.store.set_gradient_compression(call["params"])

    def do_barrier(self, number, call):
        self.store.barrier()

    def do_describe(self, number, call):
        facts = {
            "num_workers": self.store.num_workers,
            "optimizer": self.store.is_capable("optimizer"),
            "rank": self.store.rank,
            "type": self.store.type,
        }
        self.got[str(number)] = json.dumps(facts, sort_keys=True)

    def do_save_optimizer_states(self, number, call):
        path = os.path.join(self.folder, call["file"])
        self.store.save_optimizer_states(path, dump_optimizer=call.get("dump_optimizer", False))

    def do_load_optimizer_states(self, number, call):
        self.store.load_optimizer_states(os.path.join(self.folder, call["file"]))

    def do_new_store(self, number, call):
        self.store = self.make_store(self.kind)


def _keys(given):
    return {int(key) if key.lstrip("-").isdigit() else key: one for key, one in given.items()}


def optimizer_of(call):
    """The optimizer of a call: its name, arguments and multipliers."""
    args = dict(call["args"])
    if "lr_scheduler" in args:
        facts = dict(args["lr_scheduler"])
        args["lr_scheduler"] = getattr(keyed.lr_scheduler, facts.pop("type"))(**facts)
    if "param_idx2name" in args:
        args["param_idx2name"] = _keys(args["param_idx2name"])
    optimizer = keyed.optimizer.create(call["name"], **args)
    if call.get("lr_mult"):
        optimizer.set_lr_mult(_keys(call["lr_mult"]))
    if call.get("wd_mult"):
        optimizer.set_wd_mult(_keys(call["wd_mult"]))
    return optimizer
