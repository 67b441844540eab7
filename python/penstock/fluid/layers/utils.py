"""Nested structures: lists, tuples and dicts of Variables, as cells and decoders take them. Entries of a dict come in
the order of their keys."""

from collections.abc import Sequence

from penstock.fluid._not_built import getattr_of


def convert_to_list(value, n, name, dtype=int):
    """Returns a list of n numbers: `value` n times, or the n numbers that it holds.

    Args:
        value (int or list): one number, or n.
        n (int): how many are wanted.
        name (str): of the argument, for the error.
        dtype (type): of the numbers.

    Returns:
        list: n numbers.

    Raises:
        ValueError: `value` is neither.

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
        raise ValueError('%s must be one %s or %d of them, not %r' % (name, dtype.__name__, n, value))
    return values


def is_sequence(seq):
    """Tells whether a value is a structure: a dict, a list, a tuple or another sequence that is not text.

    Args:
        seq (object): the value.

    Returns:
        bool: True if it is.

    Example:
        from penstock.fluid.layers import utils
        assert utils.is_sequence([1]) and not utils.is_sequence('text')
    """
    return isinstance(seq, dict) or (isinstance(seq, Sequence) and not isinstance(seq, (str, bytes)))


def _values(nest):
    if not isinstance(nest, dict):
        return list(nest)
    try:
        return [nest[key] for key in sorted(nest)]
    except TypeError:
        raise TypeError('the keys of a dict in a structure must be comparable, not %r' % list(nest)) from None


def flatten(nest):
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


def _like(nest, values):
    """The values in a container of the kind of `nest`."""
    if isinstance(nest, dict):
        by_key = dict(zip(sorted(nest), values))
        return type(nest)((key, by_key[key]) for key in nest)
    return type(nest)(*values) if hasattr(nest, '_fields') else type(nest)(values)


def pack_sequence_as(structure, flat_sequence):
    """Returns the values in a structure like `structure`; the inverse of flatten.

    Args:
        structure (object): a structure.
        flat_sequence (list): as many values as it has leaves.

    Returns:
        object: the structure with these leaves.

    Raises:
        TypeError: `flat_sequence` is not a sequence.
        ValueError: there are more or fewer values than leaves.

    Example:
        from penstock.fluid.layers import utils
        assert utils.pack_sequence_as([0, (0, 0)], [1, 2, 3]) == [1, (2, 3)]
    """
    if not is_sequence(flat_sequence):
        raise TypeError('pack_sequence_as: flat_sequence must be a sequence, not %r' % (flat_sequence,))
    count = len(flatten(structure))
    if count != len(flat_sequence):
        raise ValueError('pack_sequence_as: the structure %r has %d leaves, but there are %d values' %
                         (structure, count, len(flat_sequence)))
    return _packed(structure, iter(flat_sequence))


def _packed(nest, leaves):
    if not is_sequence(nest):
        return next(leaves)
    return _like(nest, [_packed(value, leaves) for value in _values(nest)])


def map_structure(func, *structure):
    """Returns a structure of what `func` makes of the leaves at each place.

    Args:
        func (callable): takes as many values as there are structures.
        *structure (object): structures of one shape.

    Returns:
        object: a structure like the first.

    Raises:
        ValueError: the structures have different numbers of leaves.

    Example:
        from penstock.fluid.layers import utils
        assert utils.map_structure(lambda x, y: x + y, [1, (2,)], [3, (4,)]) == [4, (6,)]
    """
    leaves = [flatten(one) for one in structure]
    return pack_sequence_as(structure[0], [func(*values) for values in zip(*leaves)])


def hold_mutable_vars(structure):
    """Tells whether a structure holds structures.

    Args:
        structure (list | tuple | dict): the structure.

    Returns:
        bool: True if it does.

    Example:
        from penstock.fluid.layers import utils
        assert utils.hold_mutable_vars([1, [2]]) and not utils.hold_mutable_vars([1, 2])
    """
    return any(is_sequence(value) for value in structure)


def copy_mutable_vars(structure):
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


def assert_same_structure(nest1, nest2, check_types=True):
    """Raises unless two structures have leaves at the same places.

    Args:
        nest1 (object): one structure.
        nest2 (object): the other.
        check_types (bool): whether their containers must have the same types, and dicts the same keys.

    Raises:
        ValueError: the places differ.
        TypeError: the types of containers differ.

    Example:
        from penstock.fluid.layers import utils
        utils.assert_same_structure([1, (2, 3)], ['a', ('b', 'c')])
    """
    if is_sequence(nest1) != is_sequence(nest2):
        raise ValueError('the structures differ: %r and %r' % (nest1, nest2))
    if not is_sequence(nest1):
        return
    if check_types and type(nest1) is not type(nest2):
        raise TypeError('the structures differ: one has a %s, the other a %s: %r and %r' %
                        (type(nest1).__name__, type(nest2).__name__, nest1, nest2))
    if len(nest1) != len(nest2) or (check_types and isinstance(nest1, dict) and set(nest1) != set(nest2)):
        raise ValueError('the structures differ: %r and %r' % (nest1, nest2))
    for value1, value2 in zip(_values(nest1), _values(nest2)):
        assert_same_structure(value1, value2, check_types)


__getattr__ = getattr_of(__name__)
