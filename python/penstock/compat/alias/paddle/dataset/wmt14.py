"""French and English sentences. A sample is (ids of the source, ids of the target after '<s>', the same before
'<e>')."""

import itertools
import tarfile

from paddle.dataset import common

__all__ = ["get_dict", "test", "train"]

URL_TRAIN = "http://paddlemodels.bj.bcebos.com/wmt/wmt14.tgz"
MD5_TRAIN = "0791583d57d5beb693b9414c5b36798c"
START, END, UNK, UNK_IDX = "<s>", "<e>", "<unk>", 2
_LONGEST = 80


def _members(tar, ending):
    return [member for member in tar if member.name.endswith(ending)]


def _read_dicts(path, dict_size):
    """Returns {word: id} of the source and of the target: the first dict_size lines of each dictionary."""
    dicts = []
    with tarfile.open(path) as tar:
        for ending in ("src.dict", "trg.dict"):
            members = _members(tar, ending)
            if len(members) != 1:
                raise ValueError(f"{path} holds {len(members)} files *{ending}; it needs one")
            lines = itertools.islice(tar.extractfile(members[0]), dict_size)
            dicts.append({line.decode().strip(): id for id, line in enumerate(lines)})
    return dicts


def reader_creator(tar_file, file_name, dict_size):
    """Returns a reader of the files in the archive whose names end with file_name. Sentences of more than 80 words are
    skipped."""

    def reader():
        source, target = _read_dicts(tar_file, dict_size)
        with tarfile.open(tar_file) as tar:
            for line in itertools.chain.from_iterable(tar.extractfile(one) for one in _members(tar, file_name)):
                pair = line.decode().strip().split("\t")
                if len(pair) != 2:
                    continue
                ids = [source.get(word, UNK_IDX) for word in [START, *pair[0].split(), END]]
                answer = [target.get(word, UNK_IDX) for word in pair[1].split()]
                if len(ids) <= _LONGEST and len(answer) <= _LONGEST:
                    yield ids, [target[START]] + answer, answer + [target[END]]

    return reader


def _file():
    return common.download(URL_TRAIN, "wmt14", MD5_TRAIN)


def train(dict_size):
    """Returns a reader of the sentences for training; words that are not among the first dict_size are '<unk>'."""
    return reader_creator(_file(), "train/train", dict_size)


def test(dict_size):
    """Returns a reader of the sentences for tests."""
    return reader_creator(_file(), "test/test", dict_size)


def gen(dict_size):
    """Returns a reader of the sentences to translate."""
    return reader_creator(_file(), "gen/gen", dict_size)


def get_dict(dict_size, reverse=True):
    """Returns the dictionaries of the source and the target: {id: word} with `reverse`, else {word: id}."""
    source, target = _read_dicts(_file(), dict_size)
    if reverse:
        return {id: word for word, id in source.items()}, {id: word for word, id in target.items()}
    return source, target


def fetch():
    """Raises FileNotFoundError if a file of the data set is missing; Fluid downloads it."""
    common.download(URL_TRAIN, "wmt14", MD5_TRAIN)
