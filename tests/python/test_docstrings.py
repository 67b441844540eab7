"""Every public name has a complete docstring: what it computes, each argument with its type, what it returns, what it
raises, and an example, which test_examples.py runs.

Public names are the functions and classes that a module of penstock lists in `__all__`, or defines if it has no
`__all__`, and the public methods and properties of these classes. Modules of the launcher are not public, because its
interface is the command. A method without a docstring inherits that of the base class. A method may use the example of
its class, and exceptions need none.
"""

import ast
import importlib.util
import inspect
import pathlib
import re
import textwrap

import pytest
from test_examples import example_of

AT_LEAST = 400  # names; a rule that finds none would pass
SECTION = re.compile(r"([A-Z]\w+):$")
ENTRY = re.compile(r"    \*{0,2}(\w+) \((.+?)\): \S")
NESTED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)

_GENERATE = pathlib.Path(__file__).resolve().parents[2] / "python" / "docs" / "generate.py"
_SPEC = importlib.util.spec_from_file_location("generate", _GENERATE)
generate = importlib.util.module_from_spec(_SPEC)  # says which names have an entry in the pages
_SPEC.loader.exec_module(generate)


def _functions_and_classes():
    """(name, object), each object once: aliases share a docstring."""
    seen = set()
    for _, module in generate.public_modules():
        for name in generate.public_names(module):
            thing = getattr(module, name, None)
            ours = getattr(thing, "__module__", None) or ""
            if (inspect.isfunction(thing) or inspect.isclass(thing)) and ours.startswith("penstock"):
                if id(thing) not in seen:
                    seen.add(id(thing))
                    yield f"{module.__name__}.{name}", thing


def _members():
    """(name, its class, its definition) of the public methods and properties that Python defines, with those of
    base classes that are not public."""
    public, seen = generate.public_classes(), set()
    for where, owner in _functions_and_classes():
        for holder in owner.__mro__ if inspect.isclass(owner) else ():
            if holder is not owner and (id(holder) in public or not holder.__module__.startswith("penstock")):
                continue
            for name, member in vars(holder).items():
                inner = getattr(member, "__func__", getattr(member, "fget", member))
                if not name.startswith("_") and inspect.isfunction(inner) and id(inner) not in seen:
                    seen.add(id(inner))
                    yield f"{where}.{name}", holder, member


def sections(docstring):
    """{heading: its lines}."""
    found, current = {}, None
    for line in docstring.splitlines():
        heading = SECTION.match(line)
        if heading:
            current = found.setdefault(heading[1], [])
        elif current is not None and (not line.strip() or line.startswith(" ")):
            current.append(line)
        else:
            current = None
    return found


def _own_nodes(function):
    """The syntax of a function without the functions and classes inside."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(inspect.unwrap(function))))
    nodes = list(tree.body[0].body)
    while nodes:
        node = nodes.pop()
        if not isinstance(node, NESTED):
            yield node
            nodes += ast.iter_child_nodes(node)


def _gives(node):
    none = isinstance(node, ast.Return) and isinstance(node.value, ast.Constant) and node.value.value is None
    return isinstance(node, (ast.Return, ast.Yield, ast.YieldFrom)) and not none and node.value is not None


def missing_in(docstring, function, skip_first=False):
    """The parts of the function's signature and body that its docstring lacks."""
    if not docstring:
        return ["a docstring"]
    found, missing = sections(docstring), []
    entries = [ENTRY.match(line) for line in found.get("Args", ())]
    documented = [entry[1] for entry in entries if entry]
    untyped = [line for line in found.get("Args", ()) if re.match(r"    \S", line) and not ENTRY.match(line)]
    missing += [f"a name and a type in {line.strip()!r}" for line in untyped]
    parameters = list(inspect.signature(function).parameters)[skip_first:]
    missing += [f"the argument {name}" for name in parameters if name not in documented and name[0] != "_"]
    missing += [f"an argument {name} in the signature" for name in documented if name not in parameters]
    nodes = list(_own_nodes(function))
    if any(map(_gives, nodes)) and not {"Returns", "Yields"} & set(found):
        missing.append("Returns")
    if any(isinstance(node, (ast.Yield, ast.YieldFrom)) for node in nodes) and not {"Returns", "Yields"} & set(found):
        missing.append("Yields")
    if any(isinstance(node, ast.Raise) and node.exc is not None for node in nodes) and "Raises" not in found:
        missing.append("Raises")
    return missing


def _missing_in_class(thing):
    docstring = inspect.cleandoc(vars(thing).get("__doc__") or "")
    if not docstring:
        return ["a docstring"]
    init = vars(thing).get("__init__")
    missing = missing_in(docstring, init, skip_first=True) if inspect.isfunction(init) else []
    if not issubclass(thing, BaseException) and example_of(docstring) is None:
        missing.append("Example")
    return missing


