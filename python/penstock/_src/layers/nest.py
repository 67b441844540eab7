"""Functions for nested structures: lists, tuples and dicts of Variables, which cells and decoders take.

Entries of a dict are visited in the order of their keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import Any


def convert_to_list(value: Any, n: int, name: str, dtype: type[Any] = int) -> list[Any]:
    """Converts one number, or a list of n numbers, to a list of n numbers.

    Args:
        value (int or list): one number, or n numbers.
        n (int): the number of elements of the result.
        name (str): name of the argument, for the error.
        dtype (type): type of the numbers.

    Returns:
        list: n numbers.

    Raises:
        ValueError: `value` is neither one number nor n numbers.

    Example:
        from penstock.fluid.layers import utils
        assert utils.convert_to_list(3, 2, 'stride') == [3, 3]
    """
    if isinstance(value, dtype):
        return [value] * n
    try:
        values = list(value)
        for one in values:
            dtype(one)
    except (TypeError, ValueError):
        values = None
    if values is None or len(values) != n:
        raise ValueError(f"{name} must be one {dtype.__name__} or {n} of them, not {value!r}")
    return values


def is_sequence(seq: Any) -> bool:
    """Returns whether a value is a structure: a dict, a list, a tuple or another sequence other than str and bytes.

    Args:
        seq (object): the value.

    Returns:
        bool: True if `seq` is a structure.

    Example:
        from penstock.fluid.layers import utils
        assert utils.is_sequence([1]) and not utils.is_sequence('text')
    """
    return isinstance(seq, dict) or (isinstance(seq, Sequence) and not isinstance(seq, (str, bytes)))


def _values(nest: Any) -> list[Any]:
    if not isinstance(nest, dict):
        return list(nest)
    try:
        return [nest[key] for key in sorted(nest)]
    except TypeError:
        raise TypeError(f"the keys of a dict in a structure must be comparable, not {list(nest)!r}") from None


def flatten(nest: Any) -> list[Any]:
    """Returns the leaves of a structure, from left to right.

    Args:
        nest (object): a structure, or one value.

    Returns:
        list: the leaves.

    Raises:
        TypeError: the keys of a dict cannot be compared.

    Example:
        from penstock.fluid.layers import utils
        assert utils.flatten([1, (2, {'b': 4, 'a': 3})]) == [1, 2, 3, 4]
    """
    if not is_sequence(nest):
        return [nest]
    return [leaf for value in _values(nest) for leaf in flatten(value)]


def _like(nest: Any, values: Iterable[Any]) -> Any:
    """Returns the values in a container of the same type as `nest`."""
    if isinstance(nest, dict):
        by_key = dict(zip(sorted(nest), values))
        return type(nest)((key, by_key[key]) for key in nest)
    return type(nest)(*values) if hasattr(nest, "_fields") else type(nest)(values)


def pack_sequence_as(structure: Any, flat_sequence: Sequence[Any]) -> Any:
    """Packs a flat list of values into a structure; the inverse of flatten.

    Args:
        structure (object): the structure whose form the result has.
        flat_sequence (list): the values, one for each leaf of `structure`.

    Returns:
        object: a structure with these values as leaves.

    Raises:
        TypeError: `flat_sequence` is not a sequence.
        ValueError: the number of values is not the number of leaves.

    Example:
        from penstock.fluid.layers import utils
        assert utils.pack_sequence_as([0, (0, 0)], [1, 2, 3]) == [1, (2, 3)]
    """
    if not is_sequence(flat_sequence):
        raise TypeError(f"pack_sequence_as: flat_sequence must be a sequence, not {flat_sequence!r}")
    count = len(flatten(structure))
    if count != len(flat_sequence):
        raise ValueError(
            f"pack_sequence_as: the structure {structure!r} has {count} leaves, but there are {len(flat_sequence)} "
            "values"
        )
    return _packed(structure, iter(flat_sequence))


def _packed(nest: Any, leaves: Iterator[Any]) -> Any:
    if not is_sequence(nest):
        return next(leaves)
    return _like(nest, [_packed(value, leaves) for value in _values(nest)])


def map_structure(func: Callable[..., Any], *structure: Any) -> Any:
    """Applies a function to the leaves at each position of one or more structures.

    Args:
        func (callable): takes one leaf of each structure.
        *structure (object): structures of the same form.

    Returns:
        object: a structure of the results, in the form of the first structure.

    Raises:
        ValueError: the structures have different numbers of leaves.

    Example:
        from penstock.fluid.layers import utils
        assert utils.map_structure(lambda x, y: x + y, [1, (2,)], [3, (4,)]) == [4, (6,)]
    """
    leaves = [flatten(one) for one in structure]
    return pack_sequence_as(structure[0], [func(*values) for values in zip(*leaves)])


def hold_mutable_vars(structure: Sequence[Any] | Mapping[Any, Any]) -> bool:
    """Returns whether a structure contains other structures.

    Args:
        structure (list | tuple | dict): the structure.

    Returns:
        bool: True if an element of `structure` is a structure.

    Example:
        from penstock.fluid.layers import utils
        assert utils.hold_mutable_vars([1, [2]]) and not utils.hold_mutable_vars([1, 2])
    """
    return any(is_sequence(value) for value in structure)


def copy_mutable_vars(structure: Any) -> Any:
    """Copies a structure; the leaves stay the same objects.

    Args:
        structure (object): the structure.

    Returns:
        object: the copy.

    Example:
        from penstock.fluid.layers import utils
        assert utils.copy_mutable_vars([1, (2, 3)]) == [1, (2, 3)]
    """
    return pack_sequence_as(structure, flatten(structure))


def assert_same_structure(nest1: Any, nest2: Any, check_types: bool = True) -> None:
    """Raises an error unless two structures have the same form.

    Args:
        nest1 (object): the first structure.
        nest2 (object): the second structure.
        check_types (bool): whether containers must have the same types, and dicts the same keys.

    Raises:
        ValueError: the forms differ.
        TypeError: the types of containers differ.

    Example:
        from penstock.fluid.layers import utils
        utils.assert_same_structure([1, (2, 3)], ['a', ('b', 'c')])
    """
    if is_sequence(nest1) != is_sequence(nest2):
        raise ValueError(f"the structures differ: {nest1!r} and {nest2!r}")
    if not is_sequence(nest1):
        return
    if check_types and type(nest1) is not type(nest2):
        raise TypeError(
            f"the structures differ: one has a {type(nest1).__name__}, the other a {type(nest2).__name__}: {nest1!r} "
            f"and {nest2!r}"
        )
    if len(nest1) != len(nest2) or (check_types and isinstance(nest1, dict) and set(nest1) != set(nest2)):
        raise ValueError(f"the structures differ: {nest1!r} and {nest2!r}")
    for value1, value2 in zip(_values(nest1), _values(nest2)):
        assert_same_structure(value1, value2, check_types)
