"""pyproject.toml: what an installed package says of itself is so."""

import importlib
import re
import urllib.parse

import conftest
import penstock
import pytest

tomllib = pytest.importorskip("tomllib", reason="Python reads TOML from 3.11 on")
ALL = tomllib.loads((conftest.ROOT / "pyproject.toml").read_text())
PROJECT = ALL["project"]


def test_name_and_version_are_those_of_the_module():
    assert (PROJECT["name"], PROJECT["version"]) == ("penstock", penstock.__version__)


def test_readme_and_licence_exist():
    assert "Penstock" in (conftest.ROOT / PROJECT["readme"]).read_text(encoding="utf-8")
    licence = (conftest.ROOT / PROJECT["license"]["file"]).read_text(encoding="utf-8")
    assert "Apache License" in licence
    assert "License :: OSI Approved :: Apache Software License" in PROJECT["classifiers"]


def test_classifiers_are_well_formed():
    classifiers = PROJECT["classifiers"]
    assert classifiers == sorted(set(classifiers))
    assert all(re.fullmatch(r"[^:]+( :: [^:]+)+", classifier) for classifier in classifiers)
    assert "Programming Language :: Python :: 3 :: Only" in classifiers
    assert PROJECT["requires-python"].startswith(">=3.")


def test_urls_are_valid():
    assert PROJECT["urls"]
    for name, address in PROJECT["urls"].items():
        parts = urllib.parse.urlsplit(address)
        assert len(name) <= 32 and parts.scheme == "https" and "." in parts.netloc, name


def test_types_are_shipped():
    (package,) = ALL["tool"]["scikit-build"]["wheel"]["packages"]
    folder = conftest.ROOT / package
    assert "Typing :: Typed" in PROJECT["classifiers"] and (folder / "py.typed").is_file()
    assert (folder / "_penstock.pyi").is_file()  # other modules: test_stubs.py
    assert "py.typed" in (conftest.ROOT / "python" / "CMakeLists.txt").read_text()


@pytest.mark.parametrize("command", PROJECT["scripts"])
def test_command_entry_points_are_functions(command):
    module, _, name = PROJECT["scripts"][command].partition(":")
    assert callable(getattr(importlib.import_module(module), name))
