"""Communicator: sends and receives for trainer programs of runtime_split_send_recv and geo-SGD."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock import _penstock
from penstock._src.ir.program import Program
from penstock._src.transpile.config import DistributedMode

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    _GeoVariable = tuple[str, bool, list[tuple[str, str, int]]]  # parameter, is it sparse, its pieces


_MODES = {
    DistributedMode.SYNC: _penstock.CommunicatorMode.SYNC,
    DistributedMode.ASYNC: _penstock.CommunicatorMode.ASYNC,
    DistributedMode.HALF_ASYNC: _penstock.CommunicatorMode.HALF_ASYNC,
    DistributedMode.GEO: _penstock.CommunicatorMode.GEO,
}

_QUEUE, _MERGE = "communicator_send_queue_size", "communicator_max_merge_var_num"
_WAITS, _ROUNDS = "communicator_send_wait_times", "communicator_min_send_grad_num_before_recv"
_APART = "communicator_independent_recv_thread"
_DEFAULTS = {_QUEUE: 1, _MERGE: 1, _WAITS: 5, _ROUNDS: 1, _APART: 1}
_WITHOUT_EFFECT = frozenset(
    ("communicator_thread_pool_size", "communicator_is_sgd_optimizer", "rpc_deadline", "rpc_retry_times")
)
_GEO_VARS, _GEO_TRAINERS, _GEO_STEPS = "geo_send_varnames", "geo_trainer_nums", "geo_need_push_nums"
_MOST = 1_000_000


class Communicator:
    """Sends gradients and fetches parameters in the background, for trainer programs that do not do so themselves.

    Such programs are those of `runtime_split_send_recv` and of geo-SGD. A process runs one communicator at a time:
    create it from the trainer's program, call `start` before the first step and `stop` after the last.

    Args:
        program (Program): the trainer's program, which is not changed; parameters may change at its recv ops.
        mode (int): one of DistributedMode: SYNC (completely_not_async), HALF_ASYNC, ASYNC or GEO.
        kwargs (dict | None): mode SYNC: {'pserver_endpoints': [...], 'trainer_id': n}, which must agree with the
            program. Mode GEO: {'push_vars': t._get_vars_info(), 'trainers': n, 'push_nums': k}, required if the program
            contains no plan (Fluid's programs do not); `push_nums` takes precedence over the plan.
        envs (dict | None): settings, whose values are ints or numerals. Mode GEO accepts Fluid's spelling of kwargs:
            geo_send_varnames, geo_trainer_nums, geo_need_push_nums and 'pieces#rows#addresses#is_sparse' for each
            parameter. Mode ASYNC takes

            * communicator_send_queue_size (1): the maximum number of gradients of a variable that wait to be sent,
            * communicator_max_merge_var_num (1): the maximum number of them that are sent as one, their mean,
            * communicator_send_wait_times (5): how long to wait for more gradients to merge, in units of 10 ms,
            * communicator_min_send_grad_num_before_recv (1): parameters are fetched after more than this number of
              rounds,
            * communicator_independent_recv_thread (1): 0: the sending thread also fetches parameters.

            A step waits until the fetched parameters contain all gradients of this trainer but the newest
            send_queue_size + (1 + min_send_grad_num_before_recv) * max_merge_var_num of each variable (3 by default).

            communicator_thread_pool_size, communicator_is_sgd_optimizer, rpc_deadline and rpc_retry_times are accepted
            and have no effect.

    Raises:
        TypeError: `program` is not a Program.
        ValueError: an argument is invalid or contradicts the program.
        NotImplementedError: a parameter of geo-SGD is neither float32 nor float64.

    Example:
        from penstock.fluid.transpiler.distribute_transpiler import DistributedMode
        loss = fluid.layers.mean(fluid.layers.fc(fluid.data('x', [None, 4]), 1))
        fluid.optimizer.SGD(0.01).minimize(loss)
        config = fluid.DistributeTranspilerConfig()
        config.sync_mode, config.runtime_split_send_recv, config.completely_not_async = False, True, True
        t = fluid.DistributeTranspiler(config)
        t.transpile(0, pservers='127.0.0.1:6174', trainers=2, sync_mode=False)
        communicator = fluid.communicator.Communicator(t.get_trainer_program(), DistributedMode.SYNC)
        assert not communicator.is_running()
    """

    def __init__(
        self,
        program: Program,
        mode: int,
        kwargs: Mapping[str, Any] | None = None,
        envs: Mapping[str, str | int] | None = None,
    ) -> None:
        if not isinstance(program, Program):
            raise TypeError(f"Communicator takes the Program of a trainer, not {type(program).__name__}")
        if mode not in _MODES:
            raise ValueError(f"the mode of a Communicator must be one of DistributedMode, not {mode!r}")
        self._program = program
        self._mode = _MODES[mode]
        said, settings = dict(kwargs or {}), dict(envs or {})
        geo = _take_geo(settings) if mode == DistributedMode.GEO else {}
        self._settings = dict(_DEFAULTS, **_numbers(settings))
        self._started = False
        self._geo: tuple[list[_GeoVariable], int, int] | None = None
        if mode == DistributedMode.GEO:
            self._geo = _geo_settings(program, dict(geo, **said))
            _penstock.check_geo_communicator(program.desc, *self._geo)
        else:
            _penstock.check_communicator(program.desc, self._mode)
            _check_agrees(program, said)

    def start(self) -> None:
        """Starts the communicator; from then on the program's steps send and receive through it."""
        settings = self._settings
        if self._geo is not None:
            _penstock.start_geo_communicator(self._program.desc, *self._geo)
            self._started = True
            return
        _penstock.start_communicator(
            self._program.desc,
            self._mode,
            queue_max=settings[_QUEUE],
            merge_max=settings[_MERGE],
            patience_ms=10 * settings[_WAITS],
            rounds_before_receive=settings[_ROUNDS],
            receives_apart=settings[_APART] != 0,
        )
        self._started = True

    def stop(self) -> None:
        """Sends waiting gradients and stops; has no effect if the communicator does not run."""
        if self.is_running():
            self._started = False
            _penstock.stop_communicator()

    def is_running(self) -> bool:
        """Returns whether the communicator was started and has not stopped.

        Returns:
            bool: True if the communicator runs.
        """
        return self._started and _penstock.communicator_runs()


def _take_geo(envs: dict[str, str | int]) -> dict[str, Any]:
    """Removes the settings of geo-SGD from `envs` and returns them as kwargs."""
    said: dict[str, Any] = {}
    for key, name in (("trainers", _GEO_TRAINERS), ("push_nums", _GEO_STEPS)):
        if name in envs:
            said[key] = envs.pop(name)
    if _GEO_VARS not in envs:
        return said
    said["push_vars"] = {}
    for param in str(envs.pop(_GEO_VARS)).split("#"):
        fields = str(envs.pop(param, "")).split("#")
        if len(fields) != 4:
            raise ValueError(f"envs: {param} must be 'pieces#rows#addresses#is_sparse', each joined by '&'")
        said["push_vars"][param] = dict(
            zip(("var_names", "sections", "epmap", "is_sparse"), (field.split("&") for field in fields))
        )
    return said


def _geo_settings(program: Program, said: Mapping[str, Any]) -> tuple[list[_GeoVariable], int, int]:
    """Returns (variables, trainers, steps between two exchanges) for _penstock, from `said` or the plan."""
    plan = _penstock.geo_plan(program.desc)
    if plan is None and not {"push_vars", "trainers", "push_nums"} <= said.keys():
        raise ValueError(
            "kwargs: the program contains no plan, so mode GEO needs 'push_vars' (of "
            "GeoSgdTranspiler._get_vars_info()), 'trainers' and 'push_nums'"
        )
    params, trainers, push_every = plan or ((), None, None)
    numbers = {}
    for key, planned in (("trainers", trainers), ("push_nums", push_every)):
        try:
            numbers[key] = int(said.get(key, planned))
        except (TypeError, ValueError):
            raise ValueError(f"kwargs: {key} must be a whole number, not {said[key]!r}") from None
        if not 1 <= numbers[key] <= _MOST:
            raise ValueError(f"kwargs: {key} must be from 1 to {_MOST}, not {numbers[key]}")
    if trainers is not None and numbers["trainers"] != trainers:
        raise ValueError(f"kwargs: trainers is {numbers['trainers']}, but the program says {trainers}")
    if "push_vars" in said:
        variables = [_geo_variable(param, info) for param, info in said["push_vars"].items()]
    else:
        variables = [
            (param, sparse, [(name, address, end - begin) for name, begin, end, address in pieces])
            for param, _, _, _, sparse, _, pieces in params
        ]
    return variables, numbers["trainers"], numbers["push_nums"]


def _geo_variable(param: str, info: Mapping[str, Any]) -> _GeoVariable:
    try:
        names, rows, addresses = info["var_names"], [int(each) for each in info["sections"]], info["epmap"]
        sparse = str(info["is_sparse"][0]) == "True"
    except (KeyError, IndexError, TypeError, ValueError):
        raise ValueError(
            f"kwargs: push_vars of {param} must have the form that GeoSgdTranspiler._get_vars_info() returns"
        ) from None
    if not len(names) == len(rows) == len(addresses):
        raise ValueError(
            f"kwargs: push_vars of {param} has {len(names)} names, {len(rows)} numbers of rows and {len(addresses)} "
            "addresses"
        )
    return param, sparse, list(zip(names, addresses, rows))


def _numbers(envs: Mapping[str, str | int]) -> dict[str, int]:
    """Returns the settings as integers; raises for settings that Fluid's communicators do not have."""
    numbers = {}
    for name, value in envs.items():
        if name not in _DEFAULTS and name not in _WITHOUT_EFFECT:
            raise ValueError(
                f"envs: a communicator has no setting {name!r}; there are "
                f"{', '.join(sorted(_DEFAULTS) + sorted(_WITHOUT_EFFECT))}"
            )
        least = 1 if name in (_QUEUE, _MERGE) else 0
        try:
            numbers[name] = int(value)
        except (TypeError, ValueError):
            raise ValueError(f"envs: {name} must be a whole number, not {value!r}") from None
        if name in _DEFAULTS and not least <= numbers[name] <= _MOST:
            raise ValueError(f"envs: {name} must be from {least} to {_MOST}, not {numbers[name]}")
    return numbers


def _check_agrees(program: Program, kwargs: Mapping[str, Any]) -> None:
    """Raises if kwargs contradict the program."""
    attrs = {"pserver_endpoints": "endpoints", "trainer_id": "trainer_id"}
    for op in program.global_block().ops:
        if op.type != "send_barrier":
            continue
        for name, attr in attrs.items():
            if name in kwargs and kwargs[name] != op.attr(attr):
                raise ValueError(f"kwargs: {name} is {kwargs[name]!r}, but the program says {op.attr(attr)!r}")
