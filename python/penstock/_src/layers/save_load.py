"""Ops that save variables to files, and load them, when a program runs. fluid.io does so at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock._src.layers.decorators import layer
from penstock._src.layers.helper import LayerHelper, require_kind

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from penstock._src.ir.variable import Variable


@layer()
def save(x: Variable, file_path: str, overwrite: bool = True) -> None:
    """Adds the op that writes a variable to a file when the program runs.

    Args:
        x (Variable): a tensor, or selected rows.
        file_path (str): the file; missing folders are created.
        overwrite (bool): replace a file that is there; False: that is an error of the run.

    Example:
        ones = fluid.layers.ones([2], 'float32')
        fluid.layers.tensor.save(ones, 'model/ones')
        fluid.Executor(fluid.CPUPlace()).run()
        again = fluid.layers.create_tensor('float32')
        fluid.layers.load(again, file_path='model/ones')
        assert fluid.Executor(fluid.CPUPlace()).run(fetch_list=[again])[0].tolist() == [1.0, 1.0]
    """
    helper = LayerHelper("save").takes(x=x)
    helper.append_op("save", {"X": x}, {}, {"file_path": file_path, "overwrite": overwrite})


def save_combine(x: Sequence[Variable], file_path: str, overwrite: bool = True) -> None:
    """Adds the op that writes several variables to one file when the program runs.

    Args:
        x (list[Variable]): tensors, or selected rows; the file has them in this order.
        file_path (str): the file; missing folders are created.
        overwrite (bool): replace a file that is there; False: that is an error of the run.

    Raises:
        TypeError: `x` is not a list of Variables.

    Example:
        ones, zeros = fluid.layers.ones([2], 'float32'), fluid.layers.zeros([3], 'float32')
        fluid.layers.tensor.save_combine([ones, zeros], 'model/values')
        fluid.Executor(fluid.CPUPlace()).run()
    """
    helper = _takes_list("save_combine", "x", x)
    helper.append_op("save_combine", {"X": x}, {}, {"file_path": file_path, "overwrite": overwrite})


def load_combine(out: Sequence[Variable], file_path: str) -> None:
    """Adds the op that reads several variables from one file when the program runs.

    Args:
        out (list[Variable]): the variables, as many as the file has, in its order.
        file_path (str): a file that `save_combine` or `fluid.io.save_vars` with a filename wrote.

    Raises:
        TypeError: `out` is not a list of Variables.

    Example:
        x, y = fluid.layers.create_tensor('float32'), fluid.layers.create_tensor('float32')
        fluid.layers.tensor.load_combine([x, y], 'model/values')
    """
    _takes_list("load_combine", "out", out).append_op("load_combine", {}, {"Out": out}, {"file_path": file_path})


def _takes_list(layer: str, name: str, given: Any) -> LayerHelper:
    require_kind(layer, list, **{name: given})
    helper = LayerHelper(layer)
    for one in given:
        helper.takes(**{name: one})
    return helper
