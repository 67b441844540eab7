"""Bilinear products, products of feature maps, position encodings and similarity masks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock._src.ir.variable import Variable
from penstock._src.layers.decorators import Attrs, layer, op_layer
from penstock._src.layers.helper import LayerHelper

if TYPE_CHECKING:
    from penstock._src.parameters.param_attr import ParamAttr


@layer()
def bilinear_tensor_product(
    x: Variable,
    y: Variable,
    size: int,
    act: str | None = None,
    name: str | None = None,
    param_attr: ParamAttr | None = None,
    bias_attr: ParamAttr | bool | None = None,
) -> Variable:
    """Computes x @ W[i] @ y for each pair of rows and each of `size` learned matrices W[i].

    Args:
        x (Variable): shape [N, m], float32 or float64.
        y (Variable): shape [N, n], same type as `x`.
        size (int): the number of matrices.
        param_attr (ParamAttr): attributes of the matrices, of shape [size, m, n].
        bias_attr (ParamAttr or bool): attributes of the bias, of shape [1, size]; False: no bias.

    Returns:
        Variable: shape [N, size], same type as `x`.

    Raises:
        penstock.ProgramError: the shapes are incompatible.

    Example:
        z = fluid.layers.bilinear_tensor_product(fluid.data('x', [None, 5]), fluid.data('y', [None, 4]), size=10)
    """
    helper = LayerHelper(
        "bilinear_tensor_product", act=act, name=name, param_attr=param_attr, bias_attr=bias_attr
    ).takes(x=x, y=y)
    weight = helper.create_parameter(helper.param_attr, [size, x.shape[1], y.shape[1]], x.dtype)
    out = helper.create_variable_for_type_inference(x.dtype)
    inputs = {"X": x, "Y": y, "Weight": weight}
    if helper.bias_attr:
        inputs["Bias"] = helper.create_parameter(helper.bias_attr, [1, size], x.dtype, is_bias=True)
    helper.append_op("bilinear_tensor_product", inputs, {"Out": out})
    return helper.append_activation(out)


@op_layer("add_position_encoding", fluid_accepts={"input": "float32 float64"}, inputs={"X": "input"})
def add_position_encoding(input: Variable, alpha: float, beta: float, name: str | None = None) -> Attrs:
    """Computes alpha * input + beta * P, where P encodes the position of a word in its text.

    Args:
        input: shape [texts, positions, columns], or [words, columns] with sequences, with an even number of columns.

    Raises:
        penstock.ProgramError: the number of columns is odd.

    Example:
        y = fluid.layers.add_position_encoding(fluid.data('x', [None, 64, 32]), alpha=1.0, beta=1.0)

    Reference:
        A. Vaswani et al.: "Attention is all you need", NIPS 2017.
    """


@op_layer("fsp", fluid_accepts={"x y": "float32 float64"})
def fsp_matrix(x: Variable, y: Variable) -> Attrs:
    """Computes the mean over all positions of the product of each pair of channels of two feature maps.

    Args:
        x: shape [N, m, height, width].
        y: shape [N, n, height, width], same type as `x`.

    Returns:
        Variable: shape [N, m, n], same type as `x`.

    Raises:
        penstock.ProgramError: the images differ in number or size.

    Example:
        z = fluid.layers.fsp_matrix(fluid.data('x', [None, 3, 8, 8]), fluid.data('y', [None, 5, 8, 8]))

    Reference:
        J. Yim, D. Joo, J. Bae, J. Kim: "A gift from knowledge distillation", CVPR 2017.
    """


@op_layer("similarity_focus", fluid_accepts={"input": "float32 float64"}, inputs={"X": "input"})
def similarity_focus(input: Variable, axis: int, indexes: list[int], name: str | None = None) -> Attrs:
    """Computes a mask that marks the largest elements of matrices, at most one in each row and column.

    Each index selects a matrix of `input` along `axis`. In descending order of the matrix's elements, an element is
    marked if its row and column have no mark yet.

    Args:
        input: shape [N, a, b, c].
        axis: the axis that the indexes select from: 1, 2 or 3.
        indexes: one or more indexes.

    Returns:
        Variable: same shape and type as `input`: 1 at the positions that are marked for any of the indexes, for all
        elements along `axis`, and 0 elsewhere.

    Raises:
        ValueError: `axis` is not 1, 2 or 3, or `indexes` is empty.
        TypeError: `input` is not a Variable, or `axis` is not an int, or `indexes` is not a list.

    Example:
        mask = fluid.layers.similarity_focus(fluid.data('x', [None, 3, 2, 2]), axis=1, indexes=[0])

    Reference:
        H. He, J. Lin: "Pairwise word interaction modeling with deep neural networks for semantic similarity
        measurement", NAACL 2016.
    """
    if not isinstance(axis, int) or not isinstance(indexes, list):
        raise TypeError(f"similarity_focus: axis must be an int and indexes a list, not {axis!r} and {indexes!r}")
    if axis not in (1, 2, 3):
        raise ValueError(f"similarity_focus: axis must be 1, 2 or 3, not {axis}")
    if not indexes:
        raise ValueError("similarity_focus: indexes must not be empty")
    return None
