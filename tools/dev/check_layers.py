#!/usr/bin/env python3
"""Reads every include and import and checks that it follows the arrows between the folders.

  tools/dev/check_layers.py        prints each include that goes against them; exit code 1 if there is one

Top level: operators, transpiler and executor include framework alone, never each other; tools, python and tests include
anything. Inside a top folder the folders form a list: a folder includes itself and what stands before it. Folders that
share a place in the list stand side by side and do not include each other.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]

MAY_INCLUDE = {
    "framework": {"framework"},
    "operators": {"framework", "operators"},
    "transpiler": {"framework", "transpiler"},
    "executor": {"framework", "executor"},
}

# Within a top folder: each sub-folder and those it may use beside itself.
FRAMEWORK_ORDER = ["base", "proto", "tensor", "ir", "runtime", "op", "text", "verify", "autodiff"]
TRANSPILER_ORDER = ["plan", "passes", "check", "memory", "pipeline"]
EXECUTOR_ORDER = ["graph", "schedule", "table", "pserver", "client", "rpc"]
OPERATOR_FAMILIES = {
    "collective", "control_flow", "distributed", "io", "loss", "math", "nn", "optimizer", "random", "sequence",
    "tensor",
}
OPERATORS_ORDER = ["common", "cuda", OPERATOR_FAMILIES]
ORDER = {
    "framework": FRAMEWORK_ORDER,
    "operators": OPERATORS_ORDER,
    "transpiler": TRANSPILER_ORDER,
    "executor": EXECUTOR_ORDER,
}

# Headers of libraries that are slow to compile or that only one layer may know.
ONLY_IN_SOURCES = re.compile(r"(grpcpp|grpc|dnnl|Eigen)[/.h]")
# Families of operators may hand on a library that the ground floor wraps, inside their own folder.
SHARES_SLOW_HEADERS = pathlib.PurePath("operators/common")
NO_THREADS_OR_SOCKETS = re.compile(r"<(thread|sys/socket\.h|netinet/.*|grpcpp/.*|cuda.*)>")

INCLUDE = re.compile(r'^\s*#\s*include\s+(["<][^">]+[">])', re.M)


def findings():
    includes = {}
    for path in sorted(ROOT.rglob("*")):
        relative = path.relative_to(ROOT)
        if relative.parts[0] in MAY_INCLUDE and path.suffix in {".h", ".cc", ".cu"}:
            includes[relative] = INCLUDE.findall(path.read_text())
    slow = slow_headers(includes)
    for relative, names in includes.items():
        for included in names:
            yield from check(relative, included, slow)


def slow_headers(includes):
    """Headers that bring in a library of ONLY_IN_SOURCES, directly or not. They stay inside their folder."""
    slow = set()
    while True:
        found = {
            str(path)
            for path, names in includes.items()
            if path.suffix == ".h" and any(ONLY_IN_SOURCES.match(n[1:-1]) or n[1:-1] in slow for n in names)
        }
        if found == slow:
            return slow
        slow = found


def check(relative, included, slow):
    top, name = relative.parts[0], included[1:-1]
    if relative.suffix == ".h":
        if ONLY_IN_SOURCES.match(name) and top == "framework":
            yield f"{relative}: {included} belongs in a source file, not in a header"
        if name in slow and pathlib.PurePath(name).parent not in (relative.parent, SHARES_SLOW_HEADERS):
            yield f"{relative}: {included} brings in a library for source files and headers of its own folder"
    if top in ("framework", "transpiler") and NO_THREADS_OR_SOCKETS.match(included):
        if relative.parts[1] != "runtime":
            yield f"{relative}: {included}: {top} has no threads, sockets or CUDA calls"
    target = name.split("/")[0]
    if included[0] != '"' or target not in {*MAY_INCLUDE, "tools", "python", "tests"}:
        return
    if target not in MAY_INCLUDE[top]:
        yield f"{relative}: includes {name}; {top} may include {', '.join(sorted(MAY_INCLUDE[top]))}"
        return
    order = ORDER.get(top)
    if target != top or order is None or len(relative.parts) < 3:
        return
    if name.count("/") < 2:
        if top == "operators":
            yield f"{relative}: includes {name}; what families share stands in operators/common"
        return
    here, there = relative.parts[1], name.split("/")[1]
    if place(order, here) is None or place(order, there) is None:
        yield f"{relative}: folder {there if place(order, here) is not None else here} is not in the order of {top}"
    elif place(order, there) > place(order, here):
        yield f"{relative}: includes {name}; {there} stands after {here} in the order of {top}"
    elif there != here and place(order, there) == place(order, here):
        yield f"{relative}: includes {name}; {there} stands beside {here} in the order of {top}"


def place(order, folder):
    """Where the folder stands in the order; None if it does not."""
    for index, entry in enumerate(order):
        if folder == entry or isinstance(entry, set) and folder in entry:
            return index
    return None


def main():
    found = list(findings())
    for line in found:
        print(line)
    print(f"check_layers: {len(found)} includes against the arrows")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
