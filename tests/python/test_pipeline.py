"""PipelineOptimizer: sections that together compute the program."""

import numpy
import pytest

WEIGHTS = [f"fc_{number}.w_0" for number in range(3)]


def build(fluid, cut):
    """A net of three layers, cut after its first two where `cut` says so."""
    fluid.default_startup_program().random_seed = 5
    first = fluid.layers.fc(fluid.data("x", [None, 4]), 6, act="relu")
    second = fluid.layers.fc(first, 5, act="tanh")
    loss = fluid.layers.mean(fluid.layers.square(fluid.layers.fc(second, 1) - fluid.data("y", [None, 1])))
    optimizer = fluid.optimizer.Momentum(fluid.layers.exponential_decay(0.1, 1, 0.9), 0.9)
    if cut:
        optimizer = fluid.optimizer.PipelineOptimizer(optimizer, [[first], [second], [loss]])
    optimizer.minimize(loss)
    return loss


def feeds():
    random = numpy.random.RandomState(3)
    for _ in range(3):
        yield {"x": random.randn(8, 4).astype("float32"), "y": random.randn(8, 1).astype("float32")}


def trained(fluid, cut, run):
    """The weights after three steps."""
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()), fluid.unique_name.guard(), fluid.scope_guard(fluid.Scope()):
        loss = build(fluid, cut)
        exe = fluid.Executor()
        exe.run(fluid.default_startup_program())
        for feed in feeds():
            run(exe, main, feed, loss)
        return [numpy.array(fluid.global_scope().find_var(name).get_tensor()).tolist() for name in WEIGHTS]


def run_sections(exe, main, feed, loss):
    """Runs each section alone, with the results of earlier ones."""
    values = dict(feed)
    for section in main._pipeline_opt["section_program_list"]:
        persistable = {var.name for var in main.list_vars() if var.persistable}
        made = sorted(section["output_set"] - persistable)
        out = exe.run(
            section["program"],
            feed={name: values[name] for name in section["input_set"] - persistable},
            fetch_list=made,
        )
        values.update(zip(made, out))


def test_running_the_sections_in_order_equals_the_program(fluid):

    def whole(exe, main, feed, loss):
        exe.run(main, feed=feed, fetch_list=[loss])

    plain = trained(fluid, False, whole)
    assert trained(fluid, True, whole) == plain
    assert trained(fluid, True, run_sections) == plain


def test_each_section_contains_its_ops(fluid):
    build(fluid, True)
    main = fluid.default_main_program()
    sections = main._pipeline_opt["section_program_list"]
    assert len(sections) == 5
    types = [[op.type for op in section["program"].global_block().ops] for section in sections]
    assert sum(map(len, types)) == len(main.global_block().ops)
    assert "mul" in types[0] and "mul" in types[1] and "mean" in types[2] and "mul_grad" in types[4]
    assert [kinds.count("momentum") for kinds in types] == [0, 0, 2, 2, 2]
    assert "x" in sections[0]["input_set"] and "fc_0.tmp_2" in sections[0]["output_set"]
    assert not any(name.startswith("fc_2") for name in sections[0]["program"].global_block().vars.keys())
    assert main._pipeline_opt["place_list"] == [fluid.CPUPlace()] * 5


def test_without_cuts_there_is_one_section(fluid):
    loss = fluid.layers.mean(fluid.layers.fc(fluid.data("x", [None, 4]), 1))
    fluid.optimizer.PipelineOptimizer(fluid.optimizer.SGD(0.1)).minimize(loss)
    main = fluid.default_main_program()
    (section,) = main._pipeline_opt["section_program_list"]
    assert section["program"] is main and section["output_set"] == set()


def test_invalid_sections_are_refused(fluid, monkeypatch):
    monkeypatch.delenv("PENSTOCK_CUDA_FALLBACK", raising=False)
    loss = fluid.layers.mean(fluid.layers.fc(fluid.data("x", [None, 4]), 1))
    make, sgd = fluid.optimizer.PipelineOptimizer, fluid.optimizer.SGD(0.1)
    with pytest.raises(ValueError, match="place_list has 2 entries, but there are 1 sections"):
        make(sgd, [[loss]], place_list=[fluid.CPUPlace()] * 2)
    with pytest.raises(ValueError, match="concurrency_list has 1 entries, but there are 3 sections"):
        make(sgd, [["x"], [loss]], concurrency_list=[1])
    with pytest.raises(NotImplementedError, match=r"PipelineOptimizer on CUDAPlace\(0\)"):
        make(sgd, [[loss]], place_list=[fluid.CUDAPlace(0)])
    with pytest.raises(ValueError, match="no op writes x, so the section that ends with it is empty"):
        make(sgd, [["x"], [loss]]).minimize(loss)
