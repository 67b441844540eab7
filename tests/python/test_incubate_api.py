"""The names of Fluid's fleets and data generators, and their signatures."""

import importlib
import inspect
import json

import conftest
import pytest

# Names for Baidu's own systems, and tools that inspect model files.
NOT_HERE = (".pslib", ".utils.http_server", ".utils.utils")

# Not used by scripts: classes between a base class and the used ones.
PRIVATE = ("MockBarrier", "MPIRoleMaker")


def modules():
    path = conftest.CORPUS / "api.json"
    named = json.loads(path.read_text())["modules"] if path.exists() else {}
    return {
        name: names
        for name, names in named.items()
        if name.startswith("paddle.fluid.incubate") and not name.endswith(NOT_HERE)
    }


def recorded(params):
    return [(each.get("kind", "") if each.get("kind") in ("*", "**") else "") + each["name"] for each in params]


def ours(function):
    if function is object.__init__:
        return ["self"]
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    return [stars.get(each.kind, "") + each.name for each in inspect.signature(function).parameters.values()]


@pytest.mark.parametrize("module", modules())
def test_names_and_arguments_match_fluid(module):
    here = importlib.import_module(module.replace("paddle", "penstock", 1))
    wrong = {}
    for name, facts in modules()[module].items():
        if facts.get("kind") != "class" or facts.get("defined_in", module) != module or name in PRIVATE:
            continue
        kind = getattr(here, name)
        if facts.get("init") and recorded(facts["init"]) != ours(kind.__init__):
            wrong[name] = ours(kind.__init__), recorded(facts["init"])
        for method, about in facts["methods"].items():
            if "params" not in about or "from" in about or method == "raiseOptimizeError":
                continue
            found = getattr(kind, method, None)
            if found is None or ours(found) != recorded(about["params"]):
                wrong[f"{name}.{method}"] = found and ours(found), recorded(about["params"])
    assert not wrong, wrong
