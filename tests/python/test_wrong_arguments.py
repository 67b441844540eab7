"""What the functions of C++ say about arguments that they do not take. None never crashes one."""

import importlib
import inspect
import os
import pkgutil
import re
import signal
import socketserver
import sys

import penstock
import pytest
from penstock import _penstock
from penstock._src.base import bad_arguments as _bad_arguments

CLASS = re.compile(r"penstock\._penstock\.(\w+)")


def bound_functions():
    """(name, function, signature) of each function and method of the module that C++ binds."""
    found = []
    for name, thing in vars(_penstock).items():
        members = vars(thing).items() if inspect.isclass(thing) else [(None, thing)]
        for member, function in members:
            function = getattr(function, "__func__", function)
            for line in (getattr(function, "__doc__", None) or "").splitlines():
                signature = re.match(r"(?:\d+\. )?(\w+)\((.*)\) -> ", line)
                if callable(function) and signature and signature[1] in (member, name):
                    found.append((f"{name}.{member}" if member else name, function, signature[2]))
    return found


def parameters(signature):
    """[(name, type)] of a signature's text."""
    parts, depth = [""], 0
    for letter in signature:
        depth += letter in "([{"
        depth -= letter in ")]}"
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [(*part.strip().split(": ", 1), "")[:2] for part in parts if part.strip()]


def instances():
    """An object of each class that a parameter may have and that Python can make."""
    made = {}
    for name, kind in vars(_penstock).items():
        if inspect.isclass(kind) and not issubclass(kind, BaseException):
            for arguments in ((), (1,), ("",), ("a", 1)):
                try:
                    made[name] = kind(*arguments)
                    break
                except Exception:
                    pass
    made.pop("Executor", None)
    return made


def outcomes(calls):
    """{label: what a call gives} of (label, call), which run in one child process. The child must live through all."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        signal.alarm(60)
        with os.fdopen(write, "w") as pipe:
            for label, call in calls:
                print(label, file=pipe, flush=True)
                try:
                    call()
                    text = "nothing"
                except BaseException as error:
                    text = f"{type(error).__name__}: {error}"
                print(repr(text), file=pipe, flush=True)
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        lines = pipe.read().splitlines()
    status = os.waitpid(child, 0)[1]
    assert status == 0, f"status {status} in {lines[-1]}"
    return dict(zip(lines[::2], lines[1::2]))


def stand_in(kind, made):
    found = CLASS.search(kind)
    if found:
        return made.get(found[1])
    return {"str": "a", "bool": False, "dict": {}, "list": [], "tuple": ()}.get(
        re.split(r"[\[ ]", kind)[0], 1 if "Int" in kind or "int" in kind or "float" in kind.lower() else []
    )


def called(function, arguments):
    return lambda: function(*arguments)


def test_every_bound_function_refuses_none_for_an_object():
    made, calls = instances(), []
    for name, function, signature in bound_functions():
        given = parameters(signature)
        for i, (parameter, kind) in enumerate(given):
            is_object = CLASS.match(kind) and "None" not in kind
            if is_object and not any(part.startswith("*") for part, _ in given):
                arguments = [None if j == i else stand_in(other, made) for j, (_, other) in enumerate(given)]
                calls.append((f"{name}({signature}): {parameter} is None", called(function, arguments)))
    assert len(calls) > 150
    for label, text in outcomes(calls).items():
        assert "ProgramError" in text and "E-argument-type" in text, (label, text)


def test_bound_functions_never_crash_or_raise_pybind11_errors():
    odd, calls = object(), []
    for name, function, signature in bound_functions():
        count = len(parameters(signature))
        for given in ([None] * count, [odd] * count, [odd] * 17, [{}], [b"\xff"] * 3):
            if given:
                calls.append((f"{name}({signature}) of {given!s:.80}", called(function, given)))
    for label, text in outcomes(calls).items():
        assert "incompatible" not in text and "penstock._penstock" not in text, (label, text)


@pytest.mark.parametrize(
    "call, text",
    [
        (lambda fluid: fluid.Scope().var(None), r"^Scope\.var: name must be str, not None"),
        (lambda fluid: fluid.Scope().find_var(3), r"^Scope\.find_var: name must be str, not 3"),
        (
            lambda fluid: fluid.LoDTensor().set_lod(None),
            r"^LoDTensor\.set_lod: lod must be list\[list\[int\]\], not None",
        ),
        (lambda fluid: fluid.LoDTensor().set_lod([[0, "a"]]), r"^LoDTensor\.set_lod: lod must be"),
        (lambda fluid: fluid.LoDTensor().set_lod(), r"^LoDTensor\.set_lod: lod is missing"),
        (
            lambda fluid: fluid.LoDTensor().set_lod(1, 2, 3),
            r"^LoDTensor\.set_lod takes \(lod: list\[list\[int\]\]\), not \(1, 2, 3\)",
        ),
        (
            lambda fluid: fluid.global_scope().var("a").set_int(2**70),
            r"^RuntimeVariable\.set_int: value is out of range",
        ),
        (
            lambda fluid: fluid.LoDTensorArray().append(None),
            r"^LoDTensorArray\.append: tensor must be LoDTensor, not None",
        ),
        (lambda fluid: fluid.core.Scope.var(None, "a"), r"a method of a class was called with None"),
    ],
)
def test_errors_name_function_argument_and_value(fluid, call, text):
    with pytest.raises(TypeError, match=text) as caught:
        call(fluid)
    assert isinstance(caught.value, penstock.ProgramError) and caught.value.id == "E-argument-type"


def public_functions():
    """(name, function) of the functions and classes that the modules of Penstock have for users."""
    for one in pkgutil.walk_packages(penstock.__path__, "penstock."):
        if one.name.startswith(("penstock.fluid", "penstock.hvd")):
            importlib.import_module(one.name)
    found = {}
    for name, module in sorted(sys.modules.items()):
        if name.startswith(("penstock.fluid", "penstock.hvd")) and "._" not in name and not name.endswith(".operator"):
            for known in getattr(module, "__all__", [one for one in vars(module) if not one.startswith("_")]):
                thing = getattr(module, known, None)
                if callable(thing) and getattr(thing, "__module__", None) == name:
                    found[f"{name}.{known}"] = thing
    return found


def test_none_for_required_python_arguments_is_explained():
    import penstock.fluid.incubate.fleet.utils.http_server  # noqa: F401

    calls = []
    for name, function in public_functions().items():
        if inspect.isclass(function) and issubclass(function, socketserver.BaseRequestHandler):
            continue  # servers make them
        try:
            needed = [
                one
                for one in inspect.signature(function).parameters.values()
                if one.default is one.empty and one.kind is one.POSITIONAL_OR_KEYWORD
            ]
        except (TypeError, ValueError):
            continue
        if needed:
            calls.append((name, called(function, [None] * len(needed))))
    assert len(calls) > 400
    for label, text in outcomes(calls).items():
        assert "'NoneType' object" not in text and "PathLike" not in text, (label, text)


@pytest.mark.parametrize("folder, is_library", [("", True), ("site-packages", False), ("dist-packages", False)])
def test_site_packages_are_not_part_of_the_standard_library(folder, is_library):
    path = os.path.join(os.path.dirname(os.__file__), folder, "x.py")
    code = compile("def inside():\n    raise TypeError", path, "exec")
    names = {}
    exec(code, names)
    with pytest.raises(TypeError) as caught:
        names["inside"]()
    assert (_bad_arguments._raised_in(caught.value) is not names["inside"].__code__) == is_library
