"""Saved variables, inference models and fluid.save: Fluid's files are read, and written byte for byte."""

import os
import pickle
import struct

import conftest
import numpy as np
import penstock
import programs
import pytest

FOLDER = conftest.FLUIDS / "inference"
MODELS = sorted(path.name for path in FOLDER.iterdir())


def regression(fluid):
    x, y = fluid.data("x", [None, 13]), fluid.data("y", [None, 1])
    prediction = fluid.layers.fc(x, 1)
    loss = fluid.layers.mean(fluid.layers.square_error_cost(prediction, y))
    return prediction, loss


def trained(fluid, optimizer=None):
    prediction, loss = regression(fluid)
    (optimizer or fluid.optimizer.Momentum(0.01, 0.9)).minimize(loss)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    exe.run(feed={"x": np.ones((4, 13), "float32"), "y": np.ones((4, 1), "float32")}, fetch_list=[loss])
    return exe, prediction


def persistables(fluid):
    return fluid.io.get_program_persistable_vars(fluid.default_main_program())


def value(fluid, name):
    return np.array(fluid.global_scope().find_var(name).get_tensor())


def files(folder):
    """The files of a save, without its list of digests (test_one_save.py)."""
    return {
        os.path.relpath(os.path.join(here, name), folder): open(os.path.join(here, name), "rb").read()
        for here, _, names in os.walk(folder)
        for name in names
        if name != "__digests__" and not name.endswith(".digests")
    }


@pytest.mark.parametrize("filename", [None, "all"])
def test_persistables_round_trip(fluid, tmp_path, filename):
    exe, _ = trained(fluid)
    values = {var.name: value(fluid, var.name) for var in persistables(fluid)}
    fluid.io.save_persistables(exe, str(tmp_path), filename=filename)
    with fluid.scope_guard(fluid.Scope()):
        fluid.io.load_persistables(exe, str(tmp_path), filename=filename)
        for name, expected in values.items():
            np.testing.assert_array_equal(value(fluid, name), expected)


def test_saving_without_a_folder_returns_bytes(fluid, tmp_path):
    exe, prediction = trained(fluid)
    values = {var.name: value(fluid, var.name) for var in persistables(fluid)}
    held = fluid.io.save_persistables(exe, None)
    fluid.io.save_persistables(exe, str(tmp_path), filename="all")
    assert held == (tmp_path / "all").read_bytes()
    assert fluid.io.save_params(exe, None) == fluid.io.save_vars(exe, None, vars=["fc_0.w_0", "fc_0.b_0"])
    with fluid.scope_guard(fluid.Scope()):
        fluid.io.load_persistables(exe, None, filename=held)
        for name, expected in values.items():
            np.testing.assert_array_equal(value(fluid, name), expected)
    feed = {"x": np.ones((2, 13), "float32")}
    fluid.io.save_inference_model(str(tmp_path), ["x"], [prediction], exe, params_filename="params")
    model, params = (tmp_path / "__model__").read_bytes(), (tmp_path / "params").read_bytes()
    of_files = fluid.io.load_inference_model(str(tmp_path), exe, params_filename="params")
    of_bytes = fluid.io.load_inference_model(None, exe, model, params)
    expected, got = (exe.run(program, feed=feed, fetch_list=fetches)[0] for program, _, fetches in (of_files, of_bytes))
    np.testing.assert_array_equal(got, expected)
    with pytest.raises(ValueError, match="file all has no folder"):
        fluid.io.save_params(exe, None, filename="all")
    with pytest.raises(TypeError, match="filename must be the bytes of one file for all variables, not None"):
        fluid.io.load_params(exe, None)
    with pytest.raises(TypeError, match="with dirname, filename must be the name of a file, not bytes"):
        fluid.io.load_params(exe, str(tmp_path), filename=held)
    with pytest.raises(ValueError, match="the data in filename holds more than the 1 requested variables"):
        fluid.io.load_vars(exe, None, vars=["fc_0.w_0"], filename=held)
    with pytest.raises(ValueError, match="must be the bytes of the two files"):
        fluid.io.load_inference_model(None, exe, model)


