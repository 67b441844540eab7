"""Python's own errors about None and other types do not reach users: they name a value inside Penstock. The public
functions name themselves, the argument and what was given."""

import inspect
import pickle

import numpy as np
import penstock
import pytest
from penstock._src.base.bad_arguments import guarded


@pytest.mark.parametrize(
    "call, text",
    [
        (lambda fluid, x: fluid.data("z", None), r"^data: shape must be list\[int \| None\], not None"),
        (lambda fluid, x: fluid.data("z", 4), r"^data: shape must be list\[int \| None\], not 4"),
        (lambda fluid, x: fluid.layers.reshape(x, None), "^reshape: shape must be .*, not None"),
        (lambda fluid, x: fluid.layers.slice(x, None, [0], [1]), r"^slice: axes must be list\[int\], not None"),
        (lambda fluid, x: fluid.layers.split(x, None), "^split: num_or_sections must be .*, not None"),
        (lambda fluid, x: fluid.layers.expand(x, None), "^expand: expand_times must be .*, not None"),
        (
            lambda fluid, x: fluid.DataFeeder([x], fluid.CPUPlace()).feed(None),
            "^DataFeeder.feed: iterable must be Iterable, not None",
        ),
        (lambda fluid, x: fluid.DataFeeder(None, fluid.CPUPlace()), "^DataFeeder: feed_list must be a list, not None"),
        (lambda fluid, x: fluid.io.save_vars(None, "d", vars=3), r"^save_vars: vars must be .*, not 3"),
        (
            lambda fluid, x: fluid.io.save_inference_model(None, ["x"], [x], None),
            "^save_inference_model: dirname must be str, not None",
        ),
        (
            lambda fluid, x: fluid.Program.parse_from_string(None),
            "^Program.parse_from_string: .* must be bytes, not None",
        ),
        (lambda fluid, x: setattr(fluid.Program(), "random_seed", 2**70), "^Program.random_seed cannot be 118059162"),
        (
            lambda fluid, x: fluid.clip.GradientClipByNorm(None),
            "^GradientClipByNorm: clip_norm must be a number, not None",
        ),
        (
            lambda fluid, x: penstock.transpile(None, None, "a:1"),
            r"^transpile: main must be Program \| list\[Program\], not None",
        ),
    ],
)
def test_the_error_names_function_argument_and_value(fluid, call, text):
    with pytest.raises(TypeError, match=text) as caught:
        call(fluid, fluid.data("x", [None, 4]))
    assert isinstance(caught.value, penstock.ProgramError) and caught.value.id == "E-argument-type"
    assert caught.value.__cause__ is None and caught.value.__suppress_context__


def test_none_for_a_required_layer_argument_has_a_clear_error(fluid):
    x = fluid.data("x", [None, 4])
    own = (
        "'NoneType'",
        "not iterable",
        "has no len",
        "not subscriptable",
        "unsupported operand",
        "not supported between",
    )
    for name in fluid.layers.__all__:
        layer = getattr(fluid.layers, name)
        if inspect.isclass(layer):
            continue
        required = [
            one
            for one in inspect.signature(layer).parameters.values()
            if one.default is one.empty and one.kind is one.POSITIONAL_OR_KEYWORD
        ]
        for i in range(len(required)):
            with fluid.program_guard(fluid.default_main_program().clone(), fluid.Program()):
                try:
                    layer(*[x] * i, None, *[x] * (len(required) - i - 1))
                except (TypeError, ValueError, RuntimeError, NotImplementedError) as error:
                    assert not any(part in str(error) for part in own), (name, required[i].name, str(error))


def test_errors_of_user_functions_are_unchanged(fluid):
    def mine():
        return len(None)

    x = fluid.data("x", [1])
    with pytest.raises(TypeError, match=r"object of type 'NoneType' has no len\(\)") as caught:
        fluid.layers.cond(fluid.layers.less_than(x, x), mine, mine)
    assert not isinstance(caught.value, penstock.ProgramError)


def test_a_guarded_function_keeps_its_identity_and_signature(fluid):
    fc = fluid.layers.fc
    assert fc is fluid.layers.nn.fc and guarded(fc) is fc
    assert fc.__name__ == "fc" and list(inspect.signature(fc).parameters)[:2] == ["input", "size"]
    assert pickle.loads(pickle.dumps(fc)) is fc


def test_program_arguments_must_be_programs(fluid):
    main, startup = fluid.default_main_program(), fluid.default_startup_program()
    for wrong in (None, 3):
        for call in (
            lambda: fluid.program_guard(wrong).__enter__(),
            lambda: fluid.framework.switch_main_program(wrong),
            lambda: fluid.framework.switch_startup_program(wrong),
        ):
            with pytest.raises(TypeError, match="takes a Program, not"):
                call()
    with pytest.raises(TypeError, match="program_guard takes a Program, not int"):
        fluid.program_guard(fluid.Program(), 3).__enter__()
    assert fluid.default_main_program() is main and fluid.default_startup_program() is startup


def test_scope_arguments_must_be_scopes(fluid):
    exe, x = fluid.Executor(), fluid.data("x", [None, 2])
    feed = {"x": np.ones((1, 2), "float32")}
    for wrong in (None, 3, fluid.Program()):
        with pytest.raises(TypeError, match="scope_guard takes a Scope, not") as caught:
            with fluid.scope_guard(wrong):
                pass
        assert caught.value.id == "E-argument-type"
    for wrong in (3, "scope"):
        with pytest.raises(TypeError, match="Executor.run: scope must be a Scope, not"):
            exe.run(feed=feed, fetch_list=[x], scope=wrong)
    assert exe.run(feed=feed, fetch_list=[x], scope=None)[0].tolist() == [[1, 1]]
