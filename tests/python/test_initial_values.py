"""Initial values that a startup program computes from others, in jobs compared with one machine: WeightNormParamAttr,
parameters that start as copies of others, state that starts as its parameter."""

import textwrap

import numpy as np
import penstock
import pytest
from test_updates import require_one_machines, train

NET = textwrap.dedent('''
    import numpy as np
    import penstock.fluid as fluid

    L = fluid.layers
    SPARSE = ()

    def started(op_type, inputs, out, **attrs):
        fluid.default_startup_program().global_block().append_op(op_type, inputs, {'Out': out}, attrs)

    def starting(name):
        return fluid.default_startup_program().global_block().var(name)

    def cost(wide='wide', last='last', other='other'):
        x, y = fluid.data('x', [None, 8]), fluid.data('y', [None, 1], 'int64')
        ids = fluid.data('ids', [None, 1], 'int64')
        row = L.reshape(fluid.embedding(ids, [6, 8], param_attr='table'), [-1, 8])
        hidden = L.fc(x, 2400, act='tanh', param_attr=wide, bias_attr='b')
        hidden = hidden + L.fc(row, 2400, act='tanh', param_attr=other, bias_attr=False)
        return L.mean(L.cross_entropy(L.fc(hidden, 4, act='softmax', param_attr=last, bias_attr=False), y))

    def sgd(loss):
        fluid.optimizer.SGD(0.3).minimize(loss)
        return loss

    def weight_norm():
        """The lengths of rows and of columns, of a sliced direction, from Xavier\'s numbers."""
        return sgd(cost(fluid.WeightNormParamAttr(dim=1, name='wide'), fluid.WeightNormParamAttr(dim=0, name='last')))

    def weight_norm_of_all():
        """One length for all elements; the directions start from normal numbers and from a constant."""
        normal = fluid.initializer.TruncatedNormal(0.0, 0.1, seed=5)
        constant = fluid.initializer.Constant(0.01)
        loss = cost(fluid.WeightNormParamAttr(name='wide', initializer=normal),
                    fluid.WeightNormParamAttr(name='last', initializer=constant),
                    fluid.WeightNormParamAttr(dim=1, name='other'))
        return sgd(loss)

    def tied():
        """A sliced parameter starts as a copy of another."""
        loss = cost()
        started('assign', {'X': starting('wide')}, starting('other'))
        return sgd(loss)

    def scaled():
        """Elementwise chains, one of a parameter itself."""
        loss = cost()
        block = fluid.default_startup_program().global_block()
        half = block.create_var(name='half', shape=[8, 2400], dtype='float32')
        third = block.create_var(name='third', shape=[8, 2400], dtype='float32')
        factor = block.create_var(name='factor', shape=[1], dtype='float32')
        started('fill_constant', {}, factor, shape=[1], value=0.25, dtype=5)
        started('scale', {'X': starting('wide')}, half, scale=0.5)
        started('scale', {'X': starting('wide')}, starting('wide'), scale=3.0)
        started('elementwise_mul', {'X': half, 'Y': factor}, third)
        started('elementwise_add', {'X': third, 'Y': half}, starting('other'))
        started('scale', {'X': starting('last')}, starting('last'), scale=0.5)
        return sgd(loss)

    def turned():
        """A sliced parameter starts from all rows of another."""
        loss = cost()
        block = fluid.default_startup_program().global_block()
        turned = block.create_var(name='turned', shape=[2400, 8], dtype='float32')
        shape = block.create_var(name='xshape', shape=[0, 8, 2400], dtype='float32')
        block.append_op('reshape2', {'X': starting('wide')}, {'Out': turned, 'XShape': shape}, {'shape': [2400, 8]})
        shape = block.create_var(name='xshape2', shape=[0, 2400, 8], dtype='float32')
        block.append_op('transpose2', {'X': turned}, {'Out': starting('other'), 'XShape': shape}, {'axis': [1, 0]})
        return sgd(loss)

    def slow_copies():
        """State of the shape of its parameter starts as the parameter."""
        loss = cost()
        for p, g in fluid.optimizer.Momentum(0.1, 0.9).minimize(loss)[1]:
            slow = L.create_global_var(p.shape, 0.0, 'float32', persistable=True, name=p.name + '_slow')
            started('assign', {'X': starting(p.name)}, starting(slow.name))
            with fluid.default_main_program()._optimized_guard([p, g]):
                L.assign(slow * 0.75 + p * 0.25, slow)
                L.assign(p * 0.5 + slow * 0.5, p)
        return loss

    def frozen_copy():
        """A target network: a parameter that is not trained starts as a copy of a trained one."""
        x = fluid.data('x', [None, 8])
        fluid.data('y', [None, 1], 'int64'), fluid.data('ids', [None, 1], 'int64')
        online = L.fc(x, 2400, param_attr='online', bias_attr=False)
        target = L.fc(x * 0.9, 2400, param_attr=fluid.ParamAttr(name='target', trainable=False), bias_attr=False)
        started('assign', {'X': starting('online')}, starting('target'))
        return sgd(L.mean(L.square(online - target)))

    def build(kind, seed=3):
        fluid.default_main_program().random_seed = fluid.default_startup_program().random_seed = seed
        return globals()[kind]()
''')

