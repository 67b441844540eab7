"""The package `paddle` of Fluid 1.8.5, provided by Penstock: `paddle.fluid` is penstock.fluid."""

import os
import sys

try:
    import penstock
except ModuleNotFoundError:  # not on sys.path: this folder is inside it
    sys.path.append(os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 4)))
    import penstock

from penstock.compat import _arrays, _finder, _old_names

_finder.install()
_arrays.install()
_old_names.install()

import paddle.fluid
from paddle import compat, dataset, distributed, reader, sysconfig, utils, version
from paddle.batch import batch
from paddle.version import commit as __git_commit__
from paddle.version import full_version as __version__

# Tests of Fluid set another version.
paddle.fluid.framework.api_version = lambda: [version.major, version.minor, version.patch, version.rc]

__all__ = ["batch", "compat", "dataset", "distributed", "fluid", "reader", "sysconfig", "utils", "version"]
