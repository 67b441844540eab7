# Written by tools/dev/gen_stubs.py.
# mypy: disable-error-code="override"
from typing import Any, Callable, Iterable, Iterator

from penstock.fluid.initializer import ConstantInitializer as Constant
from penstock.fluid.layer_helper import LayerHelper as LayerHelper
from penstock.fluid.layer_helper import require_variables as require_variables
from penstock.fluid.layers.arithmetic import reduce_mean as reduce_mean
from penstock.fluid.layers.arithmetic import reduce_sum as reduce_sum
from penstock.fluid.layers.control_flow import equal as equal
from penstock.fluid.layers.loss import one_hot as one_hot
from penstock.fluid.layers.loss import softmax_with_cross_entropy as softmax_with_cross_entropy
from penstock.fluid.layers.loss import square_error_cost as square_error_cost
from penstock.fluid.layers.nn import matmul as matmul
from penstock.fluid.layers.nn import reshape as reshape
from penstock.fluid.layers.nn import transpose as transpose
from penstock.fluid.layers.ops import square as square
from penstock.fluid.layers.shaping import expand as expand
from penstock.fluid.param_attr import ParamAttr as ParamAttr
from penstock.fluid.variable import Variable as Variable

def bpr_loss(input: Variable, label: Variable, name: str | None = ...) -> Variable: ...
def center_loss(input: Variable, label: Variable, num_classes: int, alpha: Any, param_attr: ParamAttr, update_center: bool = ...) -> Variable: ...
def dice_loss(input: Variable, label: Variable, epsilon: float = ..., name: str | None = ...) -> Variable: ...
def element_types(**types: Any) -> Any: ...
def float_attr(value: Any) -> Any: ...
def mean_iou(input: Variable, label: Variable, num_classes: int) -> tuple[Any, ...]: ...
def mse_loss(input: Variable, label: Variable) -> Variable: ...
def npair_loss(anchor: Variable, positive: Variable, labels: Variable, l2_reg: float = ...) -> Variable: ...
def teacher_student_sigmoid_loss(input: Variable, label: Variable, soft_max_up_bound: float = ..., soft_max_lower_bound: float = ...) -> Variable: ...
__all__: list[str]
