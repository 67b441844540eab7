"""Fluid's native predictor in fluid.core."""

import numpy as np
import pytest

XS = np.random.RandomState(1).uniform(-1, 1, (3, 4)).astype("float32")


@pytest.fixture
def model(fluid, tmp_path):
    """A folder of save_inference_model, with the files prog and params beside it, and the result for XS."""
    y = fluid.layers.fc(fluid.data("x", [None, 4]), 2, act="softmax")
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    fluid.io.save_inference_model(str(tmp_path / "model"), ["x"], [y], exe)
    fluid.io.save_inference_model(
        str(tmp_path / "one"), ["x"], [y], exe, model_filename="prog", params_filename="params"
    )
    return tmp_path, exe.run(feed={"x": XS}, fetch_list=[y])[0]


def test_every_way_to_specify_a_model_gives_its_result(fluid, model):
    folder, right = model
    core = fluid.core
    native = core.NativeConfig()
    native.model_dir = str(folder / "model")
    files = core.NativeConfig()
    files.prog_file, files.param_file = str(folder / "one/prog"), str(folder / "one/params")
    buffers = core.AnalysisConfig()
    program, parameters = ((folder / "one" / name).read_bytes() for name in ("prog", "params"))
    buffers.set_model_buffer(program, len(program), parameters, len(parameters))
    assert buffers.model_from_memory()
    both = core.AnalysisConfig(str(folder / "one/prog"), str(folder / "one/params"))
    with fluid.scope_guard(fluid.Scope()):
        for config in (core.AnalysisConfig(str(folder / "model")), both, buffers, native, files):
            predictor = core.create_paddle_predictor(config)
            (output,) = predictor.run([core.PaddleTensor(XS)])
            np.testing.assert_allclose(output.as_ndarray(), right, rtol=1e-6)
            assert output.shape == [3, 2] and output.dtype == core.PaddleDType.FLOAT32
            (output,) = predictor.clone().run([core.PaddleTensor(XS[:1])])
            np.testing.assert_allclose(output.as_ndarray(), right[:1], rtol=1e-6)
        assert fluid.global_scope().find_var("fc_0.w_0") is None  # the predictor has its own variables


def test_zero_copy_tensors_set_inputs_and_read_outputs(fluid, model):
    folder, right = model
    config = fluid.core.AnalysisConfig(str(folder / "model"))
    config.switch_use_feed_fetch_ops(False)
    predictor = fluid.core.create_paddle_predictor(config)
    assert predictor.get_input_names() == ["x"] and predictor.get_input_tensor_shape() == {"x": [-1, 4]}
    x = predictor.get_input_tensor("x")
    x.reshape([3, 4])
    x.copy_from_cpu(XS.reshape(-1))
    predictor.zero_copy_run()
    output = predictor.get_output_tensor(predictor.get_output_names()[0])
    np.testing.assert_allclose(output.copy_to_cpu(), right, rtol=1e-6)
    assert output.shape() == [3, 2] and output.type() == fluid.core.PaddleDType.FLOAT32 and output.lod() == []


def test_a_predictor_saves_its_model(fluid, model):
    folder, right = model
    predictor = fluid.core.create_paddle_predictor(fluid.core.AnalysisConfig(str(folder / "model")))
    predictor.SaveOptimModel(str(folder / "saved"))
    assert predictor.get_serialized_program() == (folder / "saved/model").read_bytes()
    again = fluid.core.AnalysisConfig(str(folder / "saved/model"), str(folder / "saved/params"))
    (output,) = fluid.core.create_paddle_predictor(again).run([fluid.core.PaddleTensor(XS)])
    np.testing.assert_allclose(output.as_ndarray(), right, rtol=1e-6)


def test_pass_lists_are_editable(fluid):
    builder = fluid.core.AnalysisConfig("model").pass_builder()
    builder.set_passes(["a", "b"])
    builder.insert_pass(1, "c")
    builder.append_pass("d")
    builder.delete_pass("a")
    builder.delete_pass(0)
    builder.append_analysis_pass("e")
    assert (builder.all_passes(), builder.analysis_passes(), builder.use_gpu()) == (["b", "d"], ["e"], False)


