"""A type-checked script: test_stubs.py runs `mypy --strict` on it."""

import numpy as np
import penstock
import penstock.fluid as fluid
import penstock.hvd as hvd


def network(width: int) -> fluid.Variable:
    x = fluid.data("x", [None, 13])
    y = fluid.data("y", [None, 1])
    hidden = fluid.layers.fc(x, size=width, act="relu")
    loss = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(hidden, 1), y))
    return loss


def convolutions(images: fluid.Variable) -> fluid.Variable:
    features = fluid.layers.conv2d(images, num_filters=8, filter_size=(3, 3), padding="SAME")
    larger = fluid.layers.resize_bilinear(fluid.layers.pool2d(features, pool_size=2), scale=2.0)
    total = fluid.layers.elementwise_add(features, larger, act="relu")
    return fluid.layers.reduce_sum(total, dim=[1, 2, 3])


def train(steps: int) -> list[float]:
    loss = network(8)
    fluid.optimizer.Adam(0.01).minimize(loss)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    losses = []
    for _ in range(steps):
        feed = {"x": np.ones((4, 13), "float32"), "y": np.ones((4, 1), "float32")}
        (value,) = exe.run(feed=feed, fetch_list=[loss])
        losses.append(float(value[0]))
    return losses


def distribute(trainer_id: int, endpoints: str) -> fluid.Program:
    config = fluid.DistributeTranspilerConfig()
    config.slice_var_up = True
    t = fluid.DistributeTranspiler(config)
    t.transpile(trainer_id, pservers=endpoints, trainers=2)
    return t.get_trainer_program()


def roles(startup: fluid.Program, main: fluid.Program) -> str:
    made = penstock.transpile(main, startup, pservers="a:1,b:1", trainers=2, sync=True, chunk_bytes=1 << 16)
    several = penstock.transpile([main], startup, pservers=["a:1"], exchange={"dense": "pserver"})
    ranks = penstock.transpile_ranks(main, startup, "a:1,b:1", rings=2)
    return made.plan + several[0].plan + ranks.trainers[0].main.plan


def options() -> fluid.BuildStrategy:
    strategy = fluid.BuildStrategy()
    strategy.num_trainers, strategy.on_uneven = 2, "join"
    return strategy


def ranks() -> int:
    hvd.init()
    return hvd.size()


def main() -> None:
    try:
        print(train(3))
    except penstock.ProgramError as error:
        print(error.id)


if __name__ == "__main__":
    main()
