"""The code blocks of a Markdown page, and a run of all of them in an empty folder, in their order. Imports no test.

| block | what the run does |
|---|---|
| `python`, first line `# NAME.py` | writes the file |
| `python` without a name | runs it, after the earlier ones of the page, with `np`, `penstock` and `fluid` |
| `json` with `:caption: NAME` | writes the file |
| `sh` | runs it by bash, which stops at the first error; `python` and `penstock` are those of this environment |
| `text` | nothing: output, or a form |

Comments above a block change that: `<!-- not run: REASON -->`; `<!-- fails: CODE -->`, its exit code;
`<!-- file: NAME -->`, the name of a file; `<!-- together with the next -->`: two commands at once, of two machines.
`<!-- uses: PAGE -->` writes the files of another page.
"""

import dataclasses
import os
import pathlib
import re
import socket
import subprocess
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = ROOT / "python" / "docs" / "pages"
LIMIT_S = 120
FENCE = re.compile(
    r"((?:<!--[^\n]*-->\n)*)^```(?:\{code-block\} ?)?(\{?\w*\}?)[^\n]*\n(.*?)^```$", re.DOTALL | re.MULTILINE
)
PREAMBLE = "import numpy as np\nimport penstock\nimport penstock.fluid as fluid\n"
LAUNCHER = "penstock.distributed.launch"


@dataclasses.dataclass
class Block:
    kind: str
    text: str
    name: str = ""  # of the file that it is
    comments: str = ""

    def comment(self, key):
        """What follows `key:` in the comments above the block, or None."""
        found = re.search(rf"<!-- {key}:? ?(.*?) ?-->", self.comments)
        return found[1] if found else None


def pages():
    """All pages that are written by hand, and the README."""
    return [ROOT / "README.md", *sorted(PAGES.rglob("*.md"))]


def blocks_of(page):
    """The code blocks of a page, in order."""
    for comments, kind, text in FENCE.findall(page.read_text()):
        block = Block(kind, text, comments=comments)
        caption = re.match(r":caption: (\S+)\n\n", text)
        script = re.match(r"# (\w+\.py)\n", text)
        if caption:
            block.name, block.text = caption[1], text[caption.end() :]
        elif script and kind == "python":
            block.name = script[1]
        block.name = block.comment("file") or block.name
        yield block


def write_files(page, folder):
    """Writes the files of a page, and of those that it uses."""
    for used in re.findall(r"<!-- uses: (\S+) -->", page.read_text()):
        write_files((page.parent / used).resolve(), folder)
    for block in blocks_of(page):
        if block.name:
            (folder / block.name).write_text(block.text)


def _free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def _environment():
    known = {name: value for name, value in os.environ.items() if not name.startswith(("PADDLE_", "PENSTOCK_TR"))}
    path = os.pathsep.join([str(pathlib.Path(sys.executable).parent), os.environ.get("PATH", "")])
    return {**known, "PATH": path, "OMP_NUM_THREADS": "1"}


def _start(block, folder, ports):
    """Runs the commands of a block; the machines 10.0.0.1 and 10.0.0.2 are this one, with free ports."""
    text = re.sub(r"\b10\.0\.0\.(\d)\b", r"127.0.0.\1", block.text)
    if ports:
        text = text.replace(LAUNCHER, f"{LAUNCHER} {ports}")
    return subprocess.Popen(
        ["bash", "-e", "-o", "pipefail", "-c", text],
        cwd=folder,
        env=_environment(),
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


def _finish(block, process, log):
    try:
        said, _ = process.communicate(timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    log.append(said)
    expected = int(block.comment("fails") or 0)
    assert process.returncode == expected, f"{block.text}\nended with {process.returncode}, not {expected}:\n{said}"


def run_page(page, folder):
    """Runs a page's blocks; returns what its commands printed."""
    write_files(page, folder)
    (folder / ".venv").symlink_to(sys.prefix)
    fragments, log, waiting, control = [], [], [], 0
    for block in blocks_of(page):
        if block.comment("not run") is not None:
            continue
        if block.kind == "python" and not block.name:
            fragments.append(block.text)
        elif block.kind == "sh":
            together = block.comment("together with the next") is not None
            if together:
                control = _free_port()
            ports = (
                " ".join(
                    f"--{name} {port}"
                    for name, port in (
                        ("control_port", control),
                        ("start_port", _free_port()),
                        ("started_port", _free_port()),
                    )
                )
                if together or waiting
                else ""
            )
            waiting.append((block, _start(block, folder, ports)))
            if not together:
                for each in waiting:
                    _finish(*each, log)
                waiting = []
    if fragments:
        code = PREAMBLE + "\n".join(textwrap.dedent(text) for text in fragments)
        done = subprocess.run(
            [sys.executable, "-c", code],
            cwd=folder,
            env=_environment(),
            text=True,
            capture_output=True,
            timeout=LIMIT_S,
            check=False,
        )
        assert done.returncode == 0, code + done.stdout + done.stderr
        log.append(done.stdout)
    return "\n".join(log)
