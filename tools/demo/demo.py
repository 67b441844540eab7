"""Runs digits.py with two pservers and two trainers, then on one machine, and compares the results.

Exit code 0 if all reach ACCURACY and no parameter differs by more than TOLERANCE; 1 otherwise. Two runs of one
machine are compared: one that shares each batch between two places, after the last step, and one that computes whole
batches, after the first steps. The latter adds gradients in another order, so they differ in their last bits. After
some dozen steps, such a difference decides on which side of 0 an input of a ReLU lies, or which input of a pool is
the largest.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys

import numpy as np
from digits import FIRST_STEPS

HERE = pathlib.Path(__file__).resolve().parent
SCRIPT = HERE / "digits.py"
ACCURACY = 0.97
TOLERANCE = 1e-4


def write_programs(out):
    """Saves the single-machine programs, and transpiles them with the command-line tool for inspection."""
    build = (
        "import sys; sys.path.insert(0, sys.argv[1]); import digits, penstock.fluid as fluid\n"
        "fluid.default_main_program().random_seed = fluid.default_startup_program().random_seed = 1\n"
        "loss, _ = digits.network(); fluid.optimizer.Momentum(0.01, 0.9).minimize(loss)\n"
        "for name, p in (('main', fluid.default_main_program()), ('startup', fluid.default_startup_program())):\n"
        "    open(f'{sys.argv[2]}/{name}.pb', 'wb').write(p.desc.serialize_to_string())\n"
    )
    programs = out / "programs"
    programs.mkdir(parents=True, exist_ok=True)
    subprocess.run([sys.executable, "-c", build, str(HERE), str(programs)], check=True)
    config = {
        "config": {
            "kind": "pserver",
            "sync_mode": True,
            "pservers": 2,
            "trainers": 2,
            "trainer_ids": [0, 1],
            "split_method": "RoundRobin",
            "slice_var_up": True,
            "min_block_size": 8192,
        },
        "pserver_endpoints": ["127.0.0.1:6174", "127.0.0.1:6175"],
    }
    (programs / "case.json").write_text(json.dumps(config, indent=1))
    penstock = pathlib.Path(sys.executable).with_name("penstock")
    subprocess.run(
        [
            penstock,
            "transpile",
            "--main",
            programs / "main.pb",
            "--startup",
            programs / "startup.pb",
            "--config",
            programs / "case.json",
            "--out",
            programs,
        ],
        check=True,
    )
    subprocess.run([penstock, "check", programs], check=True)
    return programs


def run(title, command):
    print(f"\n== {title}", flush=True)
    # One thread per process, so that all compute their shares of a batch alike.
    if subprocess.run(command, env=dict(os.environ, OMP_NUM_THREADS="1")).returncode != 0:
        sys.exit(f"demo: {title}: failed")


def print_curves(distributed, single, rows=12):
    """Prints both loss curves side by side as numbers and bars, for some of the steps."""
    losses = [
        ("2 pservers x 2 trainers", np.mean([run["losses"] for run in distributed], axis=0)),
        ("one machine", np.asarray(single["losses"])),
    ]
    top = max(float(np.max(values)) for _, values in losses)
    print("\n== loss by step (mean over trainers)")
    print(f"  {'step':>5}  " + "  ".join(f"{name:<34}" for name, _ in losses))
    for step in np.unique(np.linspace(0, len(losses[0][1]) - 1, rows).astype(int)):
        cells = [f"{values[step]:<8.4f}{'#' * int(round(25 * values[step] / top)):<26}" for _, values in losses]
        print(f"  {step + 1:>5}  " + "  ".join(cells))


def compare_parameters(title, distributed, single):
    """Prints max|a - b| / max|a| of each parameter; returns the largest."""
    print(f"\n== largest difference of each parameter, relative to its largest value: {title}")
    worst = 0.0
    for name in sorted(single.files):
        a, b = single[name], distributed[name]
        difference = float(np.max(np.abs(a - b)) / np.max(np.abs(a)))
        worst = max(worst, difference)
        print(f"  {name:<16} {str(list(a.shape)):<16} {difference:.2e}")
    return worst


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("build/demo"))
    parser.add_argument("--epochs", type=int, default=12)
    options = parser.parse_args()
    out = options.out
    out.mkdir(parents=True, exist_ok=True)

    print("== the program, transpiled: who holds what")
    programs = write_programs(out)
    print((programs / "plan.txt").read_text(), end="")

    epochs = ["--epochs", str(options.epochs)]
    run(
        "2 pservers and 2 trainers train it (logs in " + str(out / "logs") + ")",
        [
            sys.executable,
            "-m",
            "penstock.distributed.launch",
            "--server_num",
            "2",
            "--worker_num",
            "2",
            "--log_dir",
            str(out / "logs"),
            str(SCRIPT),
            "--out",
            str(out),
            *epochs,
        ],
    )
    run(
        "one machine trains it, on the joined batches",
        [sys.executable, str(SCRIPT), "--out", str(out), "--single", "--start", str(out / "initial.npz"), *epochs],
    )
    run(
        "one machine trains it, each batch shared between two places",
        [
            sys.executable,
            str(SCRIPT),
            "--out",
            str(out),
            "--single",
            "--start",
            str(out / "initial.npz"),
            *epochs,
            "--places",
            "2",
        ],
    )

    distributed = [json.loads((out / f"trainer_{i}.json").read_text()) for i in range(2)]
    single = json.loads((out / "single.json").read_text())
    print_curves(distributed, single)
    places = json.loads((out / "places.json").read_text())
    worst = max(
        compare_parameters("two places, the last step", np.load(out / "trainer_0.npz"), np.load(out / "places.npz")),
        compare_parameters(
            f"whole batches, step {FIRST_STEPS}",
            np.load(out / "trainer_0_first_steps.npz"),
            np.load(out / "single_first_steps.npz"),
        ),
    )
    accuracies = {
        "2 pservers x 2 trainers": distributed[0]["accuracy"],
        "one machine": single["accuracy"],
        "one machine, 2 places": places["accuracy"],
    }
    print("\n== accuracy on 360 images not trained on")
    for name, accuracy in accuracies.items():
        print(f"  {name:<26} {accuracy:.4f}")

    relative = os.path.relpath(programs)
    print(f"""
== what to look at next
  the serialized programs lie in {relative}
  .venv/bin/penstock show {relative}/trainer.pb        what a trainer runs
  .venv/bin/penstock show {relative}/pserver_0.pb      what a pserver runs
  .venv/bin/penstock check {relative}                  proves that the roles fit together
  your own script: .venv/bin/python -m penstock.distributed.launch --server_num 2 --worker_num 2 train.py""")
    failures = [
        f"accuracy of {name} is {value:.4f}, below {ACCURACY}" for name, value in accuracies.items() if value < ACCURACY
    ]
    if worst > TOLERANCE:
        failures.append(f"a parameter differs by {worst:.2e}, above {TOLERANCE:.0e}")
    for failure in failures:
        print(f"demo: FAILED: {failure}")
    if not failures:
        print(f"demo: all reach {ACCURACY}, and no parameter differs by more than {worst:.2e}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
