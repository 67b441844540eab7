"""fluid.profiler: a table of ops and a timeline."""

import json
import threading

import numpy
import pytest


@pytest.fixture
def step(fluid):
    """Runs a step: mul, elementwise_add, relu twice, and a loop of two rounds of increment."""
    hidden = fluid.layers.fc(fluid.data("x", [None, 4]), 3, act="relu")
    out = fluid.layers.relu(hidden)
    count, limit = fluid.layers.fill_constant([1], "int64", 0), fluid.layers.fill_constant([1], "int64", 2)
    live = fluid.layers.less_than(count, limit)
    with fluid.layers.While(live).block():
        fluid.layers.increment(count)
        fluid.layers.less_than(count, limit, cond=live)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    main, scope = fluid.default_main_program(), fluid.global_scope()
    return lambda: exe.run(main, feed={"x": numpy.ones((2, 4), "float32")}, fetch_list=[out], scope=scope)


def rows_of(text):
    """{type: (calls, total, min, max, mean, ratio)} in the order of a printed table."""
    lines = [line.split() for line in text.splitlines()]
    begin = lines.index(["Event", "Calls", "Total", "Min.", "Max.", "Ave.", "Ratio."])
    return {line[0]: tuple(map(float, line[1:])) for line in lines[begin + 1 :] if line}


CALLS = {"fc": 1, "relu": 2, "fill_constant": 2, "less_than": 3, "while": 1, "increment": 2}


def test_every_op_is_counted_and_timed(fluid, step, tmp_path, capsys):
    step()
    path = tmp_path / "timeline.json"
    with fluid.profiler.profiler("CPU", profile_path=str(path)):
        step()
        step()
    step()
    rows = rows_of(capsys.readouterr().out)
    assert {kind: row[0] for kind, row in rows.items()} == {kind: 2 * calls for kind, calls in CALLS.items()}
    assert list(rows)[:2] == ["fc", "relu"]  # the plan has one op for the product and the bias
    for calls, total, low, high, mean, _ in rows.values():
        assert 0 <= low <= mean * 1.00001 and mean <= high * 1.00001 and high <= total * 1.00001
        assert mean * calls == pytest.approx(total, rel=1e-4)
    assert sum(row[5] for row in rows.values()) == pytest.approx(1, abs=1e-4)

    events = json.loads(path.read_text())["traceEvents"]
    assert len(events) == 2 * sum(CALLS.values()) and {event["ph"] for event in events} == {"X"}
    loop = next(event for event in events if event["name"] == "while")
    inside = [event for event in events if event["name"] == "increment"][:2]
    assert all(loop["ts"] <= event["ts"] and event["ts"] + event["dur"] <= loop["ts"] + loop["dur"] for event in inside)


@pytest.mark.parametrize("key, column", [("calls", 0), ("total", 1), ("min", 2), ("max", 3), ("ave", 4)])
def test_the_table_is_sorted_by_the_given_key(fluid, step, capsys, key, column):
    fluid.profiler.start_profiler("All", tracer_option="OpDetail")
    step()
    fluid.profiler.stop_profiler(key, profile_path="")
    values = [row[column] for row in rows_of(capsys.readouterr().out).values()]
    assert values == sorted(values, reverse=True) and len(values) == len(CALLS)


def test_starting_twice_continues_and_reset_clears(fluid, step, capsys):
    fluid.profiler.stop_profiler()  # nothing is timed: nothing is printed
    assert capsys.readouterr().out == ""
    fluid.profiler.start_profiler("GPU")
    step()
    fluid.profiler.start_profiler("GPU")  # goes on
    step()
    fluid.profiler.reset_profiler()
    step()
    fluid.profiler.stop_profiler("default", "")
    assert rows_of(capsys.readouterr().out)["fc"][0] == 1
    fluid.profiler.start_profiler("CPU")
    fluid.profiler.stop_profiler(profile_path="")
    assert rows_of(capsys.readouterr().out) == {}


def test_runs_of_other_threads_are_timed(fluid, tmp_path, capsys):
    """A program that never waits runs on the calling thread."""
    out, exe = fluid.layers.relu(fluid.data("x", [2])), fluid.Executor()
    main, scope, path = fluid.default_main_program(), fluid.global_scope(), tmp_path / "timeline.json"

    def run():
        exe.run(main, feed={"x": numpy.ones(2, "float32")}, fetch_list=[out], scope=scope)

    with fluid.profiler.profiler("CPU", "total", str(path)):
        run()
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    assert rows_of(capsys.readouterr().out)["relu"][0] == 2
    assert [event["tid"] for event in json.loads(path.read_text())["traceEvents"]] == [0, 1]


def test_invalid_profiler_arguments_are_refused(fluid, monkeypatch):
    monkeypatch.delenv("PENSTOCK_CUDA_FALLBACK", raising=False)
    with pytest.raises(ValueError, match="state must be one of CPU, GPU, All, not 'cpu'"):
        fluid.profiler.start_profiler("cpu")
    with pytest.raises(ValueError, match="tracer_option must be one of Default, OpDetail, AllOpDetail, not 'x'"):
        fluid.profiler.start_profiler("CPU", "x")
    with pytest.raises(ValueError, match="sorted_key must be one of calls, total, min, max, ave, not 'mean'"):
        fluid.profiler.stop_profiler("mean")
    with pytest.raises(ValueError, match="output_mode must be one of kvp, csv, not 'x'"):
        with fluid.profiler.cuda_profiler("x.csv", "x"):
            pass
    with pytest.raises(NotImplementedError, match="cuda_profiler: .* PENSTOCK_CUDA_FALLBACK=1"):
        with fluid.profiler.cuda_profiler("x.csv"):
            pass
