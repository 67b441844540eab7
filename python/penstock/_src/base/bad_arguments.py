"""Errors for arguments that a function does not take: they name the function, the argument, and what was given.

`explained` is for functions of C++, `guarded` for those of Python.
"""

from __future__ import annotations

import enum
import functools
import inspect
import numbers
import os
import re
import sys
import types
from typing import TYPE_CHECKING

from penstock._src.base.call_site import is_ours
from penstock._src.base.errors import program_error

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import CodeType, ModuleType
    from typing import Any

    from penstock._penstock import ProgramError


_MODULE = "penstock._penstock."
_SPELLINGS = (
    ("typing.SupportsInt | typing.SupportsIndex", "int"),
    ("typing.SupportsFloat | typing.SupportsIndex", "float"),
    ("typing.SupportsInt", "int"),
    ("typing.SupportsFloat", "float"),
    ("collections.abc.Sequence", "list"),
    ("collections.abc.Mapping", "dict"),
    ("Annotated[", "["),
    (_MODULE, ""),
)
_INT64_MAX = 2**63 - 1


def explained(text: str, args: tuple[object, ...], named: Mapping[str, object]) -> ProgramError:
    """Returns the error to raise instead of pybind11's TypeError.

    Args:
        text (str): the message of pybind11, which lists the signatures.
        args (tuple): the positional arguments, with self for a method.
        named (dict): the keyword arguments.

    Returns:
        penstock.ProgramError: the error.
    """
    function = text.partition("(")[0]
    if not re.search(r"^    \d+\. ", text, re.MULTILINE):
        return _error("a method of a class was called with None in place of its object")
    signatures = [_signature(line) for line in re.findall(r"^    \d+\. (.*)$", text, re.MULTILINE)]
    is_constructor = "incompatible constructor" in text
    if is_constructor:
        function, args = signatures[0][0], args[1:]
    elif signatures[0][1] and signatures[0][1][0][0] == "self":
        function = f"{signatures[0][1][0][1]}.{function}"
        signatures = [(name, parameters[1:]) for name, parameters in signatures]
        args = args[1:]
    found = [_wrong_argument(parameters, args, named) for _, parameters in signatures]
    if len(found) == 1 and found[0]:
        return _error(f"{function}: {found[0]}")
    takes = " or ".join(
        f"({', '.join(_shown(i, *one) for i, one in enumerate(parameters))})" for _, parameters in signatures
    )
    given = ", ".join(
        [_described(value) for value in args] + [f"{name}={_described(value)}" for name, value in named.items()]
    )
    return _error(f"{function} takes {takes}, not ({given})")


def _error(message: str) -> ProgramError:
    return program_error("E-argument-type", message)


def _signature(line: str) -> tuple[str, list[tuple[str, str, bool]]]:
    """Returns (name before the parentheses, [(name, type, whether it has a default)])."""
    name, _, rest = line.partition("(")
    for long, short in _SPELLINGS:
        name, rest = name.replace(long, short), rest.replace(long, short)
    parameters, depth, word = [], 0, ""
    for letter in rest:
        depth += letter in "([{"
        depth -= letter in ")]}"
        if depth < 0 or (depth == 0 and letter == ","):
            if word.strip():
                parameters.append(_parameter(word.strip()))
            word = ""
            if depth < 0:
                break
        else:
            word += letter
    return name, parameters


def _parameter(text: str) -> tuple[str, str, bool]:
    name, _, kind = text.partition(": ")
    kind, _, default = kind.partition(" = ")
    return name, kind.strip(), bool(default)


def _wrong_argument(
    parameters: list[tuple[str, str, bool]], args: tuple[object, ...], named: Mapping[str, object]
) -> str | None:
    """Returns what is wrong with the first argument that does not fit, or None."""
    if len(args) > len(parameters):
        return None
    for i, (name, kind, has_default) in enumerate(parameters):
        if i < len(args):
            value: Any = args[i]
        elif name in named:
            value = named[name]
        elif has_default:
            continue
        else:
            return f"{_label(i, name)} is missing"
        if not _fits(kind, value):
            return f"{_label(i, name)} must be {kind}, not {_described(value)}"
        if kind == "int" and abs(int(value)) > _INT64_MAX:
            return f"{_label(i, name)} is out of range: {value}"
    return None


def _label(index: int, name: str) -> str:
    return f"argument {index + 1}" if re.fullmatch(r"arg\d+", name) else name


