"""Runs scripts that import `paddle` on Penstock: `paddle.fluid` is then penstock.fluid.

    python -m penstock.compat train.py --epochs 3       # also: -m module, -c code
    export PYTHONPATH=$(python -m penstock.compat --path)
    import penstock.compat; penstock.compat.install()   # in a running interpreter

The rest of Penstock does not import this package: `penstock.fluid` works without it, and alongside an installed
PaddlePaddle.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from penstock._src.base.errors import state_error

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import ModuleType

__all__ = ["install", "path"]


def path() -> str:
    """Returns the folder that makes `import paddle` mean Penstock if it is on PYTHONPATH.

    Returns:
        str: an absolute path.

    Example:
        import penstock.compat
        assert penstock.compat.path().endswith('alias')
    """
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "alias")


def environment(variables: Mapping[str, str]) -> dict[str, str]:
    """Returns a copy of `variables` in which new Python processes find the alias."""
    folders = [folder for folder in variables.get("PYTHONPATH", "").split(os.pathsep) if folder not in ("", path())]
    return dict(variables, PYTHONPATH=os.pathsep.join([path()] + folders))


def install() -> None:
    """Makes `import paddle` mean Penstock in this interpreter and in the Python processes that it starts.

    A second call has no effect.

    Raises:
        penstock.StateError: another `paddle` has been imported already (E-compat-paddle-loaded).

    Example:
        import penstock.compat
        penstock.compat.install()
        import paddle
        assert paddle.fluid is fluid
    """
    loaded = sys.modules.get("paddle")
    if loaded is not None and not _is_ours(loaded):
        raise state_error(
            "E-compat-paddle-loaded",
            "compat: another paddle is imported already, from "
            f"{getattr(loaded, '__file__', None) or 'an unknown place'}",
            "call penstock.compat.install() before the first import of paddle",
        )
    if path() not in sys.path:
        sys.path.insert(0, path())
    os.environ["PYTHONPATH"] = environment(os.environ)["PYTHONPATH"]


def _is_ours(module: ModuleType) -> bool:
    return os.path.dirname(os.path.abspath(getattr(module, "__file__", None) or "")) == os.path.join(path(), "paddle")
