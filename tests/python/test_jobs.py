"""Jobs of real processes from Python: bytes, exits, Ctrl-C."""

import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time

import job_script
import numpy as np
import pytest
from penstock._src.launch.job import free_ports

WAIT_S = 180

JOB = textwrap.dedent("""
    import os, sys
    import numpy as np
    import penstock.fluid as fluid

    role, index, out, steps = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
    endpoints = os.environ['ENDPOINTS']
    fluid.default_main_program().random_seed = fluid.default_startup_program().random_seed = 3
    x = fluid.data('x', [None, 64])
    y = fluid.data('y', [None, 1])
    # With names that look like a transpiler's own, if asked: a slice of `a` would be called like a bias.
    names = ['a', 'a.block1', 'x@GRAD_y.trainer_0', 'größe:1'] if 'ODD_NAMES' in os.environ else [None] * 4
    attrs = [fluid.ParamAttr(name=name) for name in names]
    hidden = fluid.layers.fc(x, 256, act='relu', param_attr=attrs[0], bias_attr=attrs[1])
    output = fluid.layers.fc(hidden, 1, param_attr=attrs[2], bias_attr=attrs[3])
    loss = fluid.layers.mean(fluid.layers.square_error_cost(output, y))
    fluid.optimizer.Momentum(0.01, 0.9).minimize(loss)
    exe = fluid.Executor(fluid.CPUPlace())

    def feed(step):
        random = np.random.RandomState(step)
        x = random.rand(8, 64).astype('float32')
        y = x.sum(axis=1, keepdims=True)
        mine = slice(0, 8) if role == 'local' else slice(4 * index, 4 * index + 4)
        return {'x': x[mine], 'y': y[mine]}

    def save(name, losses):
        scope = fluid.global_scope()
        values = {p.name: np.array(scope.find_var(p.name).get_tensor()) for p in program.all_parameters()}
        np.savez(os.path.join(out, name), losses=losses, **values)

    if role == 'local':
        program = fluid.default_main_program()
        exe.run(fluid.default_startup_program())
        for name in np.load(os.path.join(out, 'start.npz')).files:
            fluid.global_scope().find_var(name).get_tensor().set(np.load(os.path.join(out, 'start.npz'))[name], None)
    else:
        config = fluid.DistributeTranspilerConfig()
        config.min_block_size = int(os.environ.get('MIN_BLOCK_SIZE', 8192))

        class RowsOnTheLast(fluid.transpiler.PSDispatcher):
            def dispatch(self, varlist):
                return [self.eps[-1 if var.shape[0] > 1 else 0] for var in varlist]

        if 'ROWS_ON_THE_LAST' in os.environ:
            config.split_method = RowsOnTheLast
        t = fluid.DistributeTranspiler(config)
        t.transpile(index if role == 'trainer' else 0, pservers=endpoints, trainers=2)
        if role == 'pserver':
            main, startup = t.get_pserver_programs(endpoints.split(',')[index])
            exe.run(startup)
            print('serving', flush=True)
            exe.run(main)
            sys.exit(0)
        program = t.get_trainer_program()
        print('starting', flush=True)
        exe.run(fluid.default_startup_program())
        if index == 0:
            scope = fluid.global_scope()
            np.savez(os.path.join(out, 'start.npz'),
                     **{p.name: np.array(scope.find_var(p.name).get_tensor()) for p in program.all_parameters()})
        print('training', flush=True)
    losses = []
    for step in range(steps):
        if os.environ.get('RAISE_IN') == role + str(index) and step == 2:
            raise ValueError('the data ran out')
        losses.append(exe.run(program, feed=feed(step), fetch_list=[loss])[0][0])
    save(role + str(index), losses)
    if '--no-close' not in sys.argv:
        exe.close()
""")


