"""Layers that select, replace and find parts of tensors by their indices."""

from __future__ import annotations

from typing import TYPE_CHECKING, overload

from penstock._src.ir.types import to_dtype
from penstock._src.ir.variable import Variable
from penstock._src.layers.decorators import Attrs, layer, op_layer, op_layer_with_results
from penstock._src.layers.helper import LayerHelper, require_kind
from penstock._src.layers.slicing import slice as slice_layer
from penstock._src.layers.tensor import zeros

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Literal


@op_layer("gather_nd", inputs={"X": "input"})
def gather_nd(input: Variable, index: Variable, name: str | None = None) -> Attrs:
    """Gathers slices of a tensor by their leading indices.

    Args:
        index: the first n indices of each slice, shape [..., n], int32 or int64; n is at most the rank of `input`. An
            index that is out of range is an error when the program runs.

    Returns:
        Variable: shape index.shape[:-1] + input.shape[n:], same type as `input`.

    Raises:
        penstock.ProgramError: n is unknown or above the rank of `input`.

    Example:
        x = fluid.data('x', [3, 4])
        index = fluid.data('index', [None, 1], 'int64')
        rows = fluid.layers.gather_nd(x, index)     # shape [-1, 4]
    """


@op_layer("scatter", inputs={"X": "input", "Ids": "index"})
def scatter(
    input: Variable, index: Variable, updates: Variable, name: str | None = None, overwrite: bool = True
) -> Attrs:
    """Replaces rows of a tensor by updates, or by the sums of their updates.

    Args:
        input: at least 1 axis.
        index: the row numbers, shape [n] or [n, 1], int32 or int64.
        updates: shape [n] + input.shape[1:], same type as `input`.
        overwrite: True: a row is replaced by its last update; False: by the sum of its updates.

    Returns:
        Variable: same shape and type as `input`; rows that are not in `index` keep their values.

    Example:
        x = fluid.layers.zeros([4, 2], 'float32')
        rows = fluid.layers.assign(np.array([3, 1], 'int64'))
        y = fluid.layers.scatter(x, rows, fluid.layers.ones([2, 2], 'float32'))
    """


@op_layer("scatter_nd_add", inputs={"X": "ref"})
def scatter_nd_add(ref: Variable, index: Variable, updates: Variable, name: str | None = None) -> Attrs:
    """Adds updates to slices of a tensor, which are selected by their leading indices.

    Args:
        index: the first n indices of each slice, shape [..., n], int32 or int64.
        updates: shape index.shape[:-1] + ref.shape[n:], same type as `ref`.

    Raises:
        ValueError: the types of `ref` and `updates` differ.

    Example:
        ref = fluid.data('ref', [3, 4])
        index = fluid.data('index', [None, 2], 'int64')
        y = fluid.layers.scatter_nd_add(ref, index, fluid.data('updates', [None]))
    """
    if ref.dtype != updates.dtype:
        raise ValueError(f"scatter_nd_add: ref is {ref.dtype.name}, but updates is {updates.dtype.name}")
    return None


@layer()
def scatter_nd(index: Variable, updates: Variable, shape: Sequence[Any], name: str | None = None) -> Variable:
    """Adds updates to slices of a tensor of zeros, which are selected by their leading indices.

    Args:
        index (Variable): the first n indices of each slice, shape [..., n], int32 or int64.
        updates (Variable): shape index.shape[:-1] + shape[n:]; float32, float64, int32 or int64.
        shape (list): the shape of the result.

    Returns:
        Variable: shape `shape`, same type as `updates`.

    Raises:
        penstock.ProgramError: the shapes are incompatible.

    Example:
        index = fluid.data('index', [None, 1], 'int64')
        counts = fluid.layers.scatter_nd(index, fluid.data('updates', [None]), [10])
    """
    LayerHelper("scatter_nd", name=name).takes(index=index, updates=updates)
    return scatter_nd_add(zeros(shape, updates.dtype), index, updates, name)


