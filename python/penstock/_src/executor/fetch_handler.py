"""FetchHandler: receives values of variables while train_from_dataset() runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


_HANDLER_EXAMPLE = """
class PrintLoss(fluid.executor.FetchHandler):
    def handler(self, res_dict):
        print('loss', res_dict['loss'])

exe.train_from_dataset(main, dataset, fetch_handler=PrintLoss({'loss': loss}, period_secs=10))
"""


class FetchHandler:
    """Gets values of variables while train_from_dataset() runs.

    Args:
        var_dict (dict): {any key: Variable}.
        period_secs (int): minimum seconds between two calls.

    Raises:
        ValueError: there is no variable.

    Example:
        x = fluid.data('x', [None, 2])
        handler = fluid.executor.FetchHandler({'x': x}, period_secs=10)
    """

    def __init__(self, var_dict: Mapping[Any, Any] | None = None, period_secs: int = 60) -> None:
        if not var_dict:
            raise ValueError("FetchHandler needs the variables: {name: Variable}")
        self.var_dict = var_dict
        self.period_secs = period_secs

    def handler(self, res_dict: Mapping[Any, Any]) -> None:
        """Receives the values; the training thread calls it. Override it: this one prints the first row of each value.
        From a FetchHandlerMonitor it receives None for a variable without a value.

        Args:
            res_dict (dict): {key of var_dict: numpy.ndarray}.
        """
        print(" ".join(f"{name}[0]: {value[0]}" for name, value in res_dict.items() if value is not None))

    @staticmethod
    def help() -> None:
        """Prints an example of a handler."""
        print(_HANDLER_EXAMPLE)
