"""The results of transpile are proved: a set that does not fit is an error, or a warning in Fluid's dialect."""

import subprocess
import sys
import warnings

import penstock
import pytest

PSERVERS = "a:1,b:1"


def net(fluid):
    x = fluid.data("x", [None, 13])
    y = fluid.data("y", [None, 1])
    loss = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(x, 1), y))
    fluid.optimizer.Momentum(0.01, 0.9).minimize(loss)


def remove_initializer(fluid, name):
    block = fluid.default_startup_program().global_block()
    block._remove_op(next(i for i, op in enumerate(block.ops) if name in op.output_arg_names))


def natively(fluid):
    return penstock.transpile(fluid.default_main_program(), fluid.default_startup_program(), PSERVERS, trainers=2)


def as_in_fluid(fluid):
    t = fluid.DistributeTranspiler()
    t.transpile(0, pservers=PSERVERS, trainers=2)
    return t


@pytest.mark.parametrize("transpile", [natively, as_in_fluid])
def test_an_invalid_set_is_not_returned(fluid, transpile):
    net(fluid)
    remove_initializer(fluid, "fc_0.w_0_velocity_0")
    with pytest.raises(penstock.ProgramError, match="gives no value to fc_0.w_0_velocity_0") as error:
        transpile(fluid)
    assert error.value.id == "E-check-no-start"
    assert "momentum" in error.value.details[0], "the op as printed"


def test_a_failed_transpile_does_not_change_the_programs(fluid):
    net(fluid)
    remove_initializer(fluid, "fc_0.w_0")
    before = fluid.default_main_program().desc.content_id, fluid.default_startup_program().desc.content_id
    with pytest.raises(penstock.ProgramError):
        as_in_fluid(fluid)
    assert before == (fluid.default_main_program().desc.content_id, fluid.default_startup_program().desc.content_id)


@pytest.mark.parametrize("transpile", [natively, as_in_fluid])
def test_a_duplicate_update_in_the_source_is_detected(fluid, transpile):
    net(fluid)
    block = fluid.default_main_program().global_block()
    update = next(op for op in block.ops if op.type == "momentum")
    block.append_op("momentum", update._inputs(), update._outputs(), update.all_attrs())
    with pytest.raises(penstock.ProgramError) as error:
        transpile(fluid)
    assert error.value.id == "E-plan-updated-twice"


def test_fluids_defects_are_warnings_at_the_users_line(fluid):
    net(fluid)
    arguments = fluid.default_main_program(), fluid.default_startup_program(), PSERVERS
    with pytest.warns(penstock.ProgramWarning) as told:
        roles = penstock.transpile(*arguments, trainers=1, compat="fluid-1.8")
    texts = [str(warning.message) for warning in told]
    # With one trainer Fluid's pservers wait for names that are never sent.
    assert any("waits for fc_0.w_0@GRAD.trainer_0" in text and "[E-check-not-sent]" in text for text in texts)
    assert {warning.filename for warning in told} == {__file__}
    assert len(roles.pservers) == 2


def test_a_set_without_findings_prints_nothing(fluid):
    net(fluid)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        natively(fluid)
        penstock.transpile_ranks(fluid.default_main_program(), fluid.default_startup_program(), PSERVERS)


def test_programs_of_ranks_are_checked(fluid):
    net(fluid)
    grad = ["fc_0.w_0@GRAD"]
    fluid.default_main_program().global_block().append_op("c_allreduce_sum", {"X": grad}, {"Out": grad}, {"ring_id": 7})
    with pytest.raises(penstock.ProgramError, match="uses ring 7, which no rank joins") as error:
        penstock.transpile_ranks(fluid.default_main_program(), fluid.default_startup_program(), PSERVERS)
    assert error.value.id == "E-check-ring"


@pytest.mark.parametrize("trainers", [1, 2, 3, 5, 7, 12])
def test_the_mean_over_trainers_equals_the_source_gradient(fluid, trainers):
    net(fluid)
    roles = penstock.transpile(
        fluid.default_main_program(), fluid.default_startup_program(), PSERVERS, trainers=trainers
    )
    assert len(roles.trainers) == trainers


def embedded(fluid, **kwargs):
    ids = fluid.data("ids", [None, 1], "int64")
    rows = fluid.layers.embedding(ids, [100, 8], param_attr=fluid.ParamAttr(name="table"), **kwargs)
    fluid.optimizer.SGD(0.1).minimize(fluid.layers.mean(fluid.layers.fc(rows, 1)))
    return fluid.DistributeTranspiler()


def test_the_transpiler_reports_the_distributed_table(fluid):
    t = embedded(fluid, is_sparse=True, is_distributed=True)
    assert (t.has_distributed_lookup_table, t.table_name) == (False, None), "before transpile()"
    t.transpile(0, pservers=PSERVERS, trainers=2)
    assert (t.has_distributed_lookup_table, t.table_name) == (True, "table")
    types = [op.type for op in t.get_trainer_program().global_block().ops]
    assert types[:3] == ["split_ids", "prefetch", "merge_ids"] and "lookup_table" not in types


LOOKS_UP = """
import numpy as np
import penstock
import penstock.fluid as fluid

ids = fluid.data('ids', [None, 1], 'int64')
block = fluid.default_main_program().global_block()
rows = block.create_var(name='rows', shape=[-1, 8], dtype='float32')
block.append_op('prefetch', {'X': ids}, {'Out': rows}, {'epmap': ['127.0.0.1:6174']})
try:
    fluid.Executor(fluid.CPUPlace()).run(feed={'ids': np.zeros([2, 1], 'int64')})
except penstock.ProgramError as error:
    print(error.id, error)
"""


def test_lookups_alone_do_not_identify_the_trainer():
    """Runs in a separate process, because a process is one trainer, and that of the tests may have completed."""
    told = subprocess.run([sys.executable, "-c", LOOKS_UP], capture_output=True, text=True, timeout=180)
    assert told.stdout.startswith("E-contract-trainer "), told.stderr
    assert "no recv, barrier or lookup of the program has a trainer_id" in told.stdout


@pytest.mark.parametrize("kwargs", [{}, {"is_sparse": True}])
def test_local_tables_are_not_reported_as_distributed(fluid, kwargs):
    t = embedded(fluid, **kwargs)
    t.transpile(0, pservers=PSERVERS, trainers=2)
    assert (t.has_distributed_lookup_table, t.table_name) == (False, None)
