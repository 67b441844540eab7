"""A fed number keeps its value, whatever the element types of array and variable; only longer floats are rounded."""

import fractions

import numpy as np
import penstock
import pytest

# (dtype of the variable, dtype of the array, values that it takes)
KEPT = [
    ("float32", "int64", [0, -5, 2**24, -(2**24), 2**40, 3 * 2**30]),
    ("float32", "float64", [0.1, -1e-300, 3.4e38, np.inf, -np.inf, np.nan]),
    ("float32", "float16", [0.1, 65504, np.nan]),
    ("float32", "bool", [True, False]),
    ("float32", "uint8", [0, 255]),
    ("float32", "longdouble", [0.1, 1]),
    ("float64", "int64", [2**53, -(2**60)]),
    ("float64", "uint64", [2**63]),
    ("float16", "float32", [0.1, 65504, 65519, np.inf, 1e-30]),
    ("float16", "int64", [2048, -65504, 4094]),
    ("int64", "float32", [3.0, -2.0, 2.0**40]),
    ("int64", "float64", [-(2.0**63), 2.0**62]),
    ("int64", "uint64", [2**63 - 1]),
    ("int64", "uint32", [2**32 - 1]),
    ("int64", "bool", [True, False]),
    ("int32", "int64", [2**31 - 1, -(2**31)]),
    ("int32", "float32", [-(2.0**31), 2.0**30]),
    ("uint8", "int64", [0, 255]),
    ("int8", "float64", [-128.0, 127.0]),
    ("bool", "int64", [0, 1]),
    ("bool", "float32", [0.0, 1.0]),
]
# (dtype of the variable, dtype of the array, a value, what is wrong)
REFUSED = [
    ("int32", "int64", 2**40 + 3, "is outside the range of i32, -2147483648 to 2147483647"),
    ("int32", "int64", -(2**31) - 1, "is outside the range of i32"),
    ("int32", "float64", 2.0**31, "is outside the range of i32"),
    ("int64", "float32", 1.7, "= 1.7 is not an integer, as i64 needs"),
    ("int64", "float16", 0.5, "= 0.5 is not an integer"),
    ("int64", "float64", np.nan, "nan is not an integer"),
    ("int64", "float32", np.inf, "= inf is not an integer"),
    ("int64", "float64", 2.0**63, "is outside the range of i64"),
    ("int64", "uint64", 2**63 + 5, "= 9223372036854775813 is outside the range of i64"),
    ("uint8", "int64", -1, "is outside the range of u8, 0 to 255"),
    ("uint8", "int64", 256, "is outside the range of u8"),
    ("int8", "uint8", 128, "is outside the range of i8"),
    ("int16", "int32", 2**15, "is outside the range of i16"),
    ("float32", "float64", 1e300, r"= 1e\+300 is beyond the range of f32"),
    ("float32", "float64", -3.5e38, "is beyond the range of f32"),
    ("float16", "float32", 65520, "is beyond the range of f16"),
    ("float16", "int64", 2049, "= 2049 is not exact in f16"),
    ("float16", "int64", 65536, "is not exact in f16"),
    ("float32", "int64", 2**24 + 1, "= 16777217 is not exact in f32"),
    ("float32", "int32", -(2**24) - 1, "is not exact in f32"),
    ("float32", "int64", 2**63 - 1, "is not exact in f32"),
    ("float32", "uint64", 2**64 - 1, "is not exact in f32"),
    ("float64", "int64", 2**53 + 1, "is not exact in f64"),
    ("bool", "int64", 2, "= 2 is neither 0 nor 1"),
    ("bool", "float32", 0.5, "is neither 0 nor 1"),
    ("bool", "float32", np.nan, "is neither 0 nor 1"),
]


def converted(value, dtype):
    from penstock._src.ir.array_conversion import to_array

    return to_array(value, dtype, "x")


@pytest.mark.parametrize("dtype, given, values", KEPT)
@pytest.mark.parametrize("count", [1, 3000])
def test_exact_values_are_converted(dtype, given, values, count):
    array = np.resize(np.array(values, given), [count, len(values)])
    got = converted(array, dtype)
    assert got.dtype == dtype and got.shape == array.shape
    np.testing.assert_array_equal(got, array.astype(dtype))