def test_parameters_and_chosen_variables_are_saved_alone(fluid, tmp_path):
    exe, _ = trained(fluid)
    fluid.io.save_params(exe, str(tmp_path / "params"))
    assert sorted(files(tmp_path / "params")) == ["fc_0.b_0", "fc_0.w_0"]
    fluid.io.save_vars(exe, str(tmp_path / "one"), vars=["fc_0.w_0"])
    fluid.io.save_vars(exe, str(tmp_path / "some"), predicate=lambda var: "velocity" in var.name)
    assert sorted(files(tmp_path / "one")) == ["fc_0.w_0"] and len(files(tmp_path / "some")) == 2
    with fluid.scope_guard(fluid.Scope()):
        fluid.io.load_params(exe, str(tmp_path / "params"))
        assert fluid.global_scope().local_var_names() == ["fc_0.b_0", "fc_0.w_0"]
    with pytest.raises(ValueError, match="vars and predicate are both None"):
        fluid.io.save_vars(exe, str(tmp_path / "none"))


def test_saving_a_variable_without_value_writes_nothing(fluid, tmp_path):
    regression(fluid)
    with pytest.raises(RuntimeError, match="variable fc_0.b_0 has no value to save"):
        fluid.io.save_persistables(fluid.Executor(), str(tmp_path), filename="all")
    assert files(tmp_path) == {}


def test_mismatched_files_are_reported(fluid, tmp_path):
    exe, _ = trained(fluid)
    fluid.io.save_params(exe, str(tmp_path), filename="all")
    data = (tmp_path / "all").read_bytes()

    def loading(data):
        (tmp_path / "all").write_bytes(data)
        fluid.io.load_params(exe, str(tmp_path), filename="all")

    with pytest.raises(ValueError, match="all ends before variable fc_0.w_0: it holds fewer than the 2"):
        loading(data[: -(4 + 8 + 4 + 4 + 6 + 4 * 13)])
    with pytest.raises(ValueError, match="all holds more than the 2 requested variables"):
        loading(data + b"\0")
    with pytest.raises(penstock.DataError, match="all: fc_0.w_0: "):
        loading(data[:-1])
    fluid.io.save_vars(exe, str(tmp_path), vars=["fc_0.b_0"])
    os.replace(tmp_path / "fc_0.b_0", tmp_path / "fc_0.w_0")
    with pytest.raises(ValueError, match=r"fc_0.w_0 is declared float32\[13, 1\], but the file holds float32\[1\]"):
        fluid.io.load_vars(exe, str(tmp_path), vars=["fc_0.w_0"])
    with pytest.raises(FileNotFoundError, match="fc_0.b_0"):
        fluid.io.load_vars(exe, str(tmp_path), vars=["fc_0.b_0"])


def test_selected_rows_are_saved_in_separate_files(fluid, tmp_path):
    var = (
        fluid.default_main_program()
        .global_block()
        .create_var(
            name="rows", shape=[10, 2], dtype="float32", type=fluid.core.VarDesc.VarType.SELECTED_ROWS, persistable=True
        )
    )
    record = struct.pack("<IQqqqIi", 0, 2, 2, 5, 10, 0, 6) + bytes.fromhex("080510021002")
    record += np.array([[1, 2], [3, 4]], "float32").tobytes()
    (tmp_path / "rows").write_bytes(record)
    fluid.io.load_vars(None, str(tmp_path), vars=[var])
    fluid.io.save_vars(None, str(tmp_path / "again"), vars=[var])
    assert (tmp_path / "again" / "rows").read_bytes() == record
    with pytest.raises(ValueError, match="rows is SelectedRows"):
        fluid.io.save_vars(None, str(tmp_path), vars=[var], filename="all")


