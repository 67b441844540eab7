"""Runs one role of a job, under Fluid 1.8.5 or under Penstock: the same script, so the same programs.

    python role.py fluid|penstock pserver|trainer INDEX --endpoints A,B --trainers N --model dense|sparse
                   --mode sync|async --steps N --out FILE

A trainer writes its losses to FILE, one per line. Runs under Python 3.7 and later.
"""

import argparse
import importlib

import numpy

# Large enough that the first layer's weights and the table have a slice on each pserver.
INPUTS, HIDDEN = 200, 120
ROWS, WIDTH, WORDS = 3000, 8, 3


def initial(fluid, *shape):
    """An initializer that gives the same values on both sides; one constant for sliced parameters."""
    if shape[0] * shape[-1] >= 2 * 8192:
        return fluid.ParamAttr(initializer=fluid.initializer.Constant(0.02))
    values = numpy.random.RandomState(sum(shape)).uniform(-0.3, 0.3, shape).astype("float32")
    return fluid.ParamAttr(initializer=fluid.initializer.NumpyArrayInitializer(values))


def dense(fluid):
    x = fluid.data("x", [None, INPUTS], "float32")
    y = fluid.data("y", [None, 1], "float32")
    hidden = fluid.layers.fc(
        x, HIDDEN, act="tanh", param_attr=initial(fluid, INPUTS, HIDDEN), bias_attr=initial(fluid, HIDDEN)
    )
    out = fluid.layers.fc(hidden, 1, param_attr=initial(fluid, HIDDEN, 1), bias_attr=initial(fluid, 1))
    return fluid.layers.mean(fluid.layers.square_error_cost(out, y))


def sparse(fluid):
    words = fluid.data("x", [None, WORDS, 1], "int64")
    y = fluid.data("y", [None, 1], "float32")
    rows = [fluid.layers.reshape(fluid.layers.slice(words, [1], [i], [i + 1]), [-1, 1]) for i in range(WORDS)]
    found = [fluid.layers.embedding(ids, [ROWS, WIDTH], is_sparse=True, param_attr=table_attr(fluid)) for ids in rows]
    out = fluid.layers.fc(
        fluid.layers.concat(found, 1), 1, param_attr=initial(fluid, WORDS * WIDTH, 1), bias_attr=initial(fluid, 1)
    )
    return fluid.layers.mean(fluid.layers.square_error_cost(out, y))


def table_attr(fluid):
    attr = initial(fluid, ROWS, WIDTH)
    attr.name = "table"
    return attr


def batch(model, trainer, step):
    dice = numpy.random.RandomState(1000 * trainer + step)
    if model == "dense":
        x = dice.uniform(-1, 1, (4, INPUTS)).astype("float32")
        return {"x": x, "y": x[:, :5].sum(1, keepdims=True)}
    ids = dice.randint(0, ROWS, (4, WORDS, 1)).astype("int64")
    return {"x": ids, "y": (ids.sum(1) / (ROWS * WORDS)).astype("float32")}


def main():
    parser = argparse.ArgumentParser()
    for name in ("side", "role", "index"):
        parser.add_argument(name)
    for name in ("endpoints", "trainers", "model", "mode", "steps", "out"):
        parser.add_argument("--" + name, required=True)
    options = parser.parse_args()
    fluid = importlib.import_module({"fluid": "paddle.fluid", "penstock": "penstock.fluid"}[options.side])
    index, sync = int(options.index), options.mode == "sync"

    loss = {"dense": dense, "sparse": sparse}[options.model](fluid)
    fluid.optimizer.SGD(learning_rate=0.01).minimize(loss)
    config = fluid.DistributeTranspilerConfig()
    config.sync_mode = sync
    t = fluid.DistributeTranspiler(config)
    t.transpile(
        index if options.role == "trainer" else 0,
        pservers=options.endpoints,
        trainers=int(options.trainers),
        sync_mode=sync,
    )
    exe = fluid.Executor(fluid.CPUPlace())
    if options.role == "pserver":
        program, startup = t.get_pserver_programs(options.endpoints.split(",")[index])
        exe.run(startup)
        exe.run(program)
        return
    program = t.get_trainer_program()
    exe.run(fluid.default_startup_program())
    losses = [
        exe.run(program, feed=batch(options.model, index, step), fetch_list=[loss])[0][0]
        for step in range(int(options.steps))
    ]
    exe.close()
    with open(options.out, "w") as out:
        out.write("".join(f"{value:.9g}\n" for value in losses))


if __name__ == "__main__":
    main()
