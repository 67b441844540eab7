"""A process of the job that tools/bench/checkpoints measures: a table sharded by id, saved while it is trained.

The trainer lists all ids in the steps before the first checkpoint, then ids by Zipf's distribution. A step waits for
STEP_S, which stands for its computation, and trains. Times of the steps go to TIMES.
"""

import json
import os
import sys
import time

import numpy as np
import penstock.fluid as fluid

WIDTH = 16


def main():
    rows, every, steps, ids_of_step = (int(os.environ[name]) for name in ("ROWS", "EVERY", "STEPS", "IDS"))
    step_s = float(os.environ["STEP_S"])
    fluid.default_main_program().random_seed = fluid.default_startup_program().random_seed = 3
    ids = fluid.data("ids", [None, 1], "int64")
    embedded = fluid.layers.embedding(ids, [rows, WIDTH], is_sparse=True, is_distributed=True, param_attr="table")
    loss = fluid.layers.mean(embedded)
    fluid.optimizer.Adagrad(0.1).minimize(loss)
    transpiler = fluid.DistributeTranspiler()
    transpiler.transpile(0, pservers=os.environ["PADDLE_PSERVER_ENDPOINTS"], trainers=1)
    exe = fluid.Executor(fluid.CPUPlace())
    if os.environ["TRAINING_ROLE"] == "PSERVER":
        program, startup = transpiler.get_pserver_programs(os.environ["PADDLE_CURRENT_ENDPOINT"])
        exe.run(startup)
        exe.run(program)
        return
    program = transpiler.get_trainer_program()
    exe.run(fluid.default_startup_program())
    shares = np.cumsum(np.arange(1, rows + 1, dtype="float64") ** -1.05)
    random = np.random.RandomState(1)
    order = random.permutation(rows)
    times, progress = [], open(os.environ["TIMES"] + ".step", "wb", buffering=0)  # one byte a step
    for step in range(steps):
        if step < every:
            of_step = np.arange(step * rows // every, (step + 1) * rows // every)
        else:
            of_step = order[np.searchsorted(shares, random.rand(ids_of_step) * shares[-1])]
        begin = time.perf_counter()
        time.sleep(step_s)
        exe.run(program, feed={"ids": of_step.reshape(-1, 1).astype("int64")}, fetch_list=[loss])
        times.append(time.perf_counter() - begin)
        progress.write(b".")
    progress.close()
    with open(os.environ["TIMES"], "w") as file:
        json.dump(times, file)
    exe.close()


if __name__ == "__main__":
    sys.exit(main())
