"""config.clip = 'global' in real processes: they train like one machine with all batches."""

import numpy as np
import pytest
from test_communicator import SCRIPT as COMMUNICATOR
from test_jobs import JOB, Job, wait_for_line

CLIPS = {"by_global_norm": "fluid.clip.GradientClipByGlobalNorm(0.5)", "by_norm": "fluid.clip.GradientClipByNorm(0.2)"}


def script_of(clip):
    """The job of test_jobs, which clips: the first layer's weight is cut into two slices."""
    script = JOB
    for old, new in [
        ("Momentum(0.01, 0.9)", f"Momentum(0.01, 0.9, grad_clip={CLIPS[clip]})"),
        ("config.min_block_size = ", "config.clip = 'global'; config.min_block_size = "),
    ]:
        assert script.count(old) == 1
        script = script.replace(old, new)
    return script


def with_table(script):
    """The same with a sparse embedding below it; trainers hold no copy of its table."""
    for old, new in [
        ("fluid.data('x', [None, 64])", "fluid.data('x', [None, 1], dtype='int64')"),
        ("fc(x, 256", "fc(fluid.layers.embedding(x, [50, 64], is_sparse=True), 256"),
        ("random.rand(8, 64).astype('float32')", "random.randint(0, 50, (8, 1)).astype('int64')"),
        ("keepdims=True)", "keepdims=True).astype('float32')"),
        ("in program.all_parameters()", "in program.all_parameters() if 'embedding' not in p.name"),
    ]:
        assert old in script
        script = script.replace(old, new)
    return script


@pytest.fixture
def make_job(tmp_path):
    jobs = []

    def make(clip="by_global_norm", pservers=2, change=str):
        jobs.append(Job(tmp_path, change(script_of(clip))))
        endpoints = jobs[-1].environment["ENDPOINTS"].split(",")
        jobs[-1].environment["ENDPOINTS"] = ",".join(endpoints[:pservers])
        return jobs[-1]

    yield make
    for job in jobs:
        job.kill_all()


def run(job, pservers=2):
    """The final values of the two trainers."""
    for role, count in [("trainer", 2), ("pserver", pservers)]:
        for index in range(count):
            job.start(role, index)
    results = job.wait()
    assert {name: result[0] for name, result in results.items()} == dict.fromkeys(results, 0), results
    job.processes.clear()
    return [dict(np.load(job.folder / (f"trainer{i}.npz"))) for i in range(2)]


@pytest.mark.parametrize(
    "clip, pservers, change",
    [("by_global_norm", 2, str), ("by_global_norm", 1, str), ("by_norm", 2, str), ("by_global_norm", 2, with_table)],
)
def test_two_trainers_equal_one_machine_on_the_joined_batch(make_job, clip, pservers, change):
    job = make_job(clip, pservers, change)
    trainers = run(job, pservers)
    job.start("local", 0)
    results = job.wait()
    assert results["local0"][0] == 0, results
    local = np.load(job.folder / "local0.npz")
    np.testing.assert_allclose(np.mean([t["losses"] for t in trainers], axis=0), local["losses"], rtol=1e-5)
    for name in local.files:
        if name != "losses":
            np.testing.assert_array_equal(trainers[0][name], trainers[1][name])
            np.testing.assert_allclose(trainers[0][name], local[name], rtol=1e-5, atol=1e-5)


def test_runs_by_unix_sockets_and_tcp_are_byte_equal(make_job):
    job = make_job()
    first = run(job)
    for transport in ("auto", "tcp", "auto", "tcp"):
        job.environment["PENSTOCK_TRANSPORT"] = transport
        for one, again in zip(first, run(job)):
            for name, value in one.items():
                np.testing.assert_array_equal(again[name], value, err_msg=name)


def test_servers_exchange_the_same_bytes_by_mutual_tls(make_job):
    job = make_job()
    plain = run(job)
    job.use_mutual_tls()
    for one, again in zip(plain, run(job)):
        for name, value in one.items():
            np.testing.assert_array_equal(again[name], value, err_msg=name)


def test_completely_not_async_gives_the_bytes_of_sync(tmp_path):
    script = COMMUNICATOR
    for old, new in [
        ("Adam(rate)", f"Adam(rate, grad_clip={CLIPS['by_global_norm']})"),
        ("mode = os.environ.get('MODE'", "config.clip = 'global'; mode = os.environ.get('MODE'"),
    ]:
        assert script.count(old) == 1
        script = script.replace(old, new)
    job = Job(tmp_path, script)
    try:
        by_ops = job.train(steps=6)
        by_communicator = job.train(steps=6, BY_COMMUNICATOR="started")
    finally:
        job.kill_all()
    for one, other in zip(by_ops, by_communicator):
        for name, value in one.items():
            np.testing.assert_array_equal(other[name], value, err_msg=name)


def test_a_pserver_that_is_killed_is_named_by_the_other(make_job):
    job = make_job()
    job.start_all(steps=100000)
    for index in range(2):
        trainer = job.processes[f"trainer{index}"]
        wait_for_line(trainer, trainer.stdout, "training")
    job.processes["pserver1"].kill()
    results = job.wait()
    address = job.environment["ENDPOINTS"].split(",")[1]
    for name in ("trainer0", "trainer1", "pserver0"):
        code, _, errors = results[name]
        assert code == 1 and f"pserver {address} is gone" in errors and "E-peer-lost" in errors, errors


def test_global_clip_is_refused_on_fluids_wire(make_job):
    job = make_job()
    job.start("pserver", 0, PENSTOCK_WIRE="fluid")
    code, _, errors = job.wait()["pserver0"]
    assert code == 1, errors
    assert "clip=global by a norm over all gradients does not run on Fluid's wire" in errors, errors
