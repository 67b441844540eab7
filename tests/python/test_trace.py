"""Traces: of one process, of a job under the launcher, of processes that were killed; the command `penstock trace`."""

import collections
import glob
import json
import os
import subprocess
import sys
import textwrap

import perfetto_file
from test_launch import WAIT_S, launch, write_script

# Trains in STEPS steps under the mode of its argument; each role prints the number of its ops by type.
JOB = """
    import collections, json
    import numpy as np
    import penstock.fluid as fluid
    STEPS = 4
    mode = sys.argv[1]
    x = fluid.data('x', [None, 128])
    hidden = fluid.layers.fc(x, 128, act='relu')
    loss = fluid.layers.mean(fluid.layers.fc(hidden, 1))
    fluid.optimizer.SGD(0.1).minimize(loss)
    exe = fluid.Executor(fluid.CPUPlace())
    t = fluid.DistributeTranspiler()
    trainer = os.environ["TRAINING_ROLE"] == "TRAINER"
    index = int(os.environ["PADDLE_TRAINER_ID"]) if trainer else 0
    t.transpile(index, pservers=os.environ["PADDLE_PSERVERS_IP_PORT_LIST"],
                trainers=int(os.environ["PADDLE_TRAINERS_NUM"]), sync_mode=mode == 'sync')
    if not trainer:
        main, startup = t.get_pserver_programs(os.environ["PADDLE_CURRENT_ENDPOINT"])
        exe.run(startup)
        exe.run(main)
        sys.exit(0)
    exe.run(fluid.default_startup_program())
    main = t.get_trainer_program()
    for step in range(STEPS):
        if os.environ.get("DIES") == str(index) and step == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        exe.run(main, feed={'x': np.ones((2, 128), 'float32')}, fetch_list=[loss])
    counts = collections.Counter(op.type for op in fluid.default_startup_program().block(0).ops)
    for op in main.block(0).ops:
        counts[op.type] += STEPS
    with open('ops.%d.json' % index, 'w') as file:
        json.dump(counts, file)
    exe.close()
"""


def penstock(*arguments):
    tool = os.path.join(os.path.dirname(sys.executable), "penstock")
    return subprocess.run([tool, *map(str, arguments)], capture_output=True, text=True, check=False, timeout=WAIT_S)


def trace_alone(folder, text):
    """Runs a script, which leaves its trace in the folder."""
    (folder / "alone.py").write_text(textwrap.dedent(text))
    environment = {**os.environ, "PENSTOCK_TRACE": str(folder)}
    subprocess.run([sys.executable, "alone.py"], cwd=folder, env=environment, timeout=WAIT_S, check=True)


STAGES = {"send": 0, "merge": 1, "store": 1, "update": 2, "ask": 0, "reply": 1, "arrived": 2}


def arrows(trace):
    """[(event, event)]: each flow from one stage to the next."""
    by_flow = collections.defaultdict(list)
    for event in trace.events:
        for flow in event.flows + event.ended:
            by_flow[flow].append((STAGES[event.name.split()[0]], event))
    found = [
        (a, b)
        for events in by_flow.values()
        for stage, a in events
        for next_stage, b in events
        if next_stage == stage + 1
    ]
    assert found
    return found


def flows_to_updates(trace):
    """{flow: the update that ends it}"""
    return {flow: event for event in trace.events if event.name.startswith("update ") for flow in event.ended}


