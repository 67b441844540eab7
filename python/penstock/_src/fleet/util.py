"""FleetUtil: log lines and metrics of all trainers."""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING

import numpy

from penstock._src.base.errors import not_built
from penstock._src.executor.scopes import global_scope
from penstock._src.fleet.pserver import fleet

if TYPE_CHECKING:
    from penstock._penstock import Scope
    from penstock._src.ir.typing import Array, Place


_log = logging.getLogger("penstock.fluid.incubate.fleet.utils.fleet_util")


class FleetUtil:
    """Metrics and log lines of a fleet with pservers.

    Args:
        mode (str): must be 'transpiler'. Fluid's default, 'pslib', needs a library that is not public.

    Raises:
        NotImplementedError: `mode` is 'pslib'.
        ValueError: `mode` has another value.

    Example:
        from penstock.fluid.incubate.fleet.utils.fleet_util import FleetUtil
        util = FleetUtil('transpiler')
    """

    def __init__(self, mode: str = "pslib") -> None:
        if mode == "pslib":
            raise not_built("FleetUtil: mode 'pslib' needs a library that is not public; give 'transpiler'")
        if mode != "transpiler":
            raise ValueError(f"FleetUtil: mode must be 'transpiler' or 'pslib', not {mode!r}")

    def rank0_print(self, s: str) -> None:
        """Prints on trainer 0 only.

        Args:
            s (str): the text.
        """
        if fleet.worker_index() == 0:
            print(s)
            sys.stdout.flush()

    def rank0_info(self, s: str) -> None:
        """Logs on trainer 0 only.

        Args:
            s (str): the text.
        """
        if fleet.worker_index() == 0:
            _log.info(s)

    def rank0_error(self, s: str) -> None:
        """Logs an error on trainer 0 only.

        Args:
            s (str): the text.
        """
        if fleet.worker_index() == 0:
            _log.error(s)

    def set_zero(
        self, var_name: str, scope: Scope | None = None, place: Place | None = None, param_type: str = "int64"
    ) -> None:
        """Sets a variable to zeros, such as the counts of an AUC.

        Args:
            var_name (str): its name.
            scope (Scope): holds the variables; None: the global scope.
            place (Place): has no effect.
            param_type (str): its element type.
        """
        tensor = (global_scope() if scope is None else scope).var(var_name).get_tensor()
        tensor.set(numpy.zeros(tensor.shape(), param_type), place)

    def print_global_auc(
        self,
        scope: Scope | None = None,
        stat_pos: str = "_generated_var_2",
        stat_neg: str = "_generated_var_3",
        print_prefix: str = "",
    ) -> None:
        """Prints get_global_auc() on trainer 0.

        Args:
            scope (Scope | None): holds the counts; None: the global scope.
            stat_pos (str): the variable of the counts of positive examples.
            stat_neg (str): the variable of the counts of negative examples.
            print_prefix (str): precedes the value.
        """
        self.rank0_print(f"{print_prefix} global auc = {self.get_global_auc(scope, stat_pos, stat_neg)}")

    def get_global_auc(
        self, scope: Scope | None = None, stat_pos: str = "_generated_var_2", stat_neg: str = "_generated_var_3"
    ) -> float | None:
        """Computes the AUC over all trainers' examples. All trainers must call it.

        Args:
            scope (Scope): holds the variables; None: the global scope.
            stat_pos (str): the variable in which layers.auc counts positive examples.
            stat_neg (str): the variable in which layers.auc counts negative examples.

        Returns:
            float: the AUC; 0.5 if all examples have the same label; None if a variable does not exist.
        """
        scope = global_scope() if scope is None else scope
        if scope.find_var(stat_pos) is None or scope.find_var(stat_neg) is None:
            self.rank0_print("not found auc bucket")
            return None
        positive, negative = (self._over_all(scope, name) for name in (stat_pos, stat_neg))
        # From the highest prediction down: each bucket adds a trapezoid under the curve.
        positive, negative = (numpy.concatenate([[0.0], numpy.cumsum(counts[::-1])]) for counts in (positive, negative))
        if positive[-1] == 0 or negative[-1] == 0:
            return 0.5
        area = numpy.sum(numpy.diff(negative) * (positive[1:] + positive[:-1]) / 2)
        return float(area / (positive[-1] * negative[-1]))

    @staticmethod
    def _over_all(scope: Scope, name: str) -> Array:
        mine = numpy.array(scope.var(name).get_tensor()).reshape(-1)
        whole = numpy.zeros_like(mine)
        fleet.all_reduce_worker(mine, whole)
        return whole
