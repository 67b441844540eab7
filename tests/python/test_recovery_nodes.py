"""Jobs over two machines, of which roles are killed: the launcher of a role's machine starts it again, and every
launcher says so. The machines are loopback addresses here."""

import os
import re
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest
from penstock._src.launch.job import free_ports

WAIT_S = 180
HOSTS = ("127.0.0.1", "127.0.0.2")

# Trains 8 steps and saves trainer 0's parameters in sys.argv[1]. KILLS: trainer 0 kills pserver 1 before step 4, once
# its part of the checkpoint of step 3 is there. DIES: trainer 1 kills itself before step 6. FAILS: it fails there.
# WAITS: trainer 0 waits before step 5 until the pservers have been asked to stop. Each only in the first process.
SCRIPT = """
    import os, signal, sys, time
    import numpy as np
    import penstock
    import penstock.fluid as fluid

    fluid.default_main_program().random_seed = fluid.default_startup_program().random_seed = 3
    x, y = fluid.data('x', [None, 8]), fluid.data('y', [None, 1])
    output = fluid.layers.fc(fluid.layers.fc(x, 2048, act='tanh', param_attr='w'), 1, param_attr='v')
    loss = fluid.layers.mean(fluid.layers.square_error_cost(output, y))
    fluid.optimizer.Adam(0.01).minimize(loss)
    exe = fluid.Executor(fluid.CPUPlace())
    trainer = os.environ['TRAINING_ROLE'] == 'TRAINER'
    index = int(os.environ.get('PADDLE_TRAINER_ID' if trainer else 'PADDLE_PSERVER_ID', 0))
    first = os.environ['PENSTOCK_ROLE_RESTART_COUNT'] == os.environ['PENSTOCK_RESTART_COUNT'] == '0'
    t = fluid.DistributeTranspiler()
    t.transpile(index if trainer else 0, pservers=os.environ['PADDLE_PSERVER_ENDPOINTS'], trainers=2)
    if not trainer:
        main, startup = t.get_pserver_programs(os.environ['PADDLE_CURRENT_ENDPOINT'])
        exe.run(startup)
        if first:
            with open(sys.argv[1] + '.pserver.%d.new' % index, 'w') as file:
                file.write(str(os.getpid()))
            os.rename(sys.argv[1] + '.pserver.%d.new' % index, sys.argv[1] + '.pserver.%d' % index)
        exe.run(main)
        sys.exit(0)
    exe.run(fluid.default_startup_program())
    print('begins with step', penstock.resume_step())
    for step in range(penstock.resume_step(), 8):
        if index == 0 and step == 4 and 'KILLS' in os.environ and first:
            while not os.path.exists(os.environ['PENSTOCK_CHECKPOINT_DIR'] + '/step-3/part-1-of-2.json'):
                time.sleep(0.01)
            os.kill(int(open(sys.argv[1] + '.pserver.1').read()), signal.SIGKILL)
        if index == 1 and step == 6 and first:
            if 'DIES' in os.environ:
                os.kill(os.getpid(), signal.SIGKILL)
            if 'FAILS' in os.environ:
                raise SystemExit(3)
        if index == 0 and step == 5 and 'WAITS' in os.environ and first:
            open(sys.argv[1] + '.waits', 'w').close()
            answers = [os.environ['PENSTOCK_CHECKPOINT_DIR'] + '/stop/part-%d-of-2' % server for server in range(2)]
            while not all(map(os.path.exists, answers)):
                time.sleep(0.01)
        random = np.random.RandomState(10 * step + index)
        rows = random.rand(4, 8).astype('float32')
        exe.run(t.get_trainer_program(), feed={'x': rows, 'y': rows.sum(1, keepdims=True)})
    if index == 0:
        scope = fluid.global_scope()
        np.savez(sys.argv[1] + '.npz', **{name: np.array(scope.find_var(name).get_tensor()) for name in ('w', 'v')})
    exe.close()
"""


