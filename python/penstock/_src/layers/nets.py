"""Networks that combine several layers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock._src.ir.variable import Variable
from penstock._src.layers import arithmetic, conv, nn, normalization, pool, reshaping, sequence, unary
from penstock._src.layers.decorators import layer
from penstock._src.layers.helper import require_variables
from penstock._src.parameters.param_attr import ParamAttr

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


@layer()
def simple_img_conv_pool(
    input: Variable,
    num_filters: int,
    filter_size: int | list[int],
    pool_size: int | list[int],
    pool_stride: int | list[int],
    pool_padding: int | list[int] = 0,
    pool_type: str = "max",
    global_pooling: bool = False,
    conv_stride: int | list[int] = 1,
    conv_padding: int | list[int] = 0,
    conv_dilation: int | list[int] = 1,
    conv_groups: int = 1,
    param_attr: ParamAttr | None = None,
    bias_attr: ParamAttr | bool | None = None,
    act: str | None = None,
    use_cudnn: bool = True,
) -> Variable:
    """Convolves images, then pools them.

    Args:
        input: shape [N, C, H, W], float32 or float64.
        filter_size: height and width of a filter.
        pool_size: height and width of the pooling window.
        pool_stride: distance between windows.
        pool_padding: rows and columns of zeros for the pooling.
        global_pooling: the window is the whole image.
        conv_stride: distance between positions of the filter.
        conv_padding: rows and columns of zeros for the convolution.
        conv_dilation: distance between the elements that a filter reads.
        conv_groups: number of groups of channels.
        act: name of an activation, after the convolution.

    Returns:
        Variable: shape [N, num_filters, height, width], same type as `input`.

    Example:
        images = fluid.data('images', [None, 1, 28, 28])
        y = fluid.nets.simple_img_conv_pool(images, num_filters=8, filter_size=5, pool_size=2, pool_stride=2)
        assert y.shape == (-1, 8, 12, 12)
    """
    features = conv.conv2d(
        input,
        num_filters,
        filter_size,
        conv_stride,
        conv_padding,
        conv_dilation,
        conv_groups,
        param_attr,
        bias_attr,
        use_cudnn,
        act,
    )
    return pool.pool2d(features, pool_size, pool_type, pool_stride, pool_padding, global_pooling, use_cudnn)


@layer()
def img_conv_group(
    input: Variable,
    conv_num_filter: Sequence[int],
    pool_size: int | Sequence[int],
    conv_padding: int | Sequence[int] = 1,
    conv_filter_size: int | Sequence[int] = 3,
    conv_act: str | None = None,
    param_attr: ParamAttr | Sequence[Any] | None = None,
    conv_with_batchnorm: bool | Sequence[bool] = False,
    conv_batchnorm_drop_rate: float | Sequence[float] = 0.0,
    pool_stride: int | Sequence[int] = 1,
    pool_type: str = "max",
    use_cudnn: bool = True,
) -> Variable:
    """Applies several convolutions, each with optional batch norm and dropout, then one pooling.

    An argument that may be a list has a value for each convolution, or one value for all.

    Args:
        input (Variable): shape [N, C, H, W], float32 or float64.
        conv_num_filter (list[int]): number of filters of each convolution.
        pool_size (int | list[int]): height and width of the pooling window.
        conv_padding (int | list[int]): padding of the convolutions.
        conv_filter_size (int | list[int]): size of the filters.
        conv_act (str | None): activation of the convolutions.
        param_attr (ParamAttr | list | None): attributes of the weights of all convolutions, or of each.
        conv_with_batchnorm (bool | list[bool]): apply batch norm.
        conv_batchnorm_drop_rate (float | list[float]): probability of dropout after batch norm.
        pool_stride (int | list[int]): distance between windows.

    Returns:
        Variable: shape [N, conv_num_filter[-1], height, width], same type as `input`.

    Raises:
        ValueError: a list does not have one value per convolution.

    Example:
        images = fluid.data('images', [None, 3, 32, 32])
        y = fluid.nets.img_conv_group(images, conv_num_filter=[8, 8], pool_size=2, pool_stride=2, conv_act='relu',
                                      conv_with_batchnorm=True)
    """
    count = len(conv_num_filter)

    def each(value: Any) -> list[Any]:
        if not isinstance(value, (list, tuple)):
            return [value] * count
        if len(value) != count:
            raise ValueError(f"{len(value)} values for {count} convolutions")
        return list(value)

    paddings, sizes, attrs = each(conv_padding), each(conv_filter_size), each(param_attr)
    with_norm, drop_rates = each(conv_with_batchnorm), each(conv_batchnorm_drop_rate)
    out = input
    for i in range(count):
        act = None if with_norm[i] else conv_act
        out = conv.conv2d(
            out, conv_num_filter[i], sizes[i], padding=paddings[i], param_attr=attrs[i], use_cudnn=use_cudnn, act=act
        )
        if with_norm[i]:
            out = normalization.batch_norm(out, act=conv_act)
            if abs(drop_rates[i]) > 1e-5:
                out = nn.dropout(out, drop_rates[i])
    return pool.pool2d(out, pool_size, pool_type, pool_stride, use_cudnn=use_cudnn)


@layer()
def sequence_conv_pool(
    input: Variable,
    num_filters: int,
    filter_size: int,
    param_attr: ParamAttr | None = None,
    act: str | None = "sigmoid",
    pool_type: str = "max",
    bias_attr: ParamAttr | bool | None = None,
) -> Variable:
    """Convolves each sequence, then reduces it to one row.

    Args:
        input (Variable): shape [rows, D] with sequences, float32 or float64.
        num_filters (int): width of the result.
        filter_size (int): number of rows that a filter covers.
        act (str | None): name of an activation, after the convolution.
        pool_type (str): as in sequence_pool.

    Returns:
        Variable: shape [sequences, num_filters], same type as `input`.

    Example:
        x = fluid.data('x', [None, 8], lod_level=1)
        y = fluid.nets.sequence_conv_pool(x, num_filters=4, filter_size=3, act='tanh')
    """
    features = sequence.sequence_conv(
        input, num_filters, filter_size, param_attr=param_attr, bias_attr=bias_attr, act=act
    )
    return sequence.sequence_pool(features, pool_type)


@layer()
def glu(input: Variable, dim: int = -1) -> Variable:
    """Computes a gated linear unit: the first half along an axis times the sigmoid of the second.

    Args:
        input (Variable): any shape with an even extent along the axis; float32 or float64.
        dim (int): the axis; negative: counted from the end.

    Returns:
        Variable: the shape of `input` with half the extent along the axis, same type as `input`.

    Example:
        x = fluid.data('x', [None, 8])
        assert fluid.nets.glu(x).shape == (-1, 4)

    Reference:
        Dauphin et al., Language Modeling with Gated Convolutional Networks, ICML 2017.
    """
    value, gate = reshaping.split(input, num_or_sections=2, dim=dim)
    return arithmetic.elementwise_mul(x=value, y=unary.sigmoid(x=gate))


@layer()
def scaled_dot_product_attention(
    queries: Variable, keys: Variable, values: Variable, num_heads: int = 1, dropout_rate: float = 0.0
) -> Variable:
    """Computes multi-head attention: softmax(queries @ keys.T / sqrt(width of a head)) @ values.

    Args:
        queries (Variable): shape [N, length, D], float32 or float64.
        keys (Variable): shape [N, other length, D], same type as `queries`.
        values (Variable): shape [N, other length, E], same type as `queries`.
        num_heads (int): number of heads, which must divide D and E; with more than one head, each input is projected
            first.
        dropout_rate (float): probability that a weight is dropped.

    Returns:
        Variable: shape [N, length, E], same type as `queries`.

    Raises:
        ValueError: the shapes are incompatible, or `num_heads` does not divide a width.

    Example:
        q, k, v = (fluid.data(name, [2, 5, 8]) for name in 'qkv')
        assert fluid.nets.scaled_dot_product_attention(q, k, v, num_heads=2).shape == (2, 5, 8)

    Reference:
        Vaswani et al., Attention Is All You Need, NIPS 2017.
    """
    for what, var in (("queries", queries), ("keys", keys), ("values", values)):
        require_variables("scaled_dot_product_attention", **{what: var})
        if len(var.shape) != 3:
            raise ValueError(f"{what} must have 3 axes, but its shape is {var.shape}")
    if queries.shape[-1] != keys.shape[-1]:
        raise ValueError(f"queries and keys must have the same width, not {queries.shape[-1]} and {keys.shape[-1]}")
    if keys.shape[-2] != values.shape[-2]:
        raise ValueError(f"keys and values must have the same length, not {keys.shape[-2]} and {values.shape[-2]}")
    for what, var in (("keys", keys), ("values", values)):
        if var.shape[-1] % num_heads != 0:
            raise ValueError(f"the width of {what} ({var.shape[-1]}) must be divisible by num_heads ({num_heads})")
    parts = [queries, keys, values]
    if num_heads > 1:
        projected = [nn.fc(input=part, size=part.shape[-1], num_flatten_dims=2) for part in parts]
        parts = [_split_heads(part, num_heads) for part in projected]
    query, key, value = parts
    scaled = arithmetic.scale(x=query, scale=(keys.shape[-1] // num_heads) ** -0.5)
    product = nn.matmul(x=scaled, y=key, transpose_y=True)
    weights = reshaping.reshape(x=product, shape=[-1, product.shape[-1]], act="softmax")
    weights = reshaping.reshape(x=weights, shape=list(product.shape))
    if dropout_rate:
        weights = nn.dropout(weights, dropout_prob=dropout_rate, is_test=False)
    context = nn.matmul(weights, value)
    return context if num_heads == 1 else _join_heads(context)


def _split_heads(x: Variable, num_heads: int) -> Variable:
    """[batch, length, width] -> [batch, heads, length, width of a head]"""
    batch, length, width = x.shape
    return reshaping.transpose(reshaping.reshape(x, [batch, length, num_heads, width // num_heads]), perm=[0, 2, 1, 3])


def _join_heads(x: Variable) -> Variable:
    x = reshaping.transpose(x, perm=[0, 2, 1, 3])
    batch, length, heads, width = x.shape
    return reshaping.reshape(x, [batch, length, heads * width])
