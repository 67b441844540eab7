"""Making tensors of sequences of different lengths."""

import numpy

from penstock.fluid import core

__all__ = ['create_lod_tensor', 'create_random_int_lodtensor']


def create_lod_tensor(data, recursive_seq_lens, place):
    """A tensor whose rows fall into sequences: [[2, 3]] is two sequences, of 2 and of 3 rows. `data` is an array, a
    LoDTensor, or a list of sequences of numbers."""
    if isinstance(data, core.LoDTensor):
        return create_lod_tensor(numpy.array(data), recursive_seq_lens, place)
    if isinstance(data, list):
        lengths = [len(sequence) for sequence in data]
        if [lengths] != list(map(list, recursive_seq_lens)):
            raise ValueError('data and recursive_seq_lens do not match: %s, %s' % ([lengths], recursive_seq_lens))
        data = numpy.concatenate([numpy.asarray(sequence) for sequence in data], axis=0).astype('int64').reshape(-1, 1)
    if not isinstance(data, numpy.ndarray):
        raise TypeError('create_lod_tensor: data must be an array, a LoDTensor or a list, not %s' % type(data).__name__)
    tensor = core.LoDTensor()
    tensor.set(data, place)
    tensor.set_recursive_sequence_lengths(recursive_seq_lens)
    if not tensor.has_valid_recursive_sequence_lengths():
        raise ValueError('the sequence lengths %s do not cover the %d rows of data' % (recursive_seq_lens, len(data)))
    return tensor


def create_random_int_lodtensor(recursive_seq_lens, base_shape, place, low, high):
    """Random whole numbers in [low, high], one row of base_shape for each row of the sequences."""
    rows = sum(recursive_seq_lens[-1])
    data = numpy.random.randint(low, high + 1, [rows] + list(base_shape)).astype('int64')
    return create_lod_tensor(data, recursive_seq_lens, place)