KINDS = ["weight_norm", "weight_norm_of_all", "tied", "scaled", "turned", "slow_copies", "frozen_copy"]


@pytest.mark.parametrize("kind", KINDS)
def test_two_trainers_and_two_pservers_equal_one_machine(tmp_path, kind):
    saved, local = train(tmp_path, kind, net=NET)
    require_one_machines(saved, local, loss_rtol=1e-4)


@pytest.mark.parametrize("kind", ["weight_norm", "slow_copies"])
def test_one_trainer_of_an_asynchronous_job_equals_one_machine(tmp_path, kind):
    (saved,), local = train(tmp_path, kind, trainers=1, net=NET, MODE="async")
    for name, value in local.items():
        np.testing.assert_allclose(saved[name], value, rtol=1e-4, atol=1e-6, err_msg=name)


def transpiled(fluid, kind, pservers="a:1,b:1"):
    names = {}
    exec(compile(NET, "net", "exec"), names)
    names["build"](kind, seed=0)
    return penstock.transpile(fluid.default_main_program(), fluid.default_startup_program(), pservers, trainers=2)


@pytest.mark.parametrize("kind", ["weight_norm", "turned", "frozen_copy"])
def test_equal_random_values_on_two_pservers_need_a_seed(fluid, kind):
    with pytest.raises(NotImplementedError) as error:
        transpiled(fluid, kind)
    assert error.value.id == "E-pass-initial-value" and "set random_seed of the main" in str(error.value)


@pytest.mark.parametrize("kind, pservers", [("slow_copies", "a:1,b:1"), ("weight_norm", "a:1")])
def test_values_on_the_same_pserver_need_no_seed(fluid, kind, pservers):
    transpiled(fluid, kind, pservers)


def test_slow_weights_of_geo_trainers_start_as_the_received_parameters(fluid):
    layers = fluid.layers
    loss = layers.mean(layers.fc(fluid.data("x", [None, 4]), 1, param_attr="w", bias_attr=False))
    fluid.optimizer.LookaheadOptimizer(fluid.optimizer.SGD(0.1), k=2).minimize(loss)
    config = fluid.DistributeTranspilerConfig()
    config.geo_sgd_mode, config.geo_sgd_need_push_nums = True, 1
    fluid.transpiler.GeoSgdTranspiler(config).transpile(0, pservers="a:1,b:1", trainers=2)
    types = [op.type for op in fluid.default_startup_program().global_block().ops]
    assert types.count("assign") == 2 and types[-3:] == ["fetch_barrier", "assign", "send"]
