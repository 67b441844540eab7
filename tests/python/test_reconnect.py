"""A connection that breaks between living processes is made again: the job goes on, and no byte differs."""

import subprocess
import sys
import textwrap

import job_script
import numpy as np
import pytest
from penstock._src.launch.job import free_ports

WAIT_S = 180

JOB = textwrap.dedent("""
    import os, socket, sys
    import numpy as np
    import penstock.fluid as fluid
    from job_script import program_of

    role, index, mode, folder = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]
    cuts = [int(step) for step in os.environ.get('CUTS', '').split(',') if step]
    endpoints = os.environ['ENDPOINTS']

    def cut():
        '''Shuts down the connected sockets of this process. Returns their number.'''
        count = 0
        for name in os.listdir('/proc/self/fd'):
            try:
                if not os.readlink('/proc/self/fd/' + name).startswith('socket:'):
                    continue
                with socket.socket(fileno=os.dup(int(name))) as one:
                    one.getpeername()
                    one.shutdown(socket.SHUT_RDWR)
                    count += 1
            except OSError:
                continue
        return count

    fluid.default_main_program().random_seed = fluid.default_startup_program().random_seed = 1
    ids = fluid.layers.data('ids', [1], dtype='int64', lod_level=1)
    y = fluid.data('y', [None, 1])
    rows = fluid.layers.embedding(ids, [50, 8], is_sparse=True, param_attr=fluid.ParamAttr(name='table'))
    hidden = fluid.layers.fc(fluid.layers.sequence_pool(rows, 'sum'), 300, act='tanh')
    loss = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(hidden, 1), y))
    fluid.optimizer.Adam(0.01).minimize(loss)
    config = fluid.DistributeTranspilerConfig()
    config.sync_mode = mode == 'sync'
    config.runtime_split_send_recv = False
    t = fluid.DistributeTranspiler(config)
    t.transpile(index if role == 'trainer' else 0, pservers=endpoints, trainers=2, sync_mode=mode == 'sync')
    exe = fluid.Executor(fluid.CPUPlace())
    program = program_of(role, index, exe, t)
    exe.run(fluid.default_startup_program())
    draws = np.random.RandomState(index)
    losses, broken = [], 0
    for step in range(12):
        batch = fluid.create_lod_tensor(draws.randint(0, 50, (8, 1)).astype('int64'), [[2, 3, 3]], fluid.CPUPlace())
        value, = exe.run(program, feed={'ids': batch, 'y': np.ones((3, 1), 'float32')}, fetch_list=[loss])
        losses.append(float(value[0]))
        if step in cuts and index == 0:
            broken += cut()
    values = {p.name: np.array(fluid.global_scope().find_var(p.name).get_tensor()) for p in program.all_parameters()
              if p.name != 'table'}
    np.savez(os.path.join(folder, 'trainer_%d.npz' % index), losses=losses, broken=broken, **values)
    exe.close()
""")


def run(folder, mode, transport, cuts=(), wire="native"):
    """Returns {trainer: its results} and the texts of all processes of a job of two pservers and two trainers."""
    folder.mkdir()
    script = folder / "job.py"
    script.write_text(JOB)
    ports = free_ports(2)
    environment = job_script.environment(
        ENDPOINTS=",".join(f"127.0.0.1:{port}" for port in ports),
        PENSTOCK_TRANSPORT=transport,
        PENSTOCK_WIRE=wire,
        CUTS=",".join(map(str, cuts)),
    )
    who = [(role, index) for role in ("pserver", "trainer") for index in range(2)]
    processes = [
        subprocess.Popen(
            [sys.executable, str(script), role, str(index), mode, str(folder)],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for role, index in who
    ]
    try:
        texts = [process.communicate(timeout=WAIT_S)[0] for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.wait()
    assert [process.returncode for process in processes] == [0] * 4, "\n".join(text[-3000:] for text in texts)
    return [dict(np.load(folder / f"trainer_{index}.npz")) for index in range(2)], texts


@pytest.mark.parametrize("transport", ["tcp", "auto"])
def test_a_broken_connection_costs_no_byte_in_sync_mode(tmp_path, transport):
    undisturbed, _ = run(tmp_path / "undisturbed", "sync", transport)
    disturbed, texts = run(tmp_path / "disturbed", "sync", transport, cuts=(2, 3, 7))
    assert disturbed[0].pop("broken") >= 6 and undisturbed[0].pop("broken") == 0
    for index in range(2):
        for name, value in undisturbed[index].items():
            np.testing.assert_array_equal(disturbed[index][name], value, err_msg=name)
    for role in (0, 1, 2):  # both pservers and the trainer say how long it was
        assert "is connected again after " in texts[role], texts[role]


def test_a_broken_connection_does_not_end_an_async_job(tmp_path):
    results, texts = run(tmp_path / "async", "async", "tcp", cuts=(2, 5))
    assert results[0]["broken"] >= 4 and all(np.isfinite(each["losses"]).all() for each in results)
    assert "is connected again after " in texts[2]


@pytest.mark.slow
def test_fluids_wire_says_what_it_cannot_promise(tmp_path):
    undisturbed, _ = run(tmp_path / "undisturbed", "sync", "tcp", wire="fluid")
    disturbed, texts = run(tmp_path / "disturbed", "sync", "tcp", cuts=(3, 7), wire="fluid")
    assert disturbed[0].pop("broken") >= 2 and undisturbed[0].pop("broken") == 0
    for text in texts:
        assert "uses Fluid's wire, which has no exactly-once delivery" in text, text
    for index in range(2):  # between two steps nothing is on its way
        for name, value in undisturbed[index].items():
            np.testing.assert_array_equal(disturbed[index][name], value, err_msg=name)
