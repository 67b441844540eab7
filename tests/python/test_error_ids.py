"""Errors that the Python layers raise have an id, unless they are about a wrong argument or belong to Python's own
protocols."""

import ast
import re

import conftest
import penstock
import pytest
from penstock._src.base import errors
from penstock._src.launch.errors import JobError

IMPLEMENTATION = conftest.ROOT / "python" / "penstock" / "_src"
WITH_ID = {"program_error", "state_error", "data_error", "not_built", "error_with_id"}  # of base/errors.py
ARGUMENTS = {"TypeError", "ValueError"}  # a wrong argument of a call

# Other classes without an id, with the reason.
LISTED = {
    "AttributeError": "Python's protocol of __getattr__ and __setattr__",
    "ArgumentError": "base/bad_arguments.py makes its TypeErrors with it",
    "ChannelError": "text of a JoinError or of a report of the launcher, which have ids",
    "ComposeNotAligned": "a ValueError: the arguments of compose() do not fit together",
    "ConnectionLost": "text of a JobError of launch/backends/crew.py, which has an id",
    "FileExistsError": "as the operating system raises it, with errno and path",
    "FileNotFoundError": "as the operating system raises it, with errno and path",
    "HostsUpdatedInterrupt": "begins the next round of an elastic job; no error",
    "IndexError": "a subscript of a call is out of range",
    "IsADirectoryError": "as the operating system raises it, with errno and path",
    "JobError": "the class has the id",
    "JoinError": "the class has the id",
    "StartError": "the class has the id",
    "KeyError": "a key of a call is not in the mapping",
    "LineError": "ends a connection of the scheduler; a member raises E-kv-scheduler",
    "MessageError": "a ChannelError",
    "ProgramError": "Fluid's core raises it to test scripts",
    "StopIteration": "Python's protocol of iterators",
    "Stopped": "ends a wait of the launcher; no error",
    "UnknownType": "a TypeError and ValueError: an element type that a call was given",
    "_Refused": "text of an error of io/pickles.py, which has an id",
    "_Stopped": "ends a thread of a reader; no error",
    "_Unsupported": "text of an error of hvd/objects.py, which has an id",
    "argparse.ArgumentTypeError": "argparse prints it with the option, and the command ends with exit code 2",
    "_penstock.EOFException": "the end of a reader; no error",
    "_penstock.StateError": "an error that C++ raised, raised again with its id",
}
ABSTRACT = re.compile(r"does not define|must define|has no \w+")  # methods that a subclass defines


def raised():
    """(file, line, the raised expression, functions of the module by name) of each raise of a new error."""
    for path in sorted(IMPLEMENTATION.rglob("*.py")):
        tree = ast.parse(path.read_text())
        functions = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Raise) and node.exc is not None:
                yield path.relative_to(IMPLEMENTATION), node.lineno, node.exc, functions


def is_left_to_subclasses(error):
    """Whether the error is that of a method that a subclass defines."""
    name = error.func if isinstance(error, ast.Call) else error
    bare = not isinstance(error, ast.Call) or not error.args
    return ast.unparse(name) == "NotImplementedError" and (bare or bool(ABSTRACT.search(ast.unparse(error))))


def name_of(error):
    return ast.unparse(error.func if isinstance(error, ast.Call) else error)


def has_id_or_reason(error, functions):
    name = name_of(error)
    if name in WITH_ID | ARGUMENTS | set(LISTED) or is_left_to_subclasses(error):
        return True
    if isinstance(error, (ast.Name, ast.Attribute)):  # an error that was caught or received
        return not name[0].isupper()
    made_by = functions.get(name.split(".")[-1])  # a function of the module that makes the error
    returned = [node.value for node in ast.walk(made_by) if isinstance(node, ast.Return)] if made_by else []
    return bool(returned) and all(isinstance(one, ast.Call) and has_id_or_reason(one, {}) for one in returned)


# Functions of other modules that make errors.
MAKERS = {"refused.refusal", "tokens.error", "explanation", "_with_path", "_with"}


def test_each_error_but_those_about_arguments_has_an_id():
    wrong, seen = [], 0
    for path, line, error, functions in raised():
        seen += 1
        if name_of(error) not in MAKERS and not has_id_or_reason(error, functions):
            wrong.append(f"{path}:{line}: {ast.unparse(error)[:100]}")
    assert wrong == [] and seen > 800


@pytest.mark.parametrize(
    "error, is_right",
    [
        ("RuntimeError('no data')", False),
        ("OSError(2, 'x')", False),
        ("NotImplementedError('no such layer')", False),
        ("NotImplementedError", True),
        ("NotImplementedError(f'{self} does not define call')", True),
        ("ValueError('axis is 7')", True),
        ("state_error('E-fleet-init', 'x')", True),
        ("made('x')", False),
        ("Exception", False),
    ],
)
def test_an_error_without_an_id_is_found(error, is_right):
    functions = {"made": ast.parse("def made(x):\n    return RuntimeError(x)").body[0]}
    assert has_id_or_reason(ast.parse(error, mode="eval").body, functions) is is_right


def test_no_class_is_listed_in_vain():
    names = {name_of(error) for _, _, error, _ in raised()}
    assert set(LISTED) - names == set() and MAKERS - names == set()


def test_errors_of_other_classes_have_an_id_too():
    error = errors.error_with_id(OSError, "E-file-read", "x: cannot be read", "a detail")
    assert isinstance(error, OSError) and error.id == "E-file-read" and error.details == ["a detail"]
    assert str(error) == "x: cannot be read   [E-file-read]\n  a detail"
    error = errors.not_built("fluid.x is not built")
    assert isinstance(error, NotImplementedError) and str(error) == "fluid.x is not built   [E-not-built]"


def test_errors_that_scripts_of_fluid_catch_keep_their_classes(fluid):
    with pytest.raises(RuntimeError, match=r"has no data: give it a generator first   \[E-reader-order\]") as caught:
        iter(fluid.io.DataLoader.from_generator(feed_list=[fluid.data("x", [None, 2])], capacity=2))
    assert isinstance(caught.value, penstock.StateError) and caught.value.id == "E-reader-order"
    with pytest.raises(ValueError, match="E-load-folder") as caught:
        fluid.load_program_state("there/is/none")
    assert caught.value.id == "E-load-folder"
    with pytest.raises(NotImplementedError, match="E-not-built"):
        fluid.load_op_library("libmine.so")


def test_an_invalid_job_has_an_id():
    assert JobError("--nproc is 0").line() == "--nproc is 0   [E-launch-job]"
    assert JobError("x   [E-environment]", "E-environment").line() == "x   [E-environment]"
