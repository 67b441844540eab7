#!/usr/bin/env python3
"""Checks that each error id has one status code, and that golden files show all findings and errors of the transpiler.

  tools/dev/check_error_texts.py        prints each id that violates this; exit code 1 if there is one

Ids are quoted words in the sources, such as "E-plan-trainer-id". Ids of InternalError are exempt, because they are our
bugs, which no test input reaches. All others must occur in a golden file as "[id]"; EXCEPT lists ids that a golden file
cannot show, with their test.

Code that catches an error by its id relies on the status code, so an error with another code needs another id.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = ["transpiler", "tools/case"]
EXCEPT = {
    "E-parallel-accumulate": "tests/python/test_hvd_programs.py",
    "E-parallel-adasum": "tests/python/test_hvd_programs.py",
    "E-pass-uneven-loss": "tests/python/test_uneven.py",
    "E-parallel-sync": "tests/unit/pipeline/data_parallel_test.cc",
    "E-parallel-twice": "tests/python/test_compiled_programs.py",
    "E-job-size": "tests/property/cost/cost_test.cc",
    "E-plan-dispatcher": "tests/python/test_placement.py",
    "E-plan-programs": "tests/python/test_several_programs.py",
    "E-roles-folder": "tests/unit/tools/plan_cli_test.cc",
    "E-roles-missing": "tests/unit/tools/diff_cli_test.cc",
    "E-roles-startup": "tests/unit/tools/diff_cli_test.cc",
    "E-roles-twice": "tests/unit/tools/diff_cli_test.cc",
}
ID = re.compile(r'(InternalError\(\s*)?"([EWN]-[a-z]+(?:-[a-z0-9]+)*)"')


CODED_FOLDERS = ["framework", "operators", "executor", "transpiler", "tools", "python"]
CODES = (
    "Cancelled",
    "InvalidArgument",
    "DeadlineExceeded",
    "Unimplemented",
    "FailedPrecondition",
    "InternalError",
    "Unavailable",
    "DataLoss",
)
# InvalidArgument("E-x", or Status(StatusCode::kInvalidArgument, "E-x", with several codes if it chooses one.
MADE = re.compile(r'\b({})\(\s*"(E-[a-z0-9-]+)"'.format("|".join(CODES)))
SPELLED = re.compile(r'\bStatus\(([^;"]*StatusCode::k[^;"]*)"(E-[a-z0-9-]+)"')
NAMED = re.compile(r'\bchar (k\w+)\[\] = "(E-[a-z0-9-]+)"')
IN_PYTHON = re.compile(r"\bprogram_error\(\s*'(E-[a-z0-9-]+)'")


def codes_in(path, text):
    """(id, code) of each error that a source text creates."""
    if path.suffix == ".py":
        for found in IN_PYTHON.finditer(text):
            yield found[1], "InvalidArgument"
        return
    for found in MADE.finditer(text):
        yield found[2], found[1]
    for found in SPELLED.finditer(text):
        for code in re.findall(r"StatusCode::k(\w+)", found[1]):
            yield found[2], "InternalError" if code == "Internal" else code
    for constant in NAMED.finditer(text):
        for found in re.finditer(f"\\b({'|'.join(CODES)})\\(\\s*{constant[1]}\\b", text):
            yield constant[2], found[1]


def ids_of_two_codes(root=ROOT):
    codes = {}
    for folder in CODED_FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix not in {".cc", ".h", ".cu", ".cuh", ".py"} or not path.is_file():
                continue
            for id_, code in codes_in(path, path.read_text()):
                codes.setdefault(id_, {}).setdefault(code, path.relative_to(root))
    if not codes:
        yield "no error found: are the patterns right?"
    for id_, made in sorted(codes.items()):
        if len(made) > 1:
            yield f"{id_} has several codes: " + ", ".join(f"{code} ({path})" for code, path in sorted(made.items()))


def findings():
    shown = "".join(path.read_text() for path in sorted((ROOT / "tests/golden").rglob("*.golden")))
    ids = {}
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in {".cc", ".h"}:
                for found in ID.finditer(path.read_text()):
                    if not found[1]:
                        ids.setdefault(found[2], path.relative_to(ROOT))
    if not ids:
        yield "no id found: is the pattern right?"
    for id_, path in sorted(ids.items()):
        if id_ in EXCEPT:
            test = ROOT / EXCEPT[id_]
            if not test.exists() or id_ not in test.read_text():
                yield f"{id_} ({path}): {EXCEPT[id_]} does not name it"
        elif f"[{id_}]" not in shown:
            yield f"{id_} ({path}): no golden file shows it"


def main():
    found = [*findings(), *ids_of_two_codes()]
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
