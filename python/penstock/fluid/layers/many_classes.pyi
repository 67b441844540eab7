# Written by tools/dev/gen_stubs.py.
# mypy: disable-error-code="override"
from typing import Any, Callable, Iterable, Iterator

from penstock.fluid.initializer import NumpyArrayInitializer as NumpyArrayInitializer
from penstock.fluid.layer_helper import LayerHelper as LayerHelper
from penstock.fluid.layer_helper import require_rank as require_rank
from penstock.fluid.param_attr import ParamAttr as ParamAttr
from penstock.fluid.variable import Variable as Variable

def element_types(**types: Any) -> Any: ...
def hsigmoid(input: Variable, label: Variable, num_classes: int, param_attr: ParamAttr | None = ..., bias_attr: ParamAttr | bool | None = ..., name: str | None = ..., path_table: Variable | None = ..., path_code: Variable | None = ..., is_custom: bool = ..., is_sparse: bool = ...) -> Variable: ...
def nce(input: Variable, label: Variable, num_total_classes: int, sample_weight: Variable | None = ..., param_attr: ParamAttr | None = ..., bias_attr: ParamAttr | bool | None = ..., num_neg_samples: int | None = ..., name: str | None = ..., sampler: str = ..., custom_dist: list[float] | None = ..., seed: int = ..., is_sparse: bool = ...) -> Variable: ...
def sampled_softmax_with_cross_entropy(logits: Variable, label: Variable, num_samples: int, num_true: int = ..., remove_accidental_hits: bool = ..., use_customized_samples: bool = ..., customized_samples: Variable | None = ..., customized_probabilities: Variable | None = ..., seed: int = ...) -> Variable: ...
__all__: list[str]
