"""English and German sentences. A sample is (ids of the source between '<s>' and '<e>', ids of the target after '<s>',
the same before '<e>')."""

import collections
import itertools
import os
import tarfile

from paddle.dataset import common

__all__ = ["fetch", "get_dict", "test", "train", "validation"]

DATA_URL = "http://paddlemodels.bj.bcebos.com/wmt/wmt16.tar.gz"
DATA_MD5 = "0c38be43600334966403524a40dcd81e"
TOTAL_EN_WORDS, TOTAL_DE_WORDS = 11250, 19220
START_MARK, END_MARK, UNK_MARK = "<s>", "<e>", "<unk>"
_WORDS = {"en": TOTAL_EN_WORDS, "de": TOTAL_DE_WORDS}


def fetch():
    """Returns the path of the archive."""
    return common.download(DATA_URL, "wmt16", DATA_MD5, "wmt16.tar.gz")


def _pairs(path, name):
    """Yields the words of both sides of each line: {'en': [...], 'de': [...]}."""
    with tarfile.open(path) as tar:
        for line in tar.extractfile(name):
            sides = line.decode().strip().split("\t")
            if len(sides) == 2:
                yield {"en": sides[0].split(), "de": sides[1].split()}


def _words(path, dict_size, lang):
    """The dictionary as a list: three marks, then the most frequent words of the training sentences. A file beside the
    archive keeps it, as in Fluid."""
    kept = os.path.join(common.DATA_HOME, "wmt16", f"{lang}_{dict_size}.dict")
    if os.path.exists(kept):
        with open(kept, encoding="utf-8", newline="\n") as file:
            words = file.read().split("\n")[:-1]
        if len(words) == dict_size:
            return words
    counts = collections.Counter(word for pair in _pairs(path, "wmt16/train") for word in pair[lang])
    frequent = sorted(counts, key=counts.get, reverse=True)
    words = list(itertools.islice(itertools.chain((START_MARK, END_MARK, UNK_MARK), frequent), dict_size))
    with open(kept, "w", encoding="utf-8", newline="\n") as file:
        file.writelines(word + "\n" for word in words)
    return words


def _reader(name, src_dict_size, trg_dict_size, src_lang):
    if src_lang not in _WORDS:
        raise ValueError(f"wmt16: src_lang must be 'en' or 'de', not {src_lang!r}")
    trg_lang = "de" if src_lang == "en" else "en"
    path = fetch()

    def reader():
        source = _ids(path, min(src_dict_size, _WORDS[src_lang]), src_lang)
        target = _ids(path, min(trg_dict_size, _WORDS[trg_lang]), trg_lang)
        start, end, unknown = (source[mark] for mark in (START_MARK, END_MARK, UNK_MARK))
        for pair in _pairs(path, name):
            ids = [source.get(word, unknown) for word in pair[src_lang]]
            answer = [target.get(word, unknown) for word in pair[trg_lang]]
            yield [start] + ids + [end], [start] + answer, answer + [end]

    return reader


def _ids(path, dict_size, lang):
    return {word: id for id, word in enumerate(_words(path, dict_size, lang))}


def train(src_dict_size, trg_dict_size, src_lang="en"):
    """Returns a reader of the sentences for training, translated from src_lang, 'en' or 'de', to the other."""
    return _reader("wmt16/train", src_dict_size, trg_dict_size, src_lang)


def test(src_dict_size, trg_dict_size, src_lang="en"):
    """Returns a reader of the sentences for tests."""
    return _reader("wmt16/test", src_dict_size, trg_dict_size, src_lang)


def validation(src_dict_size, trg_dict_size, src_lang="en"):
    """Returns a reader of the sentences for validation."""
    return _reader("wmt16/val", src_dict_size, trg_dict_size, src_lang)


def get_dict(lang, dict_size, reverse=False):
    """Returns the dictionary of 'en' or 'de': {word: id}, or {id: word} with `reverse`."""
    if lang not in _WORDS:
        raise ValueError(f"wmt16: lang must be 'en' or 'de', not {lang!r}")
    words = _words(fetch(), min(dict_size, _WORDS[lang]), lang)
    return dict(enumerate(words)) if reverse else {word: id for id, word in enumerate(words)}
