#!/usr/bin/env python3
"""Checks that C++ sources are formatted by clang-format 14.

tools/dev/check_format.py          lists each file that is not; exit code 1 if there is one
tools/dev/check_format.py --fix    formats all files
"""

import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def main():
    clang_format = shutil.which("clang-format-14") or shutil.which("clang-format")
    if clang_format is None:
        print("check_format: clang-format is not installed (tools/setup.sh installs it)")
        return 1
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "*.h", "*.cc", "*.cu", "*.def"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    files = [name for name in listed if (ROOT / name).is_file()]
    if "--fix" in sys.argv[1:]:
        return subprocess.run([clang_format, "-i", *files], cwd=ROOT).returncode
    wrong = []
    for begin in range(0, len(files), 50):
        result = subprocess.run(
            [clang_format, "--dry-run", "--Werror", *files[begin : begin + 50]],
            cwd=ROOT,
            capture_output=True,
            text=True,
        )
        found = [line for line in result.stderr.splitlines() if "clang-format-violations" in line]
        wrong.extend(sorted({line.split(":")[0] for line in found}))
    for name in wrong:
        print(f"{name}: not formatted (tools/dev/check_format.py --fix)")
    print(f"check_format: {len(files)} files, {len(wrong)} not formatted")
    return 1 if wrong or not files else 0


if __name__ == "__main__":
    sys.exit(main())