@pytest.mark.parametrize("dtype, given, value, what", REFUSED)
@pytest.mark.parametrize("index", [(0, 0), (700, 2), (1023, 6)])
def test_an_inexact_value_is_an_error_with_its_index(dtype, given, value, what, index):
    array = np.zeros((1024, 7), given)
    array[index] = value
    for laid in (array, np.asfortranarray(array), array[::-1], array.astype(array.dtype.newbyteorder())):
        place = (1023 - index[0], index[1]) if laid.strides[0] < 0 else index
        with pytest.raises(penstock.ProgramError, match=what) as caught:
            converted(laid, dtype)
        assert caught.value.id == "E-feed-value" and f"feed: x[{place[0]}, {place[1]}] = " in str(caught.value)


def test_every_number_of_16_bits_is_converted_as_numpy_does():
    halves = np.arange(2**16, dtype="uint16").view("float16")
    np.testing.assert_array_equal(converted(halves, "float32"), halves.astype("float32"))
    floats = np.random.RandomState(1).randn(20000) * 10.0 ** np.random.RandomState(2).randint(-9, 5, 20000)
    floats = floats[np.abs(floats) < 65000]
    np.testing.assert_array_equal(converted(floats, "float16"), floats.astype("float16"))


@pytest.mark.parametrize(
    "value",
    [
        1 + 2j,
        np.array(["a"]),
        np.array([b"a"]),
        np.array(["2020-01-01"], "datetime64[D]"),
        [[1, 2], [3]],
        [[1], 2],
        {"a": 1},
        np.array([object()]),
        np.array([None]),
        np.zeros(2, "int32,float32"),
    ],
)
def test_non_numeric_arrays_are_refused(value):
    with pytest.raises(penstock.ProgramError, match="feed: ") as caught:
        converted(value, "float32")
    assert caught.value.id == "E-feed-type" and "x" in str(caught.value)


@pytest.mark.parametrize(
    "value",
    [
        np.array(["2020-01-01"], "datetime64[D]"),
        np.array([1], "timedelta64[s]"),
        np.array([1 + 2j]),
        np.array(["a"]),
        None,
    ],
)
def test_tensors_take_only_their_element_types(fluid, value):
    for tensor in (fluid.LoDTensor(), fluid.global_scope().var("w").get_tensor()):
        with pytest.raises(penstock.ProgramError, match="cannot be a tensor; use bool, int8") as caught:
            tensor.set(value, fluid.CPUPlace())
        assert caught.value.id == "E-array-dtype"


def test_lists_of_python_numbers_are_converted():
    assert converted([[1, 2.5], [True, 0]], "float32").tolist() == [[1, 2.5], [1, 0]]
    assert converted([1, 2.0], "int64").tolist() == [1, 2]
    assert converted([2**53 + 1, 1.0], "int64").tolist() == [2**53 + 1, 1]  # not by way of float64
    assert converted([2**70, fractions.Fraction(1, 4)], "float32").tolist() == [2**70, 0.25]
    for value, dtype in (
        ([2**70], "int64"),
        ([2**53 + 1, 0.5], "int64"),
        ([10**400], "float64"),
        ([2**64 + 1], "float64"),
    ):
        with pytest.raises(penstock.ProgramError, match=r"feed: x\[0\]|feed: x\[1\]") as caught:
            converted(value, dtype)
        assert caught.value.id == "E-feed-value"


MASKED = np.ma.masked_array(np.ones((2, 3), "float32"), mask=[[False] * 3, [False, True, False]])


class OwnMasked(np.ma.MaskedArray):
    pass


@pytest.mark.parametrize("value", [MASKED, MASKED.astype("int32"), MASKED.view(OwnMasked), list(MASKED), [MASKED]])
def test_a_masked_element_is_an_error(fluid, value):
    x = fluid.data("x", [None, 3])
    with pytest.raises(penstock.ProgramError, match="1.*is masked; choose the values") as caught:
        fluid.Executor().run(feed={"x": value}, fetch_list=[x])
    assert caught.value.id == "E-array-masked" and "feed: x" in str(caught.value)
    whole = np.ma.masked_array(np.ones((2, 3), "float32"))
    assert fluid.Executor().run(feed={"x": whole}, fetch_list=[x])[0].tolist() == [[1] * 3] * 2


