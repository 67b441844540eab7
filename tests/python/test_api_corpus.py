"""Every public name of Fluid 1.8 exists with Fluid's signature, or is on the list of unsupported names."""

import importlib
import inspect
import json

import conftest
import pytest
from penstock._src.names import not_built as _not_built

# Not part of the users' API: the C++ module, and additions by other parts of Fluid's tree.
OTHER_MODULES = ("paddle.fluid.core", "paddle.fluid.incubate", "paddle.fluid.op")
HANDLES = ("Block", "Operator", "Parameter", "Variable")  # methods of Program and Block create them
# Signatures with additional or optional arguments.
DIFFERENT = {
    "executor.Executor": "may be told the wire that it speaks with parameter servers",
    "framework.Program.to_string": "throw_on_error may be left out",
    "layer_helper.LayerHelper.append_op": "what Fluid hands on as *args is spelled out",
    "communicator.Communicator": "no default dict that all instances share",
    "input.embedding": "may be told which rows pservers keep",
    "layers.embedding": "may be told which rows pservers keep",
    "layers.sign": "takes a name, as its kin do",
    "regularizer.WeightDecayRegularizer": "the kinds share their constructor",
    "transpiler.collective.LocalSGD": "k_steps and adaptive are asked for",
    "unique_name.switch": "there are no dygraph names to check",
    "transpiler.distribute_transpiler.DistributeTranspiler.transpile": "an untouched sync_mode gives way to the "
    "config; what was asked of older versions is "
    "taken still",
}


def api():
    path = conftest.CORPUS / "api.json"
    modules = json.loads(path.read_text())["modules"] if path.exists() else {}
    return {
        name: names
        for name, names in modules.items()
        if (name + ".").startswith("paddle.fluid.") and not name.startswith(OTHER_MODULES)
    }


API = api()


def ours(module):
    """Our module of that name; None if there is none."""
    name = module.replace("paddle", "penstock", 1)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        assert name.startswith(error.name)
        return None


def public(names):
    return {name for name, facts in names.items() if facts.get("in_all")}


@pytest.mark.parametrize("module", API)
def test_missing_names_are_listed_as_not_built(module):
    """A name that exists must not be listed in penstock/_src/names/not_built.py."""
    here = ours(module)
    if here is None:
        assert not public(API[module]) or module.split(".")[2] in _not_built.NAMES["fluid"]
        return
    missing = {name for name in public(API[module]) if not hasattr(here, name)}
    if module == "paddle.fluid":
        modules = {name.split(".")[2] for name in API if name.count(".") == 2}
        missing |= {name for name in modules if not hasattr(here, name)}
    listed = _not_built.NAMES.get(_not_built.list_of(here.__name__), frozenset())
    assert missing <= listed
    if _not_built.list_of(here.__name__) == here.__name__.removeprefix("penstock."):
        assert listed == missing
    for name in missing:
        with pytest.raises(AttributeError, match=f"{name} is part of Fluid 1.8, but not built yet"):
            getattr(here, name)


def test_a_misspelled_name_suggests_similar_names(fluid):
    with pytest.raises(AttributeError, match="^penstock.fluid.layers has no softmaxx; did you mean softmax"):
        fluid.layers.softmaxx
    with pytest.raises(AttributeError, match="^penstock.fluid.layers has no qqqqq$"):
        fluid.layers.qqqqq


def described():
    """(where, our object, [parameters as recorded]) of each function, constructor and method."""
    for module, names in API.items():
        here = ours(module)
        for name, facts in names.items():
            if name in HANDLES or here is None or not hasattr(here, name) or facts.get("pybind"):
                continue
            value = getattr(here, name)
            where = (f"{here.__name__}.{name}").replace("penstock.fluid.", "", 1)
            if facts.get("kind") == "function" and "params" in facts:
                yield where, value, facts["params"]
            elif facts.get("kind") == "class":
                if facts.get("init"):
                    yield where, value.__init__, facts["init"]
                for method, about in facts["methods"].items():
                    if about["kind"] in ("method", "staticmethod") and "from" not in about and defines(value, method):
                        yield f"{where}.{method}", getattr(value, method), about["params"]


def defines(kind, method):
    return any(method in vars(base) for base in kind.__mro__)


def recorded_signature(params):
    out = []
    for param in params:
        stars = param["kind"] if param.get("kind") in ("*", "**") else ""
        out.append(stars + param["name"] + ("=" + param["default"] if "default" in param else ""))
    return ", ".join(out)


def our_signature(function):
    if function is object.__init__:
        return "self"
    out = []
    for param in inspect.signature(function).parameters.values():
        stars = {param.VAR_POSITIONAL: "*", param.VAR_KEYWORD: "**"}.get(param.kind, "")
        default = param.default
        if default is not param.empty:
            shown = "VarType." + default.name if type(default).__name__ == "VarType" else repr(default)
        out.append(stars + param.name + ("" if default is param.empty else "=" + shown))
    return ", ".join(out)


def test_signatures_match_fluid():
    wrong, count = {}, 0
    for where, value, params in described():
        if not inspect.isfunction(value) and value is not object.__init__:
            continue  # C++ shows no signature
        count += 1
        if (our_signature(value) != recorded_signature(params)) != (where in DIFFERENT):
            wrong[where] = (our_signature(value), recorded_signature(params))
    assert not wrong, "\n".join("%s\n  ours  (%s)\n  Fluid (%s)" % ((where,) + pair) for where, pair in wrong.items())
    assert not API or count > 200
