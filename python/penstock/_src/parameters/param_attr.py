"""ParamAttr, which describes how a layer's parameter is named, initialised and trained."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock._src.base.doc_texts import with_texts
from penstock._src.ir.types import require_finite
from penstock._src.parameters.initializer import Constant, Initializer, Xavier
from penstock._src.parameters.regularizer import WeightDecayRegularizer

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, ClassVar

    from penstock._src.ir.variable import Variable
    from penstock._src.parameters.initializer import ConstantInitializer, NormalInitializer, NumpyArrayInitializer


_PARAMETER = {
    "parameter": """name (str | None): its name; None: a generated one.
initializer (Initializer | None): its initial value; None: the layer's default.
learning_rate (float): factor of the optimizer's learning rate.
regularizer (WeightDecayRegularizer | None): takes precedence over the optimizer's regularizer.
trainable (bool): whether an optimizer updates it.
do_model_average (bool): whether ModelAverage averages it."""
}


@with_texts(_PARAMETER)
class ParamAttr:
    """Describes a parameter of a layer: its name, initial value and training.

    Args:
        {parameter}

    Raises:
        TypeError: an argument has the wrong type.

    Example:
        attr = fluid.ParamAttr(name='w', initializer=fluid.initializer.Normal(0.0, 0.1), learning_rate=0.5)
        y = fluid.layers.fc(fluid.data('x', [None, 4]), 2, param_attr=attr)
    """

    def __init__(
        self,
        name: str | None = None,
        initializer: Initializer | None = None,
        learning_rate: float = 1.0,
        regularizer: WeightDecayRegularizer | None = None,
        trainable: bool = True,
        do_model_average: bool = True,
    ) -> None:
        if name is not None and not isinstance(name, str):
            raise TypeError(f"ParamAttr: the name must be a str, not {name!r}")
        require_finite("ParamAttr", learning_rate=learning_rate)
        for what, flag in (("trainable", trainable), ("do_model_average", do_model_average)):
            if not isinstance(flag, bool):
                raise TypeError(f"ParamAttr: {what} must be True or False, not {flag!r}")
        if regularizer is not None and not isinstance(regularizer, WeightDecayRegularizer):
            raise TypeError(f"ParamAttr: regularizer must be an L1Decay or L2Decay, not {regularizer!r}")
        if initializer is not None and not isinstance(initializer, Initializer):
            raise TypeError(f"ParamAttr: initializer must be an Initializer, not {initializer!r}")
        self.name = name
        self.initializer = initializer
        self.learning_rate = learning_rate
        self.regularizer = regularizer
        self.trainable = trainable
        self.do_model_average = do_model_average

    @staticmethod
    def _to_attr(arg: Any) -> Any:
        """Converts any value that a layer accepts as param_attr to a ParamAttr or a list of ParamAttrs; returns False
        for no parameter."""
        if arg is None:
            return ParamAttr()
        if isinstance(arg, (list, tuple)):
            return [ParamAttr._to_attr(one) for one in arg]
        if isinstance(arg, ParamAttr):
            return arg
        if isinstance(arg, str):
            return ParamAttr(name=arg)
        if isinstance(arg, Initializer):
            return ParamAttr(initializer=arg)
        if isinstance(arg, WeightDecayRegularizer):
            return ParamAttr(regularizer=arg)
        if isinstance(arg, bool):
            return ParamAttr() if arg else False
        raise TypeError(f"{type(arg).__name__} cannot describe a parameter")

    def _completed(
        self,
        name: Callable[[], str],
        initializer: ConstantInitializer | NormalInitializer | NumpyArrayInitializer | None,
        is_bias: bool,
    ) -> ParamAttr | WeightNormParamAttr:
        """Returns a copy in which name and initializer are set."""
        attr = type(self).__new__(type(self))  # copy.copy costs ten times as much
        attr.__dict__.update(self.__dict__)
        if attr.name is None:
            attr.name = name()
        if attr.initializer is None:
            attr.initializer = initializer or (Constant(0.0) if is_bias else Xavier())
        return attr

    def _to_kwargs(self, with_initializer: bool = False) -> dict[str, Any]:
        kwargs: dict[str, Any] = {
            "name": self.name,
            "optimize_attr": {"learning_rate": self.learning_rate},
            "regularizer": self.regularizer,
            "trainable": self.trainable,
            "do_model_average": self.do_model_average,
        }
        if with_initializer:
            kwargs["initializer"] = self.initializer
        return kwargs


@with_texts(_PARAMETER)
class WeightNormParamAttr(ParamAttr):
    """Describes a parameter that is the product of a direction and a length, which are trained separately.

    The length starts as that of the initial value. With several pservers this needs a seed, of the initializer or
    `random_seed` of the startup program, because the direction may be on another pserver.

    Args:
        dim (int | None): the axis along which each slice has its own length; None: one length for the whole parameter.
        {parameter}

    Example:
        y = fluid.layers.fc(fluid.data('x', [None, 4]), 2, param_attr=fluid.WeightNormParamAttr(dim=None))

    Reference:
        Salimans and Kingma, Weight Normalization, NIPS 2016.
    """

    params_with_weight_norm: ClassVar[list[Variable]] = []  # all of this kind, in the order of their creation

    def __init__(
        self,
        dim: int | None = None,
        name: str | None = None,
        initializer: Initializer | None = None,
        learning_rate: float = 1.0,
        regularizer: WeightDecayRegularizer | None = None,
        trainable: bool = True,
        do_model_average: bool = False,
    ) -> None:
        super().__init__(name, initializer, learning_rate, regularizer, trainable, do_model_average)
        self.dim = dim
