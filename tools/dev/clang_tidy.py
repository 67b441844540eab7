#!/usr/bin/env python3
"""Runs clang-tidy on every source file of ours that the build compiles.

  tools/dev/clang_tidy.py --build build/release [FILE...]

A file that passed is recorded under BUILD/tidy by the hash of its preprocessed text and its .clang-tidy; the next run
only preprocesses it. Exit code 1 if there is a finding.
"""

import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
GCC_ONLY = {"-Wno-subobject-linkage", "-fvect-cost-model=dynamic", "-funswitch-loops", "-fpeel-loops"}


def fingerprint(entry):
    arguments = [a for a in shlex.split(entry["command"]) if not a.endswith("ccache")]
    at = arguments.index("-o")
    arguments = arguments[:at] + arguments[at + 2 :]
    arguments = [a for a in arguments if a not in {"-c", "-MD"}] + ["-E", "-P"]
    for flag in ("-MT", "-MF"):
        if flag in arguments:
            at = arguments.index(flag)
            arguments = arguments[:at] + arguments[at + 2 :]
    text = subprocess.run(arguments, cwd=entry["directory"], capture_output=True).stdout
    for folder in reversed(pathlib.Path(entry["file"]).parents):
        if folder.is_relative_to(ROOT) and (folder / ".clang-tidy").exists():
            text += (folder / ".clang-tidy").read_bytes()
    return hashlib.sha256(text).hexdigest()


def parts(entry):
    """Each file of ours, including those inside CMake's unity files, with its command in clang's syntax."""
    path = pathlib.Path(entry["file"])
    command = " ".join(word for word in entry["command"].split(" ") if word not in GCC_ONLY)
    if path.parent.name != "Unity":
        return [{**entry, "command": command}]
    included = re.findall(r'#include "([^"]+[.]cc)"', path.read_text())
    return [{**entry, "file": name, "command": command.replace(str(path), name)} for name in included]


def check(entry, database, stamps):
    stamp = stamps / fingerprint(entry)
    if stamp.exists():
        return True, ""
    command = ["clang-tidy", "--quiet", "-p", str(database), entry["file"]]
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode == 0:
        stamp.touch()
    return result.returncode == 0, result.stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("files", nargs="*", help="only these (default: all)")
    options = parser.parse_args()
    wanted = {str((ROOT / name).resolve()) for name in options.files}
    entries = {}
    commands = json.loads((options.build / "compile_commands.json").read_text())
    for entry in [part for command in commands for part in parts(command)]:
        path = pathlib.Path(entry["file"])
        if path.suffix == ".cc" and path.is_relative_to(ROOT) and not path.is_relative_to(options.build.resolve()):
            if not wanted or str(path) in wanted:
                entries.setdefault(str(path), entry)
    stamps = options.build / "tidy"
    stamps.mkdir(exist_ok=True)
    (stamps / "compile_commands.json").write_text(json.dumps(list(entries.values())))
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for path, (good, text) in zip(entries, pool.map(lambda e: check(e, stamps, stamps), entries.values())):
            if not good:
                failed += 1
                print(f"{path}\n{text}")
    print(f"clang_tidy: {len(entries)} files, {failed} with findings")
    return 1 if failed or not entries else 0


if __name__ == "__main__":
    sys.exit(main())
