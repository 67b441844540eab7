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


def optimizer_of(fluid, ops):
    """An optimizer with the hyperparameters that the program's own ops have."""
    update = next(op for op in ops if role(op) == OPTIMIZE and 'Param' in op['inputs'])
    attrs = {name: value for name, (_, value) in update['attrs'].items()}
    decay = [op['attrs']['scale'][1] for op in ops if role(op) == OPTIMIZE and op['type'] == 'scale']
    common = {'regularization': fluid.regularizer.L2Decay(decay[0]) if decay else None}
    if update['type'] == 'sgd':
        return fluid.optimizer.SGD(0.01, **common)
    if update['type'] == 'momentum':
        return fluid.optimizer.Momentum(0.01, attrs['mu'], use_nesterov=attrs['use_nesterov'], **common)
    assert update['type'] == 'adam'
    return fluid.optimizer.Adam(0.01, attrs['beta1'], attrs['beta2'], attrs['epsilon'], **common)


@pytest.mark.parametrize('name', [
    'fit_a_line.sgd', 'wide_linear.sgd', 'wide_linear.momentum', 'wide_linear.adam', 'lenet.momentum',
    'vgg11.momentum.reg_l2'
])
def test_the_forward_part_of_a_loaded_program_is_minimized_as_by_fluid(corpus, fluid, name):
    folder = corpus / 'open' / 'programs' / name
    facts = json.loads((folder / 'program.json').read_text())
    data = load(folder / 'main.pb')
    whole = programs.read(data)
    program = fluid.Program.parse_from_string(data)
    keep_forward_part(program, whole)
    loss = program.global_block().var(facts['loss'])
    optimizer = optimizer_of(fluid, whole['blocks'][0]['ops'])
    optimizer.minimize(loss, startup_program=fluid.default_startup_program(),
                       parameter_list=[param['name'] for param in facts['params']])
    programs.assert_same(programs.read(program.desc.serialize_to_string()), whole)