class Job:
    """A job of two pservers and two trainers by default, which leaves no process behind."""

    def __init__(self, folder, script=JOB):
        self.folder = folder
        self.script = folder / "job.py"
        self.script.write_text(script)
        self.environment = job_script.environment(
            ENDPOINTS=",".join(f"127.0.0.1:{port}" for port in free_ports(2)),
            OMP_NUM_THREADS="1",
            PENSTOCK_JOB_TOKEN="secret",
        )
        self.processes = {}

    def start(self, role, index, steps=5, *arguments, **environment):
        process = subprocess.Popen(
            [sys.executable, str(self.script), role, str(index), str(self.folder), str(steps), *arguments],
            env=dict(self.environment, **environment),
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.processes[role + str(index)] = process
        return process

    def start_all(self, *arguments, steps=5, trainers=2):
        for role, count in (("trainer", trainers), ("pserver", 2)):
            for index in range(count):
                self.start(role, index, steps, *arguments)

    def wait(self):
        """{name: (exit code, output, errors)}"""
        end = time.monotonic() + WAIT_S
        return {
            name: (process.returncode, *texts)
            for name, process in self.processes.items()
            for texts in [process.communicate(timeout=max(1, end - time.monotonic()))]
        }

    def use_mutual_tls(self):
        """All roles present and require a certificate of one authority, which is generated here."""

        def openssl(*arguments):
            subprocess.run(["openssl", *arguments], cwd=self.folder, check=True, capture_output=True, timeout=WAIT_S)

        key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
        openssl("req", "-x509", *key, "-subj", "/CN=authority", "-keyout", "ca.key", "-out", "ca.pem")
        openssl("req", *key, "-subj", "/CN=role", "-keyout", "role.key", "-out", "role.csr")
        (self.folder / "names").write_text("subjectAltName=IP:127.0.0.1\n")
        openssl(
            "x509",
            "-req",
            "-in",
            "role.csr",
            "-CA",
            "ca.pem",
            "-CAkey",
            "ca.key",
            "-CAcreateserial",
            "-extfile",
            "names",
            "-out",
            "role.pem",
        )
        names = {"CERT": "role.pem", "KEY": "role.key", "CA": "ca.pem"}
        self.environment.update(
            {"PENSTOCK_TLS_" + name: str(self.folder / file) for name, file in names.items()}, PENSTOCK_TLS_MUTUAL="1"
        )

    def wait_well(self):
        """The result of wait(); all processes must succeed."""
        results = self.wait()
        assert {name: result[0] for name, result in results.items()} == dict.fromkeys(results, 0), results
        return results

    def train(self, trainers=2, steps=5, **environment):
        """The arrays that each trainer saved as .npz; the job must succeed."""
        self.environment.update(environment, TRAINERS=str(trainers))
        self.start_all(steps=steps, trainers=trainers)
        self.wait_well()
        return [dict(np.load(self.folder / (f"trainer{i}.npz"))) for i in range(trainers)]

    def train_and_compare(self, trainers=2, **environment):
        """(what each trainer saved, what one machine saved), whose process has the role `local`; ends all processes."""
        try:
            saved = self.train(trainers, **environment)
            self.processes.clear()
            self.start("local", 0)
            self.wait_well()
        finally:
            self.kill_all()
        return saved, dict(np.load(self.folder / "local0.npz"))

    def kill_all(self):
        for process in self.processes.values():
            if process.poll() is None:
                process.kill()
                process.communicate()


@pytest.fixture
def job(tmp_path):
    job = Job(tmp_path)
    yield job
    job.kill_all()


@pytest.mark.parametrize("asked", [(), ("ODD_NAMES",), ("ROWS_ON_THE_LAST",)])
def test_two_by_two_processes_equal_one_machine_on_the_joined_batch(job, asked):
    job.environment.update(dict.fromkeys(asked, "1"))
    job.start_all()
    job.wait_well()
    job.processes.clear()
    job.start("local", 0)
    assert job.wait()["local0"][0] == 0
    trainers = [np.load(job.folder / (f"trainer{i}.npz")) for i in range(2)]
    local = np.load(job.folder / "local0.npz")
    np.testing.assert_allclose(np.mean([t["losses"] for t in trainers], axis=0), local["losses"], rtol=1e-4)
    for name in local.files:
        if name != "losses":
            np.testing.assert_array_equal(trainers[0][name], trainers[1][name])
            np.testing.assert_allclose(trainers[0][name], local[name], rtol=1e-4, atol=1e-5)


def test_fluids_wire_trains_to_the_same_bytes_as_the_native_wire(job):
    ends = {}
    for wire in ("native", "fluid"):
        job.environment["PENSTOCK_WIRE"] = wire
        job.start_all()
        results = job.wait()
        assert {result[0] for result in results.values()} == {0}, results
        assert all(("no exactly-once" in result[2]) == (wire == "fluid") for result in results.values()), results
        ends[wire] = [dict(np.load(job.folder / (f"trainer{i}.npz"))) for i in range(2)]
    for native, fluids in zip(ends["native"], ends["fluid"]):
        for name, value in native.items():
            np.testing.assert_array_equal(fluids[name], value)


def test_an_unknown_wire_is_refused():
    script = textwrap.dedent("""
        import penstock
        import penstock.fluid as fluid

        def error_of(wire):
            try:
                fluid.Executor(wire=wire)
            except (penstock.ProgramError, penstock.StateError) as error:
                return str(error)

        for wire in ('brpc', 'fluid', None, 'native'):
            print(wire, error_of(wire))
        """)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=WAIT_S, check=True)
    brpc, fluids, default, native = done.stdout.splitlines()
    assert "E-wire-name" in brpc
    assert (fluids, default) == ("fluid None", "None None")
    assert "E-wire-mixed" in native


