"""Programs in files of every version: other kinds of attributes, other versions, ops that are not known."""

import pathlib
import re
import subprocess
import sys
import warnings

import numpy as np
import penstock
import pytest

FEED = {"x": np.linspace(-1, 1, 12, dtype="float32").reshape(3, 4)}


def tool(*arguments, check=True):
    command = [str(pathlib.Path(sys.executable).with_name("penstock")), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=check)


@pytest.fixture
def model(fluid, tmp_path):
    """Saves a model; `changed(old, new)` replaces text in its program. Returns (exe, changed, its results)."""
    x = fluid.data("x", [None, 4])
    hidden = fluid.layers.dropout(fluid.layers.fc(x, 8, act="relu"), 0.25, is_test=True)
    hidden = fluid.layers.reduce_sum(fluid.layers.reshape(hidden, [-1, 2, 4]), dim=[1], keep_dim=True)
    hidden = fluid.layers.clip(fluid.layers.scale(hidden, 2.0, bias=1.0), -3.0, 3.0)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    fluid.io.save_inference_model(str(tmp_path), ["x"], [hidden], exe)
    file, text = tmp_path / "__model__", tmp_path / "model.ir"
    tool("convert", file, text)
    source = text.read_text()

    def changed(old, new):
        assert re.search(old, source), old
        text.write_text(re.sub(old, new, source))
        tool("convert", text, file)

    def run():
        program, _, fetches = fluid.io.load_inference_model(str(tmp_path), exe)
        return exe.run(program, feed=FEED, fetch_list=fetches)[0]

    return changed, run, run()


@pytest.mark.parametrize(
    "old, new",
    [
        (r"version=1008005l", "version=2004002l"),
        (r"version=1008005l", "version=3000000l"),
        (r"program \{version=1008005l\}", "program"),
        (r"is_test=true", "is_test=1"),
        (r"is_test=true", "is_test=1.0"),
        (r"is_test=true", "is_test=1l"),
        (r"keep_dim=true", "keep_dim=1"),
        (r"dim=\[1\]", "dim=[1l]"),
        (r"dim=\[1\]", "dim=[1.0]"),
        (r"reduce_all=false", "reduce_all=0"),
        (r"x_num_col_dims=1", "x_num_col_dims=1.0"),
        (r"axis=1\b", "axis=1l"),
        (r"shape=\[-1, 2, 4\]", "shape=[-1l, 2l, 4l]"),
        (r"scale=2.0", "scale=2"),
        (r"bias=1.0", "bias=1l"),
        (r"bias_after_scale=true", "bias_after_scale=1"),
        (r"min=-3.0, max=3.0", "min=-3, max=3l"),
        (r"col=0", "col=0l"),
        (r"(seed|ring_id)=0", r"\1=0.0"),
    ],
)
def test_models_of_other_versions_compute_the_same(model, old, new):
    changed, run, expected = model
    changed(old, new)
    np.testing.assert_array_equal(run(), expected)


@pytest.mark.parametrize(
    "old, new, what",
    [
        (r"is_test=true", "is_test=2", "dropout: attribute is_test is 2 (int); it must be bool"),
        (r"keep_dim=true", "keep_dim=0.5", "reduce_sum: attribute keep_dim is 0.5 (float); it must be bool"),
        (r"dim=\[1\]", "dim=[1.5]", "reduce_sum: attribute dim is [1.5] (floats); it must be ints"),
        (
            r"x_num_col_dims=1",
            "x_num_col_dims=1099511627776l",
            "mul: attribute x_num_col_dims is 1099511627776l (long); it must be int",
        ),
        (r"scale=2.0", "scale=16777217", "scale: attribute scale is 16777217 (int); it must be float"),
    ],
)
def test_an_inexact_attribute_conversion_is_reported(fluid, model, tmp_path, old, new, what):
    changed, run, _ = model
    changed(old, new)
    with pytest.raises(penstock.ProgramError, match=re.escape(what)):
        run()
    program = fluid.Program.parse_from_string((tmp_path / "__model__").read_bytes())
    with pytest.raises(penstock.ProgramError, match=re.escape(what)):
        fluid.memory_optimize(program)
    done = tool("memory_optimize", tmp_path / "__model__", tmp_path / "less.ir", check=False)
    assert done.returncode == 2 and what in done.stderr


def test_a_rewritten_program_is_loaded_with_a_warning(model):
    changed, run, expected = model
    changed(r"scale=2.0", "scale=1.0")
    with pytest.warns(UserWarning, match="__model__ has been changed since the model was saved"):
        assert not np.array_equal(run(), expected)


def test_a_rewritten_program_round_trips_byte_for_byte(fluid, model, tmp_path):
    changed, run, _ = model
    changed(r"is_test=true", "is_test=1")
    data = (tmp_path / "__model__").read_bytes()
    program = fluid.Program.parse_from_string(data)
    run()
    assert program.desc.serialize_to_string() == data
    assert [op.attr("is_test") for op in program.global_block().ops if op.type == "dropout"] == [1]


def test_memory_optimize_saves_as_much_with_other_attribute_kinds(model, tmp_path):
    changed, _, _ = model
    file = tmp_path / "__model__"
    report = tool("memory_optimize", file, tmp_path / "less.ir").stdout
    assert "takes the buffer of" in report
    changed(r"(keep_dim|bias_after_scale|is_test)=true", r"\1=1")
    assert tool("memory_optimize", file, tmp_path / "less.ir").stdout == report


