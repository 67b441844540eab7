"""Modules of the front end import each other without cycles, at the top of the file, and in the directions that
python/README.md states."""

import ast
import pathlib
import re

import conftest
import penstock
import pytest

PACKAGE = pathlib.Path(penstock.__file__).parent
IMPLEMENTATION = "penstock._src"


def module_of(path):
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


PACKAGES = ("_src", "fluid", "hvd", "kv")
PATHS = {module_of(path): path for folder in PACKAGES for path in (PACKAGE / folder).rglob("*.py")}
PATHS |= {f"penstock.{module}": PACKAGE / f"{module}.py" for module in ("torch", "work")}


def imported(node):
    """Modules of the front end that an import statement names; a package stands for its __init__."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names if alias.name in PATHS]
    if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("penstock."):
        names = [f"{node.module}.{alias.name}" for alias in node.names]
        submodules = [name for name in names if name in PATHS]
        others = [node.module] if len(submodules) < len(names) and node.module in PATHS else []
        return submodules + others
    return []


def heads(module):
    return {name for node in ast.parse(PATHS[module].read_text()).body for name in imported(node)}


def test_imports_are_acyclic():
    done, open_ = set(), []

    def visit(module):
        assert module not in open_, " -> ".join(open_[open_.index(module) :] + [module])
        if module in done:
            return
        open_.append(module)
        for name in sorted(heads(module) - {module}):
            visit(name)
        done.add(open_.pop())

    for module in PATHS:
        visit(module)
    assert "penstock.fluid.framework" in done and "penstock._src.ir.block" in heads("penstock._src.ir.program")


def test_functions_contain_no_imports():
    hidden = [
        (module, name)
        for module, path in PATHS.items()
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef)
        for inner in ast.walk(node)
        for name in imported(inner)
    ]
    assert hidden == []


def test_the_implementation_imports_no_public_module():
    """At no place of a file; penstock and penstock._penstock are the package and its C++ module."""
    wrong, seen = [], 0
    for module in PATHS:
        if not module.startswith(IMPLEMENTATION):
            continue
        for node in ast.walk(ast.parse(PATHS[module].read_text())):
            names = [alias.name for alias in getattr(node, "names", ())] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                assert not node.level, module
                names = [f"{node.module}.{alias.name}" for alias in node.names]
            for name in names:
                seen += name.startswith("penstock")
                if name.startswith("penstock") and not name.startswith((IMPLEMENTATION, "penstock._penstock")):
                    wrong.append(f"{module} imports {name}")
    assert wrong == [] and seen > 500


# Each folder of the implementation with those that it imports, which stand before it.
FOLDERS = {
    "base": "",
    "imperative": "base",
    "ir": "base imperative",
    "parameters": "base ir",
    "layers": "base ir parameters",
    "debug": "base ir",
    "dataset": "base ir",
    "executor": "base ir debug dataset",
    "optimizer": "base ir parameters layers executor",
    "transpile": "base ir layers executor",
    "data": "base ir layers dataset executor",
    "io": "base ir layers executor",
    "mixed_precision": "base ir layers optimizer",
    "fleet": "base ir debug executor optimizer transpile data io mixed_precision",
    "contrib": "base ir parameters layers executor optimizer data io fleet",
    "hvd": "base ir layers executor optimizer mixed_precision",
    "inference": "base ir executor io",
    "kv": "base executor hvd ir optimizer",
    "torch": "base kv",
    "launch": "base",
    "work": "base launch",
    "doctor": "base",
    "metrics": "base ir parameters layers",
    "names": "base",
}


@pytest.mark.parametrize(
    "folder", sorted({name.split(".")[2] for name in PATHS if name.count(".") > 2 and name.startswith(IMPLEMENTATION)})
)
def test_a_folder_imports_only_what_its_row_lists(folder):
    found = {
        name.split(".")[2]
        for module in PATHS
        if module.startswith(f"{IMPLEMENTATION}.{folder}.")
        for name in heads(module)
        if name.startswith(IMPLEMENTATION + ".")
    } - {folder}
    assert found == set(FOLDERS[folder].split())
    assert found <= set(list(FOLDERS)[: list(FOLDERS).index(folder)])


@pytest.mark.parametrize("folder", FOLDERS)
def test_the_readme_of_a_folder_lists_its_modules(folder):
    text = (conftest.ROOT / "python" / "penstock" / "_src" / folder / "README.md").read_text()
    modules = {name.split(".")[3] for name in PATHS if name.startswith(f"{IMPLEMENTATION}.{folder}.")}
    listed = set(re.findall(r"(?m)^\| (\w+) \|", text)) | set(re.findall(r"(\w+)\.py\b", text))
    assert modules - listed == set() and len(modules) >= 2
    rows = set(re.findall(r"(?m)^\| (\w+) \|", text)) - {"module", "variable", "file"}
    assert folder == "launch" or rows - modules == set()
