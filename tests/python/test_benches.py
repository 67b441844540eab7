"""Each benchmark of tools/bench runs with its smallest size and prints the documented figures. No time is asserted."""

import json
import os
import pathlib
import re
import subprocess
import sys

import penstock
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BENCH = ROOT / "tools" / "bench"
BUILD = pathlib.Path(penstock._penstock.__file__).resolve().parents[2]
LIMIT_S = 300


def binary(name):
    path = BUILD / "tools" / "bench" / name
    if not path.exists():
        pytest.skip(f"{name} is not built")
    return str(path)


def said(*command, **environment):
    done = subprocess.run(
        [str(part) for part in command],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
        env=dict(os.environ, PENSTOCK_BUILD=str(BUILD), **environment),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.skipif(not (ROOT / ".venv/bin/python").exists(), reason="the project has no .venv here")
@pytest.mark.parametrize("name", sorted(p.name for p in BENCH.iterdir() if p.is_file() and os.access(p, os.X_OK)))
def test_a_bench_finds_its_python(name):
    text = said("/usr/bin/env", "-u", "PYTHONPATH", "PATH=/usr/bin:/bin", BENCH / name, "--help")
    assert f"tools/bench/{name}" in text or f"usage: {name}" in text


COUNTERS = {
    "ClientMessages": "cpu_a_message",
    "ServerSmallVariables": "cpu_a_push_and_pull",
    "StateMachineEvents<pserver::SyncPolicy>": "items_per_second",
    "StateMachineEvents<pserver::AsyncPolicy>": "items_per_second",
    "Crc": "bytes_per_second",
    "CrcCombine": "cpu_time",
    "EncodePush": "bytes_per_second",
    "DecodePush": "bytes_per_second",
    "EncodePulled": "bytes_per_second",
    "DecodePulled": "bytes_per_second",
    "MergeGradients": "bytes_per_second",
    "CopyGradients": "bytes_per_second",
    "CompressGradient": "ratio",
    "ExpandGradient": "ratio",
    "GatherRows": "items_per_second",
    "ApplyRows": "items_per_second",
    "ShardLookups": "items_per_second",
    "SortRows": "items_per_second",
    "RowStore": "items_per_second",
    "RowsOnDisk": "miss_us",
    "RowMap": "items_per_second",
    "SplitIds": "items_per_second",
    "MergeIds": "items_per_second",
    "TinyOpsHot": "cpu_an_op",
    "TinyOpsCold": "cpu_an_op",
    "CompileOps": "held_bytes",
    "Updates": "cpu_an_op",
    "Kernel": "floor_ms",
}


# The families of kernels that must be fast.
DIFFERENTIATED = [
    "softmax",
    "softmax_with_cross_entropy",
    "cross_entropy",
    "cross_entropy2",
    "relu",
    "sigmoid",
    "tanh",
    "gelu",
    "elementwise_add",
    "elementwise_mul",
    "elementwise_div",
    "reduce_sum",
    "reduce_mean",
    "reduce_max",
    "layer_norm",
    "batch_norm",
    "pool2d",
    "lookup_table",
    "lookup_table_v2",
    "sequence_pool",
    "lstm",
    "gru",
    "clip",
    "dropout",
    "conv2d",
    "mul",
    "matmul",
]
OPTIMIZERS = ["sgd", "momentum", "adam"]


def test_each_family_of_kernels_has_a_floor_with_one_and_two_threads():
    listed = set(
        re.findall(
            r"^Kernel/(\w+)/of:\S+/threads:(\d)/manual_time$",
            said(binary("micro/bench_micro"), "--benchmark_list_tests"),
            re.M,
        )
    )
    names = OPTIMIZERS + DIFFERENTIATED + [name + "_grad" for name in DIFFERENTIATED]
    assert {(name, threads) for name in names for threads in "12"} <= listed


def test_every_micro_benchmark_runs():
    micro = binary("micro/bench_micro")
    smallest = {}
    for name in said(micro, "--benchmark_list_tests").split():
        smallest.setdefault(re.sub(r"/\w+:.*", "", name), name)
    names = "|".join(re.escape(name) for name in smallest.values())
    ran = json.loads(
        said(micro, "--benchmark_min_time=0.001", "--benchmark_format=json", f"--benchmark_filter=^({names})$")
    )["benchmarks"]
    assert {one["name"].split("/")[0] for one in ran} == set(COUNTERS)
    assert len(ran) == len(smallest)
    for one in ran:
        assert one[COUNTERS[one["name"].split("/")[0]]] > 0 and one["iterations"] > 0, one
    kernels = [one for one in ran if one["name"].startswith("Kernel/")]
    assert all(one["median_ms"] >= one["least_ms"] > 0 and one["ratio"] > 0 for one in kernels), kernels


def test_a_servers_memory_is_measured():
    text = said(binary("core/bench_chunk_store"), "--mb=1", "--steps=1", "--trainers=2")
    assert re.fullmatch(
        r"streamed: 1 MB, 2 trainers: merge [\d.]+ s, block [\d.]+ s, publish [\d.]+ s, "
        r"peak [\d.]+ x the parameter\n",
        text,
    ), text


@pytest.mark.parametrize("carrier", ["auto", "tcp"])
def test_a_transport_is_measured(carrier):
    text = said(binary("transport/bench_transport"), carrier, 2, 4096, 8, 50)
    assert len(re.findall(r"bodies of 4096 bytes: [\d.]+ GB/s, [\d.]+ CPU-s/GB", text)) == 3, text
    assert len(re.findall(r"1 KB and its answer(?:, one at a time)?: [\d.]+ us, [\d.]+ us of CPU", text)) == 4, text


def test_the_compute_pool_is_measured():
    text = said(binary("pool/bench_pool"), 5, 0.01)
    lines = re.findall(
        r"(alone|beside a busy one|two at once) +(one thread|OpenMP|pool) +median +[\d.]+ p95 +[\d.]+ "
        r"max +[\d.]+ cpu +[\d.]+ ms\n",
        text,
    )
    assert len(lines) == 9 and len(set(lines)) == 9, text


def test_an_all_reduce_is_measured():
    text = said(binary("collective/bench_collective"), "shared_memory", 2, 1024, 100000)
    assert re.fullmatch(r"(shared_memory, 2 ranks, \d+ bytes: [\d.]+ s, [\d.]+ GB/s, [\d.]+ CPU-s/GB\n){2}", text), text


def test_all_reduces_are_compared_in_one_run(tmp_path):
    binary("collective/bench_collective")
    text = said(
        sys.executable,
        BENCH / "all_reduce",
        "--ranks",
        2,
        "--sizes",
        1024,
        "--rounds",
        1,
        "--json",
        tmp_path / "out.json",
    )
    assert re.search(r"2 processes, 1024 bytes\n  shared_memory +[\d.]+ ms", text), text
    lines = {line["system"]: line for line in json.loads((tmp_path / "out.json").read_text())}
    if "gloo" in lines:
        assert lines["shared_memory"]["ratios"]["gloo"] > 0 and lines["tcp"]["ratios"]["gloo"] > 0
        assert "(target 1.05)" in text, text


def test_role_programs_are_measured():
    figures = json.loads(said(binary("core/bench_transpile"), "--params=10", "--pservers=2", "--repeats=1"))
    assert all(figures[key] > 0 for key in ("make_s", "serialize_s", "check_s", "all_cpu_s", "load_mb_s", "save_mb_s"))


def test_a_run_of_the_executor_is_measured():
    lines = said(sys.executable, BENCH / "exe_run", "--rounds", 1, "--runs", 2).splitlines()
    assert lines[0].split() == ["program", "us", "CPU", "us", "target", "us"]
    assert [line.split()[0] for line in lines[1:]] == ["alone", "relu", "add", "relu_with_a_plan"]


TRAINED = ["lenet", "resnet20", "resnet50", "transformer", "lstm", "word2vec"]
TINY = ["--batch", 1, "--rounds", 1, "--steps", 1, "--threads", 1, "--fluid", os.devnull, "--torch", os.devnull]


def trained(tmp_path, *words):
    """The text and the figures of tools/bench/models without peers."""
    text = said(sys.executable, BENCH / "models", *words, *TINY, "--json", tmp_path / "out.json")
    return text, json.loads((tmp_path / "out.json").read_text())


def test_training_steps_of_models_are_measured_and_absent_peers_are_named(tmp_path):
    text, measured = trained(tmp_path)
    assert "Fluid 1.8.5 is left out: no Python" in text and "PyTorch is left out: no Python" in text, text
    assert [one["model"] for one in measured] == TRAINED
    for one in measured:
        (line,) = one["systems"]
        assert one["threads"] == one["batch"] == 1 and "ratio" not in one and len(line["ms"]) == 1, one
        assert all(line[key] > 0 for key in ("median_ms", "least_ms", "cpu_ms", "first_ms", "peak_mb")), line


def test_a_step_with_a_busy_core_is_measured(tmp_path):
    text, (one,) = trained(tmp_path, "word2vec", "--beside")
    (line,) = one["systems"]
    assert line["median_ratio"] > 0 and line["p95_ratio"] > 0 and "beside a busy core:" in text, text


def test_ways_to_feed_a_program_are_compared(tmp_path):
    _, measured = trained(tmp_path, "word2vec", "lstm", "--feeds")
    assert [(one["model"], one["feed"]) for one in measured] == [
        ("word2vec", "loader"),
        ("lstm", "loader"),
        ("lstm", "lengths"),
    ]
    assert all(one["ratio"] > 0 for one in measured), measured


def test_the_peak_memory_of_a_training_is_measured(tmp_path):
    text, (one,) = trained(tmp_path, "lenet", "--memory")
    (line,) = one["systems"]
    assert line["peak_mb"] > line["imported_mb"] > 0 and "MB were needed to import it" in text, text


def test_the_cost_of_a_trace_is_measured(tmp_path):
    text, (one,) = trained(tmp_path, "word2vec", "--trace")
    assert one["ratio"] > 0 and [line["system"] for line in one["systems"]] == ["without", "with a trace"], text


def test_steps_of_ranks_are_measured(tmp_path):
    text, (one,) = trained(tmp_path, "word2vec", "--ranks", 2)
    (line,) = one["systems"]
    assert one["ranks"] == 2 and line["median_ms"] > 0 and "2 ranks, 1 thread" in text, text
    assert "left out: no Python that has it" in text, text  # PyTorch; Fluid's ranks need GPUs
    assert "Fluid" not in text, text


def test_a_servers_peak_is_measured():
    if not (BUILD / "tests/dist/dist_memory_test").exists():
        pytest.skip("dist_memory_test is not built")
    lines = said(sys.executable, BENCH / "server_memory", "--mb", 4).splitlines()
    assert lines and all(re.search(r"\d+ MB, [\d.]+ x the parameter \(target 2.3\)$", line) for line in lines), lines


def test_the_balance_of_a_slow_trainer_is_measured(tmp_path):
    small = ["--trainers", 2, "--ms", 0.1, "--portions", 2, "--rounds", 1, "--epochs", 1]
    text = said(sys.executable, BENCH / "shares", *small, "--json", tmp_path / "out.json")
    assert re.search(r"(?m)^shared +[\d.]+ ms an epoch, +[\d.]+ at most, [\d.]+ x \(target 1.35\)$", text), text
    figures = json.loads((tmp_path / "out.json").read_text())
    assert set(figures["medians_s"]) == {"even", "alone", "shared"} and min(figures["medians_s"].values()) > 0


def test_what_checkpoints_cost_is_measured(tmp_path):
    size = ["--mb", 1, "--every", 4, "--saves", 2, "--step_s", 0.01, "--ids", 20]
    lines = said(BENCH / "checkpoints", *size, "--folder", tmp_path, "--json", tmp_path / "figures").splitlines()
    assert [line.split("  ")[0] for line in lines] == ["mean step", "worst step", "all rows", "changes"], lines
    (run,) = json.loads((tmp_path / "figures").read_text())
    every_row, changes = run["bytes"]
    assert 0.9e6 < every_row < 1.1e6, run
    assert changes < every_row / 6, "few ids of a step"


SMALL = {"dense": "0.2", "many": "4", "lenet": None, "ctr": "1000"}


@pytest.mark.parametrize(
    "case, mode", [("dense", "sync"), ("many", "async"), ("lenet", "sync"), ("ctr", "sync"), ("ctr", "async")]
)
def test_training_is_measured_without_a_peer(tmp_path, case, mode):
    size = ["--size", SMALL[case]] if SMALL[case] else []
    text = said(
        sys.executable,
        BENCH / "ps",
        case,
        *size,
        "--mode",
        mode,
        "--servers",
        1,
        "--trainers",
        2,
        "--warm",
        1,
        "--steps",
        2,
        "--rounds",
        2,
        "--fluid",
        os.devnull,
        "--json",
        tmp_path / "out.json",
    )
    assert "Fluid 1.8.5 is not installed here" in text and "Penstock, auto" in text, text
    (result,) = json.loads((tmp_path / "out.json").read_text())
    assert (result["case"], result["mode"], result["trainers"]) == (case, mode, 2) and result["gb_a_step"] > 0
    for system in result["systems"]:
        assert len(system["runs"]) == 2 and "ratio" not in system
        assert all(system[key] > 0 for key in ("step_ms", "cpu_s_gb", "cpu_ms", "server_cpu_ms")), system


def test_combined_and_single_exchanges_are_measured(tmp_path):
    text = said(
        sys.executable,
        BENCH / "ps",
        "ctr_dnn",
        "--size",
        "1000",
        "--mode",
        "sync",
        "hybrid",
        "collective",
        "--servers",
        1,
        "--warm",
        1,
        "--steps",
        2,
        "--rounds",
        1,
        "--json",
        tmp_path / "out.json",
    )
    assert re.search(r"^  hybrid: [\d.]+ x sync, [\d.]+ x collective$", text, re.M), text
    results = json.loads((tmp_path / "out.json").read_text())
    assert [(one["mode"], one["servers"]) for one in results] == [("sync", 1), ("hybrid", 1), ("collective", 0)]
    assert all(system["step_ms"] > 0 for one in results for system in one["systems"]), results


def test_pushing_and_pulling_is_measured(tmp_path):
    binary("push_pull/bench_push_pull")
    text = said(
        sys.executable,
        BENCH / "ps",
        "push_pull",
        "--size",
        "1",
        "--steps",
        2,
        "--warm",
        1,
        "--rounds",
        1,
        "--json",
        tmp_path / "out.json",
    )
    assert "Penstock, auto" in text and "Penstock, tcp" in text and "Fluid" not in text, text
    (result,) = json.loads((tmp_path / "out.json").read_text())
    for system in result["systems"]:
        assert all(run[key] > 0 for run in system["runs"] for key in ("median_ms", "least_ms", "most_ms", "cpu_s_gb"))


def on_namespaces(tmp_path, *words):
    """The figures of tools/bench/netns; skips the test if network namespaces are not available."""
    path = tmp_path / "out.json"
    text = said(sys.executable, BENCH / "netns", *words, "--limit", 120, "--json", path)
    if "skipped: there are no network namespaces" in text:
        pytest.skip(text.strip())
    return text, json.loads(path.read_text())


def test_servers_and_all_reduce_are_compared_on_limited_links(tmp_path):
    text, measured = on_namespaces(
        tmp_path, "servers", "efficiency", "--workers", 2, "--megabytes", "0.1", "--steps", 1
    )
    assert set(measured) == {"servers", "efficiency"}
    servers = {line["name"]: line for line in measured["servers"]}
    assert list(servers) == ["all-reduce", "2 servers", "1 servers"]
    assert servers["all-reduce"]["times"] == 1 and all(line["seconds"] > 0 for line in servers.values())
    efficiency = {line["name"]: line for line in measured["efficiency"]}
    assert list(efficiency) == ["all-reduce", "2 servers", "2 on workers' hosts"]
    assert all(line["percent"] > 0 for line in efficiency.values())
    assert re.search(r"1 servers +[\d.]+ s +[\d.]+ x \(proposal 6.5 x\) #+\n", text), text


def test_an_all_reduce_is_compared_with_its_links(tmp_path):
    text, measured = on_namespaces(tmp_path, "links", "--link-megabytes", "0.5", "--link-mbit", 500, "--steps", 1)
    (line,) = measured["links"]
    assert all(line[key] > 0 for key in ("stream_s", "allreduce_s", "percent", "alone_s", "step_s")), line
    assert "(target 95 %)" in text and "% hidden (target 90 %)" in text, text


def test_hybrid_and_pure_exchanges_are_compared_on_limited_links(tmp_path):
    text, measured = on_namespaces(tmp_path, "hybrid", "--workers", 2, "--rows", 1000, "--hybrid-rounds", 1)
    lines = {line["name"]: line for line in measured["hybrid"]}
    assert list(lines) == ["sync", "hybrid", "collective"]
    assert all(line["seconds"] > 0 and len(line["runs"]) == 1 for line in lines.values()), lines
    assert lines["hybrid"]["hybrid_ratio"] == 1 and "hybrid takes 1.00 x" in text, text


def test_missing_network_namespaces_are_reported(tmp_path):
    text = said(sys.executable, BENCH / "netns", "links", "--json", tmp_path / "out.json", PATH=str(tmp_path))
    assert text == "skipped: there are no network namespaces to be had here (iproute2 is not installed: no ip, no tc)\n"
    assert not (tmp_path / "out.json").exists()
