"""Small colour images. A sample is (3 x 32 x 32 pixels from 0 to 1 in float32, label)."""

import itertools
import tarfile

import numpy

from paddle.dataset import common
from penstock._src.io import pickles

__all__ = ["test10", "test100", "train10", "train100"]

URL_PREFIX = "https://dataset.bj.bcebos.com/cifar/"
CIFAR10_URL, CIFAR10_MD5 = URL_PREFIX + "cifar-10-python.tar.gz", "c58f30108f718f92721af3b95e74349a"
CIFAR100_URL, CIFAR100_MD5 = URL_PREFIX + "cifar-100-python.tar.gz", "eb9058c3a382ffc7106e4002c42a8d85"


def reader_creator(filename, sub_name, cycle=False):
    """Returns a reader of the batches whose names contain `sub_name`; with `cycle` it never ends."""

    def once():
        with tarfile.open(filename) as tar:
            for member in tar:
                if member.isfile() and sub_name in member.name:
                    batch = pickles.loads(tar.extractfile(member).read(), f"{member.name} in {filename}")
                    batch = {_text(name): value for name, value in batch.items()}
                    labels = batch["labels"] if "labels" in batch else batch["fine_labels"]
                    for pixels, label in zip(batch["data"], labels):
                        yield (pixels / 255.0).astype(numpy.float32), int(label)

    def reader():
        for _ in itertools.count() if cycle else range(1):
            yield from once()

    return reader


def _text(name):
    return name.decode("latin1") if isinstance(name, bytes) else name


def train100():
    """Returns a reader of CIFAR-100's 50,000 samples for training; labels from 0 to 99."""
    return reader_creator(common.download(CIFAR100_URL, "cifar", CIFAR100_MD5), "train")


def test100():
    """Returns a reader of CIFAR-100's 10,000 samples for tests."""
    return reader_creator(common.download(CIFAR100_URL, "cifar", CIFAR100_MD5), "test")


def train10(cycle=False):
    """Returns a reader of CIFAR-10's 50,000 samples for training; labels from 0 to 9. With `cycle` it never ends."""
    return reader_creator(common.download(CIFAR10_URL, "cifar", CIFAR10_MD5), "data_batch", cycle)


def test10(cycle=False):
    """Returns a reader of CIFAR-10's 10,000 samples for tests. With `cycle` it never ends."""
    return reader_creator(common.download(CIFAR10_URL, "cifar", CIFAR10_MD5), "test_batch", cycle)


def fetch():
    """Raises FileNotFoundError if a file of the data set is missing; Fluid downloads it."""
    common.download(CIFAR10_URL, "cifar", CIFAR10_MD5)
    common.download(CIFAR100_URL, "cifar", CIFAR100_MD5)
