"""The pages of the commands: what `--help` says, as lists that wrap."""

import os
import pathlib
import re
import subprocess
import sys

COMMANDS = [
    "transpile",
    "check",
    "plan",
    "show",
    "diff",
    "convert",
    "memory_optimize",
    "release_memory",
    "top",
    "trace",
    "profile",
    "plot",
    "doctor",
    "scale",
]
LAUNCHER = "python -m penstock.distributed.launch"
UNWRAPPED = "100000"  # columns: a line of the help is then a whole paragraph


def _help(*command):
    done = subprocess.run(
        [str(part) for part in command],
        capture_output=True,
        text=True,
        check=False,
        env=dict(os.environ, COLUMNS=UNWRAPPED),
    )
    return done.stdout or done.stderr


def _item(term, text):
    """An entry of a definition list; `<` and `*` of the help are plain text."""
    plain = re.sub(r"([<>*_\\\[\]])", r"\\\1", text)
    return f"`{term}`\n: {plain}\n"


def command_page(command, text):
    """The page of a command of `penstock`, from its help: a usage line, a description, and a line for each flag."""
    lines = text.rstrip("\n").splitlines()
    usages = lines[0].split(" | ")
    usage = "\n".join(use if use.startswith("penstock ") else f"penstock {command} {use}" for use in usages)
    flags = [re.match(r"  (--\S+)  (.*)", line) for line in lines[1:]]
    described = [line.strip() for line, flag in zip(lines[1:], flags) if not flag and line.strip()]
    items = [_item(flag[1], flag[2]) for flag in flags if flag]
    sentence = " ".join(described)
    return f"# penstock {command}\n\n```text\n{usage}\n```\n\n{sentence[:1].upper()}{sentence[1:]}.\n\n" + (
        "## Flags\n\n" + "\n".join(items) if items else ""
    )


def launcher_page(text):
    """The page of the launcher, from argparse's help: groups of options, an option on one line or on two."""
    sections = re.split(r"^(\w[\w ]*):\n", text, flags=re.MULTILINE)
    parts = [
        f"# The launcher\n\n```text\n{LAUNCHER} [options] training_script [arguments]\n```\n\n"
        + sections[0].split("\n\n", 1)[1].strip()
        + "\n"
    ]
    for title, body in zip(sections[1::2], sections[2::2]):
        parts.append(f"## {title[0].upper()}{title[1:]}\n")
        for paragraph in re.split(r"\n(?=  \S|\S)", body.strip("\n")):
            found = re.match(r"  (\S.*?)(?:\s{2,}|\n\s+)(\S.*)", paragraph, re.DOTALL)
            parts.append(_item(found[1], " ".join(found[2].split())) if found else " ".join(paragraph.split()) + "\n")
    return "\n".join(parts)


def write_commands(folder):
    """Writes a page for each command, and their index."""
    folder.mkdir(parents=True)
    penstock = pathlib.Path(sys.executable).with_name("penstock")
    for command in COMMANDS:
        (folder / f"{command}.md").write_text(command_page(command, _help(penstock, command, "--help")))
    (folder / "launch.md").write_text(
        launcher_page(_help(sys.executable, "-m", "penstock.distributed.launch", "--help"))
    )
    pages = "\n".join(["launch", *COMMANDS])
    (folder / "index.md").write_text(
        "# Commands\n\n`penstock COMMAND --help` prints the same texts. [Exit codes](../exit_codes.md) lists what a "
        f"command returns.\n\n```{{toctree}}\n:maxdepth: 1\n\n{pages}\n```\n"
    )
