#!/usr/bin/env python3
"""Every finding and every error of the transpiler is shown by a test: its id stands in the text of a golden file.

  tools/dev/check_error_texts.py        prints each id that stands in none; exit code 1 if there is one

Ids are found as quoted words in the sources, such as "E-plan-trainer-id"; those of InternalError are our bugs, which no
text leads to. The others must stand in a golden file as "[id]"; EXCEPT lists those that need more than a text, with
their test.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = ["transpiler", "tools/case"]
EXCEPT = {
    "E-job-size": "tests/property/cost/cost_test.cc",
    "E-plan-dispatcher": "tests/python/test_placement.py",
    "E-roles-folder": "tests/unit/tools/plan_cli_test.cc",
    "E-roles-missing": "tests/unit/tools/diff_cli_test.cc",
    "E-roles-startup": "tests/unit/tools/diff_cli_test.cc",
    "E-roles-twice": "tests/unit/tools/diff_cli_test.cc",
}
ID = re.compile(r'(InternalError\(\s*)?"([EWN]-[a-z]+(?:-[a-z0-9]+)*)"')


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
    found = list(findings())
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
