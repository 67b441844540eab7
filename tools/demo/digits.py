"""A training program for one machine, in the Fluid API, and the few lines that distribute it.

The launcher sets the role of each process in the environment:

    python -m penstock.distributed.launch --server_num 2 --worker_num 2 tools/demo/digits.py --out results
    python tools/demo/digits.py --out results --single --start results/initial.npz
    python -m penstock.distributed.launch --worker_num 4 tools/demo/digits.py --out results --mode grad_allreduce

The data are 1,797 images of handwritten digits, 8x8 (scikit-learn's bundled set, from UCI): 1,437 for training and 360
for testing, in a fixed split and order. The size of the global batch does not depend on the number of trainers, so N
trainers in sync mode compute the same as one machine.
"""

import argparse
import json
import os
import sys

import numpy as np
import penstock.fluid as fluid
from sklearn.datasets import load_digits

TRAIN_IMAGES = 1437
GLOBAL_BATCH = 64
FIRST_STEPS = 5  # after these, the parameters are saved
MIN_BLOCK_SIZE = 8192
# Modes whose trainers send and receive through their communicator: its own name of each.
BY_COMMUNICATOR = {"sync_communicator": "SYNC", "half_async": "HALF_ASYNC", "async_communicator": "ASYNC", "geo": "GEO"}
# Of an asynchronous communicator. By default it sends the mean of up to 20 gradients, which is one update an epoch
# here, and receives whenever that is done. These settings bound how late both are.
COMMUNICATOR_ENVS = {
    "communicator_max_merge_var_num": "1",
    "communicator_send_queue_size": "1",
    "communicator_min_send_grad_num_before_recv": "0",
    "communicator_independent_recv_thread": "0",
}
# Modes without pservers.
OF_RANKS = ["grad_allreduce", "local_sgd", "single_process_multi_thread", "nccl2"]
MODES = ["sync", "async", "dc_asgd", *BY_COMMUNICATOR, *OF_RANKS]


def data():
    """(train images, train labels, test images, test labels); images [n, 1, 8, 8] in 0..1, labels [n, 1]."""
    digits = load_digits()
    order = np.random.RandomState(0).permutation(len(digits.target))
    images = (digits.images[order] / 16.0).astype("float32").reshape(-1, 1, 8, 8)
    labels = digits.target[order].astype("int64").reshape(-1, 1)
    return images[:TRAIN_IMAGES], labels[:TRAIN_IMAGES], images[TRAIN_IMAGES:], labels[TRAIN_IMAGES:]


def network(normalized=False):
    """A small LeNet: two convolutions with pooling, two fully connected layers. Returns (loss, prediction)."""
    image = fluid.data("image", [None, 1, 8, 8])
    label = fluid.data("label", [None, 1], dtype="int64")
    hidden = fluid.layers.conv2d(image, num_filters=20, filter_size=3, padding=1, act="relu")
    hidden = fluid.layers.pool2d(hidden, pool_size=2, pool_type="max", pool_stride=2)
    if normalized:
        hidden = fluid.layers.batch_norm(hidden)
    hidden = fluid.layers.conv2d(hidden, num_filters=50, filter_size=3, padding=1, act="relu")
    hidden = fluid.layers.pool2d(hidden, pool_size=2, pool_type="max", pool_stride=2)
    hidden = fluid.layers.fc(hidden, 500, act="relu")
    prediction = fluid.layers.fc(hidden, 10, act="softmax")
    loss = fluid.layers.mean(fluid.layers.cross_entropy(prediction, label))
    return loss, prediction


def batches(images, labels, epochs):
    """The global batches of all epochs, the same in every process; drops a short last batch of an epoch."""
    for epoch in range(epochs):
        order = np.random.RandomState(epoch).permutation(len(images))
        for begin in range(0, len(order) - GLOBAL_BATCH + 1, GLOBAL_BATCH):
            rows = order[begin : begin + GLOBAL_BATCH]
            yield images[rows], labels[rows]


