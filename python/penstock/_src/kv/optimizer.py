"""Optimizers of a store: a name and numbers, which travel to whoever holds the values."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING

from penstock import _penstock
from penstock._src.base.errors import program_error
from penstock._src.kv.lr_scheduler import LRScheduler, MultiFactorScheduler

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from penstock._src.kv.keys import Key


class Optimizer:
    """An optimizer of a store. create() returns one.

    Attributes that are changed take effect with the next push.

    Args:
        name (str): see create.
        **args (object): see create.

    Raises:
        penstock.ProgramError: see create.

    Example:
        optimizer = penstock.kv.optimizer.create('sgd', learning_rate=0.1)
        optimizer.learning_rate = 0.05
    """

    def __init__(self, name: str, **args: Any) -> None:
        schedule = args.pop("lr_scheduler", None)
        if schedule is not None and not isinstance(schedule, LRScheduler):
            raise TypeError(
                f"kv.optimizer: lr_scheduler is one of penstock.kv.lr_scheduler, not {type(schedule).__name__}"
            )
        names: Mapping[int | str, str] = args.pop("param_idx2name", None) or {}
        for unused in ("sym", "param_dict"):  # MXNet's graphs and parameters, which have no meaning here
            if args.pop(unused, None):
                raise TypeError(f"kv.optimizer: {unused} is not supported; use set_lr_mult and set_wd_mult")
        if args.pop("begin_num_update", 0):
            raise TypeError("kv.optimizer: begin_num_update is not supported; a store counts its own updates")
        self._name = name.lower()
        self._schedule: LRScheduler | None = schedule
        self._names = {_key_text(key): one for key, one in names.items()}
        self._numbers = {argument: float(one) for argument, one in args.items() if one is not None}
        self._lr_mult: dict[str, float] = {}
        self._wd_mult: dict[str, float] | None = None
        self.version = 1
        self._native = self._made()
        if schedule is not None and "learning_rate" in self._numbers:
            schedule.base_lr = self._numbers["learning_rate"]

    @property
    def name(self) -> str:
        """The optimizer's name, in small letters."""
        return self._name

    @property
    def lr_scheduler(self) -> LRScheduler | None:
        """The schedule of the rate, or None."""
        return self._schedule

    @property
    def learning_rate(self) -> float:
        """The rate; that of the beginning if there is a schedule."""
        return self._schedule.base_lr if self._schedule is not None else self._number("learning_rate")

    @learning_rate.setter
    def learning_rate(self, rate: float) -> None:
        if self._schedule is not None:
            raise program_error(
                "E-kv-rate",
                "kv.optimizer: the rate follows lr_scheduler; set an optimizer without one, or with another",
            )
        self._change("learning_rate", rate)

    lr = learning_rate

    @property
    def wd(self) -> float:
        """The weight decay."""
        return self._number("wd")

    @wd.setter
    def wd(self, decay: float) -> None:
        self._change("wd", decay)

    @property
    def rescale_grad(self) -> float:
        """What gradients are multiplied by before all else."""
        return self._number("rescale_grad")

    @rescale_grad.setter
    def rescale_grad(self, factor: float) -> None:
        self._change("rescale_grad", factor)

    def set_learning_rate(self, lr: float) -> None:
        """Changes the rate.

        Args:
            lr (float): the new rate.

        Raises:
            penstock.ProgramError: E-kv-rate: the rate follows a schedule.
        """
        self.learning_rate = lr

    def set_lr_mult(self, args_lr_mult: Mapping[Key, float]) -> None:
        """Multiplies the rates of some keys.

        Args:
            args_lr_mult (dict[int | str, float]): factors by key, or by the name that param_idx2name has for a key.
                They replace those of an earlier call.
        """
        self._lr_mult = {_key_text(key): float(one) for key, one in args_lr_mult.items()}
        self._remake()

    def set_wd_mult(self, args_wd_mult: Mapping[Key, float]) -> None:
        """Multiplies the weight decay of some keys. Without a factor, keys whose names in param_idx2name end neither in
        _weight nor in _gamma have none.

        Args:
            args_wd_mult (dict[int | str, float]): as for set_lr_mult.
        """
        self._wd_mult = {_key_text(key): float(one) for key, one in args_wd_mult.items()}
        self._remake()

    def native(self) -> _penstock.KvOptimizer:
        """Returns the optimizer as C++ knows it.

        Returns:
            KvOptimizer: it does not change with this object.
        """
        return self._native

    def _number(self, argument: str) -> float:
        return self._native.numbers[argument]

    def _change(self, argument: str, number: float) -> None:
        self._numbers[argument] = float(number)
        self._remake()

    def _remake(self) -> None:
        self._native = self._made()
        self.version += 1

    def _made(self) -> _penstock.KvOptimizer:
        schedule = self._schedule
        native_schedule = None
        if schedule is not None:
            steps = schedule.step if isinstance(schedule, MultiFactorScheduler) else []
            constant = schedule.warmup_mode == "constant"
            native_schedule = _penstock.KvSchedule(schedule.type, schedule.numbers(), steps, constant)
        native = _penstock.KvOptimizer(self._name, self._numbers, native_schedule, self._names)
        if self._lr_mult:
            native.set_lr_mult(self._lr_mult)
        if self._wd_mult is not None:
            native.set_wd_mult(self._wd_mult)
        return native

    def __repr__(self) -> str:
        return f"<Optimizer {self._native.text}>"


def create(name: str, **kwargs: Any) -> Optimizer:
    """Makes an optimizer for KVStore.set_optimizer.

    Names, arguments, defaults and formulas are those of MXNet 1.9: adadelta, adagrad, adam, adamax, ccsgd, dcasgd,
    ftml, ftrl, groupadagrad, lamb, lars, nadam, nag, rmsprop, sgd, sgld, signum, test. States are 32-bit floats.

    Args:
        name (str): one of these names; capitals do not matter.
        **kwargs (object): the optimizer's own arguments, and those of all: learning_rate (float), wd (float, 0),
            rescale_grad (float, 1), clip_gradient (float), lr_scheduler (a schedule of penstock.kv.lr_scheduler;
            learning_rate replaces its base_lr), param_idx2name (dict[int, str]: names of keys, for multipliers),
            multi_precision (bool), lazy_update (bool, of sgd, adam, lars: only rows that were pushed change).

    Returns:
        Optimizer: to give to set_optimizer.

    Raises:
        penstock.ProgramError: E-kv-optimizer-name: there is no such optimizer; E-kv-optimizer-argument: it has no such
            argument, or the argument is out of range.
        NotImplementedError: E-kv-optimizer-refused.

    Example:
        optimizer = penstock.kv.optimizer.create('adam', learning_rate=0.01, wd=1e-4)
        assert optimizer.name == 'adam' and optimizer.learning_rate == 0.01
    """
    if not isinstance(name, str):
        raise TypeError(f"kv.optimizer.create: the name is a str, not {type(name).__name__}")
    return Optimizer(name, **kwargs)


def _key_text(key: object) -> str:
    return key if isinstance(key, str) else str(operator.index(key))  # type: ignore[arg-type]
