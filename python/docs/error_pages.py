"""The pages of the errors: meaning and remedy by errors.tsv, and the smallest example among the tests' texts."""

import csv
import pathlib
import re
import textwrap

HERE = pathlib.Path(__file__).resolve().parent
TESTS = HERE.parents[1] / "tests"
GOLDENS = TESTS / "golden"
# (page, title, what the page covers, the words after `E-` with which its ids begin)
FAMILIES = [
    (
        "plan",
        "Transpiling and plans",
        "Errors of `transpile()`, of the plan and of its passes.",
        "plan pass contract cost compression policy row uneven job case hyperparameter average recompute round",
    ),
    (
        "check",
        "Findings of the check",
        "What `penstock check` finds in role programs that do not fit together.",
        "check roles",
    ),
    (
        "programs",
        "Programs and ops",
        "Errors in a program, found when an op is added or the program is verified.",
        "op shape verify var program backward gradients optimizer registry attr block edit dtype int "
        "prune padding element "
        "argument text diff lod decoder layer not",
    ),
    (
        "running",
        "Running programs",
        "Errors of the executor, of feeds and fetches, and of kernels.",
        "feed fetch run scope executor exec array kernel tensor py parallel places onednn memory "
        "cuda cublas broadcast "
        "batch no lookup rows window cancelled compile",
    ),
    (
        "data",
        "Data and files",
        "Errors of datasets, readers, saved parameters and models.",
        "dataset reader load save file read predictor checkpoint resume json table",
    ),
    (
        "processes",
        "Messages between processes",
        "Errors of trainers and pservers that talk to each other.",
        "rpc wire server peer send recv comm communicator trainer step rendezvous start net",
    ),
    (
        "ranks",
        "Ranks",
        "Errors of ranks that train by all-reduce, and of trainers that share their work.",
        "collective elastic hvd rank ranks work",
    ),
    ("kv", "The key-value store", "Errors of penstock.kv.", "kv"),
    ("torch", "PyTorch", "Errors of penstock.torch.", "torch"),
    (
        "tools",
        "Launcher, Fleet and tools",
        "Errors of the launcher, of Fleet and of commands.",
        "launch scale fleet trace top profile compat environment flag usage command metrics bench fluid graphviz "
        "install",
    ),
]
FINDING = re.compile(r"^(?:error: )?(\S.*\[(E-[a-z0-9_-]+)\])$")
MESSAGE = re.compile(r"""["']([a-z][\w ]*: [^"'\n\\%*{}]+\[(E-[a-z0-9_-]+)\])["']""")
INTRODUCTION = """# Errors by id

Every error about a program, a job, a file or a peer has a stable id, which stands in brackets behind its first line and
is `error.id` in Python. A wrong argument of a Python function is a TypeError or a ValueError that names the argument,
without an id. An error that a command prints ends it with exit code 2, or with 1 if the answer is no. [Exit codes and
exceptions](../exit_codes.md) lists the classes of exceptions. Examples are texts that tests compare.
"""
LONGEST = 14  # lines of a program in an example
WIDTH = 88  # columns of an example


def read_errors():
    """[(id, meaning, remedy)] of errors.tsv, sorted."""
    with open(HERE / "errors.tsv", newline="") as file:
        return [tuple(row) for row in csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE)]


def family_of(id):
    """The page that lists an error."""
    word = id.split("-")[1]
    return next((page for page, _, _, words in FAMILIES if word in words.split()), None)


def _findings(lines):
    """(id, text) of each error in the expected output of a test: its line and the indented lines below it."""
    for at, line in enumerate(lines):
        found = FINDING.match(line)
        if found:
            end = at + 1
            while end < len(lines) and lines[end].startswith("  "):
                end += 1
            yield found[2], "\n".join([found[1], *lines[at + 1 : end]])


def _cases(path):
    """(title, {section: text}) of each case of a golden file."""
    for case in re.split(r"^case ", path.read_text(), flags=re.MULTILINE)[1:]:
        title, _, rest = case.partition("\n")
        parts = re.split(r"^-- (.*)\n", rest, flags=re.MULTILINE)
        yield title, dict(zip(parts[1::2], (part.rstrip() for part in parts[2::2])))


def _golden_examples():
    """(id, (title of the case, input or None, text of the error)) of each error in the goldens."""
    for path in sorted(GOLDENS.rglob("*.golden")):
        for title, sections in _cases(path):
            given = sections.get("in")
            for name, text in sections.items():
                if name.split()[0] not in ("error", "out"):
                    continue
                for id, error in _findings(text.splitlines()):
                    short = name == "error" and given and len(given.splitlines()) <= LONGEST
                    yield id, (title, given if short else None, error)


def _quoted_examples():
    """The same of whole messages that stand as strings in other tests."""
    for path in sorted([*TESTS.rglob("*_test.cc"), *TESTS.rglob("test_*.py")]):
        for error, id in MESSAGE.findall(path.read_text()):
            yield id, ("", None, error)


def read_examples():
    """{id: (title of a test or "", input or None, text of the error)}: of each id the shortest, goldens first."""
    best = {}
    for source in (_golden_examples, _quoted_examples):
        found = {}
        for id, (title, given, error) in source():
            size = (given is None, len(error) + len(given or ""))
            if id not in best and (id not in found or size < found[id][0]):
                found[id] = (size, (title, given, error))
        best |= found
    return {id: example for id, (_, example) in best.items()}


def _wrapped(line):
    indent = " " * (len(line) - len(line.lstrip()) + 4)
    parts = textwrap.wrap(line, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
    return parts or [""]


def _block(text):
    lines = [part for line in text.splitlines() for part in _wrapped(line)]
    return "```text\n" + "\n".join(lines) + "\n```\n"


def _entry(id, meaning, remedy, example):
    text = f"## {id}\n\n{meaning}\n\n**What to do:** {remedy}\n"
    if example:
        title, given, error = example
        text += f"\n**Example:** {title}.\n\n" if title else "\n**Example:**\n\n"
        text += (_block(given) + "\n" if given else "") + _block(error)
    return text


def write_errors(folder):
    """Writes a page for each family of errors, and their index with all ids."""
    folder.mkdir(parents=True)
    examples, rows = read_examples(), read_errors()
    index = [INTRODUCTION]
    for page, title, covers, _ in FAMILIES:
        mine = [row for row in rows if family_of(row[0]) == page]
        body = "\n".join(_entry(*row, examples.get(row[0])) for row in mine)
        (folder / f"{page}.md").write_text(f"# {title}\n\n{covers}\n\n{body}")
        ids = ", ".join(f"[{id}]({page}.md#{id.lower()})" for id, *_ in mine)
        index.append(f"## {title}\n\n{covers} [All {len(mine)} on one page]({page}.md), or one of them: {ids}.\n")
    pages = "\n".join(page for page, *_ in FAMILIES)
    index.append(f"```{{toctree}}\n:hidden:\n\n{pages}\n```\n")
    (folder / "index.md").write_text("\n".join(index))
