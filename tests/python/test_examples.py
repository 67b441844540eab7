"""Runs the examples of docstrings: each public name of penstock whose docstring has a section `Example:`.

An example is the Python code that is indented below `Example:`. It ends at the end of the docstring, or at a line that
is indented no deeper than the heading. It runs in an empty folder, with `np` (NumPy), `penstock` and `fluid`
(penstock.fluid) imported, and with fresh default programs, names and scope.
"""

import importlib
import inspect
import pkgutil
import textwrap

import numpy as np
import penstock
import pytest

HEADING = "Example:"
AT_LEAST = 200  # a rule that finds no example would pass


def example_of(docstring):
    """The code below `Example:`, or None."""
    lines = docstring.splitlines()
    for at, line in enumerate(lines):  # noqa: B007  (used after the loop)
        if line.strip() == HEADING:
            break
    else:
        return None
    depth = len(line) - len(line.lstrip())
    code = []
    for following in lines[at + 1 :]:
        if following.strip() and len(following) - len(following.lstrip()) <= depth:
            break
        code.append(following)
    return textwrap.dedent("\n".join(code)).strip()


def _modules():
    yield penstock
    for found in pkgutil.walk_packages(penstock.__path__, "penstock."):
        last = found.name.rpartition(".")[2]
        if not last.startswith("__") and last != "_penstock":
            yield importlib.import_module(found.name)


def _documented():
    """(name, object) of each function, class and method of ours that has a docstring of its own, once."""
    seen = set()
    for module in list(_modules()):  # all are imported before the first one is read
        for name, thing in inspect.getmembers(module):
            if name.startswith("_") or getattr(thing, "__module__", None) != module.__name__:
                continue
            if not (inspect.isfunction(thing) or inspect.isclass(thing)) or id(thing) in seen:
                continue
            seen.add(id(thing))
            where = f"{module.__name__}.{name}"
            yield where, thing
            for member, value in vars(thing).items() if inspect.isclass(thing) else ():
                value = getattr(value, "__func__", getattr(value, "fget", value))  # static, class method; property
                if not member.startswith("_") and inspect.isfunction(value):
                    yield f"{where}.{member}", value


EXAMPLES = [
    pytest.param(name, example_of(thing.__doc__), id=name)
    for name, thing in _documented()
    if thing.__doc__ and example_of(inspect.cleandoc(thing.__doc__)) is not None
]


@pytest.mark.parametrize("name, code", EXAMPLES)
def test_each_docstring_example_runs(name, code, fluid, tmp_path, monkeypatch):
    assert code, f"{name}: the section Example is empty"
    if name.startswith("penstock.torch."):
        pytest.importorskip("torch", reason="PyTorch is not installed")
    monkeypatch.chdir(tmp_path)
    for name_of_flag in ("array_kind", "empties_are_vectors"):  # which compat.install changes
        monkeypatch.setattr(penstock.fluid.executor, name_of_flag, getattr(penstock.fluid.executor, name_of_flag))
    exec(compile(code, f"the example of {name}", "exec"), {"np": np, "penstock": penstock, "fluid": fluid})


def test_examples_are_found():
    assert len(EXAMPLES) >= AT_LEAST


@pytest.mark.parametrize(
    "docstring, code",
    [
        ("Adds.\n\nExample:\n    a = 1\n    if a:\n        b = 2\n", "a = 1\nif a:\n    b = 2"),
        ("Adds.\n\n    Example:\n        a = 1\n\n        b = 2\n\n    Reference:\n        A paper.", "a = 1\n\nb = 2"),
        ("Adds.", None),
    ],
)
def test_example_code_is_extracted_from_a_docstring(docstring, code):
    assert example_of(docstring) == code