def test_a_job_trace_links_each_send_to_its_update(tmp_path):
    script = write_script(tmp_path, JOB)
    result = launch(
        tmp_path,
        "--worker_num",
        "2",
        "--server_num",
        "2",
        "--trace",
        "traces",
        script,
        "sync",
        environment={"PENSTOCK_FUSION": "off"},
    )  # so that trainers run the ops of their programs
    assert result.returncode == 0, result.stderr
    path = os.path.join("traces", "job.pftrace")
    assert f"of 4 processes are in {path}; open it at https://ui.perfetto.dev" in result.stdout, result.stdout
    trace = perfetto_file.read(tmp_path / path)
    assert list(trace.processes.values()) == ["trainer 0", "trainer 1", "pserver 0", "pserver 1"]

    updates, sends = flows_to_updates(trace), 0
    for event in trace.events:
        if event.name.startswith("send ") and "@GRAD" in event.name:
            sends += 1
            assert trace.role(event).startswith("trainer"), event
            update = updates[event.flows[0]]
            assert trace.role(update).startswith("pserver") and event.end <= update.begin
            assert event.facts["step"] == update.facts["step"]
    assert sends == len(updates) and sends >= 2 * 4 * 4  # trainers, steps, parameters
    merges = {flow for event in trace.events if event.name.startswith("merge ") for flow in event.flows}
    assert merges == set(updates)
    for earlier, later in arrows(trace):
        assert earlier.end <= later.begin, (earlier, later)

    for index in (0, 1):
        ops = collections.Counter(
            event.name for event in trace.of(f"trainer {index}") if event.category == "compute" and "op" in event.facts
        )
        assert ops == json.loads((tmp_path / f"ops.{index}.json").read_text())
        assert any(event.name.startswith("wait for pserver ") for event in trace.of(f"trainer {index}"))
        asked = [event for event in trace.of(f"trainer {index}") if event.name.startswith("ask ")]
        arrived = {flow for event in trace.events if event.name.startswith("arrived ") for flow in event.ended}
        assert asked and {event.flows[0] for event in asked} <= arrived
    of_servers = [event for role in ("pserver 0", "pserver 1") for event in trace.of(role)]
    assert sum(event.name == "sgd" for event in of_servers) == sum(
        event.name.startswith("update ") and event.name != "update learning rate" for event in of_servers
    )

    merged = (tmp_path / path).read_bytes()
    again = penstock("trace", tmp_path / "traces", tmp_path / "again.pftrace")
    assert again.returncode == 0 and "trainer 0: " in again.stdout, again.stderr
    assert (tmp_path / "again.pftrace").read_bytes() == merged


def test_traces_on_fluids_wire_link_gradients_to_updates(tmp_path):
    script = write_script(tmp_path, JOB)
    result = launch(
        tmp_path, "--worker_num", "2", "--server_num", "2", "--wire", "fluid", "--trace", "traces", script, "sync"
    )
    assert result.returncode == 0, result.stderr
    trace = perfetto_file.read(tmp_path / "traces" / "job.pftrace")
    updates = flows_to_updates(trace)
    sends = [event for event in trace.events if event.name.startswith("send ") and "@GRAD" in event.name]
    assert len(sends) >= 2 * 4 * 4 and {event.flows[0] for event in sends} == set(updates)
    for send in sends:
        update = updates[send.flows[0]]
        assert trace.role(update).startswith("pserver") and send.end <= update.begin
        assert send.facts["step"] == update.facts["step"]


def test_traces_of_asynchronous_jobs_link_gradients_to_updates(tmp_path):
    script = write_script(tmp_path, JOB)
    result = launch(tmp_path, "--worker_num", "2", "--server_num", "1", "--trace", "traces", script, "async")
    assert result.returncode == 0, result.stderr
    trace = perfetto_file.read(tmp_path / "traces" / "job.pftrace")
    updates = flows_to_updates(trace)
    sends = [event for event in trace.events if event.name.startswith("send ") and "@GRAD" in event.name]
    assert sends and {event.flows[0] for event in sends} == set(updates)
    for earlier, later in arrows(trace):
        assert earlier.end <= later.begin, (earlier, later)


def test_the_trace_of_a_killed_process_is_merged(tmp_path):
    script = write_script(tmp_path, JOB)
    (tmp_path / "traces").mkdir()
    (tmp_path / "traces" / f"trace.{os.uname().nodename}.1").write_text("of an earlier job")
    result = launch(
        tmp_path,
        "--worker_num",
        "2",
        "--server_num",
        "1",
        "--trace",
        "traces",
        "--env",
        "trainer.1:DIES=1",
        script,
        "sync",
    )
    assert result.returncode == 1 and "of 3 processes are in" in result.stdout, result.stderr
    assert result.stderr.rstrip().splitlines()[-1].startswith("cause: trainer 1"), result.stderr
    trace = perfetto_file.read(tmp_path / "traces" / "job.pftrace")
    runs = [event for event in trace.of("trainer 1") if event.name == "mean"]
    assert len(runs) == 2  # of the steps before


