"""Layer arguments that may be Variables, and invalid arguments, which the errors name."""

import numpy as np
import pytest


def run(fluid, feed, *fetch):
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    return exe.run(feed=feed, fetch_list=list(fetch))


def op_types(program):
    return [op.type for op in program.global_block().ops]


ONE = {"rows": np.array([2], "int32"), "wide": np.array([3], "int64"), "both": np.array([4, 5], "int32")}


def extents(fluid):
    made = [fluid.data("rows", [1], "int32"), fluid.data("wide", [1], "int64"), fluid.data("both", [2], "int32")]
    for var in made:
        var.stop_gradient = False
    return made


@pytest.mark.parametrize(
    "make",
    [
        lambda L, shape: L.fill_constant(shape, "float32", 1.0),
        lambda L, shape: L.zeros(shape, "int64"),
        lambda L, shape: L.uniform_random(shape),
        lambda L, shape: L.gaussian_random(shape),
    ],
)
def test_a_shape_may_be_or_hold_variables(fluid, make):
    rows, wide, both = extents(fluid)
    parts, whole = make(fluid.layers, [rows, 3, wide]), make(fluid.layers, both)
    assert parts.shape == (-1, 3, -1)
    assert rows.stop_gradient and both.stop_gradient  # extents have no gradients
    got = run(fluid, ONE, parts, whole)
    assert [value.shape for value in got] == [(2, 3, 3), (4, 5)]


def test_an_int64_extent_is_cast_for_a_constant(fluid):
    rows, wide, _ = extents(fluid)
    fluid.layers.fill_constant([wide, 2], "float32", 1.0)
    assert op_types(fluid.default_main_program()) == ["cast", "fill_constant", "fill_constant"]


def test_the_value_of_a_constant_may_be_a_variable(fluid):
    value = fluid.data("value", [1])
    out = fluid.layers.fill_constant([2, 2], "float32", value)
    np.testing.assert_array_equal(run(fluid, {"value": np.array([1.5], "float32")}, out)[0], np.full((2, 2), 1.5))


def test_numbers_mixed_with_variables_become_constants(fluid):
    rows, _, _ = extents(fluid)
    out = fluid.layers.unsqueeze(fluid.data("x", [2, 2]), [rows, 1])
    assert out.name == "unsqueeze2_0.tmp_1"  # tmp_0 is the 1
    (got,) = run(fluid, dict(ONE, x=np.zeros((2, 2), "float32")), out)
    assert got.shape == (2, 1, 2, 1)


def test_concat_and_stack_accept_a_tensor_array(fluid):
    L = fluid.layers
    x = fluid.data("x", [2, 3])
    zero = L.zeros([1], "int64")
    array = L.array_write(x, zero)
    array = L.array_write(L.scale(x, 2.0), L.increment(zero, in_place=False), array)
    joined, stacked = L.concat(array, axis=1), L.stack(array, axis=0)
    assert joined.type.name == stacked.type.name == "LOD_TENSOR"
    given = np.ones((2, 3), "float32")
    got = run(fluid, {"x": given}, joined, stacked)
    np.testing.assert_array_equal(got[0], np.concatenate([given, 2 * given], 1))
    np.testing.assert_array_equal(got[1], np.stack([given, 2 * given]))
    with pytest.raises(ValueError, match="is an array: it is joined alone, not with 1 others"):
        L.concat([array, x])


@pytest.mark.parametrize("name", ["clip", "clip_by_norm"])
def test_clip_outputs_have_the_given_name(fluid, name):
    layer = {
        "clip": lambda x, **kw: fluid.layers.clip(x, 0.0, 1.0, **kw),
        "clip_by_norm": lambda x, **kw: fluid.layers.clip_by_norm(x, 1.0, **kw),
    }[name]
    x = fluid.data("x", [2])
    assert layer(x, name="small").name == "small" and layer(x).name == name + "_0.tmp_0"


