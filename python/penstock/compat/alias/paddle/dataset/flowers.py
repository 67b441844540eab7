"""102 kinds of flowers. A sample is (3 x 224 x 224 pixels minus their mean, flat, in float32; label from 0 to 101).
Needs SciPy, which reads the labels, and OpenCV."""

import functools
import itertools
import os

from paddle.dataset import common, image
from paddle.reader import map_readers, xmap_readers
from penstock._src.io import pickles

__all__ = ["test", "train", "valid"]

DATA_URL, DATA_MD5 = "http://paddlemodels.bj.bcebos.com/flowers/102flowers.tgz", "52808999861908f626f3c1f4e79d11fa"
LABEL_URL, LABEL_MD5 = "http://paddlemodels.bj.bcebos.com/flowers/imagelabels.mat", "e0620be6f572b9609742df49c70aed4d"
SETID_URL, SETID_MD5 = "http://paddlemodels.bj.bcebos.com/flowers/setid.mat", "a5357ecc9cb78c4bef273ce3793fc85c"
# As in Fluid, the training set is the larger part, which the authors call the test set.
TRAIN_FLAG, TEST_FLAG, VALID_FLAG = "tstid", "trnid", "valid"


def default_mapper(is_train, sample):
    """Converts (bytes of a file, label) to a sample."""
    pixels = image.simple_transform(
        image.load_image_bytes(sample[0]), 256, 224, is_train, mean=[103.94, 116.78, 123.68]
    )
    return pixels.flatten().astype("float32"), sample[1]


train_mapper = functools.partial(default_mapper, True)
test_mapper = functools.partial(default_mapper, False)


def reader_creator(
    data_file, label_file, setid_file, dataset_name, mapper, buffered_size=1024, use_xmap=True, cycle=False
):
    """Returns a reader of one of the sets, whose samples `mapper` converts; `use_xmap` runs it on threads."""
    try:
        from scipy.io import loadmat
    except ImportError as error:
        raise ImportError("paddle.dataset.flowers needs SciPy to read its labels: pip install scipy") from error
    labels = loadmat(label_file)["labels"][0]
    wanted = {f"jpg/image_{number:05d}.jpg": labels[number - 1] for number in loadmat(setid_file)[dataset_name][0]}
    listed = image.batch_images_from_tar(data_file, dataset_name, wanted)

    def reader():
        for _ in itertools.count() if cycle else range(1):
            with open(listed) as paths:
                for path in paths:
                    with open(path.strip(), "rb") as file:
                        batch = pickles.loads(file.read(), path.strip())  # batch_images_from_tar wrote it
                    for data, label in zip(batch["data"], batch["label"]):
                        yield data, int(label) - 1

    if use_xmap:
        return xmap_readers(mapper, reader, min(4, os.cpu_count() or 1), buffered_size)
    return map_readers(mapper, reader)


def _files():
    return (
        common.download(DATA_URL, "flowers", DATA_MD5),
        common.download(LABEL_URL, "flowers", LABEL_MD5),
        common.download(SETID_URL, "flowers", SETID_MD5),
    )


def train(mapper=train_mapper, buffered_size=1024, use_xmap=True, cycle=False):
    """Returns a reader of the images for training, cropped at random; with `cycle` it never ends."""
    return reader_creator(*_files(), TRAIN_FLAG, mapper, buffered_size, use_xmap, cycle)


def test(mapper=test_mapper, buffered_size=1024, use_xmap=True, cycle=False):
    """Returns a reader of the images for tests; with `cycle` it never ends."""
    return reader_creator(*_files(), TEST_FLAG, mapper, buffered_size, use_xmap, cycle)


def valid(mapper=test_mapper, buffered_size=1024, use_xmap=True):
    """Returns a reader of the images for validation."""
    return reader_creator(*_files(), VALID_FLAG, mapper, buffered_size, use_xmap)


def fetch():
    """Raises FileNotFoundError if a file of the data set is missing; Fluid downloads it."""
    common.download(DATA_URL, "flowers", DATA_MD5)
    common.download(LABEL_URL, "flowers", LABEL_MD5)
    common.download(SETID_URL, "flowers", SETID_MD5)
