#!/usr/bin/env python3
"""Applies each bug of tests/sim/seeded_bugs to the code under test, one at a time: the simulator must detect it.

  seeded_bugs.py --build build/release            each bug: patch, compile, link with the simulator's tests, run
  seeded_bugs.py --build build/release 03 17      only the bugs whose names start with these numbers
  seeded_bugs.py --check                          only checks whether each patch still applies; takes a second

A bug counts as detected if a simulator test fails with a reason (exit code 1, "[  FAILED  ]"); a crash or a hanging
test does not count. The patched files are copies in the build tree. Their objects are linked before the libraries, so
that the libraries' members with the same symbols are not used. First, the unpatched tests must pass. Exit code: 0, or 1
if a patch does not apply or a bug is not detected.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUGS = ROOT / "tests" / "sim" / "seeded_bugs"
SIMULATORS = ["simulation_test", "sim_geo", "sim_key_checkpoints", "sim_scale", "sim_collective"]
SEEDS = 400  # of each simulation
BUILD_LIMIT_S = 900  # for one compilation or link, on a busy machine
RUN_LIMIT_S = 300  # for one simulator


class Failed(Exception):
    """A bug cannot be applied."""


def run(command, limit_s, **options):
    return subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=limit_s, **options
    )


def patched_files(patch):
    """The files that a patch changes, relative to the root."""
    files = re.findall(r"^\+\+\+ b/(\S+)", patch.read_text(), re.MULTILINE)
    if not files or any(not name.endswith(".cc") for name in files):
        raise Failed(
            f"{patch.name}: changes {files or 'nothing'}; a seeded bug changes .cc files, "
            "so that no other object has to be compiled"
        )
    return files


def apply(patch, folder, *options):
    done = run(["patch", "--force", "--batch", "-p1", "-d", str(folder), "-i", str(patch), *options], 60)
    if done.returncode != 0:
        raise Failed(f"{patch.name}: does not apply any more: {' '.join(done.stdout.split())}")


class Build:
    """CMake's build: the compile command of each source, and the link command of a test."""

    def __init__(self, folder):
        self.folder = folder.resolve()
        entries = json.loads((self.folder / "compile_commands.json").read_text())
        self.by_source = {}  # a source: the entry that compiles it, perhaps together with others
        for entry in entries:
            file = pathlib.Path(entry["file"])
            if "/Unity/" not in str(file):
                self.by_source.setdefault(str(file), entry)
                continue
            for source in re.findall(r'#include "(.*)"', file.read_text()):
                self.by_source[source] = entry

    def objects(self, sources, scratch):
        """[(library, object)] of the patched copies in `scratch`, with the sources of the same unity file."""
        entries = {}
        for source in sources:
            entry = self.by_source.get(str(ROOT / source))
            if entry is None:
                raise Failed(f"{source} is no source of the build in {self.folder}")
            entries[entry["file"]] = entry
        return [self._compile(entry, sources, scratch, i) for i, entry in enumerate(entries.values())]

    def _compile(self, entry, sources, scratch, number):
        file = pathlib.Path(entry["file"])
        replaced = scratch / "unity" / f"{number}.cc"
        if "/Unity/" in str(file):
            text = file.read_text()
            for source in sources:
                text = text.replace(f'"{ROOT / source}"', f'"{scratch / source}"')
            replaced.parent.mkdir(exist_ok=True)
            replaced.write_text(text)
        else:
            replaced = scratch / file.relative_to(ROOT)
        made = scratch / f"{number}.o"
        arguments = shlex.split(entry["command"])
        output = arguments.index("-o") + 1
        library = re.search(r"/(\w+)\.dir/", arguments[output]).group(1)
        arguments[output] = str(made)
        arguments[arguments.index("-c") + 1] = str(replaced)
        done = run(arguments, BUILD_LIMIT_S, cwd=entry["directory"])
        if done.returncode != 0:
            raise Failed(f"{scratch.name}: does not compile:\n{done.stdout}")
        return f"lib{library}.a", made

    def link(self, test, objects, scratch):
        """Links the test with the objects before their libraries; None if it uses none of these libraries."""
        commands = run(["ninja", "-C", str(self.folder), "-t", "commands", test], 60).stdout.splitlines()
        output = f"-o tests/sim/{test} "
        link = next((command for command in reversed(commands) if output in command), None)
        if link is None:
            raise Failed(f"ninja knows no command that links {test}")
        ours = [str(made) for library, made in objects if library in link]
        if not ours:
            return None
        made = scratch / test
        link = link.replace(output, f"-o {made} {' '.join(ours)} ")
        done = run(["sh", "-c", link], BUILD_LIMIT_S, cwd=self.folder)
        if done.returncode != 0:
            raise Failed(f"{scratch.name}: does not link:\n{done.stdout}")
        return made