def parameters(program):
    """All parameters by name, as copies."""
    scope = fluid.global_scope()
    return {p.name: np.array(scope.find_var(p.name).get_tensor()) for p in program.all_parameters()}


def transpiler(trainer_id, pservers, trainers, options):
    config = fluid.DistributeTranspilerConfig()
    config.min_block_size = MIN_BLOCK_SIZE
    if options.mode == "geo":
        config.geo_sgd_mode, config.geo_sgd_need_push_nums = True, options.push_every
        t = fluid.transpiler.GeoSgdTranspiler(config)
        t.transpile(trainer_id, pservers=pservers, trainers=trainers)
        return t
    config.staleness = options.staleness
    config.backup_trainers = options.backup_trainers
    config.compression = options.compression
    config.enable_dc_asgd = options.mode == "dc_asgd"
    if options.mode in BY_COMMUNICATOR:
        config.runtime_split_send_recv = True
        config.half_async = options.mode != "async_communicator"
        config.completely_not_async = options.mode == "sync_communicator"
    t = fluid.DistributeTranspiler(config=config)
    t.transpile(trainer_id, pservers=pservers, trainers=trainers, sync_mode=options.mode == "sync")
    return t


def rank_program(rank, addresses, loss, options):
    """The program that each of several equal ranks runs per step."""
    config = fluid.DistributeTranspilerConfig()
    config.mode = "nccl2" if options.mode == "nccl2" else "collective"
    config.nccl_comm_num = options.rings
    config.local_sgd_k_steps, config.local_sgd_adaptive = options.k_steps, options.adaptive
    if options.mode != "nccl2":
        config.collective_mode = options.mode
    elif options.group_ranks:
        config.use_hierarchical_allreduce = True
        config.hierarchical_allreduce_inter_nranks = options.group_ranks
    program = fluid.default_main_program()
    fluid.DistributeTranspiler(config).transpile(rank, trainers=addresses, current_endpoint=addresses.split(",")[rank])
    if options.mode != "nccl2":
        return program
    strategy = fluid.BuildStrategy()
    strategy.num_trainers, strategy.trainer_id = len(addresses.split(",")), rank
    strategy.sync_batch_norm = options.batch_norm
    return fluid.CompiledProgram(program).with_data_parallel(loss.name, strategy)


def optimizer(options):
    if options.dgc:
        return fluid.optimizer.DGCMomentumOptimizer(options.rate, options.momentum, 20, sparsity=[0.75, 0.9])
    return fluid.optimizer.Momentum(options.rate, options.momentum)


def serve(pservers, trainers, endpoint, options):
    t = transpiler(0, pservers, trainers, options)
    exe = fluid.Executor(fluid.CPUPlace())
    main, startup = t.get_pserver_programs(endpoint)
    exe.run(startup)
    exe.run(main)  # returns when every trainer has completed


