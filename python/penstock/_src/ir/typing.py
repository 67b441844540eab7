"""Types that annotations name. Only type checkers import this module."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Optional, Union

import numpy
from numpy.typing import ArrayLike, NDArray

from penstock._penstock import LoDTensor, LoDTensorArray
from penstock._src.ir.registry import Place as AnyPlace
from penstock._src.ir.types import CPUPlace, CUDAPinnedPlace, CUDAPlace
from penstock._src.ir.variable import Variable

Array = NDArray[Any]  # of any element type
Dtype = Union[str, type, "numpy.dtype[Any]", int]  # 'float32', numpy.float32, or a VarType
Place = Union[CPUPlace, CUDAPlace, CUDAPinnedPlace, AnyPlace]
SlotArgs = Mapping[str, Union[Variable, str, None, Sequence[Union[Variable, str]]]]  # by the slots of an op
Feed = Mapping[str, Union[ArrayLike, LoDTensor, LoDTensorArray]]  # by the names of variables
ParamGrads = Sequence[tuple[Variable, Optional[Variable]]]  # parameters and their gradients
Attrs = Mapping[str, Any]  # of an op: the registry in C++ checks the values
