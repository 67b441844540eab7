"""The pages of the operators: operators/OPS.md, an op on the page of the family that declares it."""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
OPERATORS = ROOT / "operators"
FAMILIES = {
    "math": "Arithmetic and activations",
    "tensor": "Tensors and selection",
    "nn": "Networks",
    "vision": "Images",
    "detection": "Detection",
    "sequence": "Sequences",
    "recommend": "Click-through models",
    "loss": "Losses",
    "random": "Random numbers",
    "optimizer": "Optimizers",
    "control_flow": "Control flow",
    "io": "Files and readers",
    "distributed": "Parameter servers",
    "collective": "Collectives",
    "other": "Other operators",
}
MOST = 60  # ops of a page


def family_of_ops(names):
    """{op: folder that declares it}: the folder whose sources add the op, or name it most often."""
    sources = {
        family: "\n".join(path.read_text() for path in sorted((OPERATORS / family).rglob("*.cc")))
        for family in FAMILIES
        if family != "other"
    }
    found = {}
    for name in names:
        added = re.compile(rf'\bAdd\w*(?:<[^>;]*>)?\(\s*(?:ops,\s*)?"{name}"')
        stem = re.sub(r"(_grad)+$", "", name)
        for family, text in sources.items():
            if added.search(text):
                found[name] = family
                break
        else:
            counts = {family: text.count(f'"{name}"') + text.count(f'"{stem}"') for family, text in sources.items()}
            best = max(counts, key=counts.get)
            found[name] = best if counts[best] else "other"
    return found


def read_operators():
    """Returns what OPS.md says of all ops, and {op: its section without the heading}."""
    text = (OPERATORS / "OPS.md").read_text()
    intro = text.split("\n[", 1)[0].split("Slots and", 1)[1].strip()
    sections = re.split(r"^## (\S+)\n", text, flags=re.MULTILINE)[1:]
    return intro, dict(zip(sections[::2], sections[1::2]))


def _pages(family, names):
    """[(page, title, names)]: a family with many ops has several pages, by initial letters."""
    title = FAMILIES[family]
    count = -(-len(names) // MOST)
    size = -(-len(names) // count)
    for at in range(count):
        part = names[at * size : (at + 1) * size]
        if count == 1:
            yield family, title, part
        else:
            yield f"{family}_{at + 1}", f"{title}: {part[0]} to {part[-1]}", part


def write_operators(folder):
    """Writes the pages of the operators and their index."""
    folder.mkdir(parents=True)
    intro, sections = read_operators()
    families = family_of_ops(sections)
    pages, rows = [], []
    for family in FAMILIES:
        names = [name for name in sections if families[name] == family]
        for page, title, part in _pages(family, names) if names else ():
            body = "\n".join(f"({name}-op)=\n## {name}\n{sections[name]}" for name in part)
            (folder / f"{page}.md").write_text(f"# {title}\n\n{body}")
            pages.append(page)
            links = ", ".join(f"[{name}]({page}.md#{name})" for name in part)
            rows.append(f"**[{title}]({page}.md)**: {links}\n")
    toctree = "```{toctree}\n:hidden:\n\n" + "\n".join(pages) + "\n```\n"
    (folder / "index.md").write_text("# Operators\n\nSlots and " + intro + "\n\n" + "\n".join(rows) + "\n" + toctree)
