"""front_end.py PARAMS PSERVERS REPEATS: prints the seconds to make all role programs through the Fluid API, as JSON.

FLUID_MODULE names the library (penstock.fluid, paddle.fluid). The time starts with a program after minimize and ends
with the serialized programs of the trainer and of every pserver and their startup programs; for Penstock it includes
the check of the set. `op_us` is the CPU time of building the program, including minimize, per op.
"""

import importlib
import json
import os
import sys
import time

fluid = importlib.import_module(os.environ["FLUID_MODULE"])


def build(params):
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup):
        x = fluid.data("x", [None, 8])
        y = fluid.data("y", [None, 1], dtype="int64")
        hidden = x
        for _ in range(params // 2 - 1):
            hidden = fluid.layers.fc(hidden, 8, act="relu")
        cost = fluid.layers.cross_entropy(fluid.layers.fc(hidden, 8, act="softmax"), y)
        fluid.optimizer.SGD(0.1).minimize(fluid.layers.mean(cost))
    return main, startup


def transpiler(main, startup, addresses):
    t = fluid.DistributeTranspiler()
    t.transpile(0, program=main, pservers=",".join(addresses), trainers=2, startup_program=startup)
    return t


def all_roles(main, startup, addresses):
    t = transpiler(main, startup, addresses)
    pservers = []
    for address in addresses:  # first, because Fluid's trainer program deletes the ops from which these are made
        program = t.get_pserver_program(address)
        pservers += [program, t.get_startup_program(address, program)]
    programs = [t.get_trainer_program(wait_port=False), startup] + pservers
    for program in programs:
        program.desc.serialize_to_string()


def main():
    params, pservers, repeats = (int(argument) for argument in sys.argv[1:4])
    addresses = [f"127.0.0.1:{6000 + i}" for i in range(pservers)]
    best = {"all_s": float("inf"), "all_cpu_s": float("inf"), "op_us": float("inf")}

    def note(name, value):
        best[name] = min(best[name], value)

    for _ in range(repeats):
        cpu_begin = time.process_time()
        program, startup = build(params)
        note("op_us", (time.process_time() - cpu_begin) / len(program.global_block().ops) * 1e6)
        begin, cpu_begin = time.perf_counter(), time.process_time()
        all_roles(program, startup, addresses)
        note("all_s", time.perf_counter() - begin)
        note("all_cpu_s", time.process_time() - cpu_begin)
    print(json.dumps(best))


if __name__ == "__main__":
    main()