@op_layer(
    "index_select",
    fluid_accepts={"input": "int32 int64 float32 float64", "index": "int32 int64"},
    inputs={"X": "input"},
)
def index_select(input: Variable, index: Variable, dim: int = 0) -> Attrs:
    """Selects slices of a tensor along one axis by their indices.

    Args:
        input: at least 1 axis.
        index: the indices, shape [n].
        dim: the axis; negative: counted from the end.

    Returns:
        Variable: the shape of `input` with extent n at `dim`, same type as `input`.

    Raises:
        penstock.ProgramError: `input` has no axis `dim`, or `index` is not a vector.

    Example:
        x = fluid.data('x', [None, 5])
        columns = fluid.layers.assign(np.array([4, 0], 'int64'))
        y = fluid.layers.index_select(x, columns, dim=1)    # shape [-1, 2]
    """


@op_layer("index_sample", fluid_accepts={"x": "int32 int64 float32 float64", "index": "int32 int64"})
def index_sample(x: Variable, index: Variable) -> Attrs:
    """Selects elements of each row by the row's own indices.

    Args:
        x: shape [rows, columns].
        index: the column indices, shape [rows, n].

    Returns:
        Variable: shape [rows, n], same type as `x`: element j of row i is x[i, index[i, j]].

    Raises:
        penstock.ProgramError: `x` or `index` is not a matrix, or they differ in the number of rows.

    Example:
        scores = fluid.data('scores', [None, 10])
        label = fluid.data('label', [None, 1], 'int64')
        of_label = fluid.layers.index_sample(scores, label)
    """


@layer("multiplex", fluid_accepts={"index": "int32 int64", "inputs": "int32 int64 float32 float64"})
def multiplex(inputs: Sequence[Any], index: Variable) -> Variable:
    """Selects each row from one of several tensors.

    Args:
        inputs (list): two or more Variables of one shape, [n, ...], and one type.
        index (Variable): the position in `inputs` of the tensor that provides the row, shape [n, 1].

    Returns:
        Variable: same shape and type as each of `inputs`.

    Raises:
        TypeError: `inputs` is not a list of Variables, or an argument has an unsupported element type.
        ValueError: `inputs` has fewer than two Variables.
        penstock.ProgramError: the shapes of `inputs` differ.

    Example:
        a, b = fluid.data('a', [None, 3]), fluid.data('b', [None, 3])
        y = fluid.layers.multiplex([a, b], fluid.data('which', [None, 1], 'int32'))
    """
    require_kind("multiplex", list, inputs=inputs)
    helper = LayerHelper("multiplex", input=inputs)
    inputs = helper.multiple_input()
    if len(inputs) < 2:
        raise ValueError(f"multiplex: inputs must hold at least 2 Variables, not {len(inputs)}")
    out = helper.create_variable_for_type_inference(inputs[0].dtype)
    helper.append_op("multiplex", {"X": inputs, "Ids": index}, {"Out": out})
    return out


@op_layer("where_index", prefix="where_index")
def where(condition: Variable) -> Attrs:
    """Returns the indices of the elements that are true or nonzero.

    Args:
        condition: at least 1 axis.

    Returns:
        Variable: shape [number of such elements, rank of `condition`], int64: a row of indices for each element.

    Raises:
        penstock.ProgramError: `condition` has no axes.

    Example:
        x = fluid.data('x', [None, 3])
        places = fluid.layers.where(x > fluid.layers.zeros_like(x))     # shape [-1, 2]
    """


