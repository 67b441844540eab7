"""Builds the documentation as HTML: the pages that are written by hand, and those that are made of the code.

.venv/bin/python python/docs/build.py [--out DIR]
"""

import argparse
import pathlib
import shutil
import subprocess
import sys

import api_pages
import command_pages
import error_pages
import operator_pages
import pictures
import setting_pages

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]


def write_case_keys(path):
    """The tables of the keys of case.json: those of tools/case/README.md, and the settings."""
    text = (ROOT / "tools" / "case" / "README.md").read_text()
    section = text.split("## case.json", 1)[1].split("\n## ", 1)[0]
    path.write_text(
        "\n" + section.split("```\n", 1)[1].split("```", 1)[-1].strip() + "\n\n" + setting_pages.key_table()
    )


def build(out):
    """Puts the pages together in out/source and builds them into out/html; returns Sphinx's exit code."""
    source = out / "source"
    shutil.rmtree(source, ignore_errors=True)
    shutil.copytree(HERE / "pages", source)
    shutil.copy(HERE / "conf.py", source)
    reference = source / "reference"
    api_pages.write_api(reference / "api")
    command_pages.write_commands(reference / "commands")
    operator_pages.write_operators(reference / "operators")
    error_pages.write_errors(reference / "errors")
    write_case_keys(source / "case_keys.txt")
    setting_pages.write_settings(source)
    pictures.write_pictures(source / "pictures")
    command = [
        sys.executable,
        "-m",
        "sphinx",
        "-q",
        "-E",
        "-W",
        "--keep-going",
        "-j",
        "auto",
        "-b",
        "html",
        str(source),
        str(out / "html"),
    ]
    return subprocess.run(command, check=False).returncode


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "--out",
        type=pathlib.Path,
        default=ROOT / "build" / "docs",
        metavar="DIR",
        help="folder of the result (default: build/docs)",
    )
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    code = build(out)
    if code == 0:
        print(f"docs: {out / 'html' / 'index.html'}")
    return code


if __name__ == "__main__":
    sys.exit(main())
