"""A trainer saves tables whose rows are on the pservers as it saves its own parameters, and looks rows up before its
first step."""

import os

import numpy as np
import pytest
from fleet_jobs import launch

SCRIPT = """
    import os
    import sys
    import numpy as np
    import penstock.fluid as fluid
    from job_script import launched_program_of

    ids = fluid.data('ids', [None, 1], 'int64')
    rows = fluid.embedding(ids, [50, 8], is_sparse=True, param_attr='table')
    loss = fluid.layers.mean(fluid.layers.fc(fluid.layers.reshape(rows, [-1, 8]), 1, param_attr='w'))
    test = fluid.default_main_program().clone(for_test=True)
    fluid.optimizer.Momentum(0.5, 0.9).minimize(loss)
    exe = fluid.Executor(fluid.CPUPlace())
    index = int(os.environ.get('PADDLE_TRAINER_ID', '0'))
    t = fluid.DistributeTranspiler()
    t.transpile(index, pservers=os.environ['PADDLE_PSERVERS_IP_PORT_LIST'],
                trainers=int(os.environ['PADDLE_TRAINERS_NUM']))
    program = launched_program_of(exe, t)
    exe.run(fluid.default_startup_program())
    every = np.arange(50).reshape(50, 1)
    first, = exe.run(test, feed={'ids': every}, fetch_list=[rows])    # before the first step
    assert np.ptp(first) > 0
    random = np.random.RandomState(index)
    for _ in range(4):
        exe.run(program, feed={'ids': random.randint(0, 50, (6, 1))}, fetch_list=[loss])
    changed = (exe.run(test, feed={'ids': every}, fetch_list=[rows])[0] != first).any(axis=(1, 2))
    assert 6 <= changed.sum() < 50, changed
    if index == 0:
        fluid.io.save_persistables(exe, 'vars', program)
        fluid.save(fluid.default_main_program() if sys.argv[1] == 'default' else program, 'model')
        table = program.global_block().var('table')
        np.savez('values.npz', table=fluid.io.get_parameter_value(table, exe),
                 again=fluid.io.get_parameter_value_by_name('table', exe, program))
    exe.close()
"""


@pytest.mark.parametrize("which", ["default", "trainer"])
def test_the_complete_table_is_saved(tmp_path, which):
    import penstock.fluid as fluid

    code, said, logs = launch(tmp_path, SCRIPT, which)
    assert code == 0, said + "".join(text[-2000:] for text in logs.values())
    state = fluid.io.load_program_state(os.path.join(str(tmp_path), "model"))
    assert state["table"].shape == (50, 8) and state["w"].shape == (8, 1)
    with open(tmp_path / "vars" / "table", "rb") as file:
        saved = np.frombuffer(file.read()[-50 * 8 * 4 :], "float32").reshape(50, 8)
    assert np.ptp(saved) > 0
    values = np.load(tmp_path / "values.npz")
    for table in (state["table"], values["table"], values["again"]):
        np.testing.assert_array_equal(table, saved)
