"""Builds random programs with Fluid 1.8.5 and with Penstock, and compares them op by op.

    python tests/parity/random/compare.py --seed 1 --count 500 --jobs 1

Runs under Penstock's Python. Fluid's is $PENSTOCK_FLUID_PYTHON, or python3.7 on the PATH, with paddlepaddle 1.8.5.
"""

import argparse
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

import canon
import listed

HERE = os.path.dirname(os.path.abspath(__file__))
SKIPPED = 77
NAMES = ("main", "startup", "before", "after")


def fluids_python():
    """The interpreter that has Fluid 1.8.5, or None."""
    python = os.environ.get("PENSTOCK_FLUID_PYTHON") or shutil.which("python3.7")
    if python is None:
        return None
    asked = [python, "-c", "import paddle, paddle.fluid; print(paddle.__version__)"]
    try:
        made = subprocess.run(asked, capture_output=True, text=True, timeout=120, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return python if made.returncode == 0 and made.stdout.strip().endswith("1.8.5") else None


def write_side(python, side, first, count, jobs, out):
    """Starts the process that writes one side."""
    command = [
        python,
        "-W",
        "ignore",
        os.path.join(HERE, "side.py"),
        side,
        "--first-seed",
        str(first),
        "--count",
        str(count),
        "--jobs",
        str(jobs),
        "--out",
        out,
    ]
    environment = dict(os.environ, PYTHONHASHSEED="0")
    if side == "fluid":
        environment.pop("PYTHONPATH", None)
    with open(os.path.join(out, side + f"_{first}.log"), "w") as log:
        return subprocess.Popen(command, env=environment, stdout=log, stderr=log)


def read_json(path):
    with open(path) as file:
        return json.load(file)


def lines_of(fluid, path):
    with open(path, "rb") as file:
        return canon.lines_of(fluid.Program.parse_from_string(file.read()))


def first_difference(theirs, ours):
    """The first lines that differ, '' after the end of a program; None if the programs are equal."""
    for k in range(max(len(theirs), len(ours))):
        pair = [lines[k] if k < len(lines) else "" for lines in (theirs, ours)]
        if pair[0] != pair[1]:
            return pair
    return None


def shortened(theirs, ours):
    """Both lines, from shortly before the first difference."""
    k = len(os.path.commonprefix([theirs, ours]))
    head = theirs.find("<-")
    kind = theirs[head : theirs.find("(", head)] if head >= 0 else ""
    k = max(0, k - 60)
    return [f"{kind} ... {line[k : k + 230]}" for line in (theirs, ours)] if k else [theirs[:260], ours[:260]]


def tool():
    """The command `penstock` that belongs to the package."""
    import penstock

    package = os.path.dirname(os.path.abspath(penstock.__file__))
    near = [os.path.join(package, "bin", "penstock"), os.path.join(package, "..", "..", "tools", "penstock")]
    return os.environ.get("PENSTOCK_TOOL") or next((path for path in near if os.path.exists(path)), "penstock")


def run_tool(*arguments):
    return subprocess.run([tool()] + list(arguments), capture_output=True, text=True, timeout=300, check=False)


def error_ids(text):
    return sorted(set(re.findall(r"\[(E-[\w-]+)\]", text))) or [text.strip()[-200:]]


def compare_job(fluid, case, ours, tally):
    """Compares one job: Fluid's role programs with compat's, and whether the default set passes its proof."""
    name, job = os.path.basename(case), read_json(os.path.join(case, "case.json"))
    sources = ["--main", os.path.join(ours, "main.pb"), "--startup", os.path.join(ours, "startup.pb")]
    given = sources + ["--config", os.path.join(case, "case.json")]
    made = tempfile.mkdtemp()
    done = run_tool("transpile", "--compat", "fluid-1.8", *given, "--out", made)
    if done.returncode != 0:
        if job["files"]:
            tally.add("compat refuses " + ", ".join(error_ids(done.stderr)), name, "  " + done.stderr.strip()[:600])
        else:
            tally.add("role sets refused by both", name)
    else:
        compare_roles(fluid, case, job, made, name, tally)
    shutil.rmtree(made)
    done = run_tool("transpile", *given, "--out", made)
    if done.returncode != 0:
        tally.add("default refuses " + ", ".join(error_ids(done.stderr)), name, "  " + done.stderr.strip()[:600])
    else:
        checked = run_tool("check", made, *sources)
        text = checked.stdout + checked.stderr
        if checked.returncode != 0:
            tally.add("default fails its proof: " + ", ".join(error_ids(text)), name, "  " + text[:600])
        else:
            tally.add("default sets that pass", name)
    shutil.rmtree(made, ignore_errors=True)


def compare_roles(fluid, case, job, made, name, tally):
    met = set()
    for role in sorted(job["files"]):
        theirs, ours = lines_of(fluid, os.path.join(case, role)), lines_of(fluid, os.path.join(made, role))
        difference = first_difference(*listed.without(theirs, ours, met))
        if difference:
            tally.add(
                "role files different",
                name,
                "  {}\n  Fluid:    {}\n  Penstock: {}".format(role, *shortened(*difference)),
            )
            return
    if job["files"]:
        tally.add("role sets equal", name)
    else:
        tally.add("role sets that Fluid cannot make", name)


class Tally:
    def __init__(self):
        self.counts, self.lines = {}, []

    def add(self, what, seed, detail=""):
        self.counts.setdefault(what, []).append(seed)
        if detail:
            self.lines.append(f"seed {seed}: {what}\n{detail}")


def compare_program(fluid, seed, theirs, ours, tally):
    """Compares one seed's programs for one machine."""
    errors = [os.path.exists(os.path.join(folder, "error.json")) for folder in (theirs, ours)]
    if errors[0]:
        error = read_json(os.path.join(theirs, "error.json"))
        tally.add("refused by both" if errors[1] else "refused by Fluid", seed)
        tally.counts.setdefault("reasons", []).append(error["message"][-160:].replace("\n", " "))
        return False
    if errors[1]:
        error = read_json(os.path.join(ours, "error.json"))
        tally.add("refused by Penstock", seed, f"  {error['type']}: {error['message']}\n  {error['where']}")
        return False
    met = set()
    for name in NAMES:
        paths = [os.path.join(folder, name + ".pb") for folder in (theirs, ours)]
        if not os.path.exists(paths[0]):
            continue
        both = [lines_of(fluid, path) for path in paths]
        difference = first_difference(*listed.without(*both, met))
        if difference:
            entries = listed.not_compared(*both)
            if entries:
                tally.add("changed as listed by " + ", ".join(entries), seed)
                return False
            tally.add("different", seed, "  {}\n  Fluid:    {}\n  Penstock: {}".format(name, *shortened(*difference)))
            return False
    facts = [read_json(os.path.join(folder, "program.json")) for folder in (theirs, ours)]
    for key in facts[0]:
        if facts[0][key] != facts[1][key]:
            tally.add(
                "different",
                seed,
                "  facts, {}\n  Fluid:    {}\n  Penstock: {}".format(
                    key, *shortened(str(facts[0][key]), str(facts[1][key]))
                ),
            )
            return False
    tally.add("equal but for " + ", ".join(sorted(met)) if met else "equal", seed)
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=0, help="role program sets per program")
    parser.add_argument("--keep", help="a folder for what both wrote")
    given = parser.parse_args()
    python = fluids_python()
    if python is None:
        print("skipped: no Python with paddlepaddle 1.8.5; set PENSTOCK_FLUID_PYTHON")
        return SKIPPED
    import penstock.fluid as fluid

    out = given.keep or tempfile.mkdtemp()
    folders = {side: os.path.join(out, side) for side in ("fluid", "penstock")}
    for folder in folders.values():
        os.makedirs(folder, exist_ok=True)
    running = [
        write_side(python, "fluid", given.seed, given.count, given.jobs, folders["fluid"]),
        write_side(sys.executable, "penstock", given.seed, given.count, 0, folders["penstock"]),
    ]
    for process in running:
        if process.wait() != 0:
            sys.exit("a side failed; see the logs in " + out)
    tally = Tally()
    for seed in range(given.seed, given.seed + given.count):
        folder = os.path.join("open", "programs", f"seed_{seed}")
        ours = os.path.join(folders["penstock"], folder)
        if compare_program(fluid, seed, os.path.join(folders["fluid"], folder), ours, tally):
            pattern = os.path.join(folders["fluid"], "open", "cases", f"seed_{seed}@job*")
            for case in sorted(glob.glob(pattern)):
                compare_job(fluid, case, ours, tally)
    reasons = tally.counts.pop("reasons", [])
    for line in tally.lines:
        print(line)
    for reason in sorted(set(reasons)):
        print(f"  {reasons.count(reason)} of Fluid: {reason}")
    for what, seeds in sorted(tally.counts.items()):
        print(f"{len(seeds):4d} {what}")
    if not given.keep:
        shutil.rmtree(out)
    bad = ("different", "refused by Penstock", "role files different")
    return 1 if any(what in bad or what.startswith("default fails") for what in tally.counts) else 0


if __name__ == "__main__":
    sys.exit(main())