def _shown(index: int, name: str, kind: str, has_default: bool) -> str:
    return f"{_label(index, name)}: {kind or 'object'}"


def _fits(kind: str, value: Any) -> bool:
    """Returns whether a value fits a type of a signature; True if that is not known."""
    kinds = _parts(kind, "|")
    if len(kinds) > 1:
        return any(_fits(one, value) for one in kinds)
    outer, _, inner = kind.partition("[")
    if outer == "None":
        return value is None
    if outer == "str":
        return isinstance(value, (str, bytes))
    if outer == "bytes":
        return isinstance(value, bytes)
    if outer == "bool":
        return isinstance(value, bool) or type(value).__name__ in ("bool_", "bool")
    if outer == "int":
        return hasattr(value, "__index__")
    if outer == "float":
        return isinstance(value, numbers.Real)
    if outer in ("list", "tuple"):
        if isinstance(value, (str, bytes)) or not hasattr(value, "__len__") or not hasattr(value, "__getitem__"):
            return False
        element = inner[:-1]
        return outer == "tuple" or not element or all(_fits(element, one) for one in value)
    if outer == "dict":
        return isinstance(value, dict)
    if re.fullmatch(r"[A-Z]\w*", outer):
        return any(base.__name__ == outer for base in type(value).__mro__)
    return True


def _parts(text: str, separator: str) -> list[str]:
    """Splits at separators outside of brackets."""
    parts, depth = [""], 0
    for letter in text:
        depth += letter in "(["
        depth -= letter in ")]"
        if letter == separator and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]


def _described(value: object) -> str:
    if value is None:
        return "None"
    if isinstance(value, (bool, int, float, str, bytes, list, tuple, dict, set)):
        return f"{value!r:.60}"
    return f"an object of type {type(value).__name__}"


# Functions of Python.

# Python's messages about a value of a wrong type -> what was needed. The group is the type's name.
_PYTHONS = [
    (r"'(\w+)' object is not iterable", "a list"),
    (r"cannot unpack non-iterable (\w+) object", "a list"),
    (r"object of type '(\w+)' has no len\(\)", "a list"),
    (r"argument of type '(\w+)' is not (?:iterable|a container or iterable)", "a list"),
    (r"'(\w+)' object is not subscriptable", "a list"),
    (r"'(\w+)' object is not callable", "a function"),
    (r"'(\w+)' object is not an iterator", "an iterator"),
    (r"'(\w+)' object cannot be interpreted as an integer", "an int"),
    (r"'(\w+)' object does not support the context manager protocol", "a context manager"),
    (r"'(NoneType|bool|int|float|str|bytes|list|tuple|dict|set)' object has no attribute '\w+'", "another object"),
    (r"unsupported operand type\(s\) for [^:]+: '(\w+)' and '(\w+)'", "a number"),
    (r"bad operand type for [^:]+: '(\w+)'", "a number"),
    (r"'[^']+' not supported between instances of '(\w+)' and '(\w+)'", "a number"),
    (r"can only concatenate \w+ \(not \"(\w+)\"\) to \w+", "a list"),
    (r"(?:float|int|complex)\(\) argument must be .*, not '(\w+)'", "a number"),
    (r"must be real number, not (\w+)", "a number"),
    (r"expected str, bytes or os\.PathLike object, not (\w+)", "a str"),
    (r"path should be string, bytes, os\.PathLike or integer, not (\w+)", "a str"),
    (r"sequence item \d+: expected str instance, (\w+) found", "a str"),
    (r"unhashable type: '(\w+)'", "a name"),
    (r"cannot convert '(\w+)' object to bytes", "bytes"),
    (r"a bytes-like object is required, not '(\w+)'", "bytes"),
]

# Where the files of Python's library are, and the packages installed among them.
_LIBRARY = ("<frozen ", os.path.dirname(os.__file__) + os.sep)
_PACKAGES = tuple(os.path.join(_LIBRARY[1], name) + os.sep for name in ("site-packages", "dist-packages"))

# Modules whose functions are called often, and by other modules only.
_NOT_GUARDED = frozenset(
    "penstock._src." + name
    for name in (
        "base.call_site",
        "base.flags",
        "ir.descs",
        "ir.op_slots",
        "ir.operator",
        "ir.types",
        "ir.unique_name",
        "ir.var_desc",
    )
)


