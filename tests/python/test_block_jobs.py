"""Jobs whose ops with blocks or external effects read parameters train as on one machine."""

import textwrap

import numpy as np
import pytest
from test_jobs import Job

JOB = textwrap.dedent("""
    import os, sys
    import numpy as np
    import penstock.fluid as fluid
    from job_script import program_of

    role, index, out, steps = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
    fluid.default_main_program().random_seed = fluid.default_startup_program().random_seed = 3
    L = fluid.layers
    y = fluid.data('y', [None, 1])

    def attr(name):
        return fluid.ParamAttr(name=name)

    def cell(step, state):
        weights = [attr('of_step'), attr('of_state')]
        return L.fc([step, state], 5, act='tanh', param_attr=weights, bias_attr=attr('bias'))

    def dynamic_rnn():
        x = fluid.data('x', [None, 4], lod_level=1)
        rnn = L.DynamicRNN()
        with rnn.block():
            step = rnn.step_input(x)
            state = rnn.memory(shape=[5], value=0.0)
            made = cell(step, state)
            rnn.update_memory(state, made)
            rnn.output(made)
        return L.sequence_last_step(rnn())

    def static_rnn():
        x = fluid.data('x', [3, None, 4])
        rnn = L.StaticRNN()
        with rnn.step():
            step = rnn.step_input(x)
            state = rnn.memory(shape=[-1, 5], batch_ref=step)
            made = cell(step, state)
            rnn.update_memory(state, made)
            rnn.step_output(made)
        return rnn()[2]

    def cond():
        x = fluid.data('x', [None, 4])
        positive = L.reduce_sum(L.fill_constant([1], 'float32', 1.0)) > 0.0
        return L.cond(positive, lambda: L.fc(x, 5, param_attr=attr('of_step')),
                      lambda: L.fill_constant([1, 5], 'float32', 0.0))

    def printed():
        x = fluid.data('x', [None, 4])
        made = L.fc(x, 5, act='tanh', param_attr=attr('of_step'), bias_attr=attr('bias'))
        L.Print(fluid.default_main_program().global_block().var('of_step'), message='of_step', print_phase='forward')
        return made

    net = os.environ['NET']
    loss = L.mean(L.square_error_cost(L.fc(globals()[net](), 1, param_attr=attr('last')), y))
    fluid.optimizer.SGD(0.1).minimize(loss)
    exe = fluid.Executor(fluid.CPUPlace())

    def feed(step):
        random = np.random.RandomState(step)
        mine = slice(0, 4) if role == 'local' else slice(2 * index, 2 * index + 2)
        lengths = [3, 1, 2, 3]
        rows, y = random.rand(4, 3, 4).astype('float32'), random.rand(4, 1).astype('float32')
        if net == 'dynamic_rnn':
            joined = np.concatenate([row[:n] for row, n in zip(rows[mine], lengths[mine])])
            x = fluid.create_lod_tensor(joined, [lengths[mine]], fluid.CPUPlace())
        else:
            x = rows[mine].transpose(1, 0, 2).copy() if net == 'static_rnn' else rows[mine, 0].copy()
        return {'x': x, 'y': y[mine]}

    program = fluid.default_main_program()
    if role != 'local':
        t = fluid.DistributeTranspiler()
        t.transpile(index if role == 'trainer' else 0, pservers=os.environ['ENDPOINTS'], trainers=2)
        program = program_of(role, index, exe, t)
    exe.run(fluid.default_startup_program())
    losses = [exe.run(program, feed=feed(step), fetch_list=[loss])[0][0] for step in range(steps)]
    scope = fluid.global_scope()
    values = {p.name: np.array(scope.find_var(p.name).get_tensor()) for p in program.all_parameters()}
    np.savez(os.path.join(out, role + str(index)), losses=losses, **values)
    exe.close()
""")


@pytest.mark.parametrize("net", ["dynamic_rnn", "static_rnn", "cond", "printed"])
def test_parameters_read_by_blocks_or_print_equal_one_machine(tmp_path, net):
    job = Job(tmp_path, JOB)
    job.environment["NET"] = net
    try:
        trainers = job.train()
        job.processes.clear()
        job.start("local", 0)
        job.wait_well()
    finally:
        job.kill_all()
    local = dict(np.load(tmp_path / "local0.npz"))
    assert len(local) >= 4
    np.testing.assert_allclose(np.mean([t["losses"] for t in trainers], axis=0), local.pop("losses"), rtol=1e-4)
    for name, value in local.items():
        np.testing.assert_array_equal(trainers[0][name], trainers[1][name])
        np.testing.assert_allclose(trainers[0][name], value, rtol=1e-4, atol=1e-6)
