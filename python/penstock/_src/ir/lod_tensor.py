"""Functions that create tensors of sequences of different lengths."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy

from penstock._penstock import LoDTensor
from penstock._src.ir.argument_types import ArgumentError
from penstock._src.ir.array_conversion import to_array

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock._src.ir.typing import Array, Place


def create_lod_tensor(
    data: Array | LoDTensor | Sequence[Sequence[float]], recursive_seq_lens: Sequence[Sequence[int]], place: Place
) -> LoDTensor:
    """Creates a tensor whose rows form sequences.

    Args:
        data (numpy.ndarray | LoDTensor | list): the rows, or a list of sequences of numbers, each of which becomes a
            row of one int64.
        recursive_seq_lens (list[list[int]]): the lengths of the sequences of each level: [[2, 3]] is a sequence of 2
            rows and one of 3 rows.
        place (Place): the place of the tensor.

    Returns:
        LoDTensor: the tensor.

    Raises:
        ValueError: the lengths do not cover the rows.
        TypeError: `data` is not an array, a LoDTensor or a list.

    Example:
        t = fluid.create_lod_tensor(np.zeros((5, 8), 'float32'), [[2, 3]], fluid.CPUPlace())
        assert t.recursive_sequence_lengths() == [[2, 3]]
    """
    if isinstance(data, LoDTensor):
        return create_lod_tensor(numpy.array(data), recursive_seq_lens, place)
    if isinstance(data, list):
        lengths = [len(sequence) for sequence in data]
        if [lengths] != list(map(list, recursive_seq_lens)):
            raise ArgumentError(f"data and recursive_seq_lens do not match: {[lengths]}, {recursive_seq_lens}")
        numbers = [number for sequence in data for number in sequence]
        data = to_array(numbers, "int64", "data", "create_lod_tensor").reshape(-1, 1)
    if not isinstance(data, numpy.ndarray):
        raise TypeError(f"create_lod_tensor: data must be an array, a LoDTensor or a list, not {type(data).__name__}")
    tensor = LoDTensor()
    tensor.set(data, place)
    tensor.set_recursive_sequence_lengths(recursive_seq_lens)
    if not tensor.has_valid_recursive_sequence_lengths():
        raise ArgumentError(f"the sequence lengths {recursive_seq_lens} do not cover the {len(data)} rows of data")
    return tensor


def create_random_int_lodtensor(
    recursive_seq_lens: Sequence[Sequence[int]], base_shape: Sequence[int], place: Place, low: int, high: int
) -> LoDTensor:
    """Creates a tensor of random integers whose rows form sequences.

    Args:
        recursive_seq_lens (list[list[int]]): the lengths of the sequences of each level.
        base_shape (list[int]): shape of a row.
        place (Place): the place of the tensor.
        low (int): the smallest number.
        high (int): the largest number.

    Returns:
        LoDTensor: shape [rows, *base_shape], int64.

    Example:
        t = fluid.create_random_int_lodtensor([[2, 3]], [1], fluid.CPUPlace(), low=0, high=9)
    """
    rows = sum(recursive_seq_lens[-1])
    data = numpy.random.randint(low, high + 1, [rows] + list(base_shape)).astype("int64")
    return create_lod_tensor(data, recursive_seq_lens, place)