def test_servers_exit_when_trainers_end_without_close(job):
    job.start_all("--no-close")
    assert {result[0] for result in job.wait().values()} == {0}


def test_every_role_reports_a_trainers_exception(job):
    job.environment["RAISE_IN"] = "trainer1"
    job.start_all(steps=100000)
    results = job.wait()
    assert {result[0] for result in results.values()} == {1}, results
    for name in ("trainer0", "pserver0", "pserver1"):
        errors = results[name][2]
        assert "PeerError: trainer 1 failed: ValueError: the data ran out   [E-peer-failed]" in errors, errors
        assert "raise ValueError('the data ran out')" in errors, errors
    assert "PeerError" not in results["trainer1"][2]


def test_details_are_logged_on_request(job):
    job.start_all(steps=2)
    results = job.wait()
    assert not any("has joined" in result[2] for result in results.values())
    job.environment["GLOG_v"] = "1"
    job.start_all(steps=2)
    for index, address in enumerate(job.environment["ENDPOINTS"].split(",")):
        errors = job.wait()[f"pserver{index}"][2]
        assert f"pserver {address}: trainer 1 has joined" in errors, errors


def test_ctrl_c_of_a_server_is_a_peer_error_for_others(job):
    job.start_all(steps=100000)
    for index in range(2):
        trainer = job.processes[f"trainer{index}"]
        wait_for_line(trainer, trainer.stdout, "training")
    job.processes["pserver1"].send_signal(signal.SIGINT)
    results = job.wait()
    assert "KeyboardInterrupt" in results["pserver1"][2]
    address = job.environment["ENDPOINTS"].split(",")[1]
    for name in ("trainer0", "trainer1", "pserver0"):
        code, _, errors = results[name]
        assert code == 1 and "KeyboardInterrupt" not in errors, errors
        assert f"PeerError: pserver {address} was interrupted   [E-peer-interrupted]" in errors, errors


def test_ctrl_c_ends_a_waiting_server(job):
    server = job.start("pserver", 0)
    assert server.stdout.readline() == "serving\n"
    server.send_signal(signal.SIGINT)
    _, errors = server.communicate(timeout=WAIT_S)
    assert server.returncode != 0 and "KeyboardInterrupt" in errors


def test_ctrl_c_ends_a_trainer_that_waits_for_its_servers(job):
    trainer = job.start("trainer", 0)
    assert trainer.stdout.readline() == "starting\n"  # and then it waits for servers that never come
    trainer.send_signal(signal.SIGINT)
    _, errors = trainer.communicate(timeout=WAIT_S)
    assert trainer.returncode != 0 and "KeyboardInterrupt" in errors


