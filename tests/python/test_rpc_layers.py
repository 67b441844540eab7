"""Servers and clients that are built by hand: ListenAndServ, Send, Recv."""

import penstock
import pytest
from fleet_jobs import launch


def test_rpc_layers_append_fluids_ops(fluid):
    from penstock.fluid.layers.io import ListenAndServ, Recv, Send

    block = fluid.default_main_program().global_block()
    x = fluid.data("x", [32, 32])
    y = fluid.data("y", [32, 32])
    Send("h:1,h:2,h:1", [x, y, x], dummy_output=block.create_var(name="sent"))
    assert Recv("h:1", [y], dummy_input=[block.var("sent")], sync=False) == [y]
    server = ListenAndServ("h:1", [x], fan_in=2, optimizer_mode=False)
    with server.do():
        fluid.layers.scale(x, 10.0)
        assert server.parent_block().idx == 0
        assert [var.name for var in server.get_params_and_grads()[0]] == ["x"]
    assert [op.type for op in block.ops] == ["send", "send_barrier", "recv", "listen_and_serv"]
    send, barrier, recv, serve = block.ops
    assert send.attr("epmap") == ["h:1", "h:2", "h:1"] and send.output("Out") == ["sent"]
    assert barrier.attr("endpoints") == ["h:1", "h:2"] and barrier.input("X") == ["sent"]
    assert recv.input("X") == ["sent"] and recv.output("Out") == ["y"]
    assert serve.input("X") == ["x"] and serve.attr("endpoint") == "h:1" and serve.attr("Fanin") == 2
    assert [inner.id for inner in serve.attr("optimize_blocks")] == [1] and serve.attr("distributed_mode") == 0
    assert serve.attr("grad_to_block_id") == [""]


@pytest.mark.parametrize(
    "call, says",
    [
        (lambda io: io.Send("h:1", "x"), "Send: send_vars must be a list of Variables, not str"),
        (lambda io: io.Recv("h:1", "x"), "Recv: get_vars must be a list of Variables, not str"),
        (lambda io: io.BlockGuardServ(3), "BlockGuardServ takes a ListenAndServ, not int"),
    ],
)
def test_a_wrong_argument_is_an_error(fluid, call, says):
    with pytest.raises(TypeError, match=says):
        call(fluid.layers.io)


def test_each_variable_requires_an_address(fluid):
    with pytest.raises(ValueError, match="Send: send_vars has 1 variables, but endpoints has 2 addresses"):
        fluid.layers.io.Send("h:1,h:2", [fluid.data("x", [4])])


def test_server_parameters_are_available_only_in_its_block(fluid):
    with pytest.raises(ValueError, match="the current block is the outermost one"):
        fluid.layers.io.ListenAndServ("h:1", []).get_params_and_grads()


def test_a_server_that_updates_nothing_is_refused(fluid):
    x = fluid.data("x", [4])
    with fluid.layers.io.ListenAndServ("127.0.0.1:1", [x]).do():
        fluid.layers.scale(x, 10.0)
    with pytest.raises(penstock.ProgramError, match="has no optimizer op"):
        fluid.Executor(fluid.CPUPlace()).run(fluid.default_main_program())


SCRIPT = """
    import os
    import sys
    import numpy as np
    import penstock.fluid as fluid
    from penstock.fluid.layers.io import ListenAndServ, Recv, Send

    exe = fluid.Executor(fluid.CPUPlace())
    block = fluid.default_main_program().global_block()
    w = block.create_var(name='w', dtype='float32', shape=[4], persistable=True)
    address = os.environ['PADDLE_PSERVERS_IP_PORT_LIST']
    if os.environ['TRAINING_ROLE'] == 'PSERVER':
        g = block.create_var(name='g', dtype='float32', shape=[4])
        rate = block.create_var(name='rate', dtype='float32', shape=[1], persistable=True)
        fluid.initializer.Constant(1.0)(w, block)
        fluid.initializer.Constant(0.5)(rate, block)
        server = ListenAndServ(address, [g], fan_in=int(os.environ['PADDLE_TRAINERS_NUM']))
        with server.do():
            fluid.default_main_program().current_block().append_op(
                'sgd', {'Param': w, 'Grad': g, 'LearningRate': rate}, {'ParamOut': w})
            assert server.get_params_and_grads() == (['w'], ['g'])
        exe.run()
        sys.exit(0)
    g = fluid.data('g', [4])
    Send(address, [g])
    Recv(address, [w])
    for step in range(1, 4):
        value, = exe.run(feed={'g': np.full(4, 2.0, 'float32')}, fetch_list=[w])
        np.testing.assert_array_equal(value, np.full(4, 1.0 - step))
    exe.close()
"""


def test_a_hand_built_server_trains(tmp_path):
    code, said, logs = launch(tmp_path, SCRIPT, servers=1, workers=1)
    assert code == 0, said + "".join(text[-2000:] for text in logs.values())
