"""What the Python tests share: the corpus and a fresh world for each test."""

import pathlib
import signal
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
CORPUS = ROOT.parent / 'shared' / 'corpus'
PEERS = ROOT.parent / 'shared' / 'peers'

if (CORPUS / 'tools').is_dir():
    sys.path.insert(0, str(CORPUS / 'tools'))


def pytest_configure(config):
    # A shell that starts us in the background has Ctrl-C ignored, and our children would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    config.addinivalue_line('markers', 'slow: takes more than some seconds; outside the quick run')


@pytest.fixture
def corpus():
    if not CORPUS.is_dir():
        pytest.skip('the corpus is not beside this checkout')
    return CORPUS


@pytest.fixture
def peers():
    if not PEERS.is_dir():
        pytest.skip('the peers are not beside this checkout')
    return PEERS


@pytest.fixture
def fluid(monkeypatch):
    """penstock.fluid with empty default programs, names and scopes."""
    import penstock._penstock
    import penstock.fluid as fluid
    monkeypatch.setattr(fluid.framework, '_name_scopes', penstock._penstock.NameScopes())
    with fluid.unique_name.guard(), fluid.program_guard(fluid.Program(), fluid.Program()), \
            fluid.scope_guard(fluid.Scope()):
        yield fluid