def test_inputs_are_set_by_name_with_lod(fluid, tmp_path):
    ids = fluid.data("ids", [None, 1], "int64", lod_level=1)
    scale = fluid.data("scale", [1])
    pooled = fluid.layers.sequence_pool(fluid.layers.embedding(ids, [9, 2]), "sum") * scale
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    fluid.io.save_inference_model(str(tmp_path), ["ids", "scale"], [pooled], exe)
    config = fluid.core.AnalysisConfig(str(tmp_path))
    config.switch_specify_input_names(True)
    assert config.specify_input_name()
    predictor = fluid.core.create_paddle_predictor(config)
    given = [
        fluid.core.PaddleTensor(np.array([2], "float32"), "scale"),
        fluid.core.PaddleTensor(np.array([[1], [2], [3]]), "ids", [[0, 1, 3]]),
    ]
    (output,) = predictor.run(given)
    table = np.array(predictor.scope().find_var("embedding_0.w_0").get_tensor())
    np.testing.assert_allclose(output.as_ndarray(), 2 * np.stack([table[1], table[2] + table[3]]), rtol=1e-6)


def test_buffers_convert_to_lists(fluid):
    core = fluid.core
    buffer = core.PaddleBuf([1.5, 2.0])
    assert (buffer.length(), buffer.float_data(), buffer.empty()) == (8, [1.5, 2.0], False)
    buffer.reset([3, 4])
    assert buffer.int64_data() == buffer.tolist("int64") == [3, 4]
    buffer.reset(np.array([5], "int32"))
    assert buffer.int32_data() == [5]
    buffer.resize(0)
    assert buffer.empty() and core.paddle_dtype_size(core.PaddleDType.FLOAT32) == 4
    tensor = core.PaddleTensor()
    tensor.shape, tensor.dtype = [2], core.PaddleDType.INT64
    tensor.data.reset([7, 8])
    assert tensor.as_ndarray().tolist() == [7, 8]
    tensor.shape = [3]
    with pytest.raises(ValueError, match="shape .3. of int64 needs 24 bytes, but data has 16.*E-predictor-type"):
        tensor.as_ndarray()


def test_invalid_configurations_are_refused(fluid, model, monkeypatch):
    monkeypatch.delenv("PENSTOCK_CUDA_FALLBACK", raising=False)
    folder, _ = model
    core = fluid.core
    config = core.AnalysisConfig(str(folder / "model"))
    predictor = core.create_paddle_predictor(config)
    native = core.NativeConfig()
    native.model_dir, native.use_gpu = str(folder / "model"), True
    for error, text, call in [
        (
            ValueError,
            "has 1 inputs, x, but run was given 2.*E-predictor-input",
            lambda: predictor.run([core.PaddleTensor(XS)] * 2),
        ),
        (ValueError, "no input y; it has x", lambda: predictor.get_input_tensor("y")),
        (ValueError, "no output y", lambda: predictor.get_output_tensor("y")),
        (RuntimeError, "x has no value yet", predictor.zero_copy_run),
        (ValueError, "elements of float64", lambda: core.PaddleTensor(np.ones(2))),
        (ValueError, "cannot have the shape .2, 2.", lambda: _reshaped(predictor)),
        (ValueError, "names no model.*E-predictor-model", lambda: core.create_paddle_predictor(core.AnalysisConfig())),
        (TypeError, "not int", lambda: core.create_paddle_predictor(3)),
        (NotImplementedError, "E-no-cuda", lambda: config.enable_use_gpu(100, 0)),
        (NotImplementedError, "E-no-cuda", lambda: core.create_paddle_predictor(native)),
        (NotImplementedError, "TensorRT|tensorrt", config.enable_tensorrt_engine),
        (NotImplementedError, "quantizer", config.enable_quantizer),
    ]:
        with pytest.raises(error, match=text):
            call()
    assert not config.use_gpu() and config.ir_optim() and config.pass_builder().all_passes() == []


def _reshaped(predictor):
    tensor = predictor.get_input_tensor("x")
    tensor.reshape([2, 2])
    tensor.copy_from_cpu(XS)
