"""Writes the random programs and role programs of one side; runs under Fluid's Python 3.7 and under Penstock's Python.

    python side.py fluid|penstock --first-seed 1 --count 50 --jobs 2 --out FOLDER

FOLDER gets the layout of a corpus: open/programs/ID and, on Fluid's side, open/cases/ID@jobK.
"""

import argparse
import json
import os
import sys
import traceback

import jobs
from dice import Dice
from network import Generator


def write_program(fluid_side, program, path):
    if fluid_side:
        for block in program.blocks:
            for op in block.ops:
                if op.desc.has_attr("op_callstack"):
                    op.desc.remove_attr("op_callstack")
    with open(path, "wb") as file:
        file.write(program.desc.serialize_to_string())


class Build:
    """Builds the programs of one seed from scratch."""

    def __init__(self, fluid, seed):
        if hasattr(fluid.framework, "_name_scope"):  # an exception leaves Fluid where it was raised
            fluid.framework._name_scope = fluid.framework.NameScope()
            fluid.framework.switch_device(None)
        self.main, self.startup = fluid.Program(), fluid.Program()
        with fluid.program_guard(self.main, self.startup), fluid.unique_name.guard():
            self.generator = Generator(fluid, seed)
            self.loss, self.before, self.after, self.pairs = self.generator.build()


def facts(build):
    """The facts that a program of Fluid does not contain, as a program.json."""
    distributed = set()
    for op in build.main.global_block().ops:
        if op.has_attr("is_distributed") and op.attr("is_distributed"):
            distributed.update(op.input("W"))
    return {
        "loss": build.loss.name,
        "feeds": build.generator.feeds,
        "random_seed": build.main.random_seed,
        "params": [
            {
                "name": p.name,
                "shape": [int(extent) for extent in p.shape],
                "trainable": bool(p.trainable),
                "is_distributed": p.name in distributed,
                "learning_rate": float(p.optimize_attr["learning_rate"]),
            }
            for p in build.main.global_block().all_parameters()
        ],
        "params_grads": build.pairs,
    }


def failure(error):
    """A short description of an exception."""
    return {
        "type": type(error).__name__,
        "message": str(error).strip()[-600:],
        "where": traceback.format_exc().strip().splitlines()[-4:],
    }


def write_json(value, path):
    with open(path, "w") as file:
        json.dump(value, file, indent=1, sort_keys=True)


def write_programs(fluid, side, seed, folder):
    """Writes the programs for one machine; returns whether they could be made."""
    os.makedirs(folder, exist_ok=True)
    try:
        build = Build(fluid, seed)
    except Exception as error:  # pylint: disable=broad-except
        write_json(failure(error), os.path.join(folder, "error.json"))
        return None
    for name in ("main", "startup", "before", "after"):
        program = getattr(build, name)
        if program is not None:
            write_program(side == "fluid", program, os.path.join(folder, name + ".pb"))
    write_json(facts(build), os.path.join(folder, "program.json"))
    return build


def config_of(fluid, job):
    config = fluid.DistributeTranspilerConfig()
    config.slice_var_up = job["slice_var_up"]
    if job["config_sync_mode"] is not None:
        config.sync_mode = job["config_sync_mode"]
    for name in ("runtime_split_send_recv", "half_async", "completely_not_async", "enable_dc_asgd"):
        if job[name]:
            setattr(config, name, True)
    if job["kind"] == "geo":
        config.geo_sgd_mode = True
        config.geo_sgd_need_push_nums = job["geo_sgd_need_push_nums"]
    return config


def transpiled(fluid, seed, job, trainer):
    """(transpiler, build), after transpile() as one process of the job calls it."""
    build = Build(fluid, seed)
    config = config_of(fluid, job)
    endpoints = ",".join(jobs.addresses(job["pservers"]))
    if job["kind"] == "geo":
        transpiler = fluid.transpiler.GeoSgdTranspiler(config)
        given = {"sync_mode": False}
    else:
        transpiler = fluid.DistributeTranspiler(config)
        given = {"sync_mode": job["sync_mode"]}
    transpiler.config.min_block_size = job["min_block_size"]
    with fluid.program_guard(build.main, build.startup):
        transpiler.transpile(
            trainer,
            program=build.main,
            pservers=endpoints,
            trainers=job["trainers"],
            startup_program=build.startup,
            **given,
        )
    return transpiler, build


def write_roles(fluid, seed, job, folder):
    """Fluid's role programs, each from a separate build, as in separate processes: (files, errors)."""
    files, errors = {}, {}

    def keep(name, program):
        write_program(True, program, os.path.join(folder, name))
        files[name] = {"file": name}

    # 1.8.5 compares an op's type with a list, so that no distributed table can be transpiled; the corpus's tables
    # were also made with this correction.
    from paddle.fluid.transpiler import distribute_transpiler

    distributed = Build(fluid, seed).generator.distributed
    distribute_transpiler.LOOKUP_TABLE_TYPE = "lookup_table" if distributed else ["lookup_table", "lookup_table_v2"]
    for trainer in job["trainer_ids"]:
        suffix = "" if trainer == job["trainer_ids"][0] else f"_t{trainer}"
        try:
            transpiler, build = transpiled(fluid, seed, job, trainer)
            keep(f"trainer{suffix}.pb", transpiler.get_trainer_program(wait_port=False))
            keep(f"trainer_startup{suffix}.pb", build.startup)
        except Exception as error:  # pylint: disable=broad-except
            errors["trainer" + suffix] = failure(error)
    for k, address in enumerate(jobs.addresses(job["pservers"])):
        try:
            transpiler, _ = transpiled(fluid, seed, job, 0)
            program = transpiler.get_pserver_program(address)
            startup = transpiler.get_startup_program(address, program)
            keep(f"pserver_{k}.pb", program)
            keep(f"pserver_startup_{k}.pb", startup)
        except Exception as error:  # pylint: disable=broad-except
            errors[f"pserver_{k}"] = failure(error)
    return files, errors


def write_cases(fluid, seed, count, program, root):
    dice = Dice(seed * 1000003)
    for k in range(count):
        job = jobs.settings(dice)
        folder = os.path.join(root, "open", "cases", f"{program}@job{k}")
        os.makedirs(folder, exist_ok=True)
        files, errors = write_roles(fluid, seed, job, folder)
        write_json(
            {
                "config": job,
                "program": program,
                "files": files,
                "expected_errors": errors,
                "pserver_endpoints": jobs.addresses(job["pservers"]),
            },
            os.path.join(folder, "case.json"),
        )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("side", choices=("fluid", "penstock"))
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", required=True)
    given = parser.parse_args()
    if given.side == "fluid":
        import paddle.fluid as fluid
    else:
        import penstock.fluid as fluid
    for seed in range(given.first_seed, given.first_seed + given.count):
        program = f"seed_{seed}"
        build = write_programs(fluid, given.side, seed, os.path.join(given.out, "open", "programs", program))
        if build is not None and given.side == "fluid":
            write_cases(fluid, seed, given.jobs, program, given.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
