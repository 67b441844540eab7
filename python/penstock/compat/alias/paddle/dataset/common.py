"""The folder of data sets, and functions that split a reader's samples into files.

Fluid downloads a data set when a script uses it. Here the files must already exist where Fluid keeps them:
DATA_HOME/<data set>/<file>.
"""

import glob
import hashlib
import os
import pickle
import warnings

from penstock._src.base.call_site import stack_level
from penstock._src.io import pickles

__all__ = ["DATA_HOME", "cluster_files_reader", "download", "md5file", "split"]

DATA_HOME = os.path.expanduser("~/.cache/paddle/dataset")


def md5file(fname):
    """Returns the MD5 sum of a file, in hexadecimal digits."""
    total = hashlib.md5()
    with open(fname, "rb") as file:
        for part in iter(lambda: file.read(1 << 20), b""):
            total.update(part)
    return total.hexdigest()


def download(url, module_name, md5sum, save_name=None):
    """Returns the path of a data set's file, which must already exist.

    Args:
        url (str): the address from which Fluid downloads the file, for the error.
        module_name (str): the folder of the file in DATA_HOME.
        md5sum (str): MD5 sum of Fluid's file. A file with another sum is accepted with a warning. None: any file.
        save_name (str): the name of the file in the folder, if it is not the last part of `url`.

    Returns:
        str: the path.

    Raises:
        FileNotFoundError: the file is missing; the error names it and its address.
    """
    path = os.path.join(DATA_HOME, module_name, save_name or url.split("/")[-1])
    if not os.path.isfile(path):
        raise FileNotFoundError(
            f"paddle.dataset: {path} is missing, and nothing is downloaded here; get it from {url}   "
            "[E-dataset-missing]"
        )
    if md5sum is not None and path not in _checked:
        _checked.add(path)
        if md5file(path) != md5sum:
            warnings.warn(
                f"paddle.dataset: {path} is not the file that Fluid downloads from {url}: its MD5 sum is not {md5sum}",
                stacklevel=stack_level(),
            )
    return path


_checked = set()  # paths whose MD5 sum was compared, which takes seconds for large files


def split(reader, line_count, suffix="%05d.pickle", dumper=pickle.dump):
    """Writes the samples of a reader to pickles of `line_count` samples each.

    Args:
        reader: a function that returns an iterable of samples.
        line_count (int): number of samples per file.
        suffix (str): format of the file names, with %d for the number of the file.
        dumper: called as dumper(list of samples, binary file).
    """
    if not callable(dumper):
        raise TypeError(f"split: dumper must be callable, not {dumper!r}")
    samples, count = [], 0

    def write():
        with open(suffix % count, "wb") as file:
            dumper(samples, file)

    for sample in reader():
        samples.append(sample)
        if len(samples) == line_count:
            write()
            samples, count = [], count + 1
    if samples:
        write()


def _samples(file):
    """Reads what pickle.dump wrote, without executing code that the file names."""
    return pickles.loads(file.read(), file.name)


def cluster_files_reader(files_pattern, trainer_count, trainer_id, loader=_samples):
    """Reads one trainer's share of the files that `split` wrote: every trainer_count-th file.

    Args:
        files_pattern (str): a glob pattern; the files are read in the order of their names.
        trainer_count (int): number of trainers of the job.
        trainer_id (int): number of this trainer.
        loader: called as loader(binary file); returns a list of samples. By default the samples may contain numbers,
            strings, numpy arrays, and lists, tuples, sets and dicts of these: a pickle of other objects can execute any
            code when it is read. For files that you trust, pass pickle.load.

    Returns:
        function: a reader of the samples.
    """
    if not callable(loader):
        raise TypeError(f"cluster_files_reader: loader must be callable, not {loader!r}")

    def reader():
        for path in sorted(glob.glob(files_pattern))[trainer_id::trainer_count]:
            with open(path, "rb") as file:
                yield from loader(file)

    return reader
