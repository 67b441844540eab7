"""TrainerFactory makes the TrainerDesc that a program asks for; FetchHandlerMonitor watches variables of a scope."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import numpy

from penstock._src.base import log
from penstock._src.base.errors import not_built, state_error
from penstock._src.executor import device_worker, trainer_desc
from penstock._src.ir.variable import Variable

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import ModuleType
    from typing import Any, TypeVar

    from penstock._penstock import Scope
    from penstock._src.executor.fetch_handler import FetchHandler
    from penstock._src.ir.typing import Array

    T = TypeVar("T")


_SETTINGS = (
    "dump_slot",
    "mpi_rank",
    "mpi_size",
    "dump_fields",
    "dump_fields_path",
    "dump_file_num",
    "dump_converter",
    "dump_param",
)


class TrainerFactory:
    """Makes the TrainerDesc that a program asks for, with its device worker: `_create_trainer(opt_info)`.

    `opt_info` is a dict with 'trainer' and 'device_worker', names of classes, and settings such as 'dump_fields';
    without it the classes are MultiTrainer and Hogwild. Classes and settings of pslib raise NotImplementedError.

    Example:
        trainer = fluid.trainer_factory.TrainerFactory()._create_trainer(
            {'trainer': 'DistMultiTrainer', 'device_worker': 'Hogwild', 'dump_fields': ['loss']})
        assert trainer.proto_desc.dump_fields == ['loss']
    """

    def _create_trainer(self, opt_info: Mapping[str, Any] | None = None) -> trainer_desc.TrainerDesc:
        facts = opt_info or {"trainer": "MultiTrainer", "device_worker": "Hogwild"}
        if facts["device_worker"] in device_worker.DOWNPOUR or "fleet_desc" in facts:
            raise not_built("TrainerFactory: " + device_worker.NO_PSLIB)
        trainer = _made("trainer", trainer_desc.TrainerDesc, trainer_desc, facts["trainer"])
        for name in _SETTINGS:
            if facts.get(name) is not None:
                getattr(trainer, "_set_" + name)(facts[name])
        trainer._set_device_worker(
            _made("device_worker", device_worker.DeviceWorker, device_worker, facts["device_worker"])
        )
        return trainer


def _made(what: str, base: type[T], module: ModuleType, name: str) -> T:
    kind = vars(module).get(name)
    if not isinstance(kind, type) or not issubclass(kind, base):
        raise ValueError(f"TrainerFactory: there is no {what} {name!r}")
    return kind()


class FetchHandlerMonitor:
    """Hands values of variables in a scope to a FetchHandler, from a thread of its own, once in each period.

    A key whose variable has no value yet gets None. A value that a program is changing meanwhile may be partly old.
    train_from_dataset(fetch_handler=...) needs no monitor.

    Args:
        scope (Scope): has the variables.
        handler (FetchHandler): its `var_dict` says which ones, its `period_secs` how often.

    Example:
        class Print(fluid.executor.FetchHandler):
            def handler(self, res_dict):
                print(res_dict['weights'])

        w = fluid.layers.create_parameter([2, 3], 'float32', name='w')
        monitor = fluid.trainer_factory.FetchHandlerMonitor(fluid.global_scope(), Print({'weights': w}, period_secs=60))
        monitor.start()
        fluid.Executor(fluid.CPUPlace()).run(fluid.default_startup_program())
        monitor.stop()
    """

    def __init__(self, scope: Scope, handler: FetchHandler) -> None:
        self._scope, self._handler = scope, handler
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        for key, var in handler.var_dict.items():
            if not isinstance(var, Variable):
                log.warning(f"FetchHandlerMonitor: the value of {key} is not a Variable, so the handler gets None")

    def start(self) -> None:
        """Starts the thread.

        Raises:
            RuntimeError: it runs already.
        """
        if self._thread is not None:
            raise state_error("E-trainer-monitor", "FetchHandlerMonitor: it has been started already")
        self._ended.clear()
        self._thread = threading.Thread(target=self._watch, daemon=True, name="penstock-fetch-handler")
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread, after the call of the handler that is in progress. Without a thread it does nothing."""
        self._ended.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()
        self._thread = None

    def _watch(self) -> None:
        while not self._ended.wait(self._handler.period_secs):
            self._handler.handler({key: self._value_of(var) for key, var in self._handler.var_dict.items()})

    def _value_of(self, var: object) -> Array | None:
        held = self._scope.find_var(var.name) if isinstance(var, Variable) else None
        tensor = None if held is None else held.get_tensor()
        return numpy.array(tensor) if tensor is not None and tensor._is_initialized() else None
