"""penstock.compat: scripts that import paddle run on Penstock, and so do their child processes."""

import ast
import os
import pathlib
import subprocess
import sys

import penstock
import pytest

PACKAGE = pathlib.Path(penstock.__file__).parent


def run(*arguments, code=0, **environment):
    """Runs Python in the same environment, without the alias unless `environment` adds it."""
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONUNBUFFERED")}
    variables = dict(kept, **environment)
    done = subprocess.run(
        [sys.executable, *map(str, arguments)], capture_output=True, text=True, env=variables, timeout=120
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done


def alias_path():
    return run("-m", "penstock.compat", "--path").stdout.strip()


def write(path, text):
    path.write_text(text)
    return path


SCRIPT = """
import sys
import paddle
import paddle.fluid as fluid
import paddle.fluid.layers.nn
from paddle.fluid.transpiler.ps_dispatcher import RoundRobin
import penstock.fluid
import penstock.fluid.transpiler.ps_dispatcher

assert paddle.fluid is fluid is penstock.fluid
assert sys.modules['paddle.fluid.layers.nn'] is penstock.fluid.layers.nn
assert RoundRobin is penstock.fluid.transpiler.ps_dispatcher.RoundRobin
assert penstock.fluid.layers.nn.__spec__.name == 'penstock.fluid.layers.nn'
print(paddle.__version__, sys.argv[1:], __name__, sys.path[0])
"""


def test_a_script_runs_as_python_runs_it(tmp_path):
    script = write(tmp_path / "train.py", SCRIPT)
    done = run("-m", "penstock.compat", script, "--lr", "0.1")
    assert done.stdout == f"1.8.5 ['--lr', '0.1'] __main__ {tmp_path}\n"
    assert done.stdout == run(script, "--lr", "0.1", PYTHONPATH=alias_path()).stdout


def test_a_module_runs_as_python_runs_it(tmp_path):
    write(tmp_path / "training.py", "import paddle, sys; print(paddle.__version__, sys.argv[1:])")
    done = run("-m", "penstock.compat", "-m", "training", "x", PYTHONPATH=str(tmp_path))
    assert done.stdout == "1.8.5 ['x']\n"


def test_child_processes_of_a_script_find_the_alias(tmp_path):
    """Pipe commands of data sets call `python`, which need not be on PATH."""
    child = write(tmp_path / "gen.py", 'import paddle.fluid; print("child", paddle.fluid.__name__)')
    script = write(
        tmp_path / "train.py",
        "import subprocess, sys\n"
        f'print(subprocess.run("python {child}", shell=True, capture_output=True, text=True).stdout)',
    )
    assert "child penstock.fluid" in run("-m", "penstock.compat", script, PATH="/usr/bin:/bin").stdout


def test_the_exit_status_is_that_of_the_script(tmp_path):
    script = write(tmp_path / "train.py", 'import paddle\ndef train():\n    raise ValueError("of mine")\ntrain()\n')
    lines = run("-m", "penstock.compat", script, code=1).stderr.splitlines()
    assert lines == run(script, code=1, PYTHONPATH=alias_path()).stderr.splitlines()
    assert [line for line in lines if "File" in line] == [
        f'  File "{script}", line 4, in <module>',
        f'  File "{script}", line 3, in train',
    ]
    assert run("-m", "penstock.compat", write(script, "raise SystemExit(7)"), code=7).stderr == ""


def test_errors_name_the_line_of_the_script(tmp_path):
    script = write(
        tmp_path / "train.py",
        "import paddle.fluid as fluid\n"
        'x = fluid.data("x", [2, 3])\ny = fluid.data("y", [2, 3])\nfluid.layers.mul(x, y)\n',
    )
    assert "train.py:4 in <module>" in run("-m", "penstock.compat", script, code=1).stderr


def test_options_of_python_reach_the_script(tmp_path):
    script = write(tmp_path / "train.py", "import sys\nprint(sys.flags.optimize, sys.stdout.write_through)")
    assert run("-u", "-O", "-m", "penstock.compat", script).stdout == "1 True\n"
    assert run("-m", "penstock.compat", script).stdout == "0 False\n"
    assert "E-compat-environment" in run("-E", "-m", "penstock.compat", script, code=2).stderr


def test_a_command_line_without_a_script_shows_how_to_write_one():
    assert run("-m", "penstock.compat", code=2).stderr.startswith("usage: python -m penstock.compat SCRIPT")
    assert run("-m", "penstock.compat", "--help").stdout.startswith("usage: python -m penstock.compat SCRIPT")


def test_install_in_a_running_interpreter():
    text = """
import subprocess, sys
import penstock.compat
for _ in range(2):
    penstock.compat.install()
import paddle.fluid.layers
assert paddle.fluid.layers is sys.modules['penstock.fluid.layers']
assert sys.path.count(penstock.compat.path()) == 1
subprocess.run([sys.executable, '-c', 'import paddle; print(paddle.__version__)'], check=True)
"""
    assert run("-c", text).stdout == "1.8.5\n"


def test_an_already_imported_paddle_is_refused(tmp_path):
    write(tmp_path / "paddle.py", "")
    text = "import paddle, penstock.compat\npenstock.compat.install()"
    error = run("-c", text, code=1, PYTHONPATH=str(tmp_path)).stderr
    assert f"another paddle is imported already, from {tmp_path / 'paddle.py'}   [E-compat-paddle-loaded]" in error


def test_the_alias_finds_its_penstock_package():
    """In a Python without Penstock on sys.path: the alias is inside the package."""
    text = """
import sys
sys.path[:] = [folder for folder in sys.path if folder not in %r]
import paddle
print(paddle.__version__)
""" % [str(PACKAGE.parent)]
    assert run("-c", text, PYTHONPATH=alias_path()).stdout == "1.8.5\n"


def test_importing_a_module_keeps_the_function_of_its_name():
    text = """
import paddle.fluid as fluid
import paddle.fluid.data, paddle.fluid.layers.io, paddle.fluid.input
assert callable(fluid.data) and fluid.data.__module__ == 'penstock.fluid.data'
"""
    run("-c", text, PYTHONPATH=alias_path())


def test_a_missing_module_error_names_the_requested_module():
    text = "import paddle.fluid.layers.nothing"
    error = run("-c", text, code=1, PYTHONPATH=alias_path()).stderr
    assert error.endswith("ModuleNotFoundError: No module named 'paddle.fluid.layers.nothing'\n")


@pytest.mark.parametrize("module", ["paddle.distributed.launch", "paddle.distributed.launch_ps"])
def test_the_launchers_take_fluids_options(tmp_path, module):
    script = write(tmp_path / "train.py", 'import os, paddle\nprint("role", os.environ["TRAINING_ROLE"])')
    logs = tmp_path / "logs"
    run("-m", "penstock.compat", "-m", module, "--worker_num", "1", "--server_num", "1", "--log_dir", logs, script)
    assert "role TRAINER" in (logs / "workerlog.0").read_text()
    assert "role PSERVER" in (logs / "serverlog.0").read_text()


def imports_of(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_nothing_of_penstock_imports_the_alias():
    sources = [path for path in PACKAGE.rglob("*.py") if "compat" not in path.relative_to(PACKAGE).parts]
    assert len(sources) > 50
    for path in sources:
        for name in imports_of(path):
            assert not (name + ".").startswith(("penstock.compat.", "paddle.")), f"{path} imports {name}"


def test_a_fetched_array_of_one_element_converts_to_a_number():
    text = """
import math
import numpy, paddle.fluid as fluid
x = fluid.data('x', [None, 1])
exe = fluid.Executor(fluid.CPUPlace())
loss, rows = exe.run(feed={'x': numpy.ones((2, 1), 'float32')}, fetch_list=[fluid.layers.mean(x), x + 1.5])
assert float(loss) == 1.0 and int(loss) == 1 and complex(loss) == 1 and math.isnan(loss) is False
assert '%f %d' % (loss, loss) == '1.000000 1' and ['%.1f' % row for row in rows] == ['2.5', '2.5']
total = 0
total += loss
assert float(total / 2) == 0.5 and isinstance(rows, numpy.ndarray) and rows.sum() == 5
try:
    float(rows)
except TypeError as error:
    print(error)
"""
    done = run("-W", "ignore", "-c", text, PYTHONPATH=alias_path())
    assert "only" in done.stdout and done.stdout.endswith("\n")


def test_an_empty_fetched_array_is_a_vector_as_in_fluid():
    text = """
import numpy, paddle.fluid as fluid
x = fluid.data('x', [None, 3], lod_level=1)
exe = fluid.Executor(fluid.CPUPlace())
none = fluid.create_lod_tensor(numpy.zeros((0, 3), 'float32'), [[0, 0]], fluid.CPUPlace())
tensor, = exe.run(feed={'x': none}, fetch_list=[x], return_numpy=False)
assert tensor.shape() == [0] and tensor.lod() == [[0, 0, 0]]
some, = exe.run(feed={'x': fluid.create_lod_tensor(numpy.ones((2, 3), 'float32'), [[2]], fluid.CPUPlace())},
                fetch_list=[x], return_numpy=False)
print(some.shape())
"""
    assert run("-W", "ignore", "-c", text, PYTHONPATH=alias_path()).stdout == "[2, 3]\n"


def test_a_version_set_by_a_script_is_used():
    text = """
import random, warnings
import numpy as np, paddle, paddle.fluid as fluid, paddle.version as version
from paddle.check_import_scipy import check_import_scipy
check_import_scipy('posix')
fluid.require_version('1.8.5', '1.8.5')
version.major, version.minor, version.patch = '1', '4', '1'
fluid.require_version('1.4.1', '1.6.0')
version.major = version.minor = version.patch = '0'
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter('always')
    fluid.require_version('1.6')
assert len(seen) == 1
assert np.reshape(np.zeros(4), newshape=(2, -1)).shape == (2, 2)
assert np.reshape(np.zeros(4), [2, 2], 'C').shape == (2, 2)
assert sorted(random.sample({1, 2, 3}, 3)) == [1, 2, 3] and len(random.Random(1).sample([1, 2], 1)) == 1
print('done')
"""
    assert run("-W", "ignore", "-c", text, PYTHONPATH=alias_path()).stdout == "done\n"


def test_names_removed_from_numpy_and_python_are_restored():
    text = """
import collections, inspect, time
import numpy as np
import paddle
assert np.zeros(2, np.int).dtype == 'int64' and np.zeros(2, np.float).dtype == 'float64'
assert not np.zeros(1, np.bool)[0]
assert np.product([2, 3]) == 6 and np.asscalar(np.array([5])) == 5 and np.NaN != np.NaN and np.Inf > 1
assert isinstance([], collections.Iterable) and time.clock() <= time.clock()
assert inspect.getargspec(lambda a, b=1: 0)[:1] == (['a', 'b'],)
"""
    assert run("-W", "error", "-c", text, PYTHONPATH=alias_path()).stdout == ""


def test_empty_fetched_tensors_are_vectors_as_in_fluid():
    text = """
import numpy as np
import paddle.fluid as fluid
x = fluid.data('x', [-1, 4], lod_level=1)
fed = fluid.create_lod_tensor(np.zeros((0, 4), 'float32'), [[0]], fluid.CPUPlace())
exe = fluid.Executor(fluid.CPUPlace())
y = fluid.layers.scale(x, 2.0)
assert exe.run(feed={'x': fed}, fetch_list=[y], return_numpy=False)[0].lod() == [[0, 0]]
print(exe.run(feed={'x': np.zeros((0, 4), 'float32')}, fetch_list=[y])[0].shape)
"""
    assert run("-c", text, PYTHONPATH=alias_path()).stdout == "(0,)\n"


def test_small_modules_behave_as_in_paddle():
    text = """
import paddle, os
from paddle.compat import to_text, to_bytes, floor_division, get_exception_message
import paddle.compat as cpt

assert to_text([b'a', 'b', {b'c'}]) == ['a', 'b', {'c'}] and to_bytes({'a'}) == {b'a'} and to_text(None) is None
words = [b'x']
assert to_text(words, inplace=True) is words and words == ['x']
assert [cpt.round(x) for x in (0.5, -2.5, 1.4, 0.0)] == [1.0, -3.0, 1.0, 0.0] and cpt.round(0.125, 2) == 0.13
assert floor_division(7, 2) == 3 and get_exception_message(ValueError('x')) == 'x'
assert list(paddle.batch(lambda: iter(range(5)), 2)()) == [[0, 1], [2, 3], [4]]
assert sorted(paddle.reader.shuffle(lambda: iter(range(5)), 3)()) == [0, 1, 2, 3, 4]
assert paddle.reader.decorator.chain is paddle.reader.chain
paddle.version.show()
plot = paddle.utils.Ploter('loss')
plot.append('loss', 0, 1.0)
plot.plot('nowhere/curve.png')
"""
    assert "full_version: 1.8.5\n" in run("-c", text, PYTHONPATH=alias_path(), DISABLE_PLOT="True").stdout
