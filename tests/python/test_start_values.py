"""Initial values of parameters depend on the seed and the position in the network, not on names."""

import numpy as np
import pytest


def build(fluid, seed):
    """A network with three kinds of random initial values; returns these values in order."""
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = seed
    with fluid.program_guard(main, startup):
        x = fluid.data("x", [None, 4])
        hidden = fluid.layers.fc(x, 4)
        hidden = fluid.layers.fc(hidden, 4, param_attr=fluid.initializer.Normal(0.0, 1.0))
        fluid.layers.fc(hidden, 4, param_attr=fluid.initializer.TruncatedNormal(0.0, 1.0))
    return main, startup


def start_of(fluid, main, startup):
    with fluid.scope_guard(fluid.Scope()):
        fluid.Executor(fluid.CPUPlace()).run(startup)
        return [np.array(fluid.global_scope().find_var(param.name).get_tensor()) for param in main.all_parameters()]


def test_a_rebuilt_network_has_equal_initial_values(fluid):
    first, second, other = (build(fluid, seed) for seed in (3, 3, 4))
    names = [[param.name for param in main.all_parameters()] for main, _ in (first, second)]
    assert not set(names[0]) & set(names[1])
    starts = [start_of(fluid, *programs) for programs in (first, second, other)]
    for one, again in zip(*starts[:2]):
        np.testing.assert_array_equal(one, again)
    weights = [value for value in starts[0] if value.ndim == 2]
    assert len(weights) == 3 and not (weights[0] == weights[1]).any()
    assert all((one != another).all() for one, another in zip(weights, [v for v in starts[2] if v.ndim == 2]))


@pytest.mark.parametrize("mode", ["sliced", "whole"])
def test_pservers_have_the_initial_values_of_one_machine(fluid, mode):
    """Biases come between the weights, so positions on a pserver differ from those of one machine."""
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 3
    with fluid.program_guard(main, startup):
        x = fluid.data("x", [None, 200])
        hidden = fluid.layers.fc(x, 150, param_attr="first", bias_attr=fluid.initializer.Normal(0.0, 1.0))
        hidden = fluid.layers.fc(hidden, 150, param_attr="second")
        loss = fluid.layers.mean(fluid.layers.fc(hidden, 200, param_attr="third"))
        fluid.optimizer.SGD(0.1).minimize(loss)
    expected = dict(zip([param.name for param in main.all_parameters()], start_of(fluid, main, startup)))
    config = fluid.DistributeTranspilerConfig()
    config.slice_var_up = mode == "sliced"
    transpiler = fluid.DistributeTranspiler(config)
    servers = ["127.0.0.1:6174", "127.0.0.1:6175", "127.0.0.1:6176"]
    with fluid.program_guard(main, startup):
        transpiler.transpile(0, main, ",".join(servers), 2, startup_program=startup)
    found = {}
    for server in servers:
        program = transpiler.get_startup_program(server)
        with fluid.scope_guard(fluid.Scope()):
            fluid.Executor(fluid.CPUPlace()).run(program)
            for var in program.list_vars():
                value = fluid.global_scope().find_var(var.name)
                whole = var.name.partition(".block")[0]
                if value is not None and whole in expected:
                    found.setdefault(whole, []).append((var.name, np.array(value.get_tensor())))
    assert set(found) == set(expected)
    for name, pieces in found.items():
        pieces.sort()
        np.testing.assert_array_equal(np.concatenate([value for _, value in pieces]), expected[name], err_msg=name)
    assert any(len(pieces) > 1 for pieces in found.values()) == (mode == "sliced")