def test_a_job_of_ranks_has_its_collective_operations(tmp_path):
    script = write_script(
        tmp_path,
        """
        import numpy, penstock.hvd as hvd
        hvd.init()
        hvd.allreduce(numpy.ones(2, 'float32'))
    """,
    )
    result = launch(tmp_path, "--worker_num", "2", "--trace", "traces", script)
    assert result.returncode == 0, result.stderr
    trace = perfetto_file.read(tmp_path / "traces" / "job.pftrace")
    sums = [[event for event in trace.of(role) if event.name == "all_reduce"] for role in ("trainer 0", "trainer 1")]
    assert sums[0] and [event.flows for event in sums[0]] == [event.flows for event in sums[1]]
    assert len({event.flows[0] for event in sums[0]}) == len(sums[0])
    for mine, theirs in zip(*sums):
        assert mine.facts["number"] == theirs.facts["number"]
        assert max(mine.begin, theirs.begin) <= min(mine.end, theirs.end)


ALONE = """
    import os, sys
    import numpy as np
    import penstock.fluid as fluid
    out = fluid.layers.relu(fluid.layers.fc(fluid.data('x', [None, 4]), 3))
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    def run():
        exe.run(fluid.default_main_program(), feed={'x': np.ones((2, 4), 'float32')}, fetch_list=[out])
    run()
    if os.fork() == 0:
        run()
        os._exit(0)
    os.wait()
    fluid.profiler.start_profiler('CPU')
    run()
    fluid.profiler.stop_profiler('total', 'profile.json')
"""


def test_the_environment_traces_a_process_but_not_forked_children(tmp_path):
    trace_alone(tmp_path, ALONE)
    result = penstock("trace", tmp_path)
    assert result.returncode == 0 and "job.pftrace at https://ui.perfetto.dev" in result.stdout, result.stderr
    trace = perfetto_file.read(tmp_path / "job.pftrace")
    assert len(trace.processes) == 1
    ops = [event for event in trace.events if event.name in ("fc", "relu")]
    assert [event.name for event in ops] == ["fc", "relu"] * 2  # fc: the product and the bias
    assert all(event.depth == 1 for event in ops)  # in the run of block 0
    # The profiler has the same readings of the clock.
    profile = json.loads((tmp_path / "profile.json").read_text())["traceEvents"]
    assert [event["name"] for event in profile] == [event.name for event in ops[2:]]
    assert [round(1000 * event["dur"]) for event in profile] == [event.end - event.begin for event in ops[2:]]


def test_without_the_variable_nothing_is_written(tmp_path):
    (tmp_path / "alone.py").write_text(textwrap.dedent(ALONE))
    kept = {key: value for key, value in os.environ.items() if key != "PENSTOCK_TRACE"}
    subprocess.run([sys.executable, "alone.py"], cwd=tmp_path, env=kept, timeout=WAIT_S, check=True)
    assert not glob.glob(str(tmp_path / "trace.*"))


def test_an_unwritable_folder_loses_the_trace_not_the_run(tmp_path):
    (tmp_path / "alone.py").write_text(textwrap.dedent(ALONE))
    result = subprocess.run(
        [sys.executable, "alone.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PENSTOCK_TRACE": str(tmp_path / "none")},
        timeout=WAIT_S,
    )
    assert "E-trace-write" in result.stderr and "No such file" in result.stderr


def test_a_folder_without_traces_is_an_error(tmp_path):
    for arguments, error in (([tmp_path], "E-trace-folder"), ([tmp_path / "none"], "E-trace-folder"), ([], "E-usage")):
        result = penstock("trace", *arguments)
        assert result.returncode == 2 and f"[{error}]" in result.stderr, result.stderr
    (tmp_path / "trace.host.1").write_bytes(b"torn")
    result = penstock("trace", tmp_path)
    assert result.returncode == 2 and "trace.host.1" in result.stderr and "[E-trace-file]" in result.stderr
    (tmp_path / "file").write_text("")
    script = write_script(tmp_path, "pass")
    result = launch(tmp_path, "--trace", "file", script)
    assert result.returncode == 2 and "--trace file: not a folder" in result.stderr
