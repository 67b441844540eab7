"""base/same_arguments.py: a method that passes its arguments on shows those of the method that takes them."""

import inspect

import pytest
from penstock._src.base.same_arguments import arguments_of


class Machine:
    def run(self, load: float, speed: int = 3, *, quietly: bool = False) -> str:
        """Runs."""
        return f"{load} at {speed}{' quietly' if quietly else ''}"


class Guarded:
    @arguments_of(Machine.run)
    def run(self, load: float, *rest, **named) -> list:
        """Runs it with a guard."""
        return ["guarded", Machine().run(load, *rest, **named)]


def test_a_method_has_the_arguments_of_the_other_and_its_own_result_and_docstring():
    signature = inspect.signature(Guarded.run)
    assert list(signature.parameters.values()) == list(inspect.signature(Machine.run).parameters.values())
    assert signature.return_annotation is list and Guarded.run.__doc__ == "Runs it with a guard."
    assert Guarded.run.__annotations__ == {"load": float, "speed": int, "quietly": bool, "return": list}


def test_arguments_arrive_by_position_and_by_name():
    assert Guarded().run(1.5) == ["guarded", "1.5 at 3"]
    assert Guarded().run(1.5, 4, quietly=True) == ["guarded", "1.5 at 4 quietly"]
    assert Guarded().run(load=2.5, speed=5) == ["guarded", "2.5 at 5"]
    with pytest.raises(TypeError, match="unexpected keyword argument 'sped'"):
        Guarded().run(1.5, sped=4)


WRAPPERS = [
    "optimizer.RecomputeOptimizer",
    "optimizer.DGCMomentumOptimizer",
    "contrib.mixed_precision.decorator.OptimizerWithMixedPrecision",
    "incubate.fleet.collective.CollectiveOptimizer",
]


@pytest.mark.parametrize(
    "method",
    ["optimizer.PipelineOptimizer.minimize"]
    + [f"{wrapper}.{method}" for wrapper in WRAPPERS for method in ("minimize", "backward")],
)
def test_wrappers_of_optimizers_have_the_arguments_of_optimizer(fluid, method):
    from penstock.fluid.incubate.fleet import collective as collective

    wrapped = getattr(fluid.optimizer.Optimizer, method.rpartition(".")[2])
    parameters = inspect.signature(eval(f"fluid.{method}")).parameters
    assert list(parameters) == list(inspect.signature(wrapped).parameters)
    assert [one.default for one in parameters.values() if one.name != "loss"][1:] == [None] * (len(parameters) - 2)