def guard_modules(modules: list[ModuleType]) -> None:
    """Gives the public functions and methods of modules errors that name a wrong argument, in all modules that have
    them. They replace Python's TypeErrors and AttributeErrors, which are about some value inside Penstock.

    Modules of the implementation that were imported before these have none of their functions.
    """
    guards, holders = {}, {module.__name__ for module in modules}
    for module in modules:
        if module.__name__ in _NOT_GUARDED:
            continue
        for known, thing in list(vars(module).items()):
            if known.startswith("_") or getattr(thing, "__module__", None) != module.__name__:
                continue
            if isinstance(thing, types.FunctionType):
                guards[thing] = guarded(thing)
            elif isinstance(thing, type) and not issubclass(thing, (BaseException, enum.Enum)):
                _guard_methods(thing)
    for name, module in list(sys.modules.items()):
        if name in holders or name.startswith("penstock.") and not name.startswith("penstock._src.") and module:
            named = vars(module)
            named.update(
                [
                    (known, guards[thing])
                    for known, thing in named.items()
                    if type(thing) is types.FunctionType and thing in guards
                ]
            )


def _guard_methods(kind: type) -> None:
    for name, thing in list(vars(kind).items()):
        if name.startswith("_") and name not in ("__init__", "__call__"):
            continue
        if isinstance(thing, types.FunctionType):
            setattr(kind, name, guarded(thing))
        elif isinstance(thing, (staticmethod, classmethod)) and isinstance(thing.__func__, types.FunctionType):
            setattr(kind, name, type(thing)(guarded(thing.__func__)))
        elif type(thing) is property and isinstance(thing.fset, types.FunctionType):
            setattr(kind, name, property(thing.fget, guarded(thing.fset), thing.fdel, thing.__doc__))


def guarded(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns the function with such errors. Idempotent."""
    if hasattr(function, "_is_guarded"):
        return function

    @functools.wraps(function)
    def call(*args: Any, **named: Any) -> Any:
        try:
            return function(*args, **named)
        except (TypeError, AttributeError) as error:
            if not is_ours(sys._getframe(1).f_code):
                explanation = _explanation(function, args, named, error)
                if explanation is not None:
                    raise explanation from None
            raise

    call._is_guarded = True  # type: ignore[attr-defined]
    return call


def _explanation(
    function: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any], error: Exception
) -> ProgramError | None:
    """Returns the error that names the wrong argument, or None if the error is not about one."""
    if type(error) not in (TypeError, AttributeError):
        return None
    if str(error).startswith("(): incompatible function arguments."):  # of a property of C++
        return _error(f"{function.__qualname__} cannot be {', '.join(map(_described, args[1:]))}")
    for pattern, needed in _PYTHONS:  # noqa: B007  (used after the loop)
        found = re.search(pattern, str(error))
        if found:
            break
    else:
        return None
    if not is_ours(_raised_in(error)):  # of a function that the user passed
        return None
    label, types = function.__qualname__.replace(".__init__", ""), [kind for kind in found.groups() if kind]
    try:
        given = inspect.signature(function).bind(*args, **named).arguments
    except TypeError:
        return None
    documented = _documented_types(function)
    for name, value in given.items():
        kind = _part_of_type(value, types) if name != "self" else None
        if kind is not None:
            return _error(f"{label}: {name} must be {documented.get(name, needed)}, not {kind}")
    return _error(
        f"{label}: a part of an argument is "
        f"{'None' if types[0] == 'NoneType' else 'an object of type ' + types[0]} where {needed} is needed"
    )


def _raised_in(error: Exception) -> CodeType:
    """Returns the code that raised an error, or that called the function of Python's library that did."""
    codes, last = [], error.__traceback__
    while last is not None:
        codes.append(last.tb_frame.f_code)
        last = last.tb_next
    while len(codes) > 1 and _is_of_library(codes[-1]):
        codes.pop()
    return codes[-1]


def _is_of_library(code: CodeType) -> bool:
    return code.co_filename.startswith(_LIBRARY) and not code.co_filename.startswith(_PACKAGES)


def _part_of_type(value: object, types: list[str]) -> str | None:
    """Returns how to describe a value of one of the types, or a list that has such a value; None for others."""
    if type(value).__name__ in types:
        return _described(value)
    if isinstance(value, (list, tuple)):
        for i, one in enumerate(value[:100]):
            if type(one).__name__ in types:
                return f"a list whose element {i} is {_described(one)}"
    return None


def _documented_types(function: Callable[..., Any]) -> dict[str, str]:
    """Returns {argument: type} of a docstring's section Args."""
    return dict(re.findall(r"^ +(\w+) \((.+?)\): ", function.__doc__ or "", re.MULTILINE))
