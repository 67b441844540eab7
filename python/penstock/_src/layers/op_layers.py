"""Layers made from an op's schema alone."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from penstock._src.ir.op_protos import OpProtoHolder
from penstock._src.ir.types import VarType, to_dtype
from penstock._src.ir.variable import Variable
from penstock._src.layers.helper import LayerHelper

if TYPE_CHECKING:
    from typing import Any


def generate_layer_fn(op_type: str) -> Callable[..., Variable]:
    """Returns a layer for an op with one output that is a result; others must be intermediate.

    The layer takes the op's inputs as positional arguments in the order of the schema, or by keyword; the result as a
    keyword, otherwise it creates it; attributes by keyword; and `name` and `act`. A slot such as ScaleTensor has the
    keyword scale_tensor. Where an input and an attribute have the same keyword, Variables are the input.

    Args:
        op_type (str): the type of the op.

    Returns:
        function: the layer, which returns a Variable. It raises ValueError if an input is not a Variable, or if inputs
            differ in element type, and TypeError if there are more positional arguments than inputs.

    Raises:
        ValueError: the op does not exist, has several results, or has one that is a list of variables.

    Example:
        from penstock.fluid.layers.layer_function_generator import generate_layer_fn
        y = generate_layer_fn('scale')(fluid.data('x', [2, 3]), scale=2.0)
        assert y.op.type == 'scale' and y.op.attr('scale') == 2.0
    """
    proto = OpProtoHolder.instance().get_op_proto(op_type)
    attrs = {attr.name for attr in proto.attrs}
    results = [slot for slot in proto.outputs if not slot.intermediate]
    if len(results) != 1 or any(slot.duplicable for slot in proto.outputs):
        raise ValueError(f"generate_layer_fn: op {op_type} must have one result, a single variable")

    def layer(*args: Any, name: str | None = None, act: str | None = None, **kwargs: Any) -> Variable:
        left, given = list(args), {}
        for slot in proto.inputs:
            keyword = _keyword(slot.name)
            is_attr = keyword in attrs and not any(isinstance(var, Variable) for var in _listed(kwargs.get(keyword)))
            by_keyword = [] if is_attr else _listed(kwargs.pop(keyword, None))
            given[slot.name] = by_keyword or _listed(left.pop(0) if left else None)
        if left:
            raise TypeError(f"{op_type}: {len(left)} positional arguments too many")
        dtype = _common_dtype(op_type, given, kwargs.get("dtype"))
        helper = LayerHelper(op_type, name=name, act=act)
        made = {slot.name: _listed(kwargs.pop(_keyword(slot.name), None)) for slot in proto.outputs}
        for name_of, outs in made.items():
            made[name_of] = outs or [helper.create_variable_for_type_inference(dtype)]
        helper.append_op(op_type, given, made, kwargs)
        return helper.append_activation(made[results[0].name][0])

    layer.__name__ = op_type
    layer.__doc__ = proto.comment
    return layer


def _keyword(slot: str) -> str:
    """ScaleTensor -> scale_tensor."""
    return re.sub("([a-z0-9])([A-Z])", r"\1_\2", re.sub("(.)([A-Z][a-z]+)", r"\1_\2", slot)).lower()


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [] if value is None else [value]


def _common_dtype(op_type: str, given: dict[str, list[Any]], otherwise: Any) -> VarType:
    every = [var for variables in given.values() for var in variables]
    for var in every:
        if not isinstance(var, Variable):
            raise ValueError(f"{op_type}: an input must be a Variable, not {var!r}")
        if var.dtype != every[0].dtype:
            raise ValueError(
                f"{op_type}: its inputs must have one element type, but {every[0].name} has {every[0].dtype.name} "
                f"and {var.name} has {var.dtype.name}"
            )
    return every[0].dtype if every else to_dtype(otherwise or VarType.FP32)
