"""The training of the corpus of key-value stores: a small network in NumPy, its weights in a store.

    got = train(case, rank, make_store)     # {"loss": ..., "first:fc1_weight": ..., "final:fc1_weight": ...}

Imports no test.
"""

import numpy as np
from penstock import kv as keyed

NAMES = ("fc1_weight", "fc1_bias", "fc2_weight", "fc2_bias")


def loss_and_gradients(weights, x, y):
    """The losses of the rows, and the gradients of their sum, by name: 8 -> 16 relu -> 4, softmax cross entropy."""
    hidden = x @ weights["fc1_weight"].T + weights["fc1_bias"]
    active = np.maximum(hidden, 0)
    scores = active @ weights["fc2_weight"].T + weights["fc2_bias"]
    scores = scores - scores.max(1, keepdims=True)
    likely = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    rows, classes = np.arange(len(y)), y.astype(int)
    losses = -np.log(likely[rows, classes])
    at_scores = likely
    at_scores[rows, classes] -= 1
    at_hidden = (at_scores @ weights["fc2_weight"]) * (hidden > 0)
    return losses, {
        "fc1_weight": at_hidden.T @ x,
        "fc1_bias": at_hidden.sum(0),
        "fc2_weight": at_scores.T @ active,
        "fc2_bias": at_scores.sum(0),
    }


def _slices(count, devices, loads):
    """(begin, end) of each device's rows."""
    loads = loads or [1] * devices
    sizes = [round(load * count / sum(loads)) for load in loads[:-1]]
    ends = np.cumsum([*sizes, count - sum(sizes)])
    return list(zip([0, *ends[:-1]], ends))


def _optimizer(facts):
    names = {key: key for key in NAMES} if facts["api"] == "module" else {}  # spares biases of weight decay
    if facts["api"] == "module" and "wd" not in facts["args"]:
        names = {}
    args = {**facts["args"], "param_idx2name": names} if names else facts["args"]
    return keyed.optimizer.create(facts["optimizer"], rescale_grad=1 / facts["batch"], **args)


def train(case, rank, make_store):
    """Trains from the recorded initial weights. Returns what the corpus records."""
    facts, devices = case.facts, case.facts["devices"]
    store = make_store(case.kind)
    weights = {name: case.arrays["in:" + name] + np.float32(rank if facts.get("differ") else 0) for name in NAMES}
    store.init(list(NAMES), [weights[name] for name in NAMES])
    own = None
    if facts["update_on_kvstore"] is False:
        own = keyed.create("local")  # each worker updates its own copy by the sums
    else:
        store.set_optimizer(_optimizer(facts))
    held = [{name: np.empty_like(weights[name]) for name in NAMES} for _ in range(devices)]

    def pull(from_store):
        from_store.pull(list(NAMES), [[one[name] for one in held] for name in NAMES]).wait()

    store.barrier()
    pull(store)
    if own is not None:
        own.init(list(NAMES), [held[0][name] for name in NAMES])
        own.set_optimizer(_optimizer(facts))
    batch, part = facts["batch"], facts["batch"] // case.workers
    losses, first = [], {}
    for begin in list(range(0, facts["rows"], batch)) * facts["epochs"]:
        at = begin + rank * part
        x, y = case.arrays["in:x"][at : at + part], case.arrays["in:y"][at : at + part]
        found = [
            loss_and_gradients(held[d], x[b:e], y[b:e])
            for d, (b, e) in enumerate(_slices(part, devices, facts.get("work_load_list")))
        ]
        losses.append(np.concatenate([one for one, _ in found]).mean())
        for place, name in enumerate(NAMES):
            store.push(name, [gradients[name] for _, gradients in found], priority=-place)
        if own is not None:
            sums = [np.empty_like(weights[name]) for name in NAMES]
            store.pull(list(NAMES), sums).wait()
            own.push(list(NAMES), sums)
        pull(own or store)
        first = first or {f"first:{name}": held[0][name].copy() for name in NAMES}
    final = {f"final:{name}": held[0][name] for name in NAMES}
    final.update({f"final:{name}:{d}": one[name] for d, one in enumerate(held) if d for name in NAMES})
    return {"loss": np.array(losses), **first, **final}
