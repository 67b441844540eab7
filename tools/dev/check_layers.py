#!/usr/bin/env python3
"""Checks that every include follows the arrows between the folders.

  tools/dev/check_layers.py        prints each include that violates them; exit code 1 if there is one

Top level: operators, transpiler and executor include only framework, never each other; tools, python and tests include
anything. Inside a folder of ORDER the sub-folders are ordered: a sub-folder may include itself and those before it in
the list. Sub-folders in braces do not include each other. Files of the folder itself may include any of them.
Files of transpiler/passes do not name the dialect.
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

# Folder -> its sub-folders, each after those that it may include.
ORDER = {
    "framework": [
        "base",
        "vector",
        "proto",
        "tensor",
        "ir",
        "wire",
        "runtime",
        "op",
        "text",
        "roles",
        "verify",
        "autodiff",
    ],
    "operators": [
        "common",
        "cuda",
        {
            "collective",
            "control_flow",
            "detection",
            "distributed",
            "io",
            "loss",
            "math",
            "nn",
            "optimizer",
            "random",
            "recommend",
            "sequence",
            "tensor",
            "vision",
        },
    ],
    "transpiler": ["plan", "cost", "passes", {"check", "memory"}, "pipeline"],
    "transpiler/passes": ["spell", {"trainer", "pserver", "ranks"}],
    "transpiler/check": ["facts", {"rules", "meaning"}],
    "executor": [
        "dataset",
        "observe",
        "graph",
        "plan",
        "schedule",
        "table",
        "checkpoint",
        "protocol",
        "transport",
        "kvstore",
        {"pserver", "client", "collective"},
        "communicator",
        "process",
    ],
    "executor/pserver": ["machine", {"memory", "service"}],
    "executor/collective": ["group", {"arena", "ring"}, {"gloo", "hierarchy", "mpi", "nccl"}, "rendezvous"],
}

# Libraries that only source files include: their headers are slow to compile, or only one layer may depend on them.
ONLY_IN_SOURCES = re.compile(r"(grpcpp|grpc|dnnl|Eigen)[/.h]")
# Headers of other folders may include those headers of this folder that include such a library.
SHARES_SLOW_HEADERS = pathlib.PurePath("operators/common")
NO_THREADS_OR_SOCKETS = re.compile(r"<(thread|sys/socket\.h|netinet/.*|grpcpp/.*|cuda.*)>")

# Passes read what the plan decides, never how it was made.
DIALECT = re.compile(r"\bdialect\b", re.I)

INCLUDE = re.compile(r'^\s*#\s*include\s+(["<][^">]+[">])', re.M)


def findings():
    includes = {}
    for path in sorted(ROOT.rglob("*")):
        relative = path.relative_to(ROOT)
        if relative.parts[0] in MAY_INCLUDE and path.suffix in {".h", ".cc", ".cu"}:
            text = path.read_text()
            includes[relative] = INCLUDE.findall(text)
            if relative.is_relative_to("transpiler/passes") and DIALECT.search(text):
                yield f"{relative}: a pass names the dialect; it reads plan.conventions()"
    slow = slow_headers(includes)
    for relative, names in includes.items():
        for included in names:
            yield from check(relative, included, slow)


def slow_headers(includes):
    """Headers that include a library of ONLY_IN_SOURCES, directly or not; only their own folder may include them."""
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
    if top == target == "operators" and name.count("/") < 2 and len(relative.parts) > 2:
        yield f"{relative}: includes {name}; what families share stands in operators/common"
    for folder, order in ORDER.items():
        yield from check_order(relative, pathlib.PurePath(name), folder, order)


def check_order(relative, included, folder, order):
    """The violation of the order of sub-folders by an include within one folder, if any."""
    depth = len(pathlib.PurePath(folder).parts)
    if not all(str(path).startswith(f"{folder}/") and len(path.parts) > depth + 1 for path in (relative, included)):
        return
    here, there = relative.parts[depth], included.parts[depth]
    if here == there:
        return
    level = {name: i for i, names in enumerate(order) for name in (names if isinstance(names, set) else {names})}
    for name in (here, there):
        if name not in level:
            yield f"{relative}: folder {name} is not in the order of {folder}"
            return
    if level[there] > level[here]:
        yield f"{relative}: includes {included}; {there} stands after {here} in the order of {folder}"
    elif level[there] == level[here]:
        yield f"{relative}: includes {included}; {there} and {here} stand side by side in {folder}"


def main():
    found = list(findings())
    for line in found:
        print(line)
    print(f"check_layers: {len(found)} includes against the arrows")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
