"""Functions with which layers of scripts check their arguments, and scripts check feeds and programs."""

import numpy
import pytest


@pytest.mark.parametrize("given", ["int64", numpy.int64, numpy.dtype("int64")])
def test_convert_dtype_returns_the_name_of_a_type(fluid, given):
    assert fluid.data_feeder.convert_dtype(given) == "int64"
    assert fluid.data_feeder.convert_dtype(fluid.core.VarDesc.VarType.INT64) == "int64"


@pytest.mark.parametrize("given", ["no_type", "LOD_TENSOR", None, complex])
def test_an_unknown_element_type_is_refused(fluid, given):
    if given == "LOD_TENSOR":
        given = fluid.core.VarDesc.VarType.LOD_TENSOR
    with pytest.raises(ValueError, match="an element type is one of bool, float16, .*, uint8, not "):
        fluid.data_feeder.convert_dtype(given)


def test_check_type_refuses_another_class(fluid):
    check = fluid.data_feeder.check_type
    check(3, "size", (int, list), "my_layer")
    with pytest.raises(TypeError, match="^my_layer: the type of size must be int or list, not str$"):
        check("3", "size", (int, list), "my_layer")
    with pytest.raises(TypeError, match="^my_layer: the type of size must be int, not str. Use int.$"):
        check("3", "size", int, "my_layer", "Use int.")


def test_check_dtype_refuses_another_element_type(fluid):
    x = fluid.data("x", [2], "int32")
    fluid.data_feeder.check_dtype(x.dtype, "x", ["int32", "int64"], "my_layer")
    fluid.data_feeder.check_variable_and_dtype(x, "x", ("int32",), "my_layer")
    for check in (fluid.data_feeder.check_dtype, fluid.data_feeder.check_variable_and_dtype):
        with pytest.raises(TypeError, match="^my_layer: the element type of x must be float32 or float64, not int32$"):
            check(x if "variable" in check.__name__ else x.dtype, "x", ["float32", "float64"], "my_layer")
    with pytest.raises(TypeError, match="the element type of x must be int3, not int32"):
        fluid.data_feeder.check_dtype("int32", "x", "int3", "my_layer")
    with pytest.raises(TypeError, match="^my_layer: the type of x must be Variable, not ndarray$"):
        fluid.data_feeder.check_variable_and_dtype(numpy.ones(2), "x", ["float32"], "my_layer")


def test_compatible_shapes_and_types_are_accepted(fluid):
    fits = fluid.executor.dimension_is_compatible_with
    assert fits([2, None], [2, 5]) and fits([-1, 3], (7, -1)) and fits([], [])
    assert not fits([2], [2, 1]) and not fits([2, 3], [2, 4])
    same = fluid.executor.dtype_is_compatible_with
    assert same("float32", fluid.core.VarDesc.VarType.FP32) and not same("float32", numpy.float64)


def test_a_feed_is_compared_with_its_declaration(fluid):
    x, loose = fluid.data("x", [2, 3]), fluid.layers.data("loose", [3])
    check = fluid.executor.check_feed_shape_type

    def tensor(shape, dtype="float32"):
        value = fluid.LoDTensor()
        value.set(numpy.zeros(shape, dtype), fluid.CPUPlace())
        return value

    assert check(x, tensor([2, 3])) and check(x, tensor([4, 3]), num_places=2) and check(x, tensor([3, 3]), 2)
    assert check(loose, tensor([7], "int64"))
    with pytest.raises(ValueError, match=r"the feed of x must have the shape \[2, 3\], .* is \[4, 3\]"):
        check(x, tensor([4, 3]))
    with pytest.raises(ValueError, match="the feed of x must have the element type float32, not float64"):
        check(x, tensor([2, 3], "float64"))


def test_feed_and_fetch_ops_are_found(fluid, tmp_path):
    x = fluid.data("x", [None, 2])
    y, z = fluid.layers.scale(x, 2.0), fluid.layers.scale(x, 3.0)
    fed, fetched = fluid.executor.has_feed_operators, fluid.executor.has_fetch_operators
    assert not fed(x.block, {"x": None}, "feed") and not fetched(x.block, [y], "fetch")
    exe = fluid.Executor(fluid.CPUPlace())
    fluid.io.save_inference_model(str(tmp_path), ["x"], [y, z], exe)
    block = fluid.Program.parse_from_string((tmp_path / "__model__").read_bytes()).global_block()
    results = [op.input("X")[0] for op in block.ops if op.type == "fetch"]
    assert fed(block, {"x": None}, "feed") and fetched(block, results, "fetch")
    with pytest.raises(ValueError, match=r"the feed ops of the block are for \['x'\], not for \['y'\]"):
        fed(block, ["y"], "feed")
    with pytest.raises(ValueError, match="a feed op of the block uses the variable feed, not other"):
        fed(block, ["x"], "other")
    with pytest.raises(ValueError, match="have the order"):
        fetched(block, results[::-1], "fetch")
    with pytest.raises(ValueError, match="the fetch ops of the block are for"):
        fetched(block, results[:1], "fetch")


def test_types_names_and_declarations_of_the_framework(fluid):
    framework = fluid.framework
    assert framework.dtype_is_floating(numpy.float64) and not framework.dtype_is_floating("uint8")
    assert [proto.type for proto in framework.get_all_op_protos()] == fluid.op.Operator.types()
    root = framework.NameScope()
    inner = root.child("a").child("b")
    assert (root.name(), inner.name(), inner.parent().name(), root.parent()) == ("", "b", "a", None)
    assert [root.child("a").name() for _ in range(2)] == ["a_1", "a_2"]


def test_a_handler_documents_its_usage(fluid, capsys):
    fluid.executor.FetchHandler.help()
    text = capsys.readouterr().out
    assert "def handler(self, res_dict):" in text
    compile(text, "help", "exec")


def test_cpu_num_sets_the_number_of_pinned_places(fluid, monkeypatch):
    monkeypatch.setenv("PENSTOCK_CUDA_FALLBACK", "1")
    monkeypatch.setenv("CPU_NUM", "3")
    assert len(fluid.cuda_pinned_places()) == 3 and len(fluid.cuda_pinned_places(2)) == 2
