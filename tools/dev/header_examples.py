#!/usr/bin/env python3
"""Writes C++ sources that compile the examples in the comments of headers: code that is indented by three spaces.

  tools/dev/header_examples.py OUT      OUT_framework.cc, OUT_executor.cc ...: a function for each example
  tools/dev/header_examples.py --check  exit code 1 if fewer than AT_LEAST examples are found, or names.tsv
                                        names an example that does not exist

An example is a paragraph of statements. Lines that begin with `...` tell what happens elsewhere and are left out;
`{ ... }` is an empty body. A paragraph with another `...`, or that ends within a statement, is no example.

tests/examples/names.tsv declares what examples take for granted. A line has the header, and one of

  any NAME ...        objects that convert to any type
  of TYPE: NAME ...   objects of a type
  code TEXT           declarations
  include HEADER      another header that the example needs
  outside N ...       the Nth examples of the header (from 1) are declarations of a namespace
  skip N REASON       the Nth example is not compiled
"""

import argparse
import collections
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
NAMES = ROOT / "tests" / "examples" / "names.tsv"
FOLDERS = ("framework", "operators", "transpiler", "executor", "tools")
AT_LEAST = 150  # a parser that finds nothing would pass
HEAD = """// Written by tools/dev/header_examples.py from the comments of headers.
#include "tests/examples/anything.h"
"""


def _paragraphs(text):
    """Yields (number of the first line, lines) of the indented paragraphs of comments."""
    lines, start = [], 0
    for number, line in enumerate([*text.splitlines(), ""], 1):
        found = re.match(r"\s*//(   +\S.*)$", line)
        if found:
            start = start if lines else number
            lines.append(found[1])
        elif lines:
            yield start, lines
            lines = []


def _statements(lines):
    """The code of a paragraph, or None if it is no whole statements."""
    kept = []
    for line in lines:
        code = re.sub(r'^((?:[^"/]|"(?:\\.|[^"])*"|/(?!/))*)//.*$', r"\1", line).rstrip()
        if code.strip() and not code.strip().startswith("..."):
            kept.append(re.sub(r"\{ \.\.\. \}", "{}", re.sub(r"\) \.\.\.$", ") {}", code)))
    code = "\n".join(kept)
    balanced = all(code.count(one) == code.count(other) for one, other in ("()", "{}", "[]"))
    whole = balanced and "..." not in code and re.search(r"[;}]$", code) and ";" in code
    return code if whole else None


def examples():
    """Returns {header: [(line, code)]}."""
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "*.h"], cwd=ROOT, capture_output=True)
    found = {}
    for name in sorted(set(listed.stdout.decode().split())):
        if name.split("/")[0] not in FOLDERS or not (ROOT / name).exists():
            continue
        paragraphs = [(line, _statements(lines)) for line, lines in _paragraphs((ROOT / name).read_text())]
        whole = [(line, code) for line, code in paragraphs if code]
        if whole:
            found[name] = whole
    return found


def taken_for_granted():
    """Returns {header: [(kind, text)]} of names.tsv."""
    rows = collections.defaultdict(list)
    for line in NAMES.read_text().splitlines():
        if line and not line.startswith("#"):
            header, said = line.split("\t", 1)
            kind, _, text = said.partition(" ")
            rows[header].append((kind, text))
    return rows


def _numbers(rows, kind):
    return {int(word) for one, text in rows if one == kind for word in text.split() if word.isdigit()}


def _function(header, number, line, code, rows, space):
    names = [name for kind, text in rows if kind == "any" for name in text.split()]
    given = [text for kind, text in rows if kind == "code"]
    declared = [f"Anything {', '.join(names)};"] if names else []
    for text in (text for kind, text in rows if kind == "of"):
        of_type, _, objects = text.partition(": ")
        declared += [f"{of_type}& {name} = Some<{of_type}>();" for name in objects.split()]
    code = f'#line {line} "{header}"\n{code}\n'
    if number in _numbers(rows, "outside"):
        return f"namespace {space} {{\n{code}}}\n"
    before = "\n".join(["using namespace std::chrono_literals;", *given, *declared])
    return f"static Returned {space}() {{\n{before}\n{{\n{code}}}\nreturn {{}};\n}}\n"


def compiled(header, whole, rows):
    """Returns the source that compiles the examples of a header, and their number."""
    text = (ROOT / header).read_text()
    space = (re.findall(r"^namespace ([\w:]+) \{", text, re.MULTILINE) or ["penstock"])[-1]
    if not space.startswith("penstock"):  # within namespace penstock
        space = f"penstock::{space}"
    skipped = _numbers(rows, "skip")
    stem = re.sub(r"\W", "_", header)
    parts = [
        _function(header, number, line, code, rows, f"Example{number}Of_{stem}")
        for number, (line, code) in enumerate(whole, 1)
        if number not in skipped
    ]
    if not parts:
        return [], "", 0
    includes = [header] + [text for kind, text in rows if kind == "include"]
    return includes, f"namespace {space} {{\n" + "".join(parts) + f"}}  // namespace {space}\n", len(parts)


def write(out):
    """Writes a source for each folder; returns the number of examples."""
    rows, total = taken_for_granted(), 0
    for folder in FOLDERS:
        includes, bodies = [], []
        for header, whole in examples().items():
            if header.split("/")[0] == folder:
                more, body, count = compiled(header, whole, rows[header])
                includes += more
                bodies.append(body)
                total += count
        lines = "".join(f'#include "{name}"\n' for name in dict.fromkeys(includes))
        text, path = HEAD + lines + "".join(bodies), pathlib.Path(f"{out}_{folder}.cc")
        if not path.exists() or path.read_text() != text:  # an unchanged source is not compiled again
            path.write_text(text)
    return total


def check():
    """Returns what is wrong, as lines."""
    found, rows = examples(), taken_for_granted()
    wrong = [f"{NAMES.name}: {header} has no example" for header in rows if header not in found]
    for header, whole in found.items():
        numbers = _numbers(rows.get(header, []), "skip") | _numbers(rows.get(header, []), "outside")
        wrong += [f"{NAMES.name}: {header} has no example {one}" for one in numbers if one > len(whole)]
    total = sum(len(whole) - len(_numbers(rows.get(header, []), "skip")) for header, whole in found.items())
    if total < AT_LEAST:
        wrong.append(f"only {total} examples are compiled, fewer than {AT_LEAST}")
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("out", nargs="?", help="folder and first part of the name of the sources")
    parser.add_argument("--check", action="store_true", help="check the table of names and the number of examples")
    given = parser.parse_args()
    if given.check:
        wrong = check()
        print("\n".join(wrong))
        return bool(wrong)
    print(write(given.out), "examples")
    return 0


if __name__ == "__main__":
    sys.exit(main())
