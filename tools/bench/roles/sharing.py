"""A trainer of tools/bench/shares: goes through epochs of three cases, and writes their times as trainer 0."""

import json
import sys
import time

import numpy as np
import penstock.hvd as hvd
import penstock.work

hvd.init()
options, figures = json.loads(sys.argv[1]), sys.argv[2]
PER_PORTION = 4
BATCH = PER_PORTION * options["portions"]
SIZE = BATCH * hvd.size() * options["rounds"]
CASES = {"even": (1.0, None), "alone": (options["slow"], 0), "shared": (options["slow"], None)}


def work(indices, factor):
    factor = factor if hvd.rank() == hvd.size() - 1 else 1.0
    time.sleep(factor * options["ms"] / 1000 * len(indices) / PER_PORTION)


def go_through(shares, epoch, factor):
    gradient = np.zeros(1000, "float32")
    if options["mode"]:
        for indices in shares.batches(epoch):
            work(indices, factor)
        return
    for round in shares.rounds(epoch):
        for indices in round:
            work(indices, factor)
        hvd.allreduce(gradient, op=hvd.Sum)


given = {"batch_size": BATCH, "portions": options["portions"], "staleness": options["mode"]}
shares = {case: penstock.work.Shares(SIZE, helpers=helpers, **given) for case, (_, helpers) in CASES.items()}
seconds = {case: [] for case in CASES}
for epoch in range(options["epochs"] + 1):
    for case, (factor, _) in CASES.items():
        hvd.barrier()
        began = time.perf_counter()
        go_through(shares[case], epoch, factor)
        hvd.barrier()
        if epoch:  # the first one warms up
            seconds[case].append(time.perf_counter() - began)
if hvd.rank() == 0:
    with open(figures, "w") as file:
        json.dump(seconds, file)
