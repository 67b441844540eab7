"""A process of a key-value job of tools/bench/kv, on penstock.kv or MXNet: worker, server or scheduler, by DMLC_ROLE.

Its argument is the case in JSON: system, case, keys, elements, rows, width, steps, warm. A worker prints RESULT and its
step times in milliseconds.
"""

import json
import sys
import time

import numpy as np


class Ours:
    """penstock.kv."""

    def __init__(self):
        from penstock import kv

        self.store = kv.create("dist_sync")  # servers and the scheduler end here
        self.library = kv

    def set_sgd(self):
        self.store.set_optimizer(self.library.optimizer.create("sgd", learning_rate=0.1))

    def barrier(self):
        self.store.barrier()

    def init_rows(self, key, rows, width):
        self.store.init(key, self.library.RowSparse(np.arange(rows), np.zeros((rows, width), "float32"), (rows, width)))

    def rows(self, ids, values, shape):
        return self.library.RowSparse(ids, values, shape)

    def pull_rows(self, key, ids, shape):
        del shape
        return self.store.row_sparse_pull(key, row_ids=ids).values

    @staticmethod
    def array(values):
        return values

    def wait(self):
        self.store.wait()


class MXNets:
    """mxnet."""

    def __init__(self):
        import mxnet

        self.mxnet = mxnet  # servers and the scheduler end within the import
        self.store = mxnet.kv.create("dist_sync")

    def set_sgd(self):
        self.store.set_optimizer(self.mxnet.optimizer.SGD(learning_rate=0.1))

    def barrier(self):
        self.store._barrier()

    def init_rows(self, key, rows, width):
        self.store.init(key, self.rows(np.arange(rows), np.zeros((rows, width), "float32"), (rows, width)))

    def rows(self, ids, values, shape):
        return self.mxnet.nd.sparse.row_sparse_array((values, ids), shape=shape)

    def pull_rows(self, key, ids, shape):
        out = self.mxnet.nd.sparse.zeros("row_sparse", shape)
        self.store.row_sparse_pull(key, out=out, row_ids=self.mxnet.nd.array(ids, dtype="int64"))
        out.wait_to_read()
        return out

    def array(self, values):
        return self.mxnet.nd.array(values)

    def wait(self):
        self.mxnet.nd.waitall()


def dense_step(one, case):
    """Returns a function that pushes and pulls all keys once."""
    keys = [str(key) for key in range(case["keys"])]
    gradients = [one.array(np.full(case["elements"], 0.5, "float32")) for _ in keys]
    outs = [one.array(np.zeros(case["elements"], "float32")) for _ in keys]
    one.store.init(keys, outs)

    def step():
        one.store.push(keys, gradients)
        one.store.pull(keys, out=outs)
        one.wait()

    return step


def rows_step(one, case):
    """Returns a function that pushes rows of a table and pulls others."""
    rows, width = case["rows"], case["width"]
    one.init_rows("table", rows, width)
    random = np.random.RandomState(one.store.rank)
    drawn = [np.unique(random.randint(0, rows, case["elements"])) for _ in range(4)]
    gradients = [np.full((ids.size, width), 0.5, "float32") for ids in drawn]
    count = [0]

    def step():
        at = count[0] % len(drawn)
        count[0] += 1
        one.store.push("table", one.rows(drawn[at], gradients[at], (rows, width)))
        one.pull_rows("table", drawn[(at + 1) % len(drawn)], (rows, width))
        one.wait()

    return step


def main():
    case = json.loads(sys.argv[1])
    one = Ours() if case["system"] == "penstock" else MXNets()
    step = (rows_step if case["rows"] else dense_step)(one, case)
    if case["rows"]:
        one.set_sgd()
    one.barrier()
    times = []
    for _ in range(case["warm"] + case["steps"]):
        begin = time.perf_counter()
        step()
        times.append(1e3 * (time.perf_counter() - begin))
    one.barrier()
    print("RESULT " + json.dumps(times[case["warm"] :]), flush=True)


if __name__ == "__main__":
    main()