def simulate(binary):
    """(exit code, failed tests and first message); the code is None if the process did not end."""
    environment = dict(os.environ, PENSTOCK_SIM_SEEDS=str(SEEDS))
    try:
        done = run([str(binary), "--gtest_brief=1", "--gtest_fail_fast"], RUN_LIMIT_S, cwd=ROOT, env=environment)
    except subprocess.TimeoutExpired:
        return None, f"it did not end in {RUN_LIMIT_S} s"
    failed = re.search(r"^\[  FAILED  \] (\S+)", done.stdout, re.MULTILINE)
    if done.returncode != 1 or failed is None:
        return done.returncode, f"exit code {done.returncode}: {done.stdout[-300:]}"
    seed = re.search(r"seed (\d+)", done.stdout)
    said = re.search(r": Failure\n(.*(?:\n.+)?)", done.stdout)
    where = f" at seed {seed.group(1)}" if seed else ""
    return 1, f"{failed.group(1)}{where}: {' '.join(said.group(1).split())[:160] if said else ''}"


def try_bug(build, patch):
    """(detected, a summary in one line)"""
    began = time.monotonic()
    scratch = build.folder / "seeded_bugs" / patch.stem
    shutil.rmtree(scratch, ignore_errors=True)
    try:
        sources = patched_files(patch)
        for source in sources:
            (scratch / source).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / source, scratch / source)
        apply(patch, scratch)
        objects = build.objects(sources, scratch)
        lines = []
        for test in SIMULATORS:
            binary = build.link(test, objects, scratch)
            if binary is None:
                continue
            code, said = simulate(binary)
            if code == 1:
                return True, f"{time.monotonic() - began:4.0f} s  found by {said}"
            if code != 0:
                lines.append(f"{test}: {said}")
        return False, "NOT FOUND " + " ".join(lines)
    except (Failed, subprocess.TimeoutExpired) as failed:
        return False, f"NOT TRIED {failed}"
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def check_unpatched(build):
    for test in SIMULATORS:
        code, said = simulate(build.folder / "tests" / "sim" / test)
        if code != 0:
            raise Failed(f"{test} fails without a bug: {said}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, help="folder of a build that has the simulator's tests")
    parser.add_argument("--check", action="store_true", help="only whether each patch still applies")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="bugs at a time")
    parser.add_argument("names", nargs="*", help="how the names of the bugs to try begin; none: all")
    options = parser.parse_args()
    if options.check == (options.build is not None):
        parser.error("one of --check and --build is needed")
    patches = [
        patch
        for patch in sorted(BUGS.glob("*.patch"))
        if not options.names or patch.name.startswith(tuple(options.names))
    ]
    try:
        for patch in patches:
            patched_files(patch)
            apply(patch, ROOT, "--dry-run")
        if options.check:
            print(f"{len(patches)} patches apply")
            return 0
        check_unpatched(build := Build(options.build))
    except Failed as failed:
        print(f"seeded_bugs: {failed}")
        return 1
    found = 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for patch, (is_found, line) in zip(patches, pool.map(lambda patch: try_bug(build, patch), patches)):
            found += is_found
            print(f"{patch.stem:32} {line}", flush=True)
    print(f"{found} of {len(patches)} seeded bugs were found")
    return 0 if found == len(patches) else 1


if __name__ == "__main__":
    sys.exit(main())