def test_a_wrong_token_is_refused_and_named(job):
    for index in range(2):
        job.start("pserver", index)
    trainer = job.start("trainer", 0, PENSTOCK_JOB_TOKEN="wrong")
    _, errors = trainer.communicate(timeout=WAIT_S)
    assert trainer.returncode != 0 and "token" in errors


def test_the_environment_enables_mutual_tls(job):
    job.use_mutual_tls()
    job.start_all(steps=2)
    job.wait_well()


def test_role_programs_of_different_plans_are_refused(job):
    for index in range(2):
        job.start("pserver", index)
    trainer = job.start("trainer", 0, MIN_BLOCK_SIZE="20000")
    _, errors = trainer.communicate(timeout=WAIT_S)
    assert trainer.returncode != 0
    assert "E-plan-mismatch" in errors and "first difference" in errors, errors


def test_an_endpoint_in_use_is_reported(job):
    with socket.socket() as taken:
        host, port = job.environment["ENDPOINTS"].split(",")[0].split(":")
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind((host, int(port)))
        taken.listen()
        server = job.start("pserver", 0)
        _, errors = server.communicate(timeout=WAIT_S)
    assert server.returncode != 0 and f"{host}:{port}" in errors


@pytest.mark.slow
def test_roles_may_start_in_any_order_and_20_seconds_late(job):
    for role, index in (("trainer", 1), ("pserver", 1), ("trainer", 0)):
        job.start(role, index)
    waiting = job.processes["trainer1"]
    wait_for_line(waiting, waiting.stderr, "waiting 20 s")
    job.start("pserver", 0)
    results = job.wait()
    assert {result[0] for result in results.values()} == {0}, results


@pytest.mark.slow
def test_a_server_reports_what_its_trainers_wait_for(job):
    for role, index in (("pserver", 0), ("trainer", 0), ("trainer", 1)):
        job.start(role, index)
    server = job.processes["pserver0"]
    missing = f"pserver {job.environment['ENDPOINTS'].split(',')[1]} to start (nothing answers there yet)"
    wait_for_line(server, server.stderr, f"s for {missing}; trainer 1 has waited 1")
    job.start("pserver", 1)
    results = job.wait()
    assert {result[0] for result in results.values()} == {0}, results


def wait_for_line(process, stream, text):
    """Reads up to a line that has the text."""
    seen = []
    patience = threading.Timer(WAIT_S, process.kill)
    patience.start()
    try:
        for line in stream:
            seen.append(line)
            if text in line:
                return
    finally:
        patience.cancel()
    raise AssertionError(f"the process ended and did not say {text!r}:\n{''.join(seen)}")


def test_trainers_report_a_dead_server(job):
    job.start_all(steps=100000)
    trainer = job.processes["trainer0"]
    wait_for_line(trainer, trainer.stdout, "training")
    job.processes["pserver1"].kill()
    for index in range(2):
        trainer = job.processes[f"trainer{index}"]
        _, errors = trainer.communicate(timeout=WAIT_S)
        assert trainer.returncode != 0 and job.environment["ENDPOINTS"].split(",")[1] in errors, errors
    other = job.processes["pserver0"]
    other.communicate(timeout=WAIT_S)
    assert other.returncode != 0


def test_peers_report_a_dead_trainer(job):
    job.start("pserver", 0)
    job.start("pserver", 1)
    victim = job.start("trainer", 0, 100000)
    other = job.start("trainer", 1, 100000)
    wait_for_line(victim, victim.stdout, "training")
    victim.kill()
    _, errors = other.communicate(timeout=WAIT_S)
    assert other.returncode != 0 and "trainer 0" in errors
    for index in range(2):
        server = job.processes[f"pserver{index}"]
        _, errors = server.communicate(timeout=WAIT_S)
        assert server.returncode != 0 and "trainer 0" in errors
