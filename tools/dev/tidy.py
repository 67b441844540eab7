#!/usr/bin/env python3
"""Checks the project's limits on source files.

  tools/dev/tidy.py        prints each finding; exit code 1 if one of them is an error

Errors: a file above 800 lines, a function above 70 lines (not counting registrations), a C++ line above 110 columns or
another line above 120, a banned word, an unexpected file at the root, a folder of sources without README.md, an
absolute path of a machine, a C++ type defined twice in one namespace. Warnings: a file above 400 lines.
"""

import pathlib
import re
import subprocess
import sys

from defined_types import defined_types

ROOT = pathlib.Path(__file__).resolve().parents[2]
SOURCE_FOLDERS = ["framework", "transpiler", "operators", "executor", "python", "tests", "tools"]
AT_ROOT = {
    *SOURCE_FOLDERS,
    "CMakeLists.txt",
    "CMakePresets.json",
    "pyproject.toml",
    "README.md",
    "LICENSE",
    "CONTRIBUTING.md",
    "ARCHITECTURE.md",
}
CODE = {".h", ".cc", ".cu", ".def", ".py", ".sh", ".proto", ".cmake"}

WARN_LINES, MAX_LINES, MAX_FUNCTION_LINES, MAX_COLUMNS = 400, 800, 70, 110
REGISTRATION = re.compile(r"  Register\w+\(\w+\);")

# word -> its replacement. Matched as whole words in code and comments.
BANNED = {
    r"splited": "split",
    r"recieve\w*": "receive",
    r"TODO|FIXME|XXX": "finish it, or say in the folder's README what is missing",
    r"LOG\(FATAL\)": "a Status; PENSTOCK_CHECK for our own bugs",
    r"std::format": "StrCat (GCC 12 has no std::format)",
    r"sleep_for|usleep": "a wait on a condition with a deadline",
}
MACHINE_PATH = re.compile(r"(?<![\w.])/(work|home|root|Users)/\w")
# This file contains the banned words.
SKIP = {"tools/dev/tidy.py"}


def tracked():
    names = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split("\n")
    return [pathlib.Path(name) for name in names if name and (ROOT / name).is_file()]


def function_lengths(text):
    """(line, length) of each function whose first line is indented by at most two columns."""
    start, depth = None, 0
    for number, line in enumerate(text.split("\n"), 1):
        code = re.sub(r'"(\\.|[^"\\])*"|\'(\\.|[^\'\\])*\'|//.*', "", line)
        if start is None:
            if re.match(r"^ {0,2}[\w~:<>,&*\[\] ]+\(.*", code) and "{" in code and ";" not in code.split("{")[0]:
                start, depth, registered = number, 0, 0
        if start is not None:
            depth += code.count("{") - code.count("}")
            registered += REGISTRATION.fullmatch(code) is not None
            if depth <= 0:
                yield start, number - start + 1 - registered
                start = None


def check_code(path, text):
    lines = text.split("\n")
    if len(lines) > MAX_LINES:
        yield "error", f"{path}: {len(lines)} lines; a file is one idea, at most {MAX_LINES}"
    elif len(lines) > WARN_LINES:
        yield "warning", f"{path}: {len(lines)} lines; look whether it is two ideas"
    for number, line in enumerate(lines, 1):
        limit = MAX_COLUMNS if path.suffix in {".h", ".cc", ".cu", ".def"} else 120
        if len(line) > limit and "http" not in line:
            yield "error", f"{path}:{number}: {len(line)} columns, at most {limit}"
        for word, instead in BANNED.items():
            if re.search(rf"(?<!\w)(?:{word})(?!\w)", line) and "an injected delay" not in line:
                yield "error", f"{path}:{number}: '{word}' is not written here: {instead}"
        if MACHINE_PATH.search(line):
            yield "error", f"{path}:{number}: the path of a machine"
    if path.suffix in {".h", ".cc", ".cu"}:
        for number, length in function_lengths(text):
            if length > MAX_FUNCTION_LINES:
                yield "error", f"{path}:{number}: a function of {length} lines, at most {MAX_FUNCTION_LINES}"


def check_folders(paths):
    for path in paths:
        if len(path.parts) == 1 and not path.name.startswith(".") and path.name not in AT_ROOT:
            yield "error", f"{path}: does not belong at the root"
    folders = {
        path.parent for path in paths if path.suffix in {".h", ".cc"} and path.parts[0] not in {"tests", "python"}
    }
    for folder in sorted(folders):
        if not any(
            (ROOT / parent / "README.md").is_file() for parent in (folder, folder.parent) if parent != pathlib.Path(".")
        ):
            yield "error", f"{folder}: no README.md"


def check_types(paths):
    first = {}
    for path in paths:
        if path.suffix not in {".h", ".cc", ".cu"} or path.parts[0] not in SOURCE_FOLDERS:
            continue
        for line, name in defined_types((ROOT / path).read_text(errors="replace")):
            if name in first:
                yield "error", f"{path}:{line}: {name} is defined in {first[name]} too; the linker keeps one of the two"
            first.setdefault(name, f"{path}:{line}")


def is_code(path):
    """Whether a path is source code, by its extension, or, for a command without one, by its first line."""
    if str(path) in SKIP or path.parts[0] not in (*SOURCE_FOLDERS, ".ci"):
        return False
    return path.suffix in CODE or not path.suffix and (ROOT / path).read_bytes().startswith(b"#!")


def main():
    paths = tracked()
    errors = warnings = 0
    findings = [*check_folders(paths), *check_types(paths)]
    for path in paths:
        if is_code(path):
            findings.extend(check_code(path, (ROOT / path).read_text(errors="replace")))
    for kind, text in findings:
        print(f"{kind}: {text}")
        errors += kind == "error"
        warnings += kind == "warning"
    print(f"tidy: {len(paths)} files, {errors} errors, {warnings} warnings")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