@overload
def nonzero(input: Variable, as_tuple: Literal[False] = False) -> Variable: ...
@overload
def nonzero(input: Variable, as_tuple: bool) -> Variable | tuple[Variable, ...]: ...
@layer()
def nonzero(input: Variable, as_tuple: bool = False) -> Variable | tuple[Variable, ...]:
    """Returns the indices of the elements that are nonzero.

    Args:
        input (Variable): at least 1 axis; bool, float32, float64, int32 or int64.
        as_tuple (bool): whether to return a separate result for each axis.

    Returns:
        Variable | tuple[Variable]: the result of `where`, int64; with `as_tuple`, a tuple of its columns, each of shape
        [number of such elements, 1].

    Raises:
        penstock.ProgramError: `input` has no axes.

    Example:
        rows, columns = fluid.layers.nonzero(fluid.data('x', [3, 4]), as_tuple=True)
    """
    found = where(input)
    rank = len(input.shape)
    if not as_tuple:
        return found
    if rank == 1:
        return (found,)
    return tuple(slice_layer(found, axes=[rank - 1], starts=[i], ends=[i + 1]) for i in range(rank))


@op_layer_with_results("unique", "Out Index", fluid_accepts={"x": "int32 int64 float32 float64"})
def unique(x: Variable, dtype: str = "int32") -> Attrs:
    """Finds the unique elements of a vector.

    Args:
        x: shape [n].
        dtype: type of the indices, int32 or int64.

    Returns:
        tuple: (out, index). `out`, shape [number of unique elements], same type as `x`, holds each element once, in the
        order of first occurrence; `index`, shape [n], of type `dtype`, satisfies x[i] == out[index[i]].

    Raises:
        penstock.ProgramError: `x` is not a vector, or `dtype` is not an integer type.

    Example:
        ids = fluid.data('ids', [None], 'int64')
        different, index = fluid.layers.unique(ids)
    """
    return {"dtype": int(to_dtype(dtype))}


@op_layer_with_results(
    "unique_with_counts", "Out Index Count", fluid_accepts={"x": "int32 int64 float32 float64"}, like=unique
)
def unique_with_counts(x: Variable, dtype: str = "int32") -> Attrs:
    """Finds the unique elements of a vector and counts how often each occurs.

    Args:
        dtype: type of the indices and counts, int32 or int64.

    Returns:
        tuple: (out, index, count). The first two are the results of `unique`; `count` has the shape of `out` and type
        `dtype`.

    Example:
        ids = fluid.data('ids', [None], 'int64')
        different, index, count = fluid.layers.unique_with_counts(ids)
    """
    return {"dtype": int(to_dtype(dtype))}


@op_layer("shard_index", fluid_accepts={"input": "int64"}, inputs={"X": "input"}, stop_gradient=True)
def shard_index(input: Variable, index_num: int, nshards: int, shard_id: int, ignore_value: int = -1) -> Attrs:
    """Converts global indices to indices within one shard.

    Args:
        input: the global indices in [0, index_num), any shape.
        nshards: the number of shards; each holds ceil(index_num / nshards) consecutive indices.
        shard_id: the shard, in [0, nshards).
        ignore_value: replaces the indices of other shards.

    Raises:
        ValueError: `shard_id` is not in [0, nshards).

    Example:
        label = fluid.data('label', [None, 1], 'int64')
        mine = fluid.layers.shard_index(label, index_num=20, nshards=2, shard_id=0)
    """
    if not 0 <= shard_id < nshards:
        raise ValueError(f"shard_index: shard_id ({shard_id}) must be in [0, {nshards})")
    return None


@op_layer("hash", typed="input", inputs={"X": "input"}, attrs={"mod_by": "hash_size"}, stop_gradient=True)
def hash(input: Variable, hash_size: int, num_hash: int = 1, name: str | None = None) -> Attrs:
    """Hashes each row of integers to numbers below a bound.

    Args:
        input: shape [rows, columns].
        hash_size: the bound, exclusive.
        num_hash: the number of hash functions, each of which computes one number per row.

    Returns:
        Variable: shape [rows, num_hash, 1], same type as `input`; the hashes are the same as in Fluid (XXH64).

    Raises:
        penstock.ProgramError: `input` is not a matrix, or `hash_size` or `num_hash` is below 1.

    Example:
        words = fluid.data('words', [None, 1], 'int64', lod_level=1)
        ids = fluid.layers.hash(words, hash_size=1000, num_hash=2)
    """