def test_half_precision_is_saved_loaded_and_converted(fluid, tmp_path):
    L = fluid.layers
    x = fluid.data("x", [None])
    program = fluid.default_main_program()
    half = program.global_block().create_var(name="half", shape=[6], dtype="float16", persistable=True)
    fluid.layers.assign(L.cast(x, "float16"), half)
    back = L.cast(half, "float32")
    exe = fluid.Executor()
    numbers = np.array([0.1, -1 / 3, 65519, 65520, 6e-8, 2.9e-8], "float32")
    fetched = exe.run(feed={"x": numbers}, fetch_list=[back])[0]
    with np.errstate(over="ignore"):
        expected = numbers.astype("float16")
    np.testing.assert_array_equal(fetched, expected.astype("float32"))
    fluid.save(program, str(tmp_path / "m"))
    fluid.io.save_vars(exe, str(tmp_path), vars=[half])
    record = struct.pack("<IQIi", 0, 0, 0, 4) + bytes.fromhex("08041006") + expected.tobytes()
    assert (tmp_path / "half").read_bytes() == record
    for load in (
        lambda: fluid.load(program, str(tmp_path / "m"), exe),
        lambda: fluid.io.load_vars(exe, str(tmp_path), vars=[half]),
    ):
        fluid.global_scope().find_var("half").get_tensor().set(np.zeros(6, "float16"), fluid.CPUPlace())
        load()
        assert value(fluid, "half").dtype == np.float16
        np.testing.assert_array_equal(value(fluid, "half"), expected)