def launch(folder, name, *options, stop=None, **environment):
    """Returns ([output of each launcher], the logs, what trainer 0 has at the end). `stop`: the launcher that gets
    SIGTERM once trainer 0 waits for that."""
    (folder / "job.py").write_text(textwrap.dedent(SCRIPT))
    control, start, trainers = free_ports(3)
    launchers = []
    for node, host in enumerate(HOSTS):
        machines = ["--cluster_node_ips", ",".join(HOSTS), "--node_ip", host, "--control_port", str(control)]
        roles = ["--server_num", "1", "--worker_num", "1", "--start_port", str(start), "--started_port", str(trainers)]
        folders = ["--log_dir", f"{name}.logs{node}", "--checkpoint_dir", f"{name}.saved", "--checkpoint_steps", "3"]
        launchers.append(
            subprocess.Popen(
                [sys.executable, "-m", "penstock.distributed.launch", *machines, *roles, *folders, *options]
                + ["job.py", name],
                cwd=folder,
                env={**os.environ, "OMP_NUM_THREADS": "1", "PENSTOCK_JOB_TOKEN": "of this test", **environment},
                text=True,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            )
        )
    try:
        end = time.monotonic() + WAIT_S
        while stop is not None and not (folder / f"{name}.waits").exists():
            assert time.monotonic() < end and launchers[stop].poll() is None, launchers[stop].communicate()[0]
            time.sleep(0.05)
        if stop is not None:
            launchers[stop].send_signal(signal.SIGTERM)
        said = [launcher.communicate(timeout=WAIT_S)[0] for launcher in launchers]
    finally:
        for launcher in launchers:
            launcher.kill()
            launcher.wait()
    logs = "".join(f"\n{path}:\n{path.read_text()[-2000:]}" for path in sorted(folder.glob(f"{name}.logs*/*log.*")))
    codes = [launcher.returncode for launcher in launchers]
    assert codes == [0, 0], "\n".join([*said, logs])
    held = folder / f"{name}.npz"
    return said, logs, dict(np.load(held)) if held.exists() else {}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("nodes")
    return folder, launch(folder, "undisturbed")[2]


def expect_same(got, want):
    for name, value in want.items():
        np.testing.assert_array_equal(got[name], value, name)


def test_roles_of_another_machine_come_back(undisturbed):
    folder, held = undisturbed
    said, _, got = launch(folder, "killed", KILLS="1", DIES="1")
    expect_same(got, held)
    for node, where in ((0, "node 1 (127.0.0.2): "), (1, "")):
        for role in ("pserver 1", "trainer 1"):
            assert f"launch: {where}{role} (pid " in said[node], said[node]
        assert said[node].count("; it is started again in 0.25 s, restart 1 of 3, and the other roles wait") == 2
        assert said[node].count(" s after its end: ") == 2, said[node]
        assert "it continued from its checkpoint of step 3" in said[node]


@pytest.mark.slow
def test_a_job_of_two_machines_is_started_again_from_its_checkpoint(undisturbed):
    folder, held = undisturbed
    said, logs, got = launch(folder, "again", "--max_restart", "1", FAILS="1")
    expect_same(got, held)
    assert all("launch: starting the job again, attempt 1 of 1" in text for text in said), said
    assert logs.count("begins with step 3") + logs.count("begins with step 6") == 2, logs


@pytest.mark.slow
@pytest.mark.parametrize("node", [0, 1])
def test_sigterm_to_any_launcher_stops_the_job_after_a_checkpoint(undisturbed, node):
    folder, held = undisturbed
    name = f"stopped{node}"
    said, _, got = launch(folder, name, stop=node, WAITS="1")
    assert got == {}
    steps = [re.search(r"launch: stopped by SIGTERM after step (\d+); its checkpoint is", text) for text in said]
    assert all(steps) and len({step[1] for step in steps}) == 1 and 5 <= int(steps[0][1]) < 8, said
    said, logs, got = launch(folder, name, "--resume")
    assert logs.count(f"begins with step {steps[0][1]}") == 2, logs
    expect_same(got, held)
