"""Builds the documentation as HTML: the pages that are written by hand, and those that generate.py makes of the code.

    .venv/bin/python python/docs/build.py [--out DIR]
"""

import argparse
import pathlib
import shutil
import subprocess
import sys

import generate

HERE = pathlib.Path(__file__).resolve().parent


def build(out):
    """Puts the pages together in out/source and builds them into out/html; returns Sphinx's exit code."""
    source = out / 'source'
    shutil.rmtree(source, ignore_errors=True)
    shutil.copytree(HERE / 'pages', source)
    shutil.copy(HERE / 'conf.py', source)
    generate.write_api(source / 'api')
    generate.write_commands(source / 'commands.md')
    generate.write_operators(source / 'operators.md')
    generate.write_errors(source / 'errors.md')
    command = [sys.executable, '-m', 'sphinx', '-q', '-E', '-W', '--keep-going', '-b', 'html', str(source),
               str(out / 'html')]
    return subprocess.run(command, check=False).returncode


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--out', type=pathlib.Path, default=HERE.parents[1] / 'build' / 'docs', metavar='DIR',
                        help='folder of the result (default: build/docs)')
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    code = build(out)
    if code == 0:
        print('docs: %s' % (out / 'html' / 'index.html'))
    return code


if __name__ == '__main__':
    sys.exit(main())