def test_a_model_with_other_attribute_kinds_can_be_trained(fluid, model, tmp_path):
    changed, _, _ = model

    def trained():
        program = fluid.Program.parse_from_string((tmp_path / "__model__").read_bytes())
        startup = fluid.Program()
        with fluid.program_guard(program, startup), fluid.unique_name.guard("more_"):
            block = program.global_block()
            hidden = block.var(next(op for op in block.ops if op.type == "fetch").input("X")[0])
            loss = fluid.layers.mean(hidden)
            fluid.clip.set_gradient_clip(fluid.clip.GradientClipByNorm(1.0))
            fluid.optimizer.SGD(0.5).minimize(loss)
        return [op.type for op in block.ops]

    expected = trained()
    assert "reduce_sum_grad" in expected
    changed(r"(keep_dim|bias_after_scale|is_test)=true", r"\1=1")
    assert trained() == expected
    changed(r" @forward", "")
    assert trained() == expected, "files of the first versions have no roles"
    changed(r"bias_after_scale=true", "bias_after_scale=7")
    with pytest.raises(penstock.ProgramError, match=r"attribute bias_after_scale is 7 \(int\)"):
        trained()


def test_the_loader_reports_unknown_ops(fluid, model, tmp_path):
    changed, run, _ = model
    changed(r"= (relu|scale)\(", r"= \1_of_tomorrow(")
    with pytest.warns(
        UserWarning,
        match=r"has ops that are not known and cannot run: relu_of_tomorrow \(1 op\), "
        r"scale_of_tomorrow \(2 ops\)",
    ):
        program, feeds, _ = fluid.io.load_inference_model(str(tmp_path), fluid.Executor())
    assert feeds == ["x"]
    with pytest.raises(penstock.ProgramError) as error, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run()
    assert error.value.id == "E-op-unknown"
    unknown = "relu_of_tomorrow (1 op), scale_of_tomorrow (2 ops)"
    assert "all ops of the program that are not known: " + unknown in str(error.value)
    shown = tool("show", tmp_path / "__model__")
    assert "ops that are not known and cannot run: " + unknown in shown.stderr
    report = tool("memory_optimize", tmp_path / "__model__", tmp_path / "less.ir").stdout
    assert "ops that are not known, whose variables are not moved: relu_of_tomorrow (1 op)" in report
    assert program.desc.serialize_to_string() == (tmp_path / "__model__").read_bytes()


def test_a_program_with_other_attribute_kinds_can_be_transpiled(fluid, tmp_path):
    words = fluid.data("words", [None, 1], "int64")
    rows = fluid.embedding(words, [40, 8], is_sparse=True, param_attr=fluid.ParamAttr("table"))
    loss = fluid.layers.mean(fluid.layers.fc(fluid.layers.reshape(rows, [-1, 8]), 1))
    fluid.optimizer.SGD(0.1).minimize(loss)
    file, text = tmp_path / "main.pb", tmp_path / "main.ir"
    file.write_bytes(fluid.default_main_program().desc.serialize_to_string())
    tool("convert", file, text)
    source = text.read_text()

    def roles():
        tool("convert", text, file)
        transpiler = fluid.DistributeTranspiler()
        program = fluid.Program.parse_from_string(file.read_bytes())
        transpiler.transpile(0, program=program, pservers="127.0.0.1:1,127.0.0.1:2", trainers=2)
        return [op.type for op in transpiler.get_trainer_program(wait_port=False).global_block().ops]

    expected = roles()
    assert "distributed_lookup_table" in expected
    text.write_text(source.replace("is_sparse=true", "is_sparse=1").replace("value=1.0", "value=1"))
    assert roles() == expected
    text.write_text(source.replace("is_sparse=true", "is_sparse=2"))
    with pytest.raises(penstock.ProgramError, match=r"attribute is_sparse is 2 \(int\); it must be bool"):
        roles()


@pytest.mark.parametrize("value, stored", [(1, True), (0.0, False), (np.bool_(True), True), (np.int64(0), False)])
def test_a_bool_attribute_accepts_a_number(fluid, value, stored):
    block = fluid.default_main_program().global_block()
    x, out = fluid.data("x", [2]), block.create_var(name="out", dtype="float32")
    op = block.append_op("dropout", {"X": x}, {"Out": out, "Mask": block.create_var(name="m")}, {"is_test": value})
    assert op.attr("is_test") is stored


@pytest.mark.parametrize(
    "name, value", [("is_test", 2), ("is_test", 0.5), ("seed", 1.5), ("seed", float("nan")), ("seed", 2.0**31)]
)
def test_a_number_that_the_attribute_cannot_hold_is_refused(fluid, name, value):
    block = fluid.default_main_program().global_block()
    x, out = fluid.data("x", [2]), block.create_var(name="out", dtype="float32")
    told = re.escape(f"attribute {name} is {value!r}, but must be of kind")
    with pytest.raises(penstock.ProgramError, match=told):
        block.append_op("dropout", {"X": x}, {"Out": out, "Mask": block.create_var(name="m")}, {name: value})


def test_an_int_attribute_accepts_an_integral_float(fluid):
    block = fluid.default_main_program().global_block()
    x, out = fluid.data("x", [2, 3]), block.create_var(name="out", dtype="float32")
    op = block.append_op("reduce_sum", {"X": x}, {"Out": out}, {"dim": [1.0], "in_dtype": -1.0})
    assert (op.attr("dim"), op.attr("in_dtype")) == ([1], -1)
