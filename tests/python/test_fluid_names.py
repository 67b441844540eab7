"""tools/dev/fluid_names.py finds the names that scripts use and Penstock lacks."""

import json
import subprocess
import sys

import conftest

TOOL = conftest.ROOT / "tools" / "dev" / "fluid_names.py"

SCRIPTS = {
    "whole.py": "import paddle\nimport paddle.fluid as fluid\nfrom paddle.fluid.layers import fc as dense\n"
    'fluid.layers.data("x", [1]).shape.anything\npaddle.batch\n',
    "lacks.py": "from paddle import fluid\nimport paddle.fluid.nowhere\nfluid.layers.no_such_layer.x(fluid.nothing)",
    "lacks_one.py": "import paddle.fluid as F\nfrom paddle.fluid.layers import *\nF.nothing.at.all",
    "imperative.py": "import paddle.fluid as fluid\nfluid.dygraph.guard()",
    "paddle2.py": "import paddle\nimport paddle.fluid\npaddle.nn.Linear",
    "old.py": "import paddle.v2 as paddle\nimport paddle.fluid",
    "other.py": "import numpy",
    "python2.py": 'import paddle.fluid\nprint "x"',
}


def run(*arguments):
    return subprocess.run(
        [sys.executable, TOOL, *map(str, arguments)], capture_output=True, text=True, check=True, timeout=120
    ).stdout.splitlines()


def test_scripts_are_counted_and_missing_names_sorted_by_use(tmp_path):
    for name, text in SCRIPTS.items():
        (tmp_path / name).write_text(text)
    first, second, *others = run("--scripts", tmp_path)
    assert first == "1 of 3 scripts find every name (33.3 %)"
    assert second == "    2 scripts,    1 lack nothing else: paddle.fluid.nothing"
    assert sorted(others) == [
        "    1 scripts,    0 lack nothing else: paddle.fluid." + name for name in ("layers.no_such_layer", "nowhere")
    ]


def test_the_api_is_compared_module_by_module(tmp_path):
    api = {
        "modules": {
            "paddle.fluid.average": {"WeightedAverage": {"in_all": True}},
            "paddle.fluid.layers": {
                "fc": {"in_all": True},
                "no_such_layer": {"in_all": True},
                "hidden": {"in_all": False},
            },
        }
    }
    path = tmp_path / "api.json"
    path.write_text(json.dumps(api))
    assert run("--api", path) == ["paddle.fluid.layers: 1 of 2 public names are missing: no_such_layer"]
