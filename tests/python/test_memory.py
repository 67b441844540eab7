"""memory_optimize and release_memory: less memory, the same numbers."""

import numpy as np
import penstock
import pytest


def net(fluid):
    x = fluid.data('x', [None, 8])
    h = x
    for _ in range(6):
        h = fluid.layers.fc(h, 8, act='relu')
    loss = fluid.layers.mean(h)
    fluid.optimizer.SGD(0.1).minimize(loss)
    return loss


def train(fluid, rewrite):
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 3
    with fluid.unique_name.guard(), fluid.program_guard(main, startup), fluid.scope_guard(fluid.Scope()):
        loss = net(fluid)
        rewrite(main, loss)
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(startup)
        feed = {'x': np.linspace(-1, 1, 24, dtype='float32').reshape(3, 8)}
        return [exe.run(main, feed=feed, fetch_list=[loss])[0].tobytes() for _ in range(4)], main


def types(program):
    return [op.type for op in program.global_block().ops]


@pytest.mark.parametrize('level', [0, 1])
def test_a_program_with_reused_buffers_trains_to_the_same_bytes(fluid, level, capsys):
    expected, plain = train(fluid, lambda program, loss: None)
    got, less = train(fluid, lambda program, loss: fluid.memory_optimize(
        program, skip_opt_set=[loss], print_log=True, level=level, skip_grads=False))
    assert got == expected
    assert types(less) == types(plain)
    assert len(less.global_block().vars) < len(plain.global_block().vars)
    assert 'for each batch item' in capsys.readouterr().out


def test_released_variables_are_named_by_delete_var(fluid):
    expected, _ = train(fluid, lambda program, loss: None)
    got, less = train(fluid, lambda program, loss: fluid.release_memory(program, {loss.name}))
    assert got == expected
    assert 'delete_var' in types(less)


def test_wrong_arguments_are_errors(fluid):
    net(fluid)
    main = fluid.default_main_program()
    with pytest.raises(ValueError, match='level must be 0 or 1'):
        fluid.memory_optimize(main, level=2)
    with pytest.raises(penstock.ProgramError, match='"lost" is to be kept'):
        fluid.memory_optimize(main, skip_opt_set=['lost'])
    with pytest.raises(TypeError, match='a Program is needed'):
        fluid.release_memory('main')