def _missing_in_member(owner, name, member):
    inherited = (vars(base)[name].__doc__ for base in owner.__mro__ if name in vars(base) and vars(base)[name].__doc__)
    docstring = inspect.cleandoc(member.__doc__ or next(inherited, ""))
    if isinstance(member, property):
        return [] if docstring else ["a docstring"]
    function = getattr(member, "__func__", member)
    return missing_in(docstring, function, skip_first=not isinstance(member, staticmethod))


def test_functions_and_classes_are_documented():
    incomplete, seen = [], 0
    for name, thing in _functions_and_classes():
        seen += 1
        if inspect.isclass(thing):
            missing = _missing_in_class(thing)
        else:
            docstring = inspect.cleandoc(thing.__doc__ or "")
            missing = missing_in(docstring, thing)
            if docstring and example_of(docstring) is None:
                missing.append("Example")
        incomplete += [f"{name} lacks {what}" for what in missing]
    assert incomplete == [] and seen >= AT_LEAST


def test_methods_and_properties_are_documented():
    incomplete, seen = [], 0
    for name, owner, member in _members():
        seen += 1
        incomplete += [f"{name} lacks {what}" for what in _missing_in_member(owner, name.rpartition(".")[2], member)]
    assert incomplete == [] and seen >= AT_LEAST


def test_docstrings_have_no_key_of_a_shared_text():
    """As base/doc_texts.py inserts texts for keys; a docstring without its decorator would keep them."""
    members = [(name, member) for name, _, member in _members()]
    texts = [(name, thing.__doc__ or "") for name, thing in [*_functions_and_classes(), *members]]
    assert [name for name, text in texts if re.search(r"^\s*\{\w+\}$", text, re.MULTILINE)] == []
    assert sum("Args:" in text for _, text in texts) >= AT_LEAST


def test_each_field_of_the_transpilers_configuration_is_documented(fluid):
    config = fluid.DistributeTranspilerConfig
    fields = {name for name in dir(config) if name[0] != "_" and not callable(getattr(config, name))}
    listed = sections(inspect.cleandoc(config.__doc__))["Attributes"]
    assert fields == {entry[1] for entry in map(ENTRY.match, listed) if entry}


COMPLETE = """Adds.

Args:
    a (int): one.
    *more (int): others,
        of any number.

Returns:
    int: the sum.

Raises:
    ValueError: none is given."""


def add(a, *more):
    if not more:
        raise ValueError("none")
    return sum(more, a)


@pytest.mark.parametrize(
    "docstring, missing",
    [
        (COMPLETE, []),
        ("", ["a docstring"]),
        (COMPLETE.replace("a (int)", "a"), ["a name and a type in 'a: one.'", "the argument a"]),
        (COMPLETE.replace("*more", "*rest"), ["the argument more", "an argument rest in the signature"]),
        (COMPLETE.replace("Returns:", "Gives:"), ["Returns"]),
        (COMPLETE.replace("Raises:", "Fails:"), ["Raises"]),
    ],
)
def test_missing_docstring_sections_are_detected(docstring, missing):
    assert missing_in(docstring, add) == missing


class Wrong:
    """Neither a Variable nor another valid argument of a layer."""


def _stands_for(fluid, name, kind):
    """A value for an argument of a kind that a docstring documents."""
    if "Variable" in kind:
        return fluid.data(name, [None, 4], lod_level=1)
    return [1] if "list" in kind else "float32" if "str" in kind else 1


def _layers_of_a_variable():
    """(name, layer, {argument without a default: its kind}) where the first argument is a Variable."""
    for name, thing in _functions_and_classes():
        if not inspect.isfunction(thing) or not name.startswith(("penstock.fluid.layers.", "penstock.fluid.nets.")):
            continue
        entries = map(ENTRY.match, sections(inspect.cleandoc(thing.__doc__)).get("Args", ()))
        kinds = {entry[1]: entry[2] for entry in entries if entry}
        required = {
            one.name: kinds[one.name]
            for one in inspect.signature(thing).parameters.values()
            if one.default is one.empty and one.kind is one.POSITIONAL_OR_KEYWORD
        }
        if next(iter(required.values()), "") in ("Variable", "Variable | list[Variable]"):
            yield name, thing, required


def test_errors_of_layers_for_a_wrong_first_argument_are_documented(fluid):
    undocumented, seen = [], 0
    for name, layer, required in _layers_of_a_variable():
        arguments = {one: _stands_for(fluid, one, kind) for one, kind in required.items()}
        arguments[next(iter(required))] = Wrong()
        with pytest.raises(Exception) as raised:
            layer(**arguments)
        seen += 1
        raises = "\n".join(sections(inspect.cleandoc(layer.__doc__)).get("Raises", ()))
        listed = re.findall(r"(?m)^    ([\w., ]+):", raises)
        names = {one.strip().rpartition(".")[2] for line in listed for one in line.split(",")}
        if not names & {kind.__name__ for kind in type(raised.value).__mro__}:
            undocumented.append(f"{name} raises {raised.value!r}")
    assert undocumented == [] and seen > 200
