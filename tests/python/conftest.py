"""Shared by the Python tests: the corpus, and fresh default programs and scope for each test."""

import inspect
import os
import pathlib
import signal

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
# The corpus: PENSTOCK_CORPUS, by default next to the checkout. If it is empty, tests use the selection.
NAMED = os.environ.get("PENSTOCK_CORPUS")
CORPUS = pathlib.Path((ROOT.parent / "shared" / "corpus" if NAMED is None else NAMED) or os.devnull)
PEERS = CORPUS.parent / "peers"
# Fluid's programs and numbers: the whole corpus, or the selection in the tree.
FLUIDS = (CORPUS if CORPUS.is_dir() else ROOT / "tests" / "parity" / "data") / "open"


def pytest_configure(config):
    # A clone with nothing beside it tests with the selection. Where the corpus belongs, skipped tests would look like
    # passed ones.
    required = NAMED if NAMED is not None else (ROOT.parent / "shared").is_dir()
    if required and not CORPUS.is_dir():
        raise pytest.UsageError(
            f"there is no corpus at {CORPUS}; PENSTOCK_CORPUS= makes the tests do with the selection"
        )
    # A shell that starts pytest in the background ignores Ctrl-C, and child processes would inherit this.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    config.addinivalue_line("markers", "slow: takes more than some seconds; outside the quick run")
    config.addinivalue_line("markers", "corpus: reads the corpus or what lies beside it; set by conftest.py")


def pytest_collection_modifyitems(items):
    readers = {}
    for item in items:
        if item.module not in readers:
            source = inspect.getsource(item.module)
            readers[item.module] = "conftest.CORPUS" in source or "conftest.FLUIDS" in source
        if readers[item.module] or {"corpus", "fluids", "peers"} & set(item.fixturenames):
            item.add_marker("corpus")


@pytest.fixture
def corpus():
    """The folder of the whole corpus; skips the test without it."""
    if not CORPUS.is_dir():
        pytest.skip("the corpus is not beside this checkout")
    return CORPUS


@pytest.fixture
def fluids():
    """Finds a file or folder of Fluid's. Skips the test if only the whole corpus, which is missing, has it."""

    def find(*parts):
        path = FLUIDS.joinpath(*parts)
        if not path.exists() and not CORPUS.is_dir():
            pytest.skip(f"{'/'.join(parts)} is only in the whole corpus")
        return path

    return find


@pytest.fixture
def peers():
    if not PEERS.is_dir():
        pytest.skip("the peers are not beside this checkout")
    return PEERS


@pytest.fixture
def fluid(monkeypatch):
    """penstock.fluid with empty default programs, names and scopes."""
    import penstock._penstock
    import penstock.fluid as fluid

    monkeypatch.setattr(fluid.framework, "_name_scopes", penstock._penstock.NameScopes())
    with (
        fluid.unique_name.guard(),
        fluid.program_guard(fluid.Program(), fluid.Program()),
        fluid.scope_guard(fluid.Scope()),
    ):
        yield fluid


@pytest.fixture
def job(tmp_path, request):
    """A job of the module's SCRIPT; no process outlives the test."""
    from test_jobs import Job

    job = Job(tmp_path, request.module.SCRIPT)
    yield job
    job.kill_all()
