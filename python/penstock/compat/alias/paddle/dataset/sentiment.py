"""Film reviews of the NLTK corpus movie_reviews. A sample is (ids of the words, 0 (negative) or 1)."""

import collections
import itertools
import re
import zipfile

from paddle.dataset import common

__all__ = ["get_word_dict", "test", "train"]

URL = "https://corpora.bj.bcebos.com/movie_reviews%2Fmovie_reviews.zip"
MD5 = "155de2b77c6834dd8eea7cbe88e93acb"
NUM_TRAINING_INSTANCES = 1600
_TOKEN = re.compile(r"\w+|[^\w\s]+")  # NLTK's pattern for this corpus


def _files():
    """Returns {name: words} of the corpus, sorted by name: the negative reviews come first."""
    with zipfile.ZipFile(common.download(URL, "corpora", MD5, "movie_reviews.zip")) as archive:
        names = sorted(name for name in archive.namelist() if re.fullmatch(r"movie_reviews/(neg|pos)/.*\.txt", name))
        return {name: _TOKEN.findall(archive.read(name).decode("latin1")) for name in names}


def _ranked(files):
    counts = collections.Counter(word for words in files.values() for word in words)
    return [(word, id) for id, word in enumerate(sorted(counts, key=counts.get, reverse=True))]


def get_word_dict():
    """Returns a list of (word, id), the most frequent first."""
    return _ranked(_files())


def _samples():
    files = _files()
    ids = dict(_ranked(files))
    halves = [[name for name in files if name.startswith("movie_reviews/" + kind)] for kind in ("neg", "pos")]
    for name in itertools.chain.from_iterable(zip(*halves)):
        yield [ids[word.lower()] for word in files[name]], int("/pos/" in name)


def train():
    """Returns an iterator over the first 1,600 samples; negative and positive samples alternate."""
    return iter(list(itertools.islice(_samples(), NUM_TRAINING_INSTANCES)))


def test():
    """Returns an iterator over the samples after the first 1,600."""
    return iter(list(itertools.islice(_samples(), NUM_TRAINING_INSTANCES, None)))


def fetch():
    """Raises FileNotFoundError if a file of the data set is missing; Fluid downloads it."""
    common.download(URL, "corpora", MD5, "movie_reviews.zip")
