"""Images with their segmentation. A sample is (uint8 [height, width, 3], uint8 [height, width] with the classes).
Needs Pillow."""

import io
import tarfile

import numpy

from paddle.dataset import common

__all__ = ["test", "train", "val"]

VOC_URL = "http://host.robots.ox.ac.uk/pascal/VOC/voc2012/VOCtrainval_11-May-2012.tar"
VOC_MD5 = "6cd6e144f989b92b3379bac3b3de84fd"
SET_FILE = "VOCdevkit/VOC2012/ImageSets/Segmentation/{}.txt"
DATA_FILE = "VOCdevkit/VOC2012/JPEGImages/{}.jpg"
LABEL_FILE = "VOCdevkit/VOC2012/SegmentationClass/{}.png"


def reader_creator(filename, sub_name):
    """Returns a reader of the images that the list `sub_name` of the archive names."""
    try:
        from PIL import Image
    except ImportError as error:
        raise ImportError("paddle.dataset.voc2012 needs Pillow to read images: pip install pillow") from error

    def reader():
        with tarfile.open(filename) as tar:
            for line in tar.extractfile(SET_FILE.format(sub_name)).read().decode().split():
                yield tuple(
                    numpy.array(Image.open(io.BytesIO(tar.extractfile(name.format(line)).read())))
                    for name in (DATA_FILE, LABEL_FILE)
                )

    return reader


def _reader(sub_name):
    return reader_creator(common.download(VOC_URL, "voc2012", VOC_MD5), sub_name)


def train():
    """Returns a reader of the images of the list `trainval`, as in Fluid."""
    return _reader("trainval")


def test():
    """Returns a reader of the images of the list `train`, as in Fluid."""
    return _reader("train")


def val():
    """Returns a reader of the images of the list `val`."""
    return _reader("val")
