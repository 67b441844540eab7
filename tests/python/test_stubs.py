"""Public functions say their types, in the source or in a stub, and a strict type checker accepts a script that uses
them."""

import ast
import inspect
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "dev"))
gen_stubs = pytest.importorskip("gen_stubs")
SAMPLE = ROOT / "tests" / "python" / "typed_sample.py"
LIMIT_S = 300


def run(*command, **environment):
    return subprocess.run(
        [sys.executable, *map(str, command)],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
        env=dict(os.environ, **environment),
    )


def test_stubs_are_up_to_date():
    done = run(ROOT / "tools" / "dev" / "gen_stubs.py", "--check")
    assert done.returncode == 0, done.stdout + done.stderr


def check(tmp_path, *scripts):
    """Runs mypy on scripts as for a user: without this project's settings, and without errors in the package."""
    settings = tmp_path / "mypy.ini"
    settings.write_text("[mypy]\nstrict = True\n[mypy-penstock.*]\nignore_errors = True\n")
    command = ["-m", "mypy", "--config-file", settings, "--cache-dir", tmp_path / "cache", *scripts]
    return run(*command, MYPYPATH=str(ROOT / "python"))


def stub_returns():
    """{qualified name: the type that it returns} of functions and methods in stubs."""
    found = {}
    for path in (ROOT / "python" / "penstock").rglob("*.pyi"):
        for node in ast.parse(path.read_text()).body:
            for inner in [node] if isinstance(node, ast.FunctionDef) else getattr(node, "body", ()):
                if isinstance(inner, ast.FunctionDef):
                    owner = "" if inner is node else node.name + "."
                    found[owner + inner.name] = ast.unparse(inner.returns)
    return found


def public_functions():
    """(qualified name, function), each function once."""
    seen = set()
    for _, module in gen_stubs.public_modules():
        for known_as, thing in inspect.getmembers(module):
            known = (inspect.isclass(thing) or inspect.isfunction(thing)) and not known_as.startswith("__")
            ours = known and thing.__module__.startswith("penstock")
            members = vars(thing).values() if ours and inspect.isclass(thing) else [thing] if ours else []
            for member in members:
                function = getattr(member, "__func__", getattr(member, "fget", member))
                if inspect.isfunction(function) and function.__name__[0] != "_" and id(function) not in seen:
                    seen.add(id(function))
                    name = function.__qualname__
                    yield function.__name__ if "<locals>" in name else name, function


def test_few_public_functions_return_any_type():
    stubs, returned, missing, anything = stub_returns(), [], [], []
    for name, function in public_functions():
        says = inspect.unwrap(function).__annotations__.get("return") or stubs.get(name)
        returned.append(name)
        if says is None:
            missing.append(f"{function.__module__}.{name}")
        elif says == "Any":
            anything.append(f"{function.__module__}.{name}")
    assert missing == [] and len(returned) > 1000
    assert len(anything) <= 0.05 * len(returned), anything


def test_a_strict_checker_accepts_a_script(tmp_path):
    done = check(tmp_path, SAMPLE)
    assert done.returncode == 0, done.stdout + done.stderr


WRONG = [  # (what the sample says, what is wrong, the error)
    ("size=width", "size='wide'", 'Argument "size" to "fc" has incompatible type "str"'),
    ("num_filters=8", "num_filters='8'", 'Argument "num_filters" has incompatible type "str"'),
    ("pool_size=2)", "pool_length=2)", 'Unexpected keyword argument "pool_length"'),
    ('larger, act="relu")', "larger, 1, 2)", 'Argument 4 has incompatible type "int"'),
    ("dim=[1, 2, 3]", "dim='all'", 'Argument "dim" has incompatible type "str"'),
    ("chunk_bytes=1 << 16", "chunk_bytes='64k'", 'No overload variant of "transpile" matches argument types'),
    ("sync=True", "synchronous=True", 'No overload variant of "transpile" matches argument types'),
    ("rings=2", "rings='two'", 'Argument "rings" to "transpile_ranks" has incompatible type "str"'),
    ("several[0].plan", "several.plan", '"list[RoleSet]" has no attribute "plan"'),
    ("rings=2", "rings=2, ring=2", 'Unexpected keyword argument "ring" for "transpile_ranks"'),
    ("config.slice_var_up = True", "config.slice_var_up = 3", "Incompatible types in assignment"),
    ("config.slice_var_up = True", "config.slice_vars = True", 'has no attribute "slice_vars"'),
    ("strategy.on_uneven = 2", "strategy.uneven = 2", 'has no attribute "uneven"'),
]


def test_the_checker_finds_wrong_arguments_and_fields(tmp_path):
    text = SAMPLE.read_text()
    for number, (right, wrong, _) in enumerate(WRONG):
        assert right in text
        (tmp_path / f"wrong_{number}.py").write_text(text.replace(right, wrong))
    done = check(tmp_path, *sorted(tmp_path.glob("wrong_*.py")))
    assert done.returncode == 1
    for number, (_, wrong, error) in enumerate(WRONG):
        found = [line for line in done.stdout.splitlines() if line.partition(":")[0].endswith(f"wrong_{number}.py")]
        assert any(error in line for line in found), f"{wrong}: {found}"


def test_variants_of_a_layer_have_the_signature_of_their_own(fluid):
    layers = fluid.layers
    assert layers.conv2d is not layers.conv3d and layers.conv3d.__name__ == layers.conv3d.__qualname__ == "conv3d"
    for images, volumes in ((layers.conv2d, layers.conv3d), (layers.pool2d, layers.pool3d)):
        ours, theirs = (inspect.signature(layer).parameters for layer in (images, volumes))
        assert [*ours] == [*theirs] and not any(name.startswith("_") for name in ours)
        assert (ours["data_format"].default, theirs["data_format"].default) == ("NCHW", "NCDHW")
    assert str(inspect.signature(layers.triu)).endswith("name: 'str | None' = None) -> 'Variable'")
    with pytest.raises(TypeError, match=r"conv3d\(\) got an unexpected keyword argument 'size'"):
        layers.conv3d(fluid.data("x", [None, 3, 8, 8, 8]), 8, 3, size=1)


def test_the_script_runs():
    done = run(SAMPLE)
    assert done.returncode == 0 and done.stdout.startswith("["), done.stderr
