"""Names of imperative mode: importing one and deriving from one works, a use of one raises the one error."""

import pytest

REFUSED = "there is no imperative mode here; build a Program"


@pytest.mark.parametrize(
    "statement",
    [
        "import penstock.fluid.dygraph.nn as nn; nn.Linear",
        "from penstock.fluid.dygraph import to_variable, Layer, Linear, Conv2D, DataParallel, no_grad, guard, "
        "declarative",
        "from penstock.fluid.dygraph.base import to_variable, no_grad, guard",
        "from penstock.fluid.dygraph.nn import Conv2D, Pool2D, FC",
        "from penstock.fluid.dygraph.parallel import DataParallel, ParallelEnv, prepare_context",
        "from penstock.fluid.dygraph.jit import TracedLayer, declarative",
        "from penstock.fluid.dygraph.dygraph_to_static import ProgramTranslator",
        "from penstock.fluid.dygraph.dygraph_to_static.program_translator import ProgramTranslator",
        "from penstock.fluid.dygraph.learning_rate_scheduler import LearningRateDecay",
        "from penstock.fluid.framework import dygraph_only, _dygraph_tracer, ParamBase, ComplexVariable",
        "from penstock.fluid.core import VarBase",
        "from penstock.fluid import ComplexVariable",
        "from penstock.fluid.dygraph import enabled; assert not enabled()",
    ],
)
def test_names_can_be_imported(fluid, statement):
    exec(statement, {})


def test_classes_support_inheritance_and_isinstance(fluid):
    dygraph = fluid.dygraph

    class Net(dygraph.Layer):
        def __init__(self):
            super().__init__("net")
            self.fc = dygraph.Linear(3, 4)

        @dygraph.no_grad
        def eval(self):
            """Evaluates."""

        @dygraph.declarative
        def forward(self, x):
            return self.fc(x)

    class Deeper(Net):
        pass

    assert Net.eval.__doc__ == "Evaluates." and issubclass(Deeper, dygraph.Layer)
    assert not isinstance(3, dygraph.Layer) and not isinstance(fluid.data("x", [1]), fluid.core.VarBase)
    for use, name in (
        (Net, "Net, derived from fluid.dygraph.layers.Layer"),
        (Deeper, "Deeper"),
        (lambda: Net.eval(None), "no_grad"),
        (lambda: Net.forward(None, 1), "declarative"),
    ):
        with pytest.raises(NotImplementedError, match=name + ".*" + REFUSED):
            use()


@pytest.mark.parametrize(
    "use",
    [
        "fluid.dygraph.guard()",
        "fluid.dygraph.to_variable([1])",
        "fluid.dygraph.Linear(3, 4)",
        "fluid.dygraph.nn.Conv2D(1, 2, 3)",
        "fluid.dygraph.no_grad()",
        'fluid.dygraph.save_dygraph({}, "x")',
        "fluid.dygraph.ProgramTranslator.get_instance()",
        "fluid.core.VarBase()",
        "fluid.ComplexVariable(1, 2)",
        "fluid.dygraph.TracedLayer.trace",
        "fluid.enable_dygraph()",
        "fluid.enable_imperative()",
        "fluid.dygraph.base.enable_dygraph()",
        "fluid.framework.dygraph_only(len)([])",
    ],
)
def test_using_imperative_names_raises(fluid, use):
    with pytest.raises(NotImplementedError, match=REFUSED):
        exec(use, {"fluid": fluid})
    fluid.disable_dygraph()


def test_names_that_fluid_lacks_do_not_exist(fluid):
    with pytest.raises(ImportError, match="cannot import name .Linnear."):
        from penstock.fluid.dygraph import Linnear  # noqa: F401
    assert not hasattr(fluid.dygraph, "__wrapped__") and not hasattr(fluid.dygraph.nn, "Linnear")


def test_parallel_env_reads_the_trainer_environment(fluid, monkeypatch):
    for name, value in dict(
        PADDLE_TRAINERS_NUM="2",
        PADDLE_TRAINER_ID="1",
        PADDLE_TRAINER_ENDPOINTS="a:1,b:2",
        PADDLE_CURRENT_ENDPOINT="b:2",
    ).items():
        monkeypatch.setenv(name, value)
    env = fluid.dygraph.ParallelEnv()
    assert (env.nranks, env.local_rank, env.trainer_endpoints, env.current_endpoint) == (2, 1, ["a:1", "b:2"], "b:2")