@pytest.mark.parametrize(
    "initializer, label",
    [
        ("Constant(2.0)", "constant_init"),
        ("Uniform(1.0, 3.0)", "uniform_random"),
        ("Normal(2.0, 0.1)", "gaussian_random"),
        ("TruncatedNormal(2.0, 0.1)", "truncated_gaussian_random"),
        ("Xavier()", "xavier_init"),
        ("MSRA()", "masra_init"),
        ('NumpyArrayInitializer(np.full([2, 3], 2, "float32"))', "numpy_array_init"),
    ],
)
def test_a_float16_parameter_is_cast_from_a_float32_stand_in(fluid, initializer, label):
    made = eval(initializer, {"np": np}, vars(fluid.initializer))
    fluid.layers.create_parameter([2, 3], "float16", attr=fluid.ParamAttr(name="w", initializer=made))
    filled, cast = fluid.default_startup_program().global_block().ops
    assert filled.output_arg_names == [f"{label}.w.tmp_0"] == cast.input_arg_names and cast.type == "cast"
    assert filled.attr("dtype") == fluid.core.VarType.FP32
    run(fluid, {})
    value = np.array(fluid.global_scope().find_var("w").get_tensor())
    assert value.dtype == np.float16 and value.shape == (2, 3)
    if "Xavier" not in initializer and "MSRA" not in initializer:
        assert np.all(np.abs(value - 2) <= 1)


WRONG = [
    (lambda L, x: L.relu(None), "relu: x must be a Variable, not None"),
    (lambda L, x: L.fc(3, 4), "fc: input must be a Variable or a list of Variables, not 3"),
    (lambda L, x: L.fc([x, "y"], 4), "fc: input must be a Variable, not 'y'"),
    (lambda L, x: L.elementwise_add(x, "y"), "elementwise_add: y must be a Variable, not 'y'"),
    (lambda L, x: L.concat([x, np.zeros(2)]), "concat: input must be a Variable, not ndarray"),
    (lambda L, x: L.sequence_softmax(None), "sequence_softmax: input must be a Variable, not None"),
    (lambda L, x: L.less_than(x, x, cond="c"), "less_than: Out must be a Variable, not 'c'"),
    (lambda L, x: L.reshape(x, [-1, 1.5]), "reshape2: 1.5 must be an int or a Variable"),
    (lambda L, x: L.fc(x, 2.5), r"a shape is a list of ints, not \[4, 2.5\]"),
    (lambda L, x: L.fc(x, 2, bias_attr=["b"]), "one parameter is described by one ParamAttr, not by a list of 1"),
    (lambda L, x: L.assign("x"), "assign: input must be a Variable or a numpy array, not 'x'"),
    (lambda L, x: L.data(None, [1]), "data: the name must be a str, not None"),
    (lambda L, x: L.fill_constant([1], "int64", 1, out=x), r"fill_constant: out \(x\) is float32, not int64"),
    (lambda L, x: L.create_parameter([2], "int32"), "fills variables of floats; create_parameter_0.w_0 is INT32"),
    (lambda L, x: L.reorder_lod_tensor_by_rank(x, x), "rank_table must be a Variable of type LOD_RANK_TABLE"),
    (lambda L, x: L.conv2d(x, 2, 3, use_cudnn=1), "use_cudnn must be True or False, not 1"),
]
WRONG += [
    (lambda L, x: L.exponential_decay(None, 10, 0.9), "exponential_decay: learning_rate must be a number or a Var"),
    (lambda L, x: L.noam_decay(64, warmup_steps="a"), "warmup_steps must be a number or a Variable, not 'a'"),
    (lambda L, x: L.switch_case(x, [lambda: x]), "branch_index must be uint8, int32 or int64, but x is FP32"),
    (lambda L, x: L.switch_case(L.zeros([1], "int32"), {"a": lambda: x}), "branch_fns must be an int, not 'a'"),
    (lambda L, x: L.switch_case(L.zeros([1], "int32"), [x]), "a branch must be a function, not <Variable x>"),
    (lambda L, x: L.case([(L.reduce_sum(x) > 1, 3)]), "case: a branch must be a function, not 3"),
    (lambda L, x: L.case(3), "case: pred_fn_pairs must be a list, not 3"),
]
WRONG_VALUES = [
    (lambda L, x: L.switch_case(L.zeros([1], "int32"), []), "switch_case: branch_fns is empty"),
    (lambda L, x: L.switch_case(L.zeros([1], "int32"), [(1, print), (1, len)]), "index 1 occurs twice in branch_fns"),
    (lambda L, x: L.concat([]), "concat: input is an empty list"),
    (lambda L, x: L.concat([x, x.astype("int64")]), "Data Type mismatch: FP32 to INT64"),
    (lambda L, x: L.cast(x, None), "there is no element type for None; there are bool"),
    (lambda L, x: L.conv2d(x, 2, 3), r"the input must be images of 4 axes, but its shape is \(-1, 4\)"),
    (lambda L, x: L.nce(L.reshape(x, [-1]), L.cast(x, "int64"), 5), "nce: input must have at least 2 axes"),
    (lambda L, x: L.assign(np.zeros(2**20 + 1, "float32")), "has 1048577 elements; a program keeps at most 1048576"),
    (lambda L, x: L.conv2d(L.reshape(x, [-1, 4, 1, 1]), 2, 1, groups=0), "must be divisible by groups"),
    (
        lambda L, x: L.pool2d(L.reshape(x, [-1, 4, 1, 1]), 1, pool_padding="VALID", ceil_mode=True),
        "contradicts padding 'VALID'",
    ),
    (
        lambda L, x: L.pool2d(L.reshape(x, [-1, 4, 1, 1]), 1, pool_padding=[[1, 1], [0, 0], [0, 0], [0, 0]]),
        "only the axes of the image are padded",
    ),
]