# Inference models.
@pytest.mark.parametrize("kind, model, params", [("separate", None, None), ("combined", "model", "params")])
@pytest.mark.parametrize("name", MODELS)
def test_fluids_inference_models_are_loaded_and_saved_back(fluid, tmp_path, name, kind, model, params):
    exe = fluid.Executor()
    folder = FOLDER / name / kind
    program, feeds, fetches = fluid.io.load_inference_model(str(folder), exe, model, params)
    arrays = np.load(FOLDER / name / "io.npz")
    assert sorted(feeds) == sorted(key[len("feed:") :] for key in arrays.files if key.startswith("feed:"))
    written = files(folder)
    assert program.desc.serialize_to_string() == written.pop(model or "__model__")
    fluid.io.save_persistables(exe, str(tmp_path), program, params)
    assert files(tmp_path) == written

    feed = {}
    for key in feeds:
        feed[key] = arrays["feed:" + key]
        if "lens:" + key in arrays.files:
            feed[key] = fluid.create_lod_tensor(feed[key], [arrays["lens:" + key].tolist()], exe.place)
    for i, got in enumerate(exe.run(program, feed=feed, fetch_list=fetches)):
        np.testing.assert_allclose(got, arrays[f"out:{i}"], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", MODELS)
def test_pruned_inference_programs_equal_fluids(fluids, fluid, tmp_path, name):
    """The training program that fluid.save wrote gives the same __model__ as Fluid's."""
    theirs = programs.read((FOLDER / name / "separate" / "__model__").read_bytes())
    ops = theirs["blocks"][0]["ops"]
    ends = [op for op in ops if op["type"] == "scale" and op["outputs"]["Out"][0].startswith("save_infer_model")]
    feeds = [op["outputs"]["Out"][0] for op in ops if op["type"] == "feed"][::-1]
    program = fluid.Program.parse_from_string(fluids("inference", name, "fluid_save", "m.pdmodel").read_bytes())
    block = program.global_block()
    for op in ends:  # their names continue across models; ours start here
        for _ in range(int(op["outputs"]["Out"][0].rpartition("_")[2])):
            fluid.unique_name.generate(op["outputs"]["Out"][0].rpartition("_")[0])
    for op in reversed(block.ops):
        if op.output_arg_names[0].startswith("save_infer_model"):
            block._remove_op(op.idx)
    for key in [key for key in block.vars if key.startswith("save_infer_model")]:
        block._remove_var(key)
    targets = [block.var(op["inputs"]["X"][0]) for op in ends]
    fluid.io.load_persistables(None, str(FOLDER / name / "persistables"), program)
    fluid.io.save_inference_model(str(tmp_path), feeds, targets, None, program)
    ours = programs.read((tmp_path / "__model__").read_bytes())
    for op in ours["blocks"][0]["ops"] + theirs["blocks"][0]["ops"]:
        op["attrs"].pop("op_namescope")  # made by another process, inside other scopes
    programs.assert_same(ours, theirs)
    written = files(FOLDER / name / "separate")
    assert {key: data for key, data in files(tmp_path).items() if key != "__model__"} == {
        key: data for key, data in written.items() if key != "__model__"
    }


def test_an_inference_model_is_saved_pruned_and_loaded(fluid, tmp_path):
    exe, prediction = trained(fluid, fluid.optimizer.SGD(0.01))
    feed = {"x": np.random.RandomState(0).rand(8, 13).astype("float32")}
    test_program = fluid.default_main_program().clone(for_test=True)
    (expected,) = exe.run(test_program, feed=dict(feed, y=np.zeros((8, 1), "float32")), fetch_list=[prediction])
    before = len(fluid.default_main_program().global_block().ops)
    fluid.io.save_inference_model(str(tmp_path), ["x"], [prediction], exe)
    assert len(fluid.default_main_program().global_block().ops) == before
    assert sorted(os.listdir(tmp_path)) == ["__digests__", "__model__", "fc_0.b_0", "fc_0.w_0"]
    with fluid.scope_guard(fluid.Scope()):
        program, feeds, fetches = fluid.io.load_inference_model(str(tmp_path), exe)
        assert feeds == ["x"]
        assert [op.type for op in program.global_block().ops] == ["feed", "mul", "elementwise_add", "scale", "fetch"]
        (got,) = exe.run(program, feed=feed, fetch_list=fetches)
    np.testing.assert_array_equal(got, expected)


def test_a_loaded_inference_model_is_saved_and_loaded_again(fluid, tmp_path):
    exe, prediction = trained(fluid)
    feed = {"x": np.random.RandomState(0).rand(8, 13).astype("float32")}
    fluid.io.save_inference_model(str(tmp_path / "a"), ["x"], [prediction], exe)
    first, feeds, fetches = fluid.io.load_inference_model(str(tmp_path / "a"), exe)
    (expected,) = exe.run(first, feed=feed, fetch_list=fetches)
    with fluid.unique_name.guard():  # as in a new process
        fluid.io.save_inference_model(str(tmp_path / "b"), feeds, fetches, exe, first)
    again, feeds, fetches = fluid.io.load_inference_model(str(tmp_path / "b"), exe)
    assert feeds == ["x"] and [op.type for op in again.global_block().ops].count("fetch") == 1
    np.testing.assert_array_equal(exe.run(again, feed=feed, fetch_list=fetches)[0], expected)


def test_invalid_inference_model_arguments_are_refused(fluid, tmp_path):
    exe, prediction = trained(fluid)
    with pytest.raises(ValueError, match="y is not needed for the targets"):
        fluid.io.save_inference_model(str(tmp_path), ["x", "y"], [prediction], exe)
    with pytest.raises(ValueError, match="feeded_var_names must be names"):
        fluid.io.save_inference_model(str(tmp_path), [1], [prediction], exe)
    with pytest.raises(ValueError, match="target_vars must be Variables"):
        fluid.io.save_inference_model(str(tmp_path), ["x"], ["fc_0.tmp_1"], exe)
    with pytest.raises(ValueError, match="is not a folder"):
        fluid.io.load_inference_model(str(tmp_path / "nowhere"), exe)
    with pytest.warns(UserWarning, match="leaves out the parameters"):
        fluid.io.save_inference_model(str(tmp_path / "only"), ["x"], [prediction], exe, program_only=True)
    assert sorted(files(tmp_path / "only")) == ["__model__"]
    fluid.io.save_inference_model(str(tmp_path / "whole"), ["x"], [prediction], exe, export_for_deployment=False)
    whole = fluid.Program.parse_from_string((tmp_path / "whole" / "__model__.main_program").read_bytes())
    assert [op.type for op in whole.global_block().ops][-1] == "scale"


def test_a_whole_program_is_saved_without_feeds_and_targets(fluid, tmp_path):
    exe, _ = trained(fluid)
    program = fluid.default_main_program()
    assert fluid.io.save_inference_model(str(tmp_path), [], [], exe, export_for_deployment=False) == []
    whole = fluid.Program.parse_from_string((tmp_path / "__model__.main_program").read_bytes())
    assert [op.type for op in whole.global_block().ops] == [op.type for op in program.global_block().ops]
    kept = [var.name for var in program.list_vars() if var.persistable and var.name not in ("feed", "fetch")]
    assert sorted(files(tmp_path)) == sorted(["__model__.main_program"] + kept)
    with pytest.raises(ValueError, match="target_vars must be Variables, at least one"):
        fluid.io.save_inference_model(str(tmp_path), [], [], exe)


def test_a_folder_is_synced_for_the_list_and_once_for_all_files(fluid, tmp_path, monkeypatch):
    from penstock._src.base import file_writing as _file_writing

    exe, _ = trained(fluid)
    synced = []
    monkeypatch.setattr(_file_writing, "sync_folder", synced.append)
    fluid.io.save_persistables(exe, str(tmp_path))
    assert len(files(tmp_path)) > 2 and synced == [str(tmp_path)] * 2


def test_saving_an_inference_model_warns_of_auc_statistics(fluid, tmp_path):
    x, label = fluid.data("x", [None, 4]), fluid.data("label", [None, 1], "int64")
    prediction = fluid.layers.fc(x, 2, act="softmax")
    area, _, _ = fluid.layers.auc(prediction, label)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    with pytest.warns(UserWarning, match="the program has an op auc; set its statistics to 0 before saving"):
        fluid.io.save_inference_model(str(tmp_path), ["x", "label"], [area], exe)


# fluid.save and fluid.load.
@pytest.mark.parametrize("name", MODELS)
def test_fluids_saves_round_trip(fluids, fluid, tmp_path, name):
    folder = fluids("inference", name, "fluid_save")
    program = fluid.Program.parse_from_string((folder / "m.pdmodel").read_bytes())
    # A program from a file does not contain which variables are parameters.
    for key in pickle.loads((folder / "m.pdparams").read_bytes()):
        program.global_block().var(key)._set_fact("is_parameter", True)
    program = fluid.Program.parse_from_string(program.desc.serialize_to_string())
    fluid.load(program, str(folder / "m"))
    fluid.save(program, str(tmp_path / "m"))
    for suffix in (".pdparams", ".pdopt"):
        ours, theirs = (pickle.loads((path / ("m" + suffix)).read_bytes()) for path in (tmp_path, folder))
        assert sorted(ours) == sorted(theirs)
        in_their_order = {key: ours[key] for key in theirs}
        assert penstock._src.io.pickles.dumps(in_their_order) == (folder / ("m" + suffix)).read_bytes()


def test_a_saved_program_continues_training(fluid, tmp_path):
    exe, _ = trained(fluid)
    main = fluid.default_main_program()
    values = {var.name: value(fluid, var.name) for var in persistables(fluid)}
    fluid.save(main, str(tmp_path / "deep" / "m"))
    assert sorted(files(tmp_path)) == ["deep/m.pdmodel", "deep/m.pdopt", "deep/m.pdparams"]
    for path in ("m", "m.pdparams"):
        with fluid.scope_guard(fluid.Scope()):
            fluid.load(main, str(tmp_path / "deep" / path), exe)
            for name, expected in values.items():
                np.testing.assert_array_equal(value(fluid, name), expected)
    state = fluid.io.load_program_state(str(tmp_path / "deep" / "m"))
    assert sorted(state) == sorted(values)
    state["fc_0.b_0"] += 1
    with pytest.warns(UserWarning, match="that the program does not have: other"):
        fluid.io.set_program_state(main, dict(state, other=np.zeros(1)))
    np.testing.assert_array_equal(value(fluid, "fc_0.b_0"), values["fc_0.b_0"] + 1)
    with pytest.raises(ValueError, match=r"fc_0.b_0 is declared float32\[1\], but state_dict holds float32\[2\]"):
        fluid.io.set_program_state(main, {"fc_0.b_0": np.zeros(2, "float32")})
    assert fluid.io.get_parameter_value_by_name("fc_0.b_0", exe) == values["fc_0.b_0"] + 1


@pytest.mark.parametrize("filename", [None, "all"])
def test_fluid_load_reads_files_of_save_persistables(fluid, tmp_path, filename):
    exe, _ = trained(fluid)
    main, wanted = fluid.default_main_program(), persistables(fluid)
    values = {var.name: value(fluid, var.name) for var in wanted}
    fluid.io.save_persistables(exe, str(tmp_path), filename=filename)
    path = str(tmp_path / filename) if filename else str(tmp_path)
    with fluid.scope_guard(fluid.Scope()):
        fluid.load(main, path, exe, wanted if filename else None)
        assert {name: value(fluid, name).tolist() for name in values} == {
            name: array.tolist() for name, array in values.items()
        }
    state = fluid.io.load_program_state(path, wanted if filename else None)
    assert {name: array.tolist() for name, array in state.items()} == {
        name: array.tolist() for name, array in values.items()
    }
    if filename:
        with pytest.raises(ValueError, match="var_list is required"):
            fluid.load(main, path, exe)
    with pytest.raises(ValueError, match="neither"):
        fluid.load(main, str(tmp_path / "nothing"), exe)


class Evil:
    def __init__(self, call, *args):
        self.call = call, args

    def __reduce__(self):
        return self.call


@pytest.mark.parametrize(
    "content, says",
    [
        (lambda path: {"w": Evil(os.mkdir, path)}, "posix.mkdir"),
        (lambda path: {"w": Evil(eval, "1")}, ".*builtin.*eval"),
        (lambda path: {"w": np.array([Evil(os.mkdir, path)], object)}, "posix.mkdir"),
        (lambda path: {"w": np.array(["text"], object)}, "array of Python objects"),
        (lambda path: {"w": np.array(["text"])}, "array of U4"),
        (lambda path: {"w": {1, 2}}, "set"),
    ],
)
@pytest.mark.parametrize("protocol", range(2, 6))
def test_loading_a_pickle_executes_no_code(fluid, tmp_path, content, says, protocol):
    path = str(tmp_path / "made")
    data = pickle.dumps(content(path), protocol)
    with pytest.raises(ValueError, match=f"x.pdparams holds .*{says}"):
        penstock._src.io.pickles.loads(data, "x.pdparams")
    assert not os.path.exists(path)


@pytest.mark.parametrize("protocol", range(2, 6))
def test_pickles_of_arrays_round_trip(fluid, protocol):
    arrays = {
        "a": np.arange(6, dtype="float32").reshape(2, 3),
        "b": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        "c": np.array([1, 2], ">i8"),
        "d": np.zeros((0, 4), "uint8"),
        "e": {"f": np.array(True)},
    }
    got = penstock._src.io.pickles.loads(pickle.dumps(arrays, protocol), "it")
    np.testing.assert_equal(got, arrays)
    cycle = {}
    cycle["self"] = cycle
    assert penstock._src.io.pickles.loads(b"\x80\x02}r\xff\xff\xff\xff.", "it") == {}  # no gigabytes for its memo
    for bad in (b"", b"abc", pickle.dumps(cycle), pickle.dumps(arrays)[:-5], b"\x80\x02cnumpy\nndarray\n."):
        with pytest.raises(ValueError, match="^it "):
            penstock._src.io.pickles.loads(bad, "it")
