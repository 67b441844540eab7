"""The settings of the C++ call, from the arguments of DistributeTranspiler.transpile and the fields of its config."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock import _penstock
from penstock._src.base.errors import program_error
from penstock._src.transpile import ps_dispatcher
from penstock._src.transpile.addresses import addresses_of, endpoints_if_counted
from penstock._src.transpile.config import check_count, check_flag, give

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypeVar

    from penstock._penstock import TranspileConfig
    from penstock._src.transpile.config import DistributeTranspilerConfig
    from penstock._src.transpile.ps_dispatcher import PSDispatcher

    T = TypeVar("T")


def native_config(
    given: DistributeTranspilerConfig,
    kind: str,
    trainer_id: int,
    pservers: Sequence[str] | str,
    trainers: Sequence[str] | int | str,
    sync_mode: bool | None,
    slice_var_up: bool | None,
    split_method: type[PSDispatcher] | None,
) -> TranspileConfig:
    """Returns the settings of one trainer's job: the fields of `given`, whose mode is `kind`, and the arguments."""
    given.validate()
    if sync_mode is not None:
        sync_mode = check_flag("sync_mode", sync_mode)
    if slice_var_up is not None:
        slice_var_up = check_flag("slice_var_up", slice_var_up)
    ps_dispatcher.check(split_method)
    config = _penstock.TranspileConfig()
    config.kind = kind
    config.trainer_ids = [check_count("trainer_id", trainer_id)]
    give(given, config, "policies")
    if kind in ("nccl2", "collective"):
        _describe_ranks(given, kind, trainers, config)
        config.bn_sync = "none"  # which has an effect with pservers only
        return config
    if config.dense != "pserver" or config.on_uneven:
        _describe_ranks(given, kind, endpoints_if_counted(trainers), config)
    else:
        config.trainers = check_count("trainers", trainers)
    config.pservers = addresses_of(pservers)
    give(given, config, "placement", "mode")
    config.slice_params = bool(_merged(given, "slice_var_up", slice_var_up))
    config.allow_small_blocks = True
    ps_dispatcher.choose(_merged(given, "split_method", split_method), config)
    config.sync_mode_argument = sync_mode
    return config


def _describe_ranks(
    given: DistributeTranspilerConfig, kind: str, trainers: Sequence[str] | int | str, config: TranspileConfig
) -> None:
    if isinstance(trainers, (str, list, tuple)):
        config.trainer_addresses = addresses_of(trainers, "trainers")
        config.trainers = len(config.trainer_addresses)
    elif isinstance(trainers, int) and not isinstance(trainers, bool):
        config.trainers = trainers
    else:
        raise program_error(
            "E-plan-rank-addresses",
            f"plan: mode {kind} needs the address of each trainer, comma-separated or in a list, not "
            f"{trainers!r}; give trainers='10.0.0.1:6170,10.0.0.2:6170', say",
        )
    give(given, config, "ranks")


def _merged(given: DistributeTranspilerConfig, field: str, argument: T | None) -> T | None:
    """Returns the argument if it was given, otherwise the config's value; they must not contradict each other."""
    value: T | None = getattr(given, field)
    if argument is None:
        return value
    if given.is_set(field) and value is not None and value != argument:
        shown = [one.__name__ if isinstance(one, type) else repr(one) for one in (argument, value)]
        raise program_error(
            f"E-plan-{field.replace('_', '-')}",
            f"plan: transpile() was given {field}={shown[0]} and its config says {field}={shown[1]}; give one of "
            "them, or the same value twice",
        )
    return argument
