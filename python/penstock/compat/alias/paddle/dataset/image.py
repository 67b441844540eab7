"""Images as arrays. Functions that read or scale images need OpenCV (cv2)."""

import os
import pickle
import tarfile

import numpy

__all__ = [
    "batch_images_from_tar",
    "center_crop",
    "left_right_flip",
    "load_and_transform",
    "load_image",
    "load_image_bytes",
    "random_crop",
    "resize_short",
    "simple_transform",
    "to_chw",
]


def _opencv():
    try:
        import cv2
    except ImportError as error:
        raise ImportError(
            "paddle.dataset.image needs OpenCV to read and to scale images: pip install opencv-python-headless"
        ) from error
    return cv2


def batch_images_from_tar(data_file, dataset_name, img2label, num_per_batch=1024):
    """Packs images of an archive into pickles of num_per_batch images next to the archive.

    Args:
        data_file (str): the archive.
        dataset_name (str): a name for this selection of images. A selection that exists already is not packed again.
        img2label (dict): {name in the archive: label} of the images to pack.
        num_per_batch (int): number of images per file.

    Returns:
        str: path of a text file, each line of which is the path of a pickle {'label': [...], 'data': [bytes, ...]}.
    """
    folder = os.path.join(data_file + "_batch", dataset_name)
    listed = folder + ".txt"
    if os.path.exists(folder):
        return listed
    os.makedirs(folder)
    paths, labels, images = [], [], []

    def write():
        paths.append(os.path.abspath(os.path.join(folder, f"batch_{len(paths)}")))
        with open(paths[-1], "wb") as file:
            pickle.dump({"label": labels, "data": images}, file, protocol=2)

    with tarfile.open(data_file) as tar:
        for member in tar:
            if member.name in img2label:
                images.append(tar.extractfile(member).read())
                labels.append(int(img2label[member.name]))
                if len(images) == num_per_batch:
                    write()
                    labels, images = [], []
    if images:
        write()
    with open(listed, "w") as file:
        file.writelines(path + "\n" for path in paths)
    return listed


def load_image_bytes(bytes, is_color=True):
    """Returns the image in a file's bytes: uint8, [height, width, 3 (blue, green, red)], or [height, width] in grey."""
    return _opencv().imdecode(numpy.frombuffer(bytes, "uint8"), 1 if is_color else 0)


def load_image(file, is_color=True):
    """Returns the image in a file, like load_image_bytes."""
    return _opencv().imread(file, 1 if is_color else 0)


def resize_short(im, size):
    """Scales the image so that its shorter side is `size`."""
    height, width = im.shape[:2]
    scaled = (size, size * height // width) if height > width else (size * width // height, size)
    cv2 = _opencv()
    return cv2.resize(im, scaled, interpolation=cv2.INTER_CUBIC)


def to_chw(im, order=(2, 0, 1)):
    """Transposes [height, width, channels] to [channels, height, width]."""
    if len(im.shape) != len(order):
        raise ValueError(f"to_chw: the image has {len(im.shape)} axes, but order has {len(order)}")
    return im.transpose(order)


def center_crop(im, size, is_color=True):
    """Crops a square of side `size` from the centre."""
    top, left = (im.shape[0] - size) // 2, (im.shape[1] - size) // 2
    return im[top : top + size, left : left + size]


def random_crop(im, size, is_color=True):
    """Crops a square of side `size` at a random position, drawn from numpy.random."""
    top = numpy.random.randint(0, im.shape[0] - size + 1)
    left = numpy.random.randint(0, im.shape[1] - size + 1)
    return im[top : top + size, left : left + size]


def left_right_flip(im, is_color=True):
    """Flips the image horizontally."""
    return im[:, ::-1]


def simple_transform(im, resize_size, crop_size, is_train, is_color=True, mean=None):
    """Scales, crops and optionally flips an image, then subtracts a mean.

    Args:
        im (array): [height, width, channels], or [height, width].
        resize_size (int): length of the shorter side after scaling.
        crop_size (int): side of the cropped square.
        is_train (bool): True: crop at a random position and flip with probability 1/2; False: crop the centre.
        is_color (bool): whether the image has channels.
        mean (array): one value, one for each channel, or one for each pixel.

    Returns:
        array: float32 [channels, crop_size, crop_size], or [crop_size, crop_size].
    """
    im = resize_short(im, resize_size)
    if is_train:
        im = random_crop(im, crop_size, is_color)
        if numpy.random.randint(2) == 0:
            im = left_right_flip(im, is_color)
    else:
        im = center_crop(im, crop_size, is_color)
    im = (to_chw(im) if im.ndim == 3 else im).astype("float32")
    if mean is not None:
        mean = numpy.array(mean, dtype="float32")
        im -= mean[:, None, None] if mean.ndim == 1 and is_color else mean
    return im


def load_and_transform(filename, resize_size, crop_size, is_train, is_color=True, mean=None):
    """Reads an image file, then simple_transform."""
    return simple_transform(load_image(filename, is_color), resize_size, crop_size, is_train, is_color, mean)
