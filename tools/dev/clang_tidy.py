#!/usr/bin/env python3
"""Runs clang-tidy over every source file of ours that the build compiles.

  tools/dev/clang_tidy.py --build build/release [FILE...]

A file that passed is remembered under BUILD/tidy by the hash of its preprocessed text and of its .clang-tidy, and costs
only the preprocessing next time. Exit code 1 if there is a finding.
"""

import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def fingerprint(entry):
    arguments = [a for a in shlex.split(entry["command"]) if not a.endswith("ccache")]
    at = arguments.index("-o")
    arguments = arguments[:at] + arguments[at + 2:]
    arguments = [a for a in arguments if a not in {"-c", "-MD"}] + ["-E", "-P"]
    for flag in ("-MT", "-MF"):
        if flag in arguments:
            at = arguments.index(flag)
            arguments = arguments[:at] + arguments[at + 2:]
    text = subprocess.run(arguments, cwd=entry["directory"], capture_output=True).stdout
    for folder in reversed(pathlib.Path(entry["file"]).parents):
        if folder.is_relative_to(ROOT) and (folder / ".clang-tidy").exists():
            text += (folder / ".clang-tidy").read_bytes()
    return hashlib.sha256(text).hexdigest()


def check(entry, build, stamps):
    stamp = stamps / fingerprint(entry)
    if stamp.exists():
        return True, ""
    result = subprocess.run(["clang-tidy", "--quiet", "-p", str(build), entry["file"]], capture_output=True, text=True)
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
    for entry in json.loads((options.build / "compile_commands.json").read_text()):
        path = pathlib.Path(entry["file"])
        if path.suffix == ".cc" and path.is_relative_to(ROOT) and not path.is_relative_to(options.build.resolve()):
            if not wanted or str(path) in wanted:
                entries.setdefault(str(path), entry)
    stamps = options.build / "tidy"
    stamps.mkdir(exist_ok=True)
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for path, (good, text) in zip(entries, pool.map(lambda e: check(e, options.build, stamps), entries.values())):
            if not good:
                failed += 1
                print(f"{path}\n{text}")
    print(f"clang_tidy: {len(entries)} files, {failed} with findings")
    return 1 if failed or not entries else 0


if __name__ == "__main__":
    sys.exit(main())