def test_tensors_take_no_masked_elements(fluid):
    for call in (
        lambda: fluid.LoDTensor().set(MASKED, fluid.CPUPlace()),
        lambda: fluid.create_lod_tensor(MASKED, [[2]], fluid.CPUPlace()),
        lambda: fluid.create_lod_tensor([[1, 2], np.ma.masked_array([1], [True])], [[2, 1]], fluid.CPUPlace()),
        lambda: fluid.global_scope().var("w").get_tensor().set(MASKED, fluid.CPUPlace()),
    ):
        with pytest.raises(penstock.ProgramError) as caught:
            call()
        assert caught.value.id == "E-array-masked"


BAD = np.array([[1.0], [1.5]], "float32")  # ids, for a variable of int64


def fed(fluid, ids, value):
    fluid.Executor().run(feed={"ids": value}, fetch_list=[ids])


def fed_at_places(fluid, ids, value):
    compiled = fluid.CompiledProgram(fluid.default_main_program()).with_data_parallel(
        places=[fluid.CPUPlace(), fluid.CPUPlace()]
    )
    fluid.Executor().run(compiled, feed={"ids": value}, fetch_list=[ids])


def from_loader(fluid, ids, value):
    loader = fluid.io.DataLoader.from_generator([ids], capacity=2)
    loader.set_batch_generator(lambda: iter([[value]]), fluid.CPUPlace())
    list(loader())


def from_samples(fluid, ids, value):
    loader = fluid.io.DataLoader.from_generator([ids], capacity=2)
    loader.set_sample_generator(lambda: ((row,) for row in value), 2, places=fluid.CPUPlace())
    list(loader())


def from_dataset(fluid, ids, value):
    list(fluid.io.DataLoader([(row,) for row in value], feed_list=[ids], batch_size=2))


def from_py_reader(fluid, ids, value):
    reader = fluid.io.PyReader([ids], capacity=2)
    reader.decorate_sample_list_generator(lambda: iter([[(row,) for row in value]]), fluid.CPUPlace())
    list(reader())


def from_feeder(fluid, ids, value):
    fluid.DataFeeder([ids], fluid.CPUPlace()).feed([(row,) for row in value])


def read_by_program(fluid, ids, value):
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        reader = fluid.layers.py_reader(2, [[-1, 1]], ["int64"])
        out = fluid.layers.read_file(reader)
        reader.decorate_sample_list_generator(lambda: iter([[(row,) for row in value]]))
        exe = fluid.Executor()
        exe.run(fluid.default_startup_program())
        reader.start()
        try:
            exe.run(fetch_list=[out])
        finally:
            reader.reset()


@pytest.mark.parametrize(
    "feed", [fed, fed_at_places, from_loader, from_samples, from_dataset, from_py_reader, from_feeder, read_by_program]
)
def test_every_way_to_feed_checks_values(fluid, feed):
    ids = fluid.data("ids", [None, 1], "int64")
    with pytest.raises(penstock.ProgramError, match=r"\[1, 0\] = 1.5 is not an integer") as caught:
        feed(fluid, ids, BAD)
    assert caught.value.id == "E-feed-value"
    with pytest.raises(penstock.ProgramError, match="is masked") as caught:
        feed(fluid, ids, np.ma.masked_array([[1], [2]], [[False], [True]]))
    assert caught.value.id == "E-array-masked"
    feed(fluid, ids, BAD * 2)


def test_constants_of_programs_keep_their_values(fluid):
    with pytest.raises(penstock.ProgramError, match=r"w\[0\] = 1099511627776 is outside the range of i32"):
        large = fluid.initializer.NumpyArrayInitializer(np.array([2**40]))
        fluid.layers.create_parameter([1], "int32", name="w", default_initializer=large)
    with pytest.raises(penstock.ProgramError, match=r"data\[1\] = 1.5 is not an integer"):
        fluid.create_lod_tensor([[1, 1.5]], [[2]], fluid.CPUPlace())


def test_large_ids_are_accepted_by_lookups(fluid):
    """layers.data declares float32 by default; a float32 holds no odd id beyond 2^24."""
    ids = fluid.layers.data("ids", [1])
    rows = fluid.layers.gather_nd(fluid.layers.ones([2, 2], "float32"), fluid.layers.cast(ids, "int64"))
    with pytest.raises(penstock.ProgramError, match="= 16777217 is not exact in f32"):
        fluid.Executor().run(feed={"ids": np.array([[2**24 + 1]])}, fetch_list=[rows])


def test_an_array_of_the_right_type_is_not_copied():
    array = np.ones((2, 3), "float32")
    assert converted(array, "float32") is array
