"""The table of public names: the public modules are what it says, and it has, or refuses, every name of Fluid 1.8.5."""

import ast
import importlib
import importlib.util
import inspect
import pathlib
import pickle
import pkgutil
import re
import subprocess
import sys
import types

import penstock
import penstock._src
import pytest
from penstock._src.names import not_built
from test_api_corpus import API, public

ROOT = pathlib.Path(__file__).resolve().parents[2]
_SPEC = importlib.util.spec_from_file_location("gen_names", ROOT / "tools" / "dev" / "gen_names.py")
gen_names = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(gen_names)
TABLE = gen_names.read_table()


def module_of(name):
    return importlib.import_module(name if name == "penstock" else "penstock." + name)


def value_of(row):
    """What the implementation has for a row."""
    source, _, name = row.source.partition(":")
    return getattr(importlib.import_module("penstock." + source), name or row.name)


def test_the_public_modules_are_those_of_the_table():
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "dev" / "gen_names.py", "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_generator_reports_what_is_not_in_the_table(tmp_path, monkeypatch, capsys):
    package = tmp_path / "penstock"
    for path in (*gen_names.PACKAGE.rglob("*.py"), gen_names.TABLE):
        copy = package / path.relative_to(gen_names.PACKAGE)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(path.read_bytes())
    monkeypatch.setattr(gen_names, "ROOT", tmp_path)
    monkeypatch.setattr(gen_names, "PACKAGE", package)
    monkeypatch.setattr(sys, "argv", ["gen_names.py", "--check"])
    assert gen_names.main() == 0
    (package / "fluid" / "more.py").write_text('"""More."""\n')
    average = package / "fluid" / "average.py"
    average.write_text(average.read_text().replace("'WeightedAverage'", "'WeightedAverage', 'Mean'"))
    assert gen_names.main() == 1
    said = capsys.readouterr().out
    assert "not in the table: penstock/fluid/more.py" in said or "not in the table: " in said and "more.py" in said
    assert "out of date: penstock/fluid/average.py" in said
    monkeypatch.setattr(sys, "argv", ["gen_names.py"])
    gen_names.main()
    assert "Mean" not in average.read_text()


@pytest.mark.parametrize("name", TABLE)
def test_a_module_has_the_names_of_its_rows_and_no_other(name):
    module, rows = module_of(name), TABLE[name]
    listed = {row.name for row in rows}
    assert [row.name for row in rows if getattr(module, row.name) is not value_of(row)] == []
    there = {
        known
        for known, value in vars(module).items()
        if not known.startswith("_") and not isinstance(value, types.ModuleType)
    }
    assert there <= listed
    assert set(module.__all__) - {"__version__"} == {row.name for row in rows if "all" in row.words}


# Of these the examples are tests only.
INTERNAL = [
    "penstock._src.inference.config.PredictorConfig",
    "penstock._src.layers.control_flow_blocks.crossing_names",
    "penstock._src.layers.control_flow_blocks.outer_vars",
]


def documented_with_an_example(module):
    """The names of functions and classes of a module of the implementation whose docstrings have an example."""
    classes = {node.name for node in ast.parse(inspect.getsource(module)).body if isinstance(node, ast.ClassDef)}
    for name, value in vars(module).items():
        if inspect.isclass(value):
            ours = value.__name__ in classes
        else:
            ours = inspect.isfunction(value) and inspect.unwrap(value).__code__.co_filename == module.__file__
        if ours and not name.startswith("_") and re.search(r"(?m)^ *Example:", value.__doc__ or ""):
            yield name


def test_what_the_implementation_offers_is_in_the_table():
    offered = {
        (row.source.partition(":")[0], row.source.partition(":")[2] or row.name)
        for rows in TABLE.values()
        for row in rows
    }
    missing, seen = [], 0
    for found in pkgutil.walk_packages(penstock._src.__path__, "penstock._src."):
        module = importlib.import_module(found.name)
        for name in documented_with_an_example(module):
            seen += 1
            if (found.name.removeprefix("penstock."), name) not in offered:
                missing.append(f"{found.name}.{name}")
    assert missing == INTERNAL and seen > 800


