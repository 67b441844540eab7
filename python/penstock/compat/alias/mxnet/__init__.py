"""The part of the package `mxnet` that scripts for its KVStore use, provided by Penstock (penstock.compat.mxnet)."""

import os
import sys

try:
    import penstock
except ModuleNotFoundError:  # not on sys.path: this folder is inside it
    sys.path.append(os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 4)))
    import penstock

import penstock.compat.mxnet as _mxnet

_OURS = "penstock.compat.mxnet"
# Both names are one module, so that classes and settings are the same under both.
for _name, _module in list(sys.modules.items()):
    if _name.startswith(_OURS + "."):
        sys.modules["mxnet" + _name[len(_OURS) :]] = _module
for _short, _long in (("nd", "ndarray"), ("kv", "kvstore")):
    sys.modules[f"mxnet.{_short}"] = sys.modules[f"{_OURS}.{_long}"]
sys.modules["mxnet"] = _mxnet
