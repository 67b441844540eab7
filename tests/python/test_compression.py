"""Compressed gradients in real processes: two servers merge two trainers' gradients, compared bit by bit."""

import textwrap

import numpy as np
import pytest

ROWS, WIDTH = 300, 64  # in two slices of 150 rows, each one chunk
STEPS = 6

# The gradient of the loss by w is the feed, so that all numbers are known in advance.
SCRIPT = textwrap.dedent("""
    import os, sys
    import numpy as np
    import penstock.fluid as fluid
    from job_script import program_of
    from penstock.fluid.communicator import Communicator, DistributedMode
    from test_compression import ROWS, STEPS, WIDTH, gradient

    role, index, out, steps = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
    endpoints, trainers = os.environ['ENDPOINTS'], int(os.environ['TRAINERS'])
    c = fluid.data('c', [ROWS, WIDTH])
    w = fluid.layers.create_parameter([ROWS, WIDTH], 'float32', name='w',
                                      default_initializer=fluid.initializer.Constant(0.0))
    loss = fluid.layers.reduce_sum(fluid.layers.elementwise_mul(w, c))
    fluid.optimizer.SGD(0.5).minimize(loss)
    exe, scope = fluid.Executor(fluid.CPUPlace()), fluid.global_scope()

    config, mode = fluid.DistributeTranspilerConfig(), os.environ['MODE']
    config.compression = os.environ['COMPRESSION']
    config.sync_mode = mode == 'sync'
    if mode in ('HALF_ASYNC', 'ASYNC'):
        config.runtime_split_send_recv, config.half_async = True, mode == 'HALF_ASYNC'
    t = fluid.DistributeTranspiler(config)
    t.transpile(index if role == 'trainer' else 0, pservers=endpoints, trainers=trainers, sync_mode=mode == 'sync')
    program = program_of(role, index, exe, t)
    exe.run(fluid.default_startup_program())
    communicator = None
    if mode in ('HALF_ASYNC', 'ASYNC'):
        envs = {'communicator_max_merge_var_num': '1', 'communicator_send_queue_size': '1',
                'communicator_min_send_grad_num_before_recv': '0', 'communicator_independent_recv_thread': '0'}
        communicator = Communicator(program, getattr(DistributedMode, mode), None, envs)
        communicator.start()
    for step in range(steps):
        exe.run(program, feed={'c': gradient(index, step)}, fetch_list=[])
    if communicator:
        communicator.stop()
    values = {'w': np.array(scope.find_var('w').get_tensor())}
    if scope.find_var('w@RESIDUAL'):
        values['left'] = np.array(scope.find_var('w@RESIDUAL').get_tensor())
        fluid.io.save_persistables(exe, os.path.join(out, 'saved%d' % index), program)
    np.savez(os.path.join(out, 'trainer%d' % index), **values)
    exe.close()
""")


def gradient(trainer, step):
    """Numbers that f32 sums exactly, but f16 and bf16 round: multiples of 1/4096 below 2."""
    return (np.random.RandomState(100 * step + trainer).randint(-8191, 8192, (ROWS, WIDTH)) / 4096).astype("float32")


def brain(values):
    bits = values.view("uint32")
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000).astype("uint32").view("float32")


def two_bit(values, threshold):
    return np.where(values >= threshold, threshold, np.where(values <= -threshold, -threshold, 0)).astype("float32")


def top_k(values, ratio):
    sent = np.zeros_like(values)
    for rows in (slice(0, ROWS // 2), slice(ROWS // 2, ROWS)):
        flat = values[rows].reshape(-1)
        first = np.argsort(-np.abs(flat), kind="stable")[: int(np.ceil(round(ratio * flat.size, 6)))]
        part = np.zeros_like(flat)
        part[first] = flat[first]
        sent[rows] = part.reshape(ROWS // 2, WIDTH)
    return sent


KINDS = {
    "fp16": (False, lambda values: values.astype("float16").astype("float32")),
    "bf16": (False, brain),
    "two_bit 0.5": (True, lambda values: two_bit(values, 0.5)),
    "top_k 0.01": (True, lambda values: top_k(values, 0.01)),
}


def reference(kind, trainers):
    """The parameter, and the residual of each trainer."""
    feeds_back, send = KINDS[kind]
    w = np.zeros((ROWS, WIDTH), "float32")
    left = [np.zeros_like(w) for _ in range(trainers)]
    for step in range(STEPS):
        mean = np.zeros_like(w)
        for trainer in range(trainers):
            whole = gradient(trainer, step) + left[trainer] if feeds_back else gradient(trainer, step)
            sent = send(whole)
            left[trainer] = whole - sent
            mean += sent
        w -= np.float32(0.5) * (mean / np.float32(trainers))
    return w, left if feeds_back else None


@pytest.mark.parametrize("mode, trainers", [("sync", 2), ("async", 1), ("HALF_ASYNC", 1), ("ASYNC", 1)])
@pytest.mark.parametrize("kind", sorted(KINDS))
def test_servers_receive_the_compressed_gradients(job, kind, mode, trainers):
    w, left = reference(kind, trainers)
    for index, got in enumerate(job.train(trainers, STEPS, COMPRESSION=kind, MODE=mode)):
        if mode != "ASYNC":  # ASYNC receives values later
            np.testing.assert_array_equal(got["w"], w)
        assert ("left" in got) == (left is not None)
        if left:
            np.testing.assert_array_equal(got["left"], left[index])
            assert (job.folder / (f"saved{index}") / "w@RESIDUAL").exists()


@pytest.mark.parametrize("kind, took", [("two_bit 0.5", "4.8 kB"), ("fp16", "38.4 kB")])
def test_the_receipt_reports_the_bytes_saved(job, kind, took):
    job.environment.update(COMPRESSION=kind, MODE="sync", TRAINERS="1")
    job.start_all(steps=1, trainers=1)
    said = job.wait_well()["trainer0"][2]
    assert f"compressed gradients took {took}, 76.8 kB as float32" in said, said


def test_two_bit_compression_refuses_nan(job):
    job.script.write_text(SCRIPT.replace("gradient(index, step)}", 'gradient(index, step) * np.float32("nan")}'))
    job.environment.update(COMPRESSION="two_bit 0.5", MODE="sync", TRAINERS="1")
    job.start_all(steps=STEPS, trainers=1)
    results = job.wait()
    assert all(code != 0 for code, _, _ in results.values()), results
    errors = results["trainer0"][2]
    assert "E-compression-finite" in errors and "w@GRAD" in errors, errors