def train(options, program, test_program, loss, prediction, share, of):
    """Trains this process's share (number `share` of `of`) of every global batch and writes what the demo compares."""
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    images, labels, test_images, test_labels = data()
    if options.start:
        start = np.load(options.start)
        for name in start.files:
            fluid.global_scope().find_var(name).get_tensor().set(start[name], fluid.CPUPlace())
    communicator = None
    if options.mode in BY_COMMUNICATOR and not options.single:
        mode = getattr(fluid.communicator.DistributedMode, BY_COMMUNICATOR[options.mode])
        envs = COMMUNICATOR_ENVS if options.mode == "async_communicator" else None
        communicator = fluid.communicator.Communicator(program, mode, envs=envs)
        communicator.start()
    if share == 0 and not options.start:
        np.savez(os.path.join(options.out, "initial.npz"), **parameters(test_program))
    name = f"trainer_{share}" if not options.single else "single" if options.places == 1 else "places"
    losses = []
    everything = list(batches(images, labels, options.epochs))
    rows = GLOBAL_BATCH // of
    mine = slice(share * rows, (share + 1) * rows)
    for step, (x, y) in enumerate(everything):
        (value,) = exe.run(program, feed={"image": x[mine], "label": y[mine]}, fetch_list=[loss])
        losses.append(float(np.mean(value)))
        if step + 1 == FIRST_STEPS:
            np.savez(os.path.join(options.out, f"{name}_first_steps.npz"), **parameters(test_program))
        if share == 0 and ((step + 1) % 10 == 0 or step + 1 == len(everything)):
            print(f"\r  step {step + 1}/{len(everything)}   loss {losses[-1]:.4f}", end="", flush=True)
    if share == 0:
        print(flush=True)
    if communicator is not None:
        communicator.stop()
    (scores,) = exe.run(test_program, feed={"image": test_images, "label": test_labels}, fetch_list=[prediction])
    accuracy = float(np.mean(np.argmax(scores, axis=1) == test_labels[:, 0]))
    np.savez(os.path.join(options.out, f"{name}.npz"), **parameters(test_program))
    with open(os.path.join(options.out, f"{name}.json"), "w") as out:
        json.dump({"losses": losses, "accuracy": accuracy}, out)
    exe.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", required=True, help="folder for losses and parameters")
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--rate", type=float, default=0.01, help="the learning rate")
    parser.add_argument("--momentum", type=float, default=0.9)
    parser.add_argument("--single", action="store_true", help="one machine, on the whole batch")
    parser.add_argument("--places", type=int, default=1, help="single: places that share the batch")
    parser.add_argument("--start", help="npz file with the parameters to start from")
    parser.add_argument("--mode", choices=MODES, default="sync")
    parser.add_argument("--push_every", type=int, default=5, help="geo: steps between two exchanges")
    parser.add_argument("--staleness", type=int, help="async: steps that a trainer may be ahead of the slowest")
    parser.add_argument("--backup_trainers", type=int, default=0, help="sync: trainers that a step does not wait for")
    parser.add_argument("--rings", type=int, default=1, help="ranks: communicators that are used in turn")
    parser.add_argument("--group_ranks", type=int, default=0, help="nccl2: ranks that add up among themselves first")
    parser.add_argument("--k_steps", type=int, default=1, help="local_sgd: steps between two exchanges")
    parser.add_argument("--adaptive", action="store_true", help="local_sgd: as many as loss and learning rate say")
    parser.add_argument("--batch_norm", action="store_true", help="normalize; with nccl2 by the moments of all ranks")
    parser.add_argument("--dgc", action="store_true", help="ranks: deep gradient compression")
    parser.add_argument("--compression", default="none", help="how gradients travel, as 'two_bit 0.5 from 1024'")
    options = parser.parse_args()

    fluid.default_main_program().random_seed = 1
    fluid.default_startup_program().random_seed = 1
    loss, prediction = network(options.batch_norm)
    test_program = fluid.default_main_program().clone(for_test=True)
    optimizer(options).minimize(loss)

    if options.single:
        program = fluid.default_main_program()
        if options.places > 1:
            places = [fluid.CPUPlace()] * options.places
            program = fluid.CompiledProgram(program).with_data_parallel(loss_name=loss.name, places=places)
        train(options, program, test_program, loss, prediction, share=0, of=1)
        return
    if options.mode in OF_RANKS:
        rank, addresses = int(os.environ["PADDLE_TRAINER_ID"]), os.environ["PADDLE_TRAINER_ENDPOINTS"]
        program = rank_program(rank, addresses, loss, options)
        train(options, program, test_program, loss, prediction, share=rank, of=len(addresses.split(",")))
        return
    pservers = os.environ["PADDLE_PSERVER_ENDPOINTS"]
    trainers = int(os.environ["PADDLE_TRAINERS_NUM"])
    if os.environ["TRAINING_ROLE"] == "PSERVER":
        serve(pservers, trainers, os.environ["PADDLE_CURRENT_ENDPOINT"], options)
        return
    trainer_id = int(os.environ["PADDLE_TRAINER_ID"])
    program = transpiler(trainer_id, pservers, trainers, options).get_trainer_program()
    train(options, program, test_program, loss, prediction, share=trainer_id, of=trainers)


if __name__ == "__main__":
    sys.exit(main())
