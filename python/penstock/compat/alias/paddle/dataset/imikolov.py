"""The sentences of the Penn Treebank, as n-grams or as pairs of sequences of ids."""

import collections
import tarfile

from paddle.dataset import common

__all__ = ["build_dict", "test", "train"]

URL = "https://dataset.bj.bcebos.com/imikolov%2Fsimple-examples.tgz"
MD5 = "30177ea32e27c525793142b6bf2c8e2d"
_TRAIN, _TEST = "./simple-examples/data/ptb.train.txt", "./simple-examples/data/ptb.valid.txt"


class DataType:
    """Kinds of samples. NGRAM: n ids. SEQ: (ids after '<s>', ids before '<e>')."""

    NGRAM = 1
    SEQ = 2


def _lines(name):
    with tarfile.open(common.download(URL, "imikolov", MD5)) as tar:
        yield from tar.extractfile(name)


def word_count(f, word_freq=None):
    """Counts the words of an iterable of lines into {word: count}; each line adds one '<s>' and one '<e>'."""
    counts = collections.defaultdict(int) if word_freq is None else word_freq
    for line in f:
        for word in [*line.strip().split(), "<s>", "<e>"]:
            counts[word] += 1
    return counts


def build_dict(min_word_freq=50):
    """Returns {word: id} of the words that occur more than min_word_freq times, the most frequent first. Words of the
    files are bytes; '<s>', '<e>' and '<unk>', which is the last, are str."""
    counts = word_count(_lines(_TEST), word_count(_lines(_TRAIN)))
    counts.pop("<unk>", None)
    kept = sorted((word for word in counts if counts[word] > min_word_freq), key=_rank(counts))
    ids = {word: id for id, word in enumerate(kept)}
    ids["<unk>"] = len(kept)
    return ids


def _rank(counts):
    return lambda word: (-counts[word], word if isinstance(word, bytes) else word.encode())


def _grams(ids, line, n):
    words = ["<s>", *line, "<e>"]
    row = [ids.get(word, ids["<unk>"]) for word in words]
    for end in range(n, len(row) + 1):
        yield tuple(row[end - n : end])


def reader_creator(filename, word_idx, n, data_type):
    """Returns a reader of a file in the archive. For SEQ, sentences longer than `n` are skipped, unless `n` is 0."""
    if data_type not in (DataType.NGRAM, DataType.SEQ):
        raise ValueError(f"imikolov: data_type must be DataType.NGRAM or DataType.SEQ, not {data_type!r}")
    if data_type == DataType.NGRAM and n < 1:
        raise ValueError(f"imikolov: n must be at least 1 for n-grams, not {n!r}")

    def reader():
        for line in _lines(filename):
            words = line.strip().split()
            if data_type == DataType.NGRAM:
                yield from _grams(word_idx, words, n)
                continue
            row = [word_idx.get(word, word_idx["<unk>"]) for word in words]
            if n <= 0 or len(row) + 1 <= n:
                yield [word_idx["<s>"]] + row, row + [word_idx["<e>"]]

    return reader


def train(word_idx, n, data_type=DataType.NGRAM):
    """Returns a reader of the sentences for training; `word_idx` is {word: id}, `n` the length of an n-gram."""
    return reader_creator(_TRAIN, word_idx, n, data_type)


def test(word_idx, n, data_type=DataType.NGRAM):
    """Returns a reader of the sentences for validation; the arguments are those of `train`."""
    return reader_creator(_TEST, word_idx, n, data_type)


def fetch():
    """Raises FileNotFoundError if a file of the data set is missing; Fluid downloads it."""
    common.download(URL, "imikolov", MD5)
