"""minimize on the forward part of Fluid's own programs, loaded from their files, gives the rest of them."""

import gzip
import json

import pytest
import programs

OPTIMIZE, LOSS = 2, 256


def load(path):
    if not path.exists():
        return gzip.decompress(path.with_name(path.name + '.gz').read_bytes())
    return path.read_bytes()


def role(op):
    return op['attrs']['op_role'][1]


def names_in(ops):
    slots = [slot for op in ops for side in (op['inputs'], op['outputs']) for slot in side.values()]
    return {name for slot in slots for name in slot}


def keep_forward_part(program, whole):
    """Takes what minimize adds out of a program that was loaded; a variable without gradient stops gradients."""
    block, ops, variables = program.global_block(), whole['blocks'][0]['ops'], whole['blocks'][0]['vars']
    count = next(i for i, op in enumerate(ops) if role(op) & 1)
    for index in reversed(range(count, len(ops))):
        block._remove_op(index)
    for name in names_in(ops[count:]) - names_in(ops[:count]):
        block._remove_var(name)
    for op in block.ops:
        if op.attr('op_role') == LOSS:
            op._set_attr('op_role', 0)
    for name, variable in list(block.vars.items()):
        variable.stop_gradient = name + '@GRAD' not in variables


def advance_names(fluid, program):
    """Names go on where the forward part stopped: `fc_0.tmp_1` is of the counters fc and fc_0.tmp."""
    last = {}
    for block in program.blocks:
        for name in block.vars:
            for part in (name, name.split('.')[0]):
                key, _, number = part.rpartition('_')
                if number.isdigit():
                    last[key] = max(last.get(key, -1), int(number))
    for key, number in last.items():
        for _ in range(number + 1):
            fluid.unique_name.generate(key)


def decay_of(fluid, ops, parameters):
    """The regularization that the program's own ops are."""
    signs = {op['outputs']['Out'][0] for op in ops if op['type'] == 'sign'}
    for op in ops:
        if role(op) == OPTIMIZE and op['type'] == 'scale':
            kinds = fluid.regularizer.L2Decay, fluid.regularizer.L1Decay
            if op['inputs']['X'][0] in parameters | signs:
                return kinds[op['inputs']['X'][0] in signs](op['attrs']['scale'][1])
    return None


def clip_of(fluid, ops):
    """The gradient clip that the program's own ops are."""
    clips = [op for op in ops if op['attrs'].get('op_namescope', ('', ''))[1].startswith('/gradient_clip')]
    if not clips:
        return None
    attrs = {op['type']: {name: value for name, (_, value) in op['attrs'].items()} for op in clips}
    if 'clip' in attrs:
        return fluid.clip.GradientClipByValue(attrs['clip']['max'], attrs['clip']['min'])
    if 'clip_by_norm' in attrs:
        return fluid.clip.GradientClipByNorm(attrs['clip_by_norm']['max_norm'])
    return fluid.clip.GradientClipByGlobalNorm(attrs['fill_constant']['value'])


def optimizer_of(fluid, program, ops, parameters):
    """An optimizer with the hyperparameters that the program's own ops have."""
    update = next(op for op in ops if role(op) == OPTIMIZE and 'Param' in op['inputs'])
    attrs = {name: value for name, (_, value) in update['attrs'].items()}
    rate = update['inputs']['LearningRate'][0]
    rate = program.global_block().var(rate) if program.global_block().has_var(rate) else 0.01
    common = {'regularization': decay_of(fluid, ops, parameters), 'grad_clip': clip_of(fluid, ops)}
    if update['type'] == 'sgd':
        return fluid.optimizer.SGD(rate, **common)
    if update['type'] == 'momentum':
        return fluid.optimizer.Momentum(rate, attrs['mu'], use_nesterov=attrs['use_nesterov'], **common)
    if update['type'] == 'adagrad':
        return fluid.optimizer.Adagrad(rate, attrs['epsilon'], **common)
    assert update['type'] == 'adam'
    return fluid.optimizer.Adam(rate, attrs['beta1'], attrs['beta2'], attrs['epsilon'], **common)


@pytest.mark.parametrize('name', [
    'fit_a_line.sgd', 'lenet.momentum',
    'lenet.adam.lr_piecewise.reg_l2', 'resnet_small.momentum.lr_cosine.reg_l2.clip_gnorm',
    'resnet_small.momentum.lr_piecewise.reg_l2', 'resnet_small.momentum.lr_warmup_piecewise.reg_l2.clip_gnorm',
    'softmax_reg.adagrad.clip_norm', 'softmax_reg.adam.lr_exponential', 'softmax_reg.momentum.reg_l2.clip_gnorm',
    'softmax_reg.sgd.lr_cosine', 'softmax_reg.sgd.lr_inverse_time', 'softmax_reg.sgd.lr_natural_exp',
    'softmax_reg.sgd.lr_noam', 'softmax_reg.sgd.lr_piecewise', 'softmax_reg.sgd.lr_polynomial',
    'softmax_reg.sgd.lr_warmup', 'softmax_reg.sgd.reg_l1.clip_value', 'vgg11.momentum.reg_l2', 'wide_linear.adam',
    'wide_linear.momentum', 'wide_linear.sgd', 'word2vec_dense.adam.lr_exponential_ns', 'word2vec_sparse.adam',
    'word2vec_sparse.sgd', 'word2vec_v2.sgd', 'lstm_text.adagrad.clip_gnorm', 'ctr_dist.sgd', 'simnet_bow_dist.sgd',
    'word2vec_dist.sgd',
])
def test_the_forward_part_of_a_loaded_program_is_minimized_as_by_fluid(corpus, fluid, name):
    folder = corpus / 'open' / 'programs' / name
    facts = json.loads((folder / 'program.json').read_text())
    data = load(folder / 'main.pb')
    whole = programs.read(data)
    program = fluid.Program.parse_from_string(data)
    keep_forward_part(program, whole)
    advance_names(fluid, program)
    loss = program.global_block().var(facts['loss'])
    for param in facts['params']:
        program.global_block().var(param['name'])._set_fact('learning_rate', param['learning_rate'])
    optimizer = optimizer_of(fluid, program, whole['blocks'][0]['ops'], {param['name'] for param in facts['params']})
    optimizer.minimize(loss, startup_program=fluid.default_startup_program(),
                       parameter_list=[param['name'] for param in facts['params']])
    programs.assert_same(programs.read(program.desc.serialize_to_string()), whole)