def test_a_name_belongs_to_one_public_module():
    """Names of C++ and of the library belong to others."""
    wrong, seen = [], 0
    for name, rows in TABLE.items():
        module = module_of(name)
        for row in rows:
            value = getattr(module, row.name)
            if "elsewhere" in row.words or row.name.startswith("__") or not row.source.startswith("_src"):
                continue
            if (inspect.isfunction(value) or inspect.isclass(value)) and value.__module__.startswith("penstock."):
                seen += 1
                if value.__module__ not in (module.__name__, "penstock._penstock"):
                    wrong.append((name, row.name, value.__module__))
    assert wrong == [] and seen > 800


@pytest.mark.parametrize(
    "method, path",
    [
        ("optimizer.ModelAverage.apply", "penstock.fluid.optimizer"),
        ("core.OpDesc.input", "penstock.fluid.core"),
        ("framework.Block._insert_op", "penstock.fluid.framework"),
        ("dataset.QueueDataset.set_batch_size", "penstock.fluid.dataset"),
    ],
)
def test_a_method_of_a_base_class_that_users_do_not_see_has_the_public_path(fluid, method, path):
    assert eval(f"fluid.{method}").__module__ == path


@pytest.mark.parametrize(
    "value",
    [
        "fluid.layers.conv2d",
        "fluid.Program",
        "fluid.optimizer.Adam",
        "fluid.Variable",
        "fluid.core.VarDesc.VarType.INT64",
        "fluid.io.DataLoader",
    ],
)
def test_pickles_name_public_modules(fluid, value):
    value = eval(value)
    pickled = pickle.dumps(value)
    assert pickle.loads(pickled) is value and b"penstock.fluid" in pickled and b"_src" not in pickled


def test_the_user_s_classes_are_pickled_as_before(fluid):
    data = pickle.dumps(fluid.ParamAttr(name="w", learning_rate=0.5))
    assert b"penstock.fluid.param_attr" in data and b"_src" not in data
    assert pickle.loads(data).name == "w"


def test_what_is_set_in_a_public_module_is_set_in_the_implementation(fluid, monkeypatch):
    from penstock._src.executor import fetches

    monkeypatch.setattr(fluid.executor, "empties_are_vectors", True)
    assert fetches.empties_are_vectors is True
    monkeypatch.undo()
    assert fetches.empties_are_vectors is False and fluid.executor.empties_are_vectors is False


@pytest.mark.parametrize("name", API)
def test_the_table_has_or_refuses_each_name_of_fluid(name):
    ours = name.removeprefix("paddle.")
    has = {row.name for row in TABLE.get(ours, ())}
    refused = not_built.NAMES.get(not_built.list_of("penstock." + ours), frozenset())
    assert public(API[name]) - has - refused == set()


def test_names_are_loaded_at_their_first_use():
    script = """
import sys, penstock.fluid as fluid
def loaded(package):
    return {name for name in sys.modules if name.startswith(package)}
assert loaded("penstock.fluid.") | loaded("penstock._src.layers") | loaded("numpy") == set()
assert {"layers", "contrib", "Executor"} <= set(dir(fluid)) and "layers" not in vars(fluid)
assert fluid.layers.fc.__module__ == "penstock.fluid.layers.nn" and fluid.layers.fc is vars(fluid.layers)["fc"]
assert "penstock._src.layers.nn" in sys.modules and loaded("penstock._src.layers.detection") == set()
import penstock.fluid.data, penstock.fluid.layers.rnn
assert callable(fluid.data) and callable(fluid.layers.rnn)  # which Python would replace by the modules of these names
try:
    fluid.contib
except AttributeError as error:
    assert "did you mean contrib?" in str(error), error
assert fluid.contrib is sys.modules["penstock.fluid.contrib"] and fluid.contrib is fluid.contrib
assert fluid.contrib.mixed_precision.decorate.__module__.startswith("penstock.fluid.contrib.mixed_precision")
from penstock.fluid import *
assert incubate is fluid.incubate
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
