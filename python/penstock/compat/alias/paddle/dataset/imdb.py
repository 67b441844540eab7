"""Film reviews. A sample is (ids of the words, 0 if the review is favourable, 1 if not)."""

import collections
import re
import string
import tarfile

from paddle.dataset import common

__all__ = ["build_dict", "test", "train"]

URL = "https://dataset.bj.bcebos.com/imdb%2FaclImdb_v1.tar.gz"
MD5 = "7c2ac02c03563afcf9b574c7e56c153a"
_PUNCTUATION = string.punctuation.encode()


def tokenize(pattern):
    """Yields the words, as bytes in lower case and without punctuation, of each file that `pattern` matches."""
    with tarfile.open(common.download(URL, "imdb", MD5)) as tar:
        for member in tar:
            if pattern.match(member.name):
                text = tar.extractfile(member).read().rstrip(b"\n\r")
                yield text.translate(None, _PUNCTUATION).lower().split()


def build_dict(pattern, cutoff):
    """Returns {word: id} of the words seen more than `cutoff` times, the most frequent first; '<unk>' is the last."""
    counts = collections.Counter(word for words in tokenize(pattern) for word in words)
    kept = sorted((word for word in counts if counts[word] > cutoff), key=lambda word: (-counts[word], word))
    ids = {word: id for id, word in enumerate(kept)}
    ids["<unk>"] = len(kept)
    return ids


def reader_creator(pos_pattern, neg_pattern, word_idx):
    """Returns a reader of the files of both patterns, the favourable reviews first."""
    unknown = word_idx["<unk>"]
    samples = [
        ([word_idx.get(word, unknown) for word in words], label)
        for label, pattern in enumerate((pos_pattern, neg_pattern))
        for words in tokenize(pattern)
    ]

    def reader():
        yield from samples

    return reader


def train(word_idx):
    """Returns a reader of the samples for training; `word_idx` is {word: id}."""
    return reader_creator(
        re.compile(r"aclImdb/train/pos/.*\.txt$"), re.compile(r"aclImdb/train/neg/.*\.txt$"), word_idx
    )


def test(word_idx):
    """Returns a reader of the samples for tests; `word_idx` is {word: id}."""
    return reader_creator(re.compile(r"aclImdb/test/pos/.*\.txt$"), re.compile(r"aclImdb/test/neg/.*\.txt$"), word_idx)


def word_dict():
    """Returns {word: id} of the words that occur more than 150 times in all reviews."""
    return build_dict(re.compile(r"aclImdb/((train)|(test))/((pos)|(neg))/.*\.txt$"), 150)


def fetch():
    """Raises FileNotFoundError if a file of the data set is missing; Fluid downloads it."""
    common.download(URL, "imdb", MD5)
