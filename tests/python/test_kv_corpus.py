"""Key-value stores return what MXNet 1.9.1 returned for the same calls: the cases of corpus/kvstore, in one process,
and with processes of workers and pservers."""

import json
import pathlib

import conftest
import numpy as np
import pytest
from kv_cases import Case, run_calls
from kv_processes import Processes
from kv_training import train
from penstock import kv as keyed
from rank_processes import Ranks

WHOLE = conftest.CORPUS / "kvstore" / "open"
SELECTION = conftest.ROOT / "tests" / "kvstore"
CASES = WHOLE if WHOLE.is_dir() else SELECTION
NOT_CASES = ("parts.json", "launch.json")  # of readers and launchers


PATHS = [path for path in sorted(CASES.glob("*.json")) if path.name not in NOT_CASES]


def _has_servers(path):
    return json.loads(path.read_text())["servers"] > 0


def _name(path):
    return path.name[: -len(".json")]


@pytest.fixture(scope="module")
def processes(tmp_path_factory):
    """Workers and servers, started once for all cases."""
    with Processes(workers=4, servers=2, folder=tmp_path_factory.mktemp("kv")) as started:
        yield started


@pytest.mark.parametrize("path", [path for path in PATHS if not _has_servers(path)], ids=_name)
def test_one_process_returns_the_values_of_the_corpus(path, tmp_path):
    case = Case(path)
    got = train(case, 0, keyed.create) if case.is_training else run_calls(case, 0, keyed.create, tmp_path)
    assert case.differences(0, got) == [] and case.expected(0)


@pytest.mark.parametrize("path", list(filter(_has_servers, PATHS)), ids=_name)
def test_workers_and_servers_return_the_values_of_the_corpus(path, processes):
    case = Case(path)
    results = processes.run(path, case.workers, case.servers)
    assert [line for rank, got in enumerate(results) for line in case.differences(rank, got)] == []
    assert all(map(case.expected, range(case.workers)))


NOT_OF_RANKS = "2bit", "threshold", "2x2.order"  # no compression; ranks push keys in the same order
OF_RANKS = """
import json, pathlib, sys
sys.path.insert(0, {here!r})
import numpy as np
from kv_cases import Case, run_calls
from kv_training import train
from penstock import kv as keyed
rank = keyed.create("horovod").rank
for name in json.load(open("cases.json")):
    case = Case(pathlib.Path(name))
    make = lambda kind: keyed.create("dist_sync_mpi")
    got = train(case, rank, make) if case.is_training else run_calls(case, rank, make, ".")
    np.savez(f"{{case.name}}.{{rank}}.npz", **got)
"""


def _is_of_ranks(path, workers):
    """Whether a store without pservers has the values of a case."""
    facts = json.loads(path.read_text())
    count = facts["workers"] if isinstance(facts["workers"], int) else len(facts["workers"])
    applies = not any(part in path.name for part in NOT_OF_RANKS)
    return facts["kind"] == "dist_sync" and count == workers and applies


@pytest.mark.parametrize("workers", [2, 4])
def test_stores_of_ranks_return_the_values_of_the_corpus(workers, tmp_path):
    paths = [path for path in PATHS if _is_of_ranks(path, workers)]
    (tmp_path / "cases.json").write_text(json.dumps(list(map(str, paths))))
    with Ranks(tmp_path, OF_RANKS.format(here=str(pathlib.Path(__file__).parent)), workers) as ranks:
        ranks.end_well()
    differences, compared = [], 0
    for path in paths:
        case = Case(path)
        for rank in range(workers):
            with np.load(tmp_path / f"{case.name}.{rank}.npz") as got:
                got = {
                    call: str(one).replace("dist_sync_mpi", "dist_sync") if one.dtype.kind == "U" else one
                    for call, one in got.items()
                }
                differences += case.differences(rank, got)
        compared += 1
    assert differences == [] and compared == len(paths) > (8 if CASES is WHOLE else -1)


def test_the_selection_is_small():
    assert sum(path.stat().st_size for path in SELECTION.iterdir()) < 200_000


def test_there_are_cases_of_each_kind():
    names = [path.name for path in PATHS]
    kinds = {name.partition(".")[0] for name in names}
    assert {"local", "device", "dist_sync", "dist_async", "train"} <= kinds
    assert len(names) == 131 if CASES is WHOLE else len(names) >= 12
