"""role.py CONFIG: a process of a job that tools/bench/ps and netns measure, under Penstock or Fluid 1.8.5.

CONFIG is JSON: module (penstock.fluid, paddle.fluid), role (pserver, trainer), index, model, size, compute_s (for the
model vgg), mode, endpoints, trainer_endpoints, trainers, warm, steps. The modes are sync, async and, only for Penstock
and with trainer_endpoints, hybrid, collective and alone; in mode alone, trainers synchronise before and after each step
and exchange nothing. A trainer reads the process ids of the job as a line of JSON from standard input, takes `warm`
steps, then `steps` measured ones, and prints RESULT and JSON: step_ms (of each step), cpu_s (of each process during the
measured steps), bytes (moved per step), calls (tensors pushed and pulled per step), loss. It waits until standard input
ends, so that its CPU time can be read. Runs under Python 3.7 and later.
"""

import importlib
import json
import os
import sys
import time

import models
import numpy as np


def cpu_seconds(processes):
    """CPU seconds of each process, over all its threads; (~pid << 3) | 2 is Linux's id of its clock."""
    return [time.clock_gettime((~process << 3) | 2) for process in processes]


def calls_of_step(program):
    """The number of tensors that a trainer pushes and pulls per step."""
    ops = program.global_block().ops
    return sum(len(op.input("X")) for op in ops if op.type == "send") + sum(
        len(op.output("Out")) for op in ops if op.type == "recv"
    )


def measure(run, config):
    processes = json.loads(sys.stdin.readline())
    for step in range(config["warm"]):
        run(step)
    step_ms, before = [], cpu_seconds(processes)
    for step in range(config["steps"]):
        began = time.perf_counter()
        loss = run(step)
        step_ms.append(1e3 * (time.perf_counter() - began))
    after = cpu_seconds(processes)
    return {"step_ms": step_ms, "cpu_s": [b - a for a, b in zip(before, after)], "loss": float(np.ravel(loss[0])[0])}


def main():
    config = json.loads(sys.argv[1])
    fluid = importlib.import_module(config["module"])
    index, sync = config["index"], config["mode"] == "sync"
    loss, feeds = models.build(fluid, config["model"], config["size"], 7 + index, config.get("compute_s"))
    moved = models.bytes_of_step(fluid.default_main_program(), config["model"])
    exe = fluid.Executor(fluid.CPUPlace())
    program = fluid.default_main_program()
    meet = None
    if config["mode"] == "alone":
        meet = meeting(config)
    else:
        program = transpiled(fluid, config, sync)
        if config["role"] == "pserver":
            exe.run(program[1])
            exe.run(program[0])
            return
    exe.run(fluid.default_startup_program())

    def run(step):
        if meet:
            meet()
        fetched = exe.run(program, feed=feeds[step % len(feeds)], fetch_list=[loss])
        if meet:
            meet()
        return fetched

    result = measure(run, config)
    result.update(bytes=moved, calls=calls_of_step(program))
    print("RESULT " + json.dumps(result), flush=True)
    sys.stdin.read()
    exe.close()


def meeting(config):
    """Returns a function that waits for all trainers."""
    endpoints = config["trainer_endpoints"]
    os.environ.update(
        PADDLE_TRAINER_ID=str(config["index"]),
        PADDLE_TRAINER_ENDPOINTS=",".join(endpoints),
        PADDLE_CURRENT_ENDPOINT=endpoints[config["index"]],
        PADDLE_TRAINERS_NUM=str(len(endpoints)),
    )
    hvd = importlib.import_module("penstock.hvd")
    hvd.init()
    return hvd.barrier


def transpiled(fluid, config, sync):
    """The program of a trainer, or the program and the startup program of a pserver."""
    index = config["index"]
    settings = fluid.DistributeTranspilerConfig()
    if "chunk_bytes" in config:
        settings.chunk_bytes = config["chunk_bytes"]
    if config["mode"] == "hybrid":
        settings.exchange = {"dense": "allreduce", "sparse": "pserver"}
    elif config["mode"] == "collective":
        settings.mode, settings.collective_mode = "collective", "grad_allreduce"
    else:
        settings.sync_mode = sync
    rings = config["mode"] in ("hybrid", "collective")
    t = fluid.DistributeTranspiler(config=settings)
    trainer = index if config["role"] == "trainer" else 0
    t.transpile(
        trainer,
        pservers=",".join(config["endpoints"]),
        trainers=",".join(config["trainer_endpoints"]) if rings else config["trainers"],
        sync_mode=None if rings else sync,
        current_endpoint=config["trainer_endpoints"][trainer] if rings else "127.0.0.1:6174",
    )
    if config["role"] == "pserver":
        return t.get_pserver_programs(config["endpoints"][index])
    return t.get_trainer_program()


if __name__ == "__main__":
    main()
