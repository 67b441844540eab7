"""Classes of C++ get methods from Python in one place, the table of ir/native.py."""

import types

from penstock import _penstock
from penstock._src.ir import native


def test_one_table_has_all_methods_that_python_adds():
    added = {}
    for name, thing in vars(_penstock).items():
        members = vars(thing).items() if isinstance(thing, type) else ()
        functions = {member for member, value in members if isinstance(value, types.FunctionType)}
        if functions:
            added[name] = functions
    table = {owner.__name__: set(methods) for owner, methods in native._METHODS.items()}
    assert "append_block" in added["ProgramDesc"]
    assert {name: methods - table.get(name, set()) for name, methods in added.items()} == dict.fromkeys(added, set())


def test_the_reason_of_each_class_is_in_the_docstring():
    assert [owner.__name__ for owner in native._METHODS if f"\n    {owner.__name__} " not in native.__doc__] == []
