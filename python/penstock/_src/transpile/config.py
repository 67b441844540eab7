"""DistributeTranspilerConfig: the settings of the transpiler."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock import _penstock
from penstock._src.base.errors import program_error, suggestion
from penstock._src.transpile import ps_dispatcher, settings

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from penstock._penstock import ProgramError, TranspileConfig
    from penstock._src.transpile.setting_types import Fields
else:
    Fields = object


MODES = ("pserver", "nccl2", "collective")
MOST_ELEMENTS = 2**63 - 1
MOST_TRAINERS = 2**16

check_flag = _penstock.checked_flag
check_count = _penstock.checked_integer


class DistributedMode:
    """Values of the attribute `distributed_mode` of listen_and_serv.

    Example:
        assert fluid.transpiler.distribute_transpiler.DistributedMode.GEO == 3
    """

    SYNC = 0
    ASYNC = 1
    HALF_ASYNC = 2
    GEO = 3


class DistributeTranspilerConfig(Fields):
    """Configures the transpiler. Set its fields, then pass it to DistributeTranspiler.

    Names and defaults are Fluid's; Fluid has neither `slicing` and the two sizes after it nor the policies. The page
    "Modes" states what each mode promises and when to use it.

    Attributes:
        mode (str): 'pserver', or ranks without pservers: 'nccl2' or 'collective'.
        geo_sgd_mode (bool): set by Fleet's geo strategy; GeoSgdTranspiler makes these programs.
        print_log (bool): accepted for Fluid's scripts.
        wait_port (bool): accepted for Fluid's scripts.
        <settings: field>

    Raises:
        penstock.ProgramError: (by the transpiler) the mode or a parameter does not allow a setting, or compat is set
            (E-plan-staleness, E-plan-backup-trainers, E-plan-compression, E-plan-exchange, E-plan-on-uneven,
            E-plan-local-sgd-steps); `compression` cannot be read (E-text-syntax, E-compression-value).

    Example:
        config = fluid.DistributeTranspilerConfig()
        config.compression = 'two_bit 0.5 from 65536'

    Reference:
        Ho et al., More effective distributed ML via a stale synchronous parallel parameter server, NIPS 2013.
        Chen et al., Revisiting distributed synchronous SGD, ICLR Workshop 2016. Seide et al., 1-bit stochastic
        gradient descent, Interspeech 2014. Lin et al., Deep gradient compression, ICLR 2018.
        Wang and Joshi, Adaptive communication strategies to achieve the best error-runtime trade-off in local-update
        SGD, 2018.
    """

    mode = "pserver"
    geo_sgd_mode = False
    print_log = False
    wait_port = True
    _sync_mode: bool | None = None  # None: untouched, so an argument of transpile() wins
    _runtime_split_send_recv = False

    @property
    def sync_mode(self) -> bool | None:
        """Whether pservers wait for all trainers."""
        return True if self._sync_mode is None else self._sync_mode

    @sync_mode.setter
    def sync_mode(self, value: bool | None) -> None:
        value = check_flag("sync_mode", value)
        if value and self._runtime_split_send_recv:
            raise _both()
        self._sync_mode = value

    @property
    def runtime_split_send_recv(self) -> bool:
        """Whether a communicator splits, merges and sends gradients."""
        return self._runtime_split_send_recv

    @runtime_split_send_recv.setter
    def runtime_split_send_recv(self, value: bool) -> None:
        value = check_flag("runtime_split_send_recv", value)
        if value and self._sync_mode:
            raise _both()
        self._runtime_split_send_recv = value

    if not TYPE_CHECKING:  # with this method, checkers would accept names that are no fields

        def __setattr__(self, name: str, value: object) -> None:
            if type(self) is DistributeTranspilerConfig and not hasattr(type(self), name):  # a subclass may have others
                fields = [one for one in dir(type(self)) if not one.startswith("_")]
                raise program_error(
                    "E-plan-config", f"plan: {type(self).__name__} has no field {name}{suggestion(name, fields)}"
                )
            object.__setattr__(self, name, value)

    def is_set(self, field: str) -> bool:
        """Returns whether a field was given a value.

        Args:
            field (str): its name.

        Returns:
            bool: whether the field was set.
        """
        return field in vars(self) or getattr(type(self), field) is not getattr(DistributeTranspilerConfig, field)

    def validate(self) -> None:
        """Raises if the value of a field is wrong.

        Raises:
            penstock.ProgramError: the error names the field, its value and the valid values.
        """
        for field in ("geo_sgd_mode", "print_log", "wait_port"):
            check_flag(field, getattr(self, field))
        if not isinstance(self.mode, str) or self.mode not in MODES:
            raise program_error("E-plan-kind", f"plan: mode is {self.mode!r}; it must be one of {', '.join(MODES)}")
        give(self, _penstock.TranspileConfig(), *settings.GROUPS)


# Fields that are properties, and what they keep.
_UNTOUCHED = {"sync_mode": "_sync_mode", "runtime_split_send_recv": "_runtime_split_send_recv"}

for _field, _row in settings.rows_of("field").items():
    if _field not in _UNTOUCHED:
        setattr(DistributeTranspilerConfig, _field, settings.initial_of(_row, "field"))
DistributeTranspilerConfig.__doc__ = settings.documented(DistributeTranspilerConfig.__doc__)


def give(given: DistributeTranspilerConfig, config: TranspileConfig, *groups: str) -> None:
    """Sets settings of a native configuration: the fields of the given groups."""
    values = {
        field: getattr(given, _UNTOUCHED.get(field, field))
        for field, row in settings.rows_of("field").items()
        if row.group in groups
    }
    if "split_method" in values:
        ps_dispatcher.check(values["split_method"])
        ps_dispatcher.choose(values.pop("split_method"), config)
    if "exchange" in values:
        config.dense = dense_exchange(values.pop("exchange"))
    if "collective_mode" in values and values["collective_mode"] is None:
        del values["collective_mode"]
    settings.give(config, "field", values)


def dense_exchange(exchange: Any) -> str:
    """Returns how dense parameters are exchanged, a word of the setting, from what users give: a dict, 'auto' or
    None."""
    words = settings.ROW["dense"].words
    known = {"dense": words, "sparse": words[:1]}
    if exchange is None or (isinstance(exchange, str) and exchange == "auto"):
        return exchange or words[0]
    if not isinstance(exchange, dict) or not all(
        kind in known and way in known[kind] for kind, way in exchange.items()
    ):
        quoted = [repr(word) for word in words]
        raise program_error(
            settings.ROW["dense"].rule,
            f"plan: exchange must be 'auto' or a dict of 'dense' ({', '.join(quoted[:-1])} or {quoted[-1]}) "
            f"and 'sparse' ({quoted[0]}), not {exchange!r}",
        )
    chosen: str = exchange.get("dense", words[0])
    return chosen


def ids_of_trainers(trainers: int, ids: Iterable[object] | None) -> list[int]:
    """Returns the ids of the trainers whose programs are made: all if `ids` is None. C++ rejects ids out of range."""
    numbers: Iterable[object] = range(min(trainers, MOST_TRAINERS)) if ids is None else ids
    return [check_count("trainer_id", trainer_id) for trainer_id in numbers]


def _both() -> ProgramError:
    return program_error("E-plan-sync-mode", "plan: runtime_split_send_recv=True needs sync_mode=False; it is True")
