"""tools/wheel.sh: the wheel installs into an empty environment, contains what it needs, and runs scripts, jobs and the
command without anything else of this project."""

import os
import pathlib
import re
import subprocess
import sys
import zipfile

import conftest
import pytest

pytestmark = pytest.mark.slow

LIMIT_S = 1200
MOST_BYTES = 60 << 20
README = (conftest.ROOT / "README.md").read_text()
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PENSTOCK_"))}


def run(*command, cwd):
    done = subprocess.run(
        [str(part) for part in command],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
        cwd=cwd,
        env=ENVIRONMENT,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel of build/release."""
    if not (conftest.ROOT / "build/release/tools/penstock").exists():
        pytest.skip("build/release is not built")
    folder = tmp_path_factory.mktemp("wheel")
    run(conftest.ROOT / "tools/wheel.sh", "--no-build", "--out", folder, cwd=conftest.ROOT)
    (path,) = folder.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """The folder of commands of an environment that has the wheel and NumPy."""
    folder = tmp_path_factory.mktemp("installed")
    run("/usr/bin/python3", "-m", "venv", folder, cwd=folder)
    run(folder / "bin/pip", "install", "--quiet", "--disable-pip-version-check", wheel, cwd=folder)
    return folder / "bin"


def script(name):
    """A script of README.md."""
    return re.search(rf"```python\n(# {re.escape(name)}\n.*?)```", README, re.DOTALL)[1]


def test_its_tag_and_size_are_those_that_are_promised(wheel):
    version = f"cp{sys.version_info[0]}{sys.version_info[1]}"
    assert wheel.name == f"penstock-0.1.0-{version}-{version}-manylinux_2_36_x86_64.whl"
    assert 1 << 20 < wheel.stat().st_size <= MOST_BYTES


def test_it_contains_libraries_and_their_licences_but_no_opencl(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    libraries = [pathlib.PurePath(name).name for name in names if name.startswith("penstock.libs/")]
    for name in ("libgrpc", "libprotobuf", "libdnnl", "libgloo", "libtcmalloc_minimal"):
        assert any(library.startswith(name) for library in libraries), libraries
    assert not [name for name in names if "opencl" in name.lower() or name.endswith((".h", ".cc"))]
    assert "penstock/bin/penstock" in names and "penstock/py.typed" in names
    licences = [name for name in names if "dist-info/licenses/libraries/" in name]
    assert any("libdnnl2" in name for name in licences) and len(licences) > 10


def test_its_extras_are_those_of_the_project(wheel):
    archive = zipfile.ZipFile(wheel)
    (name,) = (one for one in archive.namelist() if one.endswith("dist-info/METADATA"))
    extras = set(re.findall(r"(?m)^Provides-Extra: (\S+)$", archive.read(name).decode()))
    assert extras >= {"torch", "docs", "compat", "plot"}


def test_installed_it_loads_no_library_of_this_machine(installed, tmp_path):
    code = """
import penstock.fluid as fluid
fluid.Executor(fluid.CPUPlace()).run(fluid.Program())
print(*sorted({line.split()[-1] for line in open('/proc/self/maps') if '.so' in line}))
"""
    loaded = run(installed / "python", "-c", code, cwd=tmp_path).split()
    ours = [path for path in loaded if "/penstock.libs/" in path]
    assert len(ours) > 20 and not [
        path for path in loaded if re.search("OpenCL|libgrpc|libdnnl", path) and path not in ours
    ]


def test_installed_it_trains_on_one_machine_and_in_a_job(installed, tmp_path):
    for name in ("fit.py", "train.py"):
        (tmp_path / name).write_text(script(name))
    assert re.search(r"loss \d", run(installed / "python", "fit.py", cwd=tmp_path))
    said = run(installed / "penstock-launch", "--server_num", 2, "--worker_num", 2, "train.py", cwd=tmp_path)
    assert re.search(r"loss \d", said), said
    assert (tmp_path / "mylog" / "workerlog.1").exists()


def test_installed_its_command_works(installed, tmp_path):
    (tmp_path / "fit.py").write_text(script("fit.py"))
    run(installed / "python", "fit.py", cwd=tmp_path)
    assert "square" in run(installed / "penstock", "show", "main.pb", cwd=tmp_path)
    assert '"penstock"' in run(installed / "penstock", "doctor", "--json", cwd=tmp_path)
    assert "usage: penstock" in run(installed / "penstock", "--help", cwd=tmp_path)