@pytest.mark.parametrize("call, says", WRONG)
def test_an_argument_of_a_wrong_type_is_reported(fluid, call, says):
    with pytest.raises(TypeError, match=says):
        call(fluid.layers, fluid.data("x", [None, 4]))


@pytest.mark.parametrize("call, says", WRONG_VALUES)
def test_a_wrong_value_is_reported(fluid, call, says):
    with pytest.raises(ValueError, match=says):
        call(fluid.layers, fluid.data("x", [None, 4]))


class TestNumbersThatWouldBeRounded:
    @pytest.mark.parametrize(
        "make, text",
        [
            (lambda L, x: L.scale(x, 2**24 + 1), "scale: attribute scale is 16777217, which has no equal in float32"),
            (lambda L, x: L.scale(x, bias=1e300), "scale: attribute bias is 1e+300, which has no equal in float32"),
            (lambda L, x: L.clip(x, 0, 2**53 + 1), "clip: attribute max is 9007199254740993, which has no equal"),
            (lambda L, x: L.increment(x, 2**24 + 1), "increment: attribute step is 16777217"),
            (lambda L, x: L.fill_constant([1], "int64", 1.5), "fill_constant: the value 1.5 has no equal in int64"),
            (lambda L, x: L.fill_constant([1], "int32", float("nan")), "fill_constant: the value nan has no equal"),
            (lambda L, x: L.fill_constant([1], "float32", 2**24 + 1), "the value 16777217 has no equal in float32"),
            (lambda L, x: L.fill_constant([1], "float16", 1e5), "the value 100000.0 has no equal in float16"),
            (lambda L, x: L.create_global_var([1], 1.5, "int64"), "create_global_var: the value 1.5 has no equal"),
        ],
    )
    def test_inexact_numbers_are_reported(self, fluid, make, text):
        with pytest.raises(ValueError, match=text.replace("+", r"\+")) as caught:
            make(fluid.layers, fluid.data("x", [1]))
        assert "[E-attr-value]" in str(caught.value)

    def test_exact_numbers_are_accepted(self, fluid):
        L, x = fluid.layers, fluid.data("x", [1])
        got = run(
            fluid,
            {"x": np.ones(1, "float32")},
            L.scale(x, 2**24),
            L.scale(x, float("inf")),
            L.scale(x, 1 / 3),
            L.fill_constant([1], "int64", 2**60 + 1),
            L.fill_constant([1], "int64", 3.0),
            L.create_global_var([1], 2**60 + 1, "int64", persistable=True),
        )
        assert [value[0] for value in got] == [2**24, np.inf, np.float32(1 / 3), 2**60 + 1, 3, 2**60 + 1]

    def test_float64_holds_more_than_float32(self, fluid):
        L, x = fluid.layers, fluid.data("x", [1], "float64")
        batch = fluid.data("batch", [None, 1], "float64")
        got = run(
            fluid,
            {"x": np.ones(1), "batch": np.ones((1, 1))},
            L.fill_constant([1], "float64", 1e300),
            L.fill_constant_batch_size_like(batch, [-1], "float64", 1e300),
            x * 1e300,
            L.create_global_var([1], 1e300, "float64", persistable=True),
            L.create_global_var([1], 2**200, "float64", persistable=True),
        )
        assert [value[0] for value in got] == [1e300, 1e300, 1e300, 1e300, 2.0**200]

    def test_the_text_of_a_number_fills_a_tensor_as_in_fluid(self, fluid):
        fill = fluid.layers.fill_constant
        got = run(fluid, {}, fill([1], "float32", "1.5"), fill([1], "int64", str(2**60 + 1)))
        assert [value[0] for value in got] == [1.5, 2**60 + 1]

    @pytest.mark.parametrize("dtype", ["int32", "int64", "float64"])
    def test_operators_of_integer_tensors_keep_integers(self, fluid, dtype):
        x, n = fluid.data("x", [None], dtype), 2**24 + 1
        got = run(fluid, {"x": np.array([3], dtype)}, x + n, x * n, x - n, n - x, n + x, x + float(n), x < n + 1, x - 2)
        assert [value[0] for value in got] == [n + 3, 3 * n, 3 - n, n - 3, n + 3, n + 3, True, 1]

    def test_scale_requires_numbers(self, fluid):
        x = fluid.data("x", [1])
        for make in (lambda: fluid.layers.scale(x, "2"), lambda: fluid.layers.scale(x, bias="2")):
            with pytest.raises(TypeError, match=r"^scale: .* not '2' .*\[E-argument-type\]"):
                make()

    def test_topk_refuses_none(self, fluid):
        with pytest.raises(TypeError, match="top_k: k must be int"):
            fluid.layers.topk(fluid.data("x", [None, 4]), None)

    def test_num_neg_samples_must_be_an_int(self, fluid):
        x, label = fluid.data("x", [None, 4]), fluid.data("label", [None, 1], "int64")
        with pytest.raises(TypeError, match="nce: num_neg_samples must be int"):
            fluid.layers.nce(x, label, 10, num_neg_samples=2.5)


@pytest.mark.parametrize(
    "make, text",
    [
        (
            lambda L, x: L.split(x, 2**70, dim=1),
            "split: num_or_sections must be at most 65536, not 1180591620717411303424",
        ),
        (lambda L, x: L.spectral_norm(x, dim=None), "spectral_norm: dim must be an axis of weight .*, not None"),
        (lambda L, x: L.spectral_norm(x, dim=2), "from 0 to 1, not 2"),
    ],
)
def test_values_too_large_for_a_layer_are_refused(fluid, make, text):
    with pytest.raises(ValueError, match=text):
        make(fluid.layers, fluid.data("x", [6, 4]))


def test_split_accepts_numpy_integers(fluid):
    first, second = fluid.layers.split(fluid.data("x", [6, 4]), np.int64(2), dim=1)
    assert first.shape == second.shape == (6, 2)
