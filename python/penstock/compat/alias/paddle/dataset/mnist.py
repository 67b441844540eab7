"""Handwritten digits. A sample is (784 pixels from -1 to 1 in float32, label from 0 to 9)."""

import gzip

import numpy

from paddle.dataset import common

__all__ = ["test", "train"]

URL_PREFIX = "https://dataset.bj.bcebos.com/mnist/"
TEST_IMAGE_URL, TEST_IMAGE_MD5 = URL_PREFIX + "t10k-images-idx3-ubyte.gz", "9fb629c4189551a2d022fa330f9573f3"
TEST_LABEL_URL, TEST_LABEL_MD5 = URL_PREFIX + "t10k-labels-idx1-ubyte.gz", "ec29112dd5afa0611ce80d1b7f02629c"
TRAIN_IMAGE_URL, TRAIN_IMAGE_MD5 = URL_PREFIX + "train-images-idx3-ubyte.gz", "f68b3c2dcbeaaa9fbdd348bbdeb94873"
TRAIN_LABEL_URL, TRAIN_LABEL_MD5 = URL_PREFIX + "train-labels-idx1-ubyte.gz", "d53e105ee54ea40749a09fcbcd1e9432"


def _array_of(path, dims):
    """Returns the array of an idx file: a 4-byte type, 4-byte extents, all big-endian, then the bytes."""
    with gzip.open(path, "rb") as file:
        data = file.read()
    header = numpy.frombuffer(data, ">u4", 1 + dims) if len(data) >= 4 + 4 * dims else [0]
    if header[0] != 0x800 + dims or len(data) != 4 + 4 * dims + numpy.prod(header[1:], dtype="int64"):
        raise ValueError(f"{path} is not an idx file of bytes with {dims} dimensions")
    return numpy.frombuffer(data, "u1", offset=4 + 4 * dims).reshape(header[1:])


def reader_creator(image_filename, label_filename, buffer_size):
    """Returns a reader of two idx files; `buffer_size` images at a time become float32."""

    def reader():
        labels, images = _array_of(label_filename, 1), _array_of(image_filename, 3)
        if len(labels) != len(images):
            raise ValueError(
                f"{image_filename} holds {len(images)} images, but {label_filename} holds {len(labels)} labels"
            )
        for begin in range(0, len(labels), buffer_size):
            pixels = (
                images[begin : begin + buffer_size].reshape(-1, images.shape[1] * images.shape[2]).astype("float32")
            )
            pixels = pixels / 255.0 * 2.0 - 1.0
            yield from zip(pixels, labels[begin : begin + buffer_size].tolist())

    return reader


def train():
    """Returns a reader of the 60,000 samples for training."""
    return reader_creator(
        common.download(TRAIN_IMAGE_URL, "mnist", TRAIN_IMAGE_MD5),
        common.download(TRAIN_LABEL_URL, "mnist", TRAIN_LABEL_MD5),
        100,
    )


def test():
    """Returns a reader of the 10,000 samples for tests."""
    return reader_creator(
        common.download(TEST_IMAGE_URL, "mnist", TEST_IMAGE_MD5),
        common.download(TEST_LABEL_URL, "mnist", TEST_LABEL_MD5),
        100,
    )


def fetch():
    """Raises FileNotFoundError if a file of the data set is missing; Fluid downloads it."""
    train()
    test()
