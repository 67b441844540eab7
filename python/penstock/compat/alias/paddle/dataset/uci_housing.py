"""House prices. A sample is (13 features, each minus its mean and divided by its range; the price), in float64."""

import numpy

from paddle.dataset import common

__all__ = ["test", "train"]

URL = "http://paddlemodels.bj.bcebos.com/uci_housing/housing.data"
MD5 = "d4accdce7a25600298819f8e28e8d593"
feature_names = ["CRIM", "ZN", "INDUS", "CHAS", "NOX", "RM", "AGE", "DIS", "RAD", "TAX", "PTRATIO", "B", "LSTAT"]

UCI_TRAIN_DATA = UCI_TEST_DATA = None


def load_data(filename, feature_num=14, ratio=0.8):
    """Reads the file once: the first `ratio` of its rows are for training, the others for tests."""
    global UCI_TRAIN_DATA, UCI_TEST_DATA
    if UCI_TRAIN_DATA is not None:
        return
    rows = numpy.fromfile(filename, sep=" ").reshape(-1, feature_num)
    features = rows[:, :-1]
    features[:] = (features - features.mean(axis=0)) / (features.max(axis=0) - features.min(axis=0))
    count = int(len(rows) * ratio)
    UCI_TRAIN_DATA, UCI_TEST_DATA = rows[:count], rows[count:]


def _reader(name):
    load_data(common.download(URL, "uci_housing", MD5))

    def reader():
        for row in globals()[name]:
            yield row[:-1], row[-1:]

    return reader


def train():
    """Returns a reader of the first 80 % of the samples."""
    return _reader("UCI_TRAIN_DATA")


def test():
    """Returns a reader of the last 20 % of the samples."""
    return _reader("UCI_TEST_DATA")


def predict_reader():
    """Returns a tuple of the features of the first sample for tests."""
    load_data(common.download(URL, "uci_housing", MD5))
    return (UCI_TEST_DATA[0][:-1],)


def fetch():
    """Raises FileNotFoundError if a file of the data set is missing; Fluid downloads it."""
    common.download(URL, "uci_housing", MD5)
