"""Semantic role labelling.

A sample is nine sequences of the length of the sentence: the ids of its words; the ids of the words two before, one
before, at, one after and two after the verb, each repeated; the id of the verb, repeated; 1 near the verb, else 0; and
the ids of the labels.
"""

import gzip
import tarfile

from paddle.dataset import common

__all__ = ["get_dict", "get_embedding", "test"]

DATA_URL = "http://paddlemodels.bj.bcebos.com/conll05st/conll05st-tests.tar.gz"
DATA_MD5 = "387719152ae52d60422c016e92a742fc"
WORDDICT_URL = "http://paddlemodels.bj.bcebos.com/conll05st%2FwordDict.txt"
WORDDICT_MD5 = "ea7fb7d4c75cc6254716f0177a506baa"
VERBDICT_URL = "http://paddlemodels.bj.bcebos.com/conll05st%2FverbDict.txt"
VERBDICT_MD5 = "0d2977293bbb6cbefab5b0f97db1e77c"
TRGDICT_URL = "http://paddlemodels.bj.bcebos.com/conll05st%2FtargetDict.txt"
TRGDICT_MD5 = "d8c7f03ceb5fc2e5a0fa7503a4353751"
EMB_URL = "http://paddlemodels.bj.bcebos.com/conll05st%2Femb"
EMB_MD5 = "bf436eb0faa1f6f9103017f8be57cdb7"
UNK_IDX = 0


def load_dict(filename):
    """Returns {line: line number} of a file."""
    with open(filename) as file:
        return {line.strip(): number for number, line in enumerate(file)}


def load_label_dict(filename):
    """Returns {label: id}: B- and I- of each tag in alphabetical order, then 'O'."""
    with open(filename) as file:
        tags = sorted({line.strip()[2:] for line in file if line[:2] in ("B-", "I-")})
    labels = [kind + tag for tag in tags for kind in ("B-", "I-")] + ["O"]
    return {label: id for id, label in enumerate(labels)}


def labels_of(column):
    """Returns the B-, I- and O labels of one verb's column of brackets, such as (A0*, *, *), (V*)."""
    labels, tag, inside = [], "O", False
    for cell in column:
        if cell == "*":
            labels.append("I-" + tag if inside else "O")
        elif cell == "*)":
            labels.append("I-" + tag)
            inside = False
        elif "(" in cell:
            tag = cell[1 : cell.find("*")]
            labels.append("B-" + tag)
            inside = ")" not in cell
        else:
            raise ValueError(f"conll05: {cell!r} is not a label")
    return labels


def _sentences(data_path, words_name, props_name):
    """Yields (words, rows of properties) of each sentence; an empty line ends one."""
    with (
        tarfile.open(data_path) as tar,
        gzip.GzipFile(fileobj=tar.extractfile(words_name)) as words_file,
        gzip.GzipFile(fileobj=tar.extractfile(props_name)) as props_file,
    ):
        words, rows = [], []
        for word, row in zip(words_file, props_file):
            row = row.decode().split()
            if row:
                words.append(word.decode().strip())
                rows.append(row)
                continue
            if rows:
                yield words, rows
            words, rows = [], []


def corpus_reader(data_path, words_name, props_name):
    """Returns a reader of (words, verb, labels), which repeats a sentence for each of its verbs."""

    def reader():
        for words, rows in _sentences(data_path, words_name, props_name):
            columns = list(zip(*rows))
            verbs = [verb for verb in columns[0] if verb != "-"]
            for verb, column in zip(verbs, columns[1:]):
                yield words, verb, labels_of(column)

    return reader


def reader_creator(corpus_reader, word_dict=None, predicate_dict=None, label_dict=None):
    """Returns a reader that converts the sentences of corpus_reader to samples with three dictionaries."""

    def reader():
        for words, verb, labels in corpus_reader():
            at, count = labels.index("B-V"), len(words)
            near = range(max(at - 2, 0), min(at + 2, count - 1) + 1)
            context = [
                words[place] if 0 <= place < count else "bos" if place < at else "eos"
                for place in range(at - 2, at + 3)
            ]
            yield (
                [word_dict.get(word, UNK_IDX) for word in words],
                *([word_dict.get(word, UNK_IDX)] * count for word in context),
                [predicate_dict.get(verb)] * count,
                [int(place in near) for place in range(count)],
                [label_dict.get(label) for label in labels],
            )

    return reader


def get_dict():
    """Returns the dictionaries {word: id}, {verb: id} and {label: id}."""
    return (
        load_dict(common.download(WORDDICT_URL, "conll05st", WORDDICT_MD5)),
        load_dict(common.download(VERBDICT_URL, "conll05st", VERBDICT_MD5)),
        load_label_dict(common.download(TRGDICT_URL, "conll05st", TRGDICT_MD5)),
    )


def get_embedding():
    """Returns the path of the file of trained word vectors."""
    return common.download(EMB_URL, "conll05st", EMB_MD5)


def test():
    """Returns a reader of the test set, the public part of the corpus."""
    words, verbs, labels = get_dict()
    corpus = corpus_reader(
        common.download(DATA_URL, "conll05st", DATA_MD5),
        words_name="conll05st-release/test.wsj/words/test.wsj.words.gz",
        props_name="conll05st-release/test.wsj/props/test.wsj.props.gz",
    )
    return reader_creator(corpus, words, verbs, labels)


def fetch():
    """Raises FileNotFoundError if a file of the data set is missing; Fluid downloads it."""
    get_dict()
    get_embedding()
    common.download(DATA_URL, "conll05st", DATA_MD5)
