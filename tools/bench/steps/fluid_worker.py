"""fluid_worker.py CONFIG: trains a model by Penstock or Fluid 1.8.5 for tools/bench/models; worker.py has the protocol.

CONFIG is JSON: module (penstock.fluid, paddle.fluid), model, batch, feed; and rank and endpoints (of all ranks,
separated by commas) in a job of mode nccl2. `feed` says where a step's batch comes from:

    fixed    the caller feeds the same batch in each step
    loader   ops of the program read the same batch from a DataLoader
    lengths  the caller feeds a new batch in each step, of sequences of other lengths (lstm only)

Runs under Python 3.7 and later.
"""

import importlib
import json
import sys

import fluid_models
import numpy as np
import worker


def rows_of(value):
    return int(value.shape()[0]) if callable(value.shape) else int(value.shape[0])


def collective(fluid, rank, endpoints):
    """Makes the default programs those of one rank, whose gradients are averaged over all."""
    how = fluid.DistributeTranspilerConfig()
    how.mode = "nccl2"
    fluid.DistributeTranspiler(config=how).transpile(
        rank, trainers=endpoints, current_endpoint=endpoints.split(",")[rank]
    )


def main():
    config = json.loads(sys.argv[1])
    fluid = importlib.import_module(config["module"])
    imported_mb = worker.peak_mb()
    random = np.random.RandomState(7)
    data = fluid_models.inputs(fluid, config["model"], config["batch"], config["feed"] == "lengths")
    fixed = data.draw(random)
    loader = None
    if config["feed"] == "loader":
        loader = fluid.io.DataLoader.from_generator(feed_list=data.vars, capacity=4, iterable=False)
        loader.set_batch_generator(lambda: iter(lambda: fixed, None), places=fluid.CPUPlace())
    loss = fluid_models.minimized(fluid, config["model"], data.vars)
    if "endpoints" in config:
        collective(fluid, config["rank"], config["endpoints"])
    program, executor = fluid.default_main_program(), fluid.Executor(fluid.CPUPlace())
    executor.run(fluid.default_startup_program())

    def prepare():
        values = data.draw(random) if config["feed"] == "lengths" else fixed
        feed = {} if loader else {var.name: value for var, value in zip(data.vars, values)}
        return feed, rows_of(values[0])

    def step(feed):
        (value,) = executor.run(program, feed=feed, fetch_list=[loss], use_program_cache=True)
        return np.ravel(value)[0]

    if loader:
        loader.start()
    worker.serve(prepare, step, imported_mb)
    if loader:
        loader.reset()


if __name__ == "__main__":
    main()
