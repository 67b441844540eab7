"""Each layer call that Fluid 1.8.5 was asked for, made again: the same ops, names, attributes and variables."""

import json

import conftest
import numpy as np
import pytest

NOT_RECORDED = ('op_role', 'op_role_var', 'op_namescope', 'op_device')


def recorded():
    path = conftest.CORPUS / 'layers.json'
    return json.loads(path.read_text()) if path.exists() else {'calls': [], 'defaults': {}}


RECORDED = recorded()

# What this issue builds: a call belongs here if all its ops do. Layers are added as their ops are.
OPS = {
    'accuracy', 'assign', 'assign_value', 'batch_norm', 'cast', 'concat', 'conv2d', 'cross_entropy2',
    'dropout', 'elementwise_add', 'elementwise_div', 'elementwise_mul', 'elementwise_sub', 'fill_constant',
    'gaussian_random', 'matmul', 'mean', 'mul', 'pool2d', 'relu', 'reshape2', 'scale', 'softmax',
    'softmax_with_cross_entropy', 'square', 'sum', 'tanh', 'top_k', 'transpose2', 'truncated_gaussian_random',
    'uniform_random', 'sgd', 'momentum', 'adam', 'sigmoid', 'adadelta', 'adagrad', 'adamax', 'decayed_adagrad', 'dpsgd',
    'ftrl', 'lamb', 'lars_momentum', 'rmsprop',
}


def is_built(call):
    ops = [op['type'] for part in ('main', 'startup') for op in call[part]['ops']]
    return all(op in OPS or op[:-5] in OPS for op in ops) and 'grad_clip' not in call['call'] and call['group'] in (
        'layers', 'optimizer', 'backward')


NOT_BUILT = ('L.embedding', 'fluid.embedding', 'L.create_array', 'fluid.gradients', 'L.array', 'L.is_empty',
             'ModelAverage', 'ExponentialMovingAverage', 'scaled_dot', 'L.uniform_random', 'L.gaussian_random',
             # int64 counters: the op writes int32 whatever is declared, and here the declaration says so
             "correct=L.create_tensor('int64')",
             # Fluid 1.8.5 hands l1 to both attributes, here each has its own
             'l1=0.01, l2=0.02')
CALLS = [call for call in RECORDED['calls'] if is_built(call) and not any(n in call['call'] for n in NOT_BUILT)]


def close(a, b):
    if isinstance(b, float):
        return np.float32(a) == np.float32(b)
    if isinstance(b, list) and b and isinstance(b[0], float):
        return len(a) == len(b) and all(close(x, y) for x, y in zip(a, b))
    return a == b


def check_ops(ops, expected):
    assert [op.type for op in ops] == [op['type'] for op in expected]
    for op, theirs in zip(ops, expected):
        inputs = {slot: names for slot, names in op._inputs().items() if names}
        outputs = {slot: names for slot, names in op._outputs().items() if names}
        assert inputs == theirs['inputs'], op.type
        assert outputs == theirs['outputs'], op.type
        attrs = op.all_attrs()
        for name, value in theirs['attrs'].items():
            assert close(attrs.get(name), value), (op.type, name, attrs.get(name), value)
        for name, value in attrs.items():
            if name in theirs['attrs'] or name in NOT_RECORDED:
                continue
            default = RECORDED['defaults'].get('%s.%s' % (op.type, name), value)
            if default != '<required>':
                assert close(value, default), (op.type, name, value, default)


def check_vars(block, expected):
    for name, theirs in expected.items():
        var = block.var(name)
        assert var.type.name == theirs['type'], name
        assert var.dtype.name == theirs['dtype'], name
        assert list(var.shape) == theirs['shape'], name
        assert var.lod_level == theirs['lod_level'], name
        assert var.persistable == theirs['persistable'], name
        assert var.stop_gradient == theirs['stop_gradient'], name
        is_parameter = type(var).__name__ == 'Parameter'
        assert is_parameter == theirs.get('parameter', False), name
        if is_parameter:
            assert var.trainable == theirs['trainable'], name


@pytest.mark.parametrize('call', CALLS, ids=[call['setup'][-30:] + ' ' + call['call'] for call in CALLS])
def test_a_layer_makes_what_fluid_makes(fluid, call):
    initializer = fluid.initializer
    names = dict(fluid=fluid, L=fluid.layers, nets=fluid.nets, PA=fluid.ParamAttr, REG=fluid.regularizer, np=np,
                 Constant=initializer.Constant, Normal=initializer.Normal, Uniform=initializer.Uniform,
                 TruncatedNormal=initializer.TruncatedNormal, MSRA=initializer.MSRA, Xavier=initializer.Xavier,
                 NumpyArrayInitializer=initializer.NumpyArrayInitializer)
    main, startup = fluid.default_main_program().global_block(), fluid.default_startup_program().global_block()
    exec(call['setup'], names)
    before = len(main.ops)
    startup_before = len(startup.ops)
    exec(call['call'].lstrip('#'), names)
    check_ops(main.ops[before:], call['main']['ops'])
    check_vars(main, call['main']['vars'])
    # Recorded from this position on, although new initializers stand in front.
    check_ops(startup.ops[startup_before:], call['startup']['ops'])
    check_vars(startup, call['startup']['vars'])


def test_enough_calls_were_compared(corpus):
    assert len(CALLS) >= 60
