"""Context managers that open blocks, and ops that save and load."""

import numpy
import penstock
import pytest


def test_block_guard_enters_and_leaves_a_block(fluid):
    guards, main = fluid.layers.control_flow, fluid.default_main_program()
    with guards.BlockGuard(main):
        with guards.BlockGuard(main):
            assert main.current_block().idx == 2
        assert main.current_block().idx == 1
    with pytest.raises(KeyError), guards.BlockGuard(main):
        raise KeyError
    assert main.current_block().idx == 0
    with pytest.raises(TypeError, match="BlockGuard takes a Program, not Block"):
        guards.BlockGuard(main.global_block())


@pytest.mark.parametrize("given, expected", [(3.0, 3.0), (-3.0, 0.0)])
def test_conditional_block_guard_runs_its_block(fluid, given, expected):
    guards = fluid.layers.control_flow
    x, result = fluid.data("x", [1]), fluid.layers.fill_constant([1], "float32", 0.0)
    with guards.ConditionalBlockGuard(guards.ConditionalBlock([x > 0.0], is_scalar_condition=True)):
        fluid.layers.assign(x, result)
    assert isinstance(guards.ConditionalBlockGuard(guards.ConditionalBlock([x])), guards.BlockGuard)
    (value,) = fluid.Executor().run(feed={"x": numpy.array([given], "float32")}, fetch_list=[result])
    assert value == expected
    with pytest.raises(TypeError, match="takes a ConditionalBlock, not Variable"):
        guards.ConditionalBlockGuard(x)


def test_while_guard_runs_its_block(fluid):
    guards, While = fluid.layers.control_flow, fluid.layers.While
    i, n = fluid.layers.fill_constant([1], "int64", 0), fluid.layers.fill_constant([1], "int64", 4)
    more = fluid.layers.less_than(i, n)
    loop = While(more)
    with guards.WhileGuard(loop):
        assert loop.status == While.IN_WHILE_BLOCK
        fluid.layers.increment(i)
        fluid.layers.less_than(i, n, cond=more)
    assert loop.status == While.AFTER_WHILE_BLOCK and fluid.Executor().run(fetch_list=[i])[0] == 4
    with pytest.raises(KeyError), guards.WhileGuard(While(more)):
        raise KeyError
    assert fluid.default_main_program().current_block().idx == 0
    with pytest.raises(TypeError, match="WhileGuard takes a While, not Variable"):
        guards.WhileGuard(more)


def test_programs_save_and_load(fluid, tmp_path):
    tensor, exe = fluid.layers.tensor, fluid.Executor()
    ones, twos = fluid.layers.ones([2], "float32"), fluid.layers.fill_constant([1, 2], "int64", 2)
    tensor.save(ones, str(tmp_path / "one" / "value"))
    tensor.save_combine([ones, twos], str(tmp_path / "both"), overwrite=False)
    exe.run()
    with fluid.program_guard(fluid.Program()):
        outs = [fluid.layers.create_tensor(dtype) for dtype in ("float32", "float32", "int64")]
        fluid.layers.load(outs[0], str(tmp_path / "one" / "value"))
        tensor.load_combine(outs[1:], str(tmp_path / "both"))
        values = exe.run(fetch_list=outs)
    assert [value.tolist() for value in values] == [[1, 1], [1, 1], [[2, 2]]]
    with pytest.raises(penstock.StateError, match="both exists, and attribute overwrite is false"):
        exe.run()


def test_invalid_variable_lists_are_refused(fluid):
    tensor, x = fluid.layers.tensor, fluid.data("x", [1])
    for wrong in (
        lambda: tensor.save_combine(x, "f"),
        lambda: tensor.load_combine(x, "f"),
        lambda: tensor.save("x", "f"),
        lambda: tensor.save_combine([x, "x"], "f"),
    ):
        with pytest.raises(TypeError, match="must be a"):
            wrong()
